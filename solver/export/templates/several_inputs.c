/* The input of a controller that holds it for $seconds s: u = grad g~(w - P (u - trim)), by repeated linear solutions. */
static void act(${to}const real *x, const real *B, const real *w, real *u) {
    real p[INPUTS][INPUTS], at[INPUTS], away[INPUTS], row[INPUTS][INPUTS + 1];
    steepness(${pass}x, B, w, p);
    for (int k = 0; k < INPUTS; k++) at[k] = w[k];
    for (int i = 0; i < $contractions; i++) {
        for (int k = 0; k < INPUTS; k++) away[k] = REAL(fabs)(at[k]) < (real)$small ? (real)$small : at[k];
        ${optimal}away, u);
        for (int j = 0; j < INPUTS; j++) {
            for (int k = 0; k < INPUTS; k++) row[j][k] = (j == k) + p[j][k] * (u[k] - ${of}trim[k]) / away[k];
            row[j][INPUTS] = w[j];
        }
        for (int j = 0; j < INPUTS; j++) /* elimination; the pivots are positive */
            for (int r = j + 1; r < INPUTS; r++)
                for (int k = INPUTS; k >= j; k--) row[r][k] -= row[r][j] / row[j][j] * row[j][k];
        for (int j = INPUTS - 1; j >= 0; j--) {
            at[j] = row[j][INPUTS];
            for (int k = j + 1; k < INPUTS; k++) at[j] -= row[j][k] * at[k];
            at[j] /= row[j][j];
        }
    }
    ${optimal}at, u);
}
