/* The input that maximises the Hamiltonian, grad g~(w). */
static void act(const real *x, const real *B, const real *w, real *u) {
    (void)x;
    (void)B;
    ${name}_optimal_input(w, u);
}
