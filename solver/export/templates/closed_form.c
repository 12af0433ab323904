/* The input that maximises the Hamiltonian, grad g~(w). */
static void act(${to}const real *x, const real *B, const real *w, real *u) {
$unused    (void)x;
    (void)B;
    ${optimal}w, u);
}
