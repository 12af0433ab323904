/* rotation_features */
    for (int r = 0; r < ROTATIONS; r++) matrix(x + quaternion[r], z + FEATURES - 9 * (ROTATIONS - r));
/* rotation_error */
        if (rotation_at(i)) {
            turn_between(target + i, x + i, error + e);
            i += 3;
            e += 2;
            continue;
        }
/* rotation_slope */
        if (rotation_at(i)) {
            for (int k = e; k < e + 3; k++) slopes[k] *= -2;
            slope_between(target + i, x + i, slopes + e, gradient + i);
            i += 3;
            e += 2;
            continue;
        }
/* rotation_gradient */
    for (int r = 0; r < ROTATIONS; r++) {
        const int at = FEATURES - 9 * (ROTATIONS - r);
        slope_of_matrix(x + quaternion[r], z + at, dz + at, gradient + quaternion[r]);
    }
/* rotation_limit */
    limit_rotations(x);
/* rotation_moved */
        if (rotation_at(i)) {
            turn(x + i, error + e);
            i += 3;
            e += 2;
            continue;
        }
/* rotation_begin */
        if (rotation_at(i)) {
            real K[3][4];
            turns_of(x + i, K);
            for (int j = 0; j < 4; j++)
                for (int a = 0; a < 3; a++) D[i + j][e + a] = K[a][j] / 2;
            i += 3;
            e += 2;
            continue;
        }
/* rotation_end */
    to_errors(x, D);
/* rotation_seen */
    normalise_rotations(seen);
