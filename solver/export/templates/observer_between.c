        if (SENSORS == POSITIONS && o->measured == 1) { /* a linearisation about rest is wrong by the square of the velocities */
            real apart[POSE];
            errors_between(seen, about, POSITIONS, apart);
            for (int e = 0; e < POSE; e++) about[POSITIONS + e] = apart[e] / (real)$period;
            confine(about);
        }
