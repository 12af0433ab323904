/* $name: what an FMU of modelgen is inside; made by modelgen, not to be edited. */
#ifndef $NAME_FMU_H
#define $NAME_FMU_H

$includes
/* Value references: 0 to VALUES - 1, then the time. */
enum { STATES = $states, VALUES = $values };

/* Everything that an instance remembers. */
typedef struct {
    double value[VALUES], time, begin;  /* begin: the time of the initialisation */
    int fresh;  /* whether the outputs are those of the other values */
$memory
} $name_fmu;

extern const char *const $name_fmu_token;
extern const double $name_fmu_nominal[STATES + 1];  /* sizes of the states */

/* Before the initialisation: all values at their start. */
void $name_fmu_reset($name_fmu *f);

/* Whether a value may be set. */
int $name_fmu_settable(unsigned reference);

/* Whether a value is between min and max, if it is a parameter's. The last row ends the table. */
static inline int $name_fmu_within(unsigned reference, double value) {
    static const struct {
        unsigned reference;
        double lower, upper;
    } parameters[] = {$limits{VALUES, 0, 0}};
    for (int i = 0; parameters[i].reference < VALUES; i++)
        if (parameters[i].reference == reference) return value >= parameters[i].lower && value <= parameters[i].upper;
    return 1;
}

/* Computes outputs and derivatives. Returns 0 where one is not finite. */
int $name_fmu_refresh($name_fmu *f);

/* Moves on from f->time by some seconds. Returns 0 where a result is not finite. */
int $name_fmu_step($name_fmu *f, double seconds);

/* d value[unknown] / d value[known] at the present values. */
double $name_fmu_derivative(const double *jacobian, unsigned unknown, unsigned known);

/* What $name_fmu_derivative looks into, or 0. */
const double *$name_fmu_jacobian(const $name_fmu *f, double *space);
enum { JACOBIAN = $jacobian };

#endif
