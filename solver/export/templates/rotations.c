/* Rotations: unit quaternions (w, x, y, z) in the state, at these indices of w. */
static const int quaternion[] = {$quaternions};
static const real least[] = {$least_w}; /* of |w| of the rotation from the target */
static const real goal[] = {$goals}; /* quaternions of the target */

static void product(const real *p, const real *q, real *r) {
    r[0] = p[0] * q[0] - p[1] * q[1] - p[2] * q[2] - p[3] * q[3];
    r[1] = p[0] * q[1] + p[1] * q[0] + p[2] * q[3] - p[3] * q[2];
    r[2] = p[0] * q[2] - p[1] * q[3] + p[2] * q[0] + p[3] * q[1];
    r[3] = p[0] * q[3] + p[1] * q[2] - p[2] * q[1] + p[3] * q[0];
}

/* The rotation from p to q. */
static void between(const real *p, const real *q, real *apart) {
    const real back[4] = {p[0], -p[1], -p[2], -p[3]};
    product(back, q, apart);
}

static void matrix(const real *q, real *R) {
    const real w = q[0], x = q[1], y = q[2], z = q[3];
    R[0] = 1 - 2 * (y * y + z * z), R[1] = 2 * (x * y - w * z), R[2] = 2 * (x * z + w * y);
    R[3] = 2 * (x * y + w * z), R[4] = 1 - 2 * (x * x + z * z), R[5] = 2 * (y * z - w * x);
    R[6] = 2 * (x * z - w * y), R[7] = 2 * (y * z + w * x), R[8] = 1 - 2 * (x * x + y * y);
}

static void normalise(real *q) {
    const real length = REAL(sqrt)(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    for (int i = 0; i < 4; i++) q[i] /= length;
}

/* Scales every quaternion to length one. */
static void normalise_rotations(real *x) {
    for (int r = 0; r < ROTATIONS; r++) normalise(x + quaternion[r]);
}

/* Whether every rotation is within its limit. */
static int rotations_in_domain(const real *x) {
    for (int r = 0; r < ROTATIONS; r++) {
        real apart[4], q[4];
        for (int i = 0; i < 4; i++) q[i] = x[quaternion[r] + i];
        normalise(q);
        between(goal + 4 * r, q, apart);
        if (!(REAL(fabs)(apart[0]) >= least[r])) return 0;
    }
    return 1;
}

