$held_input

/* The input that holds the target, and the slope of the action cost there; in double also on a chip. */
static void hold(${name}_told *told) {
    real cost, curvature[INPUTS];
    double at[STATES], theta[$p], u0[INPUTS];
    for (int i = 0; i < STATES; i++) at[i] = target[i]$plus_shift;
    for (int p = 0; p < $p; p++) theta[p] = told->parameters[p];
    ${name}_trim(at, theta, u0);
    for (int k = 0; k < INPUTS; k++) told->trim[k] = (real)u0[k];
    ${name}_action_cost(told->trim, &cost, told->slope, curvature);
}
