    enum { PARTS = $parts };
    static const real form[PARTS][FEATURES * (FEATURES + 1) / 2] = { /* of the errors, by 1, level and cost */
$form
    };
    real part[PARTS] = {1, (real)$share / number[0]}, sum[FEATURES * (FEATURES + 1) / 2] = {0};
    real factor[ERRORS][ERRORS] = {{0}}, pivot[ERRORS], *next = part + 2, *of_form = sum;
    for (int i = 0, at = 1; i < ERRORS; i++) {
        for (int j = 0; j < i; j++) factor[i][j] = number[at++];
        factor[i][i] = 1;
        pivot[i] = 1 / number[at++];
    }
    for (int i = 0; i < ERRORS; i++)
        for (int j = 0; j <= i; j++) {
            *next = 0;
            for (int l = 0; l <= j; l++) *next += factor[i][l] * factor[j][l] * pivot[l];
            told->cost[i][j] = told->cost[j][i] = *next++;
        }
    for (int p = 0; p < PARTS; p++)
        for (int j = 0; j < FEATURES * (FEATURES + 1) / 2; j++) sum[j] += part[p] * form[p][j];
    told->level = part[1];
    told->bend = part[1] > 0 ? 1 / ((real)$reach * part[1]) : 0;
    for (int i = 0; i < FEATURES; i++) /* Cholesky's decomposition of the form */
        for (int j = 0; j < FEATURES; j++) {
            real rest = j <= i ? *of_form++ : 0;
            for (int l = 0; l < j && j <= i; l++) rest -= told->metric[i][l] * told->metric[j][l];
            told->metric[i][j] = j > i ? 0 : j == i ? REAL(sqrt)(rest) : rest / told->metric[j][j];
        }
