static const real bound[STATES] = {$bounds}; /* of the domain */

static ${name}_watchdog in_domain(const real *x) {
    for (int i = 0; i < STATES; i++)
        if (!(REAL(fabs)(x[i]) <= bound[i])) return ${NAME}_OUT_OF_DOMAIN;
    return $rotations_inside ? ${NAME}_IN_DOMAIN : ${NAME}_OUT_OF_DOMAIN;
}

static int is_finite(const real *x) {
    for (int i = 0; i < STATES; i++)
        if (!isfinite(x[i])) return 0;
    return 1;
}

/* The state that everything is computed at: entries beyond `farthest` count as that, and one that is not finite as NaN. */
static void confine(const real *x, real *y) {
    static const real farthest[STATES] = {$farthest};
    for (int i = 0; i < STATES; i++) {
        y[i] = x[i] > farthest[i] ? farthest[i] : x[i] < -farthest[i] ? -farthest[i] : x[i];
        if (!isfinite(x[i])) y[i] = x[i] - x[i];
    }
$normalise_rotations}
