/* What the estimated parameters change at the inputs: with s added to the trim, the robot of the model has at the target
 * the accelerations of the robot with theta and the trim, in least squares in units of the state limits. */
static void shift(const real *theta, real *s) {
    static const real target[STATES] = {$target};
    real nominal[STATES], changed[STATES], B[STATES][INPUTS], M[INPUTS][INPUTS + 1] = {{0}};
    rate(target, trim, $nominal, nominal);
    rate(target, trim, theta, changed);
    ${name}_affine_dynamics(target, theta, (real[STATES]){0}, B[0]);
    for (int i = 0; i < STATES; i++)
        for (int k = 0; k < INPUTS; k++) {
            const real row = B[i][k] / (limit[i] * limit[i]);
            for (int l = 0; l < INPUTS; l++) M[k][l] += row * B[i][l];
            M[k][INPUTS] += row * (changed[i] - nominal[i]);
        }
    for (int k = 0; k < INPUTS; k++) /* M is symmetric and has no negative pivot; a zero one is of an input without effect */
        for (int l = k + 1; l < INPUTS && M[k][k] > 0; l++) {
            const real factor = M[l][k] / M[k][k];
            for (int j = k; j <= INPUTS; j++) M[l][j] -= factor * M[k][j];
        }
    for (int k = INPUTS - 1; k >= 0; k--) {
        for (int l = k + 1; l < INPUTS; l++) M[k][INPUTS] -= M[k][l] * s[l];
        s[k] = M[k][k] > 0 ? M[k][INPUTS] / M[k][k] : 0;
    }
}
