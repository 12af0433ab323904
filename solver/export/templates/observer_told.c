    static const int place[$k] = {$places}; /* of theta: what the policy is told, within its ranges */
    static const real middle[$k] = {$middles}, half[$k] = {$halves}, along[$k][STATES] = {$along};
    real known[PARAMETERS], u0[INPUTS];
    memcpy(known, $nominal, sizeof known);
    for (int i = 0; i < $k; i++) {
        const real c = (theta[place[i]] - middle[i]) / half[i], within = c > 1 ? 1 : c < -1 ? -1 : c;
        known[place[i]] = middle[i] + half[i] * within;
        for (int s = 0; s < STATES; s++) at[s] += along[i][s] * within; /* the target of the references */
    }
$trim_at
