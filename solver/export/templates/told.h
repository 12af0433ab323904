/* What the policy is told. SI units. */
typedef struct {
$members_of_context
} ${name}_context;

/* The robot of the model file; ranges of the training; and whether a context is within them. */
#define ${NAME}_CONTEXT_NOMINAL {$nominal_context}
$ranges
#define ${NAME}_CONTEXT_IN_RANGE(context) ($all_in_range)

/* The policy of one robot: all that depends on the context. Written by ${name}_tell. */
typedef struct {
    ${name}_real parameters[$p]; /* of the robot: nominal, but those of the context */
    ${name}_real entries[$k];    /* the context, from -1 at the lower to 1 at the upper end of the ranges */
    ${name}_real trim[$m], slope[$m]; /* the input that holds the target, and the slope of the action cost there */
$member_shift    ${name}_real $members_of_form;
} ${name}_told;

/* Makes the policy of a robot: at the start, and when the context changes; it takes about as long as ${name}_policy.
 * Returns 1, or 0 where the context is out of its ranges: the policy is then that of the nearest robot in range, and an
 * entry that is not a number counts as nominal. */
int ${name}_tell(const ${name}_context *context, ${name}_told *told);

