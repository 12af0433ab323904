$held_input/* What the estimated parameters change at the inputs, as far as the policy does not know them: with s added to its trim, the
 * robot that it knows has at the target the accelerations of the robot with theta and the trim, in least squares in units
 * of the state limits. Of inputs that do the same, the first acts. */
static void shift(const real *theta, real *s) {
    real at[STATES] = {$target}, usual[STATES], changed[STATES], B[STATES][INPUTS], M[INPUTS][INPUTS + 1] = {{0}}, own[INPUTS];
$policy_holds    rate(at, u0, known, usual);
    rate(at, u0, theta, changed);
    ${name}_affine_dynamics(at, theta, (real[STATES]){0}, B[0]);
    for (int i = 0; i < STATES; i++)
        for (int k = 0; k < INPUTS; k++) {
            const real row = B[i][k] / (limit[i] * limit[i]);
            for (int l = 0; l < INPUTS; l++) M[k][l] += row * B[i][l];
            M[k][INPUTS] += row * (changed[i] - usual[i]);
        }
    for (int k = 0; k < INPUTS; k++) own[k] = M[k][k];
    for (int k = 0; k < INPUTS; k++) { /* M is symmetric and has no negative pivot, but for rounding */
        if (M[k][k] <= (real)1e-5 * own[k]) M[k][k] = 0;
        for (int l = k + 1; l < INPUTS && M[k][k] > 0; l++) {
            const real factor = M[l][k] / M[k][k];
            for (int j = k; j <= INPUTS; j++) M[l][j] -= factor * M[k][j];
        }
    }
    for (int k = INPUTS - 1; k >= 0; k--) {
        for (int l = k + 1; l < INPUTS; l++) M[k][INPUTS] -= M[k][l] * s[l];
        s[k] = M[k][k] > 0 ? M[k][INPUTS] / M[k][k] : 0;
    }
}
