/* The input of a controller that holds it for $seconds s: u = grad g~(w - p (u - trim)), by bisection. */
static void act(${to}const real *x, const real *B, const real *w, real *u) {
    real p[1][1], low = (real)$lower, high = (real)$upper, middle, at;
    steepness(${pass}x, B, w, p);
    for (int i = 0; i < $bisections; i++) {
        middle = (low + high) / 2;
        at = w[0] - p[0][0] * (middle - ${of}trim[0]);
        ${optimal}&at, u);
        if (u[0] > middle)
            low = middle;
        else
            high = middle;
    }
    at = w[0] - p[0][0] * ((low + high) / 2 - ${of}trim[0]);
    ${optimal}&at, u);
}
