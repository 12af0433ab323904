$held_input/* What the estimated parameters change at the inputs, as far as the policy does not know them: with s added to its trim, the
 * robot that it knows has at the target the accelerations of the robot with theta and the trim, in least squares in units
 * of the state limits. Of all s with this effect it is the smallest in units of the input limits. */
static void shift(const real *theta, real *s) {
    const real reach[INPUTS] = {$input_limits};
    real at[STATES] = {$target}, usual[STATES], changed[STATES], B[STATES][INPUTS], M[INPUTS][INPUTS + 1] = {{0}}, own[INPUTS], idle[INPUTS][INPUTS] = {{0}};
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
    for (int f = 0, many = 0; f < INPUTS; f++) { /* less its part along inputs that together do nothing */
        if (M[f][f] > 0) continue;
        real *v = idle[many];
        for (int k = f; k >= 0; k--) {
            real sum = 0;
            for (int l = k + 1; l <= f; l++) sum += M[k][l] * v[l];
            v[k] = k == f ? 1 : M[k][k] > 0 ? -sum / M[k][k] : 0;
        }
        for (int j = 0; j <= many; j++) {
            real *to = j < many ? v : s, *from = j < many ? idle[j] : v, along = 0, size = 0;
            for (int k = 0; k < INPUTS; k++) {
                const real share = from[k] / (reach[k] * reach[k]);
                along += share * to[k];
                size += share * from[k];
            }
            for (int k = 0; k < INPUTS; k++) to[k] -= along / size * from[k];
        }
        many++;
    }
}
