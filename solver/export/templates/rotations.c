/* quaternions */
/* Rotations: unit quaternions (w, x, y, z) in the state, at these indices of w. */
static const int quaternion[] = {$quaternions};
static const real least_w[] = {$least_w}; /* of |w| of the rotation from the target */
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

static void normalise(real *q) {
    const real length = REAL(sqrt)(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    for (int i = 0; i < 4; i++) q[i] /= length;
}

/* Scales every quaternion to length one. */
static void normalise_rotations(real *x) {
    for (int r = 0; r < ROTATIONS; r++) normalise(x + quaternion[r]);
}

/* errors */
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

/* policies */
static void matrix(const real *q, real *R) {
    const real w = q[0], x = q[1], y = q[2], z = q[3];
    R[0] = 1 - 2 * (y * y + z * z), R[1] = 2 * (x * y - w * z), R[2] = 2 * (x * z + w * y);
    R[3] = 2 * (x * y + w * z), R[4] = 1 - 2 * (x * x + z * z), R[5] = 2 * (y * z - w * x);
    R[6] = 2 * (x * z - w * y), R[7] = 2 * (y * z + w * x), R[8] = 1 - 2 * (x * x + y * y);
}

/* Whether every rotation is within its limit. */
static int rotations_in_domain(const real *x) {
    for (int r = 0; r < ROTATIONS; r++) {
        real apart[4], q[4];
        for (int i = 0; i < 4; i++) q[i] = x[quaternion[r] + i];
        normalise(q);
        between(goal + 4 * r, q, apart);
        if (!(REAL(fabs)(apart[0]) >= least_w[r])) return 0;
    }
    return 1;
}

/* slopes */
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

/* observers */
/* q turned by e, by half a turn at most. */
static void turn(real *q, const real *e) {
    real half[4] = {0, e[0] / 2, e[1] / 2, e[2] / 2}, from[4];
    const real square = half[1] * half[1] + half[2] * half[2] + half[3] * half[3];
    for (int k = 1; k < 4 && square > 1; k++) half[k] /= REAL(sqrt)(square);
    half[0] = square < 1 ? REAL(sqrt)(1 - square) : 0;
    memcpy(from, q, sizeof from);
    product(from, half, q);
}

/* K, with dq = K^T e / 2 and e = 2 K dq for small turns e: the products of q with the units x, y and z. */
static void turns_of(const real *q, real K[3][4]) {
    for (int a = 0; a < 3; a++) {
        real unit[4] = {0};
        unit[a + 1] = 1;
        product(q, unit, K[a]);
    }
}

/* Derivatives of the errors from x, in the first rows of D, from those of the state. */
static void to_errors(const real *x, real D[STATES][COLUMNS]) {
    for (int i = 0, e = 0; i < STATES; i++, e++) {
        if (!rotation_at(i)) {
            if (e < i) memcpy(D[e], D[i], sizeof *D);
            continue;
        }
        real K[3][4];
        turns_of(x + i, K);
        for (int c = 0; c < COLUMNS; c++) {
            real turns_[3] = {0};
            for (int a = 0; a < 3; a++)
                for (int j = 0; j < 4; j++) turns_[a] += 2 * K[a][j] * D[i + j][c];
            for (int a = 0; a < 3; a++) D[e + a][c] = turns_[a];
        }
        i += 3;
        e += 2;
    }
}

/* Scales every quaternion to length one. A rotation beyond its limit ends at it. */
static void limit_rotations(real *x) {
    normalise_rotations(x);
    for (int r = 0; r < ROTATIONS; r++) {
        real apart[4];
        between(goal + 4 * r, x + quaternion[r], apart);
        if (!(REAL(fabs)(apart[0]) < least_w[r])) continue;
        const real square = apart[1] * apart[1] + apart[2] * apart[2] + apart[3] * apart[3];
        for (int k = 1; k < 4; k++) apart[k] *= REAL(sqrt)((1 - least_w[r] * least_w[r]) / square);
        apart[0] = apart[0] < 0 ? -least_w[r] : least_w[r];
        product(goal + 4 * r, apart, x + quaternion[r]);
    }
}

