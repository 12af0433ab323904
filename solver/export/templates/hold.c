static const int moving[] = {$held}; /* states whose rates are zero at the target */
static const real state_limit[STATES] = {$state_limits}, span[INPUTS] = {$limits};

/* Smallest input that holds the target, or comes nearest to it, in units of half the ranges; in double also on a chip. */
static void hold(${name}_told *told) {
    real a[STATES], B[STATES][INPUTS], cost, curvature[INPUTS];
    double M[INPUTS][INPUTS + 1] = {{0}}, size = 0, share[INPUTS];
$held_target    ${name}_affine_dynamics($at_target_state, told->parameters, a, B[0]);
    for (int h = 0; h < $helds; h++) {
        const int i = moving[h];
        for (int k = 0; k < INPUTS; k++) {
            const double row = (double)(B[i][k] * span[k]) / state_limit[i];
            for (int l = 0; l < INPUTS; l++) M[k][l] += row * B[i][l] * span[l] / state_limit[i];
            M[k][INPUTS] -= row * a[i] / state_limit[i];
        }
    }
    for (int k = 0; k < INPUTS; k++) size += M[k][k];
    for (int k = 0; k < INPUTS; k++) M[k][k] += $regular * (size > 1e-12 ? size : 1e-12);
    for (int k = 0; k < INPUTS; k++) /* M is symmetric and positive definite */
        for (int l = k + 1; l < INPUTS; l++)
            for (int j = INPUTS; j >= k; j--) M[l][j] -= M[l][k] / M[k][k] * M[k][j];
    for (int k = INPUTS - 1; k >= 0; k--) {
        for (int l = k + 1; l < INPUTS; l++) M[k][INPUTS] -= M[k][l] * share[l];
        share[k] = M[k][INPUTS] / M[k][k];
        told->trim[k] = (real)share[k] * span[k];
    }
    ${name}_action_cost(told->trim, &cost, told->slope, curvature);
}

