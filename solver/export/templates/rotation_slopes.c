static int rotation_at(int state) {
    for (int r = 0; r < ROTATIONS; r++)
        if (quaternion[r] == state) return 1;
    return 0;
}

/* e = 2 sign(w) (x, y, z) of the rotation from p to q. */
static void turn_between(const real *p, const real *q, real *e) {
    real apart[4];
    between(p, q, apart);
    for (int i = 0; i < 3; i++) e[i] = apart[0] < 0 ? -2 * apart[i + 1] : 2 * apart[i + 1];
}

/* dV/dq, tangent to the sphere, from dV by small turns in the turned frame. */
static void slope_of_turns(const real *q, const real *turns_, real *slope_) {
    const real doubled[4] = {0, 2 * turns_[0], 2 * turns_[1], 2 * turns_[2]};
    product(q, doubled, slope_);
}

/* dV/dq from dV/de. */
static void slope_between(const real *p, const real *q, const real *by_error, real *slope_) {
    real apart[4], g[3], turned[3];
    between(p, q, apart);
    for (int i = 0; i < 3; i++) g[i] = apart[0] < 0 ? -by_error[i] : by_error[i];
    turned[0] = apart[0] * g[0] - (apart[2] * g[2] - apart[3] * g[1]);
    turned[1] = apart[0] * g[1] - (apart[3] * g[0] - apart[1] * g[2]);
    turned[2] = apart[0] * g[2] - (apart[1] * g[1] - apart[2] * g[0]);
    slope_of_turns(q, turned, slope_);
}

/* dV/dq from dV/dR (9). */
static void slope_of_matrix(const real *q, const real *R, const real *by_R, real *slope_) {
    real turned[3] = {0, 0, 0};
    for (int j = 0; j < 9; j += 3) {
        turned[0] += by_R[j + 1] * R[j + 2] - by_R[j + 2] * R[j + 1];
        turned[1] += by_R[j + 2] * R[j] - by_R[j] * R[j + 2];
        turned[2] += by_R[j] * R[j + 1] - by_R[j + 1] * R[j];
    }
    slope_of_turns(q, turned, slope_);
}

