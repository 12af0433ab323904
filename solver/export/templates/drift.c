    for (int i = 0; i < STATES; i++) { /* x becomes the state that the trim reaches within the hold */
        for (int k = 0; k < INPUTS; k++) a[i] += B[i * INPUTS + k] * ${of}trim[k];
        x[i] += (real)$seconds * a[i];
    }
    confine(x, x);
    ${name}_affine_dynamics(x, $parameters, a, B);
