/* Reads rows of 2 states from the standard input and writes rows of 1 inputs, V, dV/dx, and whether the state is in the
 * domain; made by `solver export`.
 *     cc -std=c99 -O3 rod.c rod_policy.c rod_policy_driver.c -lm -o rod_policy
 */

#include <stdio.h>

#include "rod_policy.h"

int main(void) {
    rod_real x[2], out[1 + 1 + 2];
    for (;;) {
        for (int i = 0; i < 2; i++) {
            double value;
            if (scanf("%lf", &value) != 1) return i == 0 && feof(stdin) ? 0 : 1;
            x[i] = (rod_real)value;
        }
        const int inside = rod_policy(x, out);
        out[1] = rod_value(x, out + 1 + 1);
        for (int i = 0; i < 1 + 1 + 2; i++) printf("%.17g ", (double)out[i]);
        printf("%d\n", inside);
    }
}
