    double from[STATES], of[PARAMETERS], held[INPUTS];
    for (int i = 0; i < STATES; i++) from[i] = at[i];
    for (int p = 0; p < PARAMETERS; p++) of[p] = known[p];
    ${name}_trim(from, of, held);
    for (int k = 0; k < INPUTS; k++) u0[k] = (real)held[k];
