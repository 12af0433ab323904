    const real *next = number + 1;
    told->level = number[0];
    told->bend = number[0] > 0 ? 1 / ((real)$reach * number[0]) : 0;
    for (int i = 0; i < ERRORS; i++)
        for (int j = 0; j <= i; j++) told->cost[i][j] = told->cost[j][i] = *next++;
    for (int i = 0; i < FEATURES; i++) /* Cholesky's decomposition of the form */
        for (int j = 0; j < FEATURES; j++) {
            real rest = j <= i ? *next++ : 0;
            for (int l = 0; l < j && j <= i; l++) rest -= told->metric[i][l] * told->metric[j][l];
            told->metric[i][j] = j > i ? 0 : j == i ? REAL(sqrt)(rest) : rest / told->metric[j][j];
        }
