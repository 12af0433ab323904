static const real bound[STATES] = {$bounds}; /* of the domain */

static int in_domain(const real *x) {
    for (int i = 0; i < STATES; i++)
        if (!(REAL(fabs)(x[i]) <= bound[i])) return 0;
    return 1;
}

static int is_finite(const real *x) {
    for (int i = 0; i < STATES; i++)
        if (x[i] - x[i] != 0) return 0;
    return 1;
}
