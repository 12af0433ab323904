/* The optimal input where the action cost is measured from the trim. */
static void optimal(${to}const real *w, real *u) {
    real moved[INPUTS];
    for (int k = 0; k < INPUTS; k++) moved[k] = w[k] + ${slope}[k];
    ${name}_optimal_input(moved, u);
}

