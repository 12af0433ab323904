static const real trim[INPUTS] = {$trims}; /* holds the target */
