static const real limit[INPUTS] = {$limits};

/* -dw/du (INPUTS, INPUTS): chords between the trim and the closed form, and of them what a concave V may have. */
static void steepness(${to}const real *x, const real *B, const real *w, real p[INPUTS][INPUTS]) {
    real beside[STATES], moved[INPUTS], closed[INPUTS], chord[INPUTS][INPUTS];
    ${optimal}w, closed);
    for (int k = 0; k < INPUTS; k++) {
        real step = closed[k] - ${of}trim[k];
        if (REAL(fabs)(step) < (real)$shortest * limit[k]) step = REAL(copysign)((real)$shortest * limit[k], step);
        for (int i = 0; i < STATES; i++) beside[i] = x[i] + (real)$seconds * B[i * INPUTS + k] * step;
        slope(${pass}beside, B, moved);
        for (int j = 0; j < INPUTS; j++) chord[j][k] = (w[j] - moved[j]) / step;
    }
    for (int i = 0; i < INPUTS; i++)
        for (int k = 0; k <= i; k++) {
            chord[i][k] = chord[k][i] = (chord[i][k] + chord[k][i]) / 2;
            p[i][k] = p[k][i] = 0;
        }
    for (int j = 0; j < INPUTS; j++) {
        real column[INPUTS];
        for (int i = j; i < INPUTS; i++) {
            const real most = REAL(sqrt)(REAL(fmax)(chord[i][i], (real)0));
            const real root = REAL(sqrt)(REAL(fmax)(chord[j][j], (real)0));
            const real entry = chord[i][j] / REAL(fmax)(root, (real)$small);
            column[i] = entry > most ? most : entry < -most ? -most : entry;
        }
        for (int i = j; i < INPUTS; i++)
            for (int k = j; k < INPUTS; k++) {
                chord[i][k] -= column[i] * column[k];
                p[i][k] += column[i] * column[k];
            }
    }
}
