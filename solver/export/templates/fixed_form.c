/* The error is y = W^T e/sqrt(1 + bend |W^T e|^2) with e = z - at_target. */
static const real bend = (real)$bend, metric[FEATURES][FEATURES] = {
$metric
};

/* V is -e^T P e where this is below the level. */
static const real level = (real)$level, cost[ERRORS][ERRORS] = {
$cost
};

