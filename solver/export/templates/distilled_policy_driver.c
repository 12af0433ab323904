/* Reads rows of $n states$and_context from the standard input and writes rows of $m inputs and whether the state is in the domain;
 * made by `solver export --budget`.
 *     cc -std=c99 -O3 $name.c ${name}_policy.c ${name}_policy_driver.c -lm -o ${name}_policy
 */

#include <stdio.h>

#include "${name}_policy.h"

int main(void) {
    ${name}_real in[$n + $k], u[$m];
$told_in_driver    for (;;) {
        for (int i = 0; i < $n + $k; i++) {
            double value;
            if (scanf("%lf", &value) != 1) return i == 0 && feof(stdin) ? 0 : 1;
            in[i] = (${name}_real)value;
        }
$tell_in_driver        const int inside = (int)${name}_policy(${driver_pass}in, u);
        for (int k = 0; k < $m; k++) printf("%.17g ", (double)u[k]);
        printf("%d\n", inside);
    }
}
