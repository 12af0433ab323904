/* Reads rows of y and the $m inputs sent after it, one row a control period, and writes the $n states, $m disturbances
 * and $p parameters that the observer estimates, its normalised innovation and its likeliest filter; made by `solver export --observer`.
 *     cc -std=c99 -O3 $name.c ${name}_observer.c ${name}_observer_driver.c -lm -o ${name}_observer
 */

#include <stdio.h>

#include "${name}_observer.h"

int main(void) {
    ${name}_real in[${NAME}_SENSORS + $m], x[$n];
    ${name}_observer observer;
    ${name}_observer_reset(&observer);
    for (;;) {
        for (int i = 0; i < ${NAME}_SENSORS + $m; i++) {
            double value;
            if (scanf("%lf", &value) != 1) return i == 0 && feof(stdin) ? 0 : 1;
            in[i] = (${name}_real)value;
        }
        ${name}_observer_estimate(&observer, in, x);
        ${name}_observer_sent(&observer, in + ${NAME}_SENSORS);
        for (int i = 0; i < $n; i++) printf("%.17g ", (double)x[i]);
        const ${name}_filter *filter = &observer.filters[observer.likeliest];
        for (int k = 0; k < $m; k++) printf("%.17g ", (double)filter->disturbance[k]);
        for (int p = 0; p < $p; p++) printf("%.17g ", (double)filter->parameters[p]);
        printf("%.17g %d\n", (double)filter->innovation, observer.likeliest);
    }
}
