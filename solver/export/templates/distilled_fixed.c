/* tanh(gain z + level) is added to the last layer: the gain at the target is that of the run's policy. */
static const float gain[INPUTS][FEATURES] = {
$gain
};
static const float level[INPUTS] = {$level};

