    real z[FEATURES + ENTRIES], out[LAYERS + 1][WIDEST], back[LAYERS + 1][WIDEST];
    for (int i = 0; i < FEATURES; i++) z[i] = at_target[i];
    for (int i = 0; i < ENTRIES; i++) z[FEATURES + i] = told->entries[i];
    propagate(z, out);
    for (int k = 0; k < INPUTS; k++) { /* the derivative of an output, back through the layers */
        const float *layer = network + WEIGHTS - (INPUTS - k) * (1 + size[LAYERS]);
        for (int j = 0; j < size[LAYERS]; j++) back[LAYERS][j] = (real)layer[1 + j];
        layer = network + WEIGHTS - INPUTS * (1 + size[LAYERS]);
        for (int l = LAYERS; l > 0; l--) {
            layer -= size[l] * (1 + size[l - 1]);
            for (int i = 0; i < size[l - 1]; i++) back[l - 1][i] = 0;
            for (int j = 0; j < size[l]; j++) {
                const real slope = back[l][j] * (1 - out[l - 1][j] * out[l - 1][j]);
                const float *row = layer + j * (1 + size[l - 1]) + 1;
                for (int i = 0; i < size[l - 1]; i++) back[l - 1][i] += slope * (real)row[i];
            }
        }
        told->bias[k] = -out[LAYERS][k];
        told->level[k] = 0;
        for (int i = 0; i < FEATURES; i++) {
            told->gain[k][i] = number[k * FEATURES + i] - back[0][i];
            told->level[k] -= told->gain[k][i] * at_target[i];
        }
    }
