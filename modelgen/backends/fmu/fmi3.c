/* $name: the functions of FMI 3.0 (https://fmi-standard.org), for model exchange and co-simulation; made by modelgen,
 * not to be edited. A tool that links several FMUs statically defines FMI3_FUNCTION_PREFIX. */

#include "$name_fmu.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined _WIN32
#define EXPORT __declspec(dllexport)
#elif defined __GNUC__
#define EXPORT __attribute__((visibility("default")))
#else
#define EXPORT
#endif

#ifdef FMI3_FUNCTION_PREFIX
#define JOIN(a, b) a##b
#define JOINED(a, b) JOIN(a, b)
#define FMI(function) JOINED(FMI3_FUNCTION_PREFIX, fmi3##function)
#else
#define FMI(function) fmi3##function
#endif

typedef enum { OK, WARNING, DISCARD, ERROR, FATAL } Status;
typedef void (*Logger)(void *environment, Status status, const char *category, const char *message);
typedef $name_fmu Memory;

typedef struct {
    Memory now;
    void *environment;
    Logger log;
    bool logging;
} Instance;

typedef uint32_t Reference;
typedef const char *String;

static Status failed(const Instance *instance, Status status, const char *message) {
    if (instance->logging && instance->log) instance->log(instance->environment, status, "logStatusError", message);
    return status;
}

static Status not_finite(const Instance *instance) {
    return failed(instance, DISCARD, "a derivative or a state is not a finite number");
}

EXPORT const char *FMI(GetVersion)(void) { return "3.0"; }

EXPORT Status FMI(SetDebugLogging)(Instance *instance, bool on, size_t count, const String *categories) {
    (void)count;
    (void)categories;
    instance->logging = on;
    return OK;
}

static Instance *made(String token, bool logging, void *environment, Logger log) {
    if (!token || strcmp(token, $name_fmu_token)) {
        if (log) log(environment, ERROR, "logStatusError", "the instantiation token is that of another FMU");
        return NULL;
    }
    Instance *instance = calloc(1, sizeof *instance);
    if (!instance) return NULL;
    instance->environment = environment;
    instance->log = log;
    instance->logging = logging;
    $name_fmu_reset(&instance->now);
    return instance;
}

EXPORT Instance *FMI(InstantiateModelExchange)(String name, String token, String resources, bool visible, bool logging,
                                               void *environment, Logger log) {
    (void)name;
    (void)resources;
    (void)visible;
    return STATES ? made(token, logging, environment, log) : NULL;
}

EXPORT Instance *FMI(InstantiateCoSimulation)(String name, String token, String resources, bool visible, bool logging,
                                              bool event_mode, bool early_return, const Reference *intermediate,
                                              size_t count, void *environment, Logger log, void (*update)(void)) {
    (void)name;
    (void)resources;
    (void)visible;
    (void)event_mode;
    (void)early_return;
    (void)intermediate;
    (void)count;
    (void)update;
    return made(token, logging, environment, log);
}

EXPORT Instance *FMI(InstantiateScheduledExecution)(String name, String token, String resources, bool visible,
                                                    bool logging, void *environment, Logger log, void (*update)(void),
                                                    void (*lock)(void), void (*unlock)(void)) {
    (void)name;
    (void)token;
    (void)resources;
    (void)visible;
    (void)logging;
    (void)update;
    (void)lock;
    (void)unlock;
    if (log) log(environment, ERROR, "logStatusError", "this FMU has no scheduled execution");
    return NULL;
}

EXPORT void FMI(FreeInstance)(Instance *instance) { free(instance); }

EXPORT Status FMI(EnterInitializationMode)(Instance *instance, bool given, double tolerance, double start, bool ends,
                                           double stop) {
    (void)given;
    (void)tolerance;
    (void)ends;
    (void)stop;
    instance->now.time = instance->now.begin = start;
    return OK;
}

EXPORT Status FMI(Reset)(Instance *instance) {
    $name_fmu_reset(&instance->now);
    return OK;
}

#define NOTHING(function) \
    EXPORT Status FMI(function)(Instance * instance) { \
        (void)instance; \
        return OK; \
    }
NOTHING(ExitInitializationMode)
NOTHING(EnterEventMode)
NOTHING(Terminate)
NOTHING(EnterConfigurationMode)
NOTHING(ExitConfigurationMode)
NOTHING(EvaluateDiscreteStates)
NOTHING(EnterContinuousTimeMode)
NOTHING(EnterStepMode)

static Status refreshed(Instance *instance) {
    if (!instance->now.fresh && !$name_fmu_refresh(&instance->now)) return not_finite(instance);
    return OK;
}

EXPORT Status FMI(GetFloat64)(Instance *instance, const Reference *references, size_t count, double *values, size_t size) {
    if (size != count) return failed(instance, ERROR, "every variable of this FMU has one value");
    const Status status = refreshed(instance);
    for (size_t i = 0; i < count; i++) {
        if (references[i] > VALUES) return failed(instance, ERROR, "there is no variable of this value reference");
        values[i] = references[i] == VALUES ? instance->now.time : instance->now.value[references[i]];
    }
    return status;
}

EXPORT Status FMI(SetFloat64)(Instance *instance, const Reference *references, size_t count, const double *values,
                              size_t size) {
    if (size != count) return failed(instance, ERROR, "every variable of this FMU has one value");
    for (size_t i = 0; i < count; i++)
        if (!$name_fmu_settable(references[i]))
            return failed(instance, ERROR, "this variable cannot be set");
        else if (!$name_fmu_within(references[i], values[i]))
            return failed(instance, ERROR, "this value of a parameter is not between its min and max");
    for (size_t i = 0; i < count; i++) instance->now.value[references[i]] = values[i];
    if (count) instance->now.fresh = 0;
    return OK;
}

/* The FMU has variables of type Float64 only. */
static Status none(const Instance *instance, size_t count) {
    return count ? failed(instance, ERROR, "this FMU has variables of type Float64 only") : OK;
}

#define OTHER_TYPE(name, type) \
    EXPORT Status FMI(Get##name)(Instance * instance, const Reference *references, size_t count, type *values, \
                                 size_t size) { \
        (void)references; \
        (void)values; \
        (void)size; \
        return none(instance, count); \
    } \
    EXPORT Status FMI(Set##name)(Instance * instance, const Reference *references, size_t count, const type *values, \
                                 size_t size) { \
        (void)references; \
        (void)values; \
        (void)size; \
        return none(instance, count); \
    }
OTHER_TYPE(Float32, float)
OTHER_TYPE(Int8, int8_t)
OTHER_TYPE(UInt8, uint8_t)
OTHER_TYPE(Int16, int16_t)
OTHER_TYPE(UInt16, uint16_t)
OTHER_TYPE(Int32, int32_t)
OTHER_TYPE(UInt32, uint32_t)
OTHER_TYPE(Int64, int64_t)
OTHER_TYPE(UInt64, uint64_t)
OTHER_TYPE(Boolean, bool)
OTHER_TYPE(String, String)

EXPORT Status FMI(GetBinary)(Instance *instance, const Reference *references, size_t count, size_t *sizes,
                             const uint8_t **values, size_t size) {
    (void)references;
    (void)sizes;
    (void)values;
    (void)size;
    return none(instance, count);
}

EXPORT Status FMI(SetBinary)(Instance *instance, const Reference *references, size_t count, const size_t *sizes,
                             const uint8_t *const *values, size_t size) {
    (void)references;
    (void)sizes;
    (void)values;
    (void)size;
    return none(instance, count);
}

#define OF_CLOCKS(function, type) \
    EXPORT Status FMI(function)(Instance * instance, const Reference *references, size_t count, type values) { \
        (void)references; \
        (void)values; \
        return none(instance, count); \
    }
#define OF_CLOCKS_TWICE(function, type, other) \
    EXPORT Status FMI(function)(Instance * instance, const Reference *references, size_t count, type values, \
                                other others) { \
        (void)references; \
        (void)values; \
        (void)others; \
        return none(instance, count); \
    }
OF_CLOCKS(GetClock, bool *)
OF_CLOCKS(SetClock, const bool *)
OF_CLOCKS_TWICE(GetIntervalDecimal, double *, int *)
OF_CLOCKS(GetShiftDecimal, double *)
OF_CLOCKS_TWICE(GetShiftFraction, uint64_t *, uint64_t *)
OF_CLOCKS(SetIntervalDecimal, const double *)
OF_CLOCKS_TWICE(SetIntervalFraction, const uint64_t *, const uint64_t *)
OF_CLOCKS(SetShiftDecimal, const double *)
OF_CLOCKS_TWICE(SetShiftFraction, const uint64_t *, const uint64_t *)

EXPORT Status FMI(GetIntervalFraction)(Instance *instance, const Reference *references, size_t count, uint64_t *counters,
                                       uint64_t *resolutions, int *qualifiers) {
    (void)references;
    (void)counters;
    (void)resolutions;
    (void)qualifiers;
    return none(instance, count);
}

EXPORT Status FMI(GetNumberOfVariableDependencies)(Instance *instance, Reference reference, size_t *count) {
    (void)reference;
    (void)count;
    return failed(instance, ERROR, "the dependencies are those of modelDescription.xml");
}

EXPORT Status FMI(GetVariableDependencies)(Instance *instance, Reference dependent, size_t *rows, Reference *references,
                                           size_t *columns, int *kinds, size_t count) {
    (void)dependent;
    (void)rows;
    (void)references;
    (void)columns;
    (void)kinds;
    (void)count;
    return failed(instance, ERROR, "the dependencies are those of modelDescription.xml");
}

EXPORT Status FMI(GetFMUState)(Instance *instance, Memory **state) {
    if (!*state) *state = malloc(sizeof **state);
    if (!*state) return failed(instance, ERROR, "there is no memory left");
    **state = instance->now;
    return OK;
}

EXPORT Status FMI(SetFMUState)(Instance *instance, const Memory *state) {
    instance->now = *state;
    return OK;
}

EXPORT Status FMI(FreeFMUState)(Instance *instance, Memory **state) {
    (void)instance;
    free(*state);
    *state = NULL;
    return OK;
}

EXPORT Status FMI(SerializedFMUStateSize)(Instance *instance, const Memory *state, size_t *size) {
    (void)instance;
    *size = sizeof *state;
    return OK;
}

EXPORT Status FMI(SerializeFMUState)(Instance *instance, const Memory *state, uint8_t *bytes, size_t size) {
    if (size < sizeof *state) return failed(instance, ERROR, "the memory for the state is too small");
    memcpy(bytes, state, sizeof *state);
    return OK;
}

EXPORT Status FMI(DeserializeFMUState)(Instance *instance, const uint8_t *bytes, size_t size, Memory **state) {
    if (size != sizeof **state) return failed(instance, ERROR, "these bytes are no state of this FMU");
    const Status status = FMI(GetFMUState)(instance, state);
    if (status == OK) memcpy(*state, bytes, size);
    return status;
}

EXPORT Status FMI(GetDirectionalDerivative)(Instance *instance, const Reference *unknowns, size_t rows,
                                            const Reference *knowns, size_t columns, const double *seed, size_t seeds,
                                            double *sensitivity, size_t size) {
    double space[JACOBIAN + 1];
    const double *jacobian = $name_fmu_jacobian(&instance->now, space);
    if (!jacobian) return failed(instance, ERROR, "this FMU has no derivatives");
    if (seeds != columns || size != rows) return failed(instance, ERROR, "every variable of this FMU has one value");
    for (size_t i = 0; i < rows; i++) {
        sensitivity[i] = 0;
        for (size_t j = 0; j < columns; j++)
            sensitivity[i] += $name_fmu_derivative(jacobian, unknowns[i], knowns[j]) * seed[j];
    }
    return OK;
}

EXPORT Status FMI(GetAdjointDerivative)(Instance *instance, const Reference *unknowns, size_t rows,
                                        const Reference *knowns, size_t columns, const double *seed, size_t seeds,
                                        double *sensitivity, size_t size) {
    double space[JACOBIAN + 1];
    const double *jacobian = $name_fmu_jacobian(&instance->now, space);
    if (!jacobian) return failed(instance, ERROR, "this FMU has no derivatives");
    if (seeds != rows || size != columns) return failed(instance, ERROR, "every variable of this FMU has one value");
    for (size_t j = 0; j < columns; j++) {
        sensitivity[j] = 0;
        for (size_t i = 0; i < rows; i++)
            sensitivity[j] += $name_fmu_derivative(jacobian, unknowns[i], knowns[j]) * seed[i];
    }
    return OK;
}

EXPORT Status FMI(UpdateDiscreteStates)(Instance *instance, bool *again, bool *terminate, bool *nominals, bool *states,
                                        bool *next, double *next_time) {
    (void)instance;
    (void)next_time;
    *again = *terminate = *nominals = *states = *next = false;
    return OK;
}

EXPORT Status FMI(CompletedIntegratorStep)(Instance *instance, bool no_return, bool *event, bool *terminate) {
    (void)instance;
    (void)no_return;
    *event = *terminate = false;
    return OK;
}

EXPORT Status FMI(SetTime)(Instance *instance, double time) {
    instance->now.time = time;
    return OK;
}

EXPORT Status FMI(SetContinuousStates)(Instance *instance, const double *states, size_t count) {
    if (count != STATES) return failed(instance, ERROR, "this FMU has another number of states");
    memcpy(instance->now.value, states, count * sizeof *states);
    instance->now.fresh = 0;
    return OK;
}

EXPORT Status FMI(GetContinuousStates)(Instance *instance, double *states, size_t count) {
    if (count != STATES) return failed(instance, ERROR, "this FMU has another number of states");
    memcpy(states, instance->now.value, count * sizeof *states);
    return OK;
}

EXPORT Status FMI(GetContinuousStateDerivatives)(Instance *instance, double *derivatives, size_t count) {
    if (count != STATES) return failed(instance, ERROR, "this FMU has another number of states");
    const Status status = refreshed(instance);
    memcpy(derivatives, instance->now.value + STATES, count * sizeof *derivatives);
    return status;
}

EXPORT Status FMI(GetNominalsOfContinuousStates)(Instance *instance, double *nominals, size_t count) {
    if (count != STATES) return failed(instance, ERROR, "this FMU has another number of states");
    memcpy(nominals, $name_fmu_nominal, count * sizeof *nominals);
    return OK;
}

EXPORT Status FMI(GetEventIndicators)(Instance *instance, double *indicators, size_t count) {
    (void)indicators;
    return none(instance, count);
}

EXPORT Status FMI(GetNumberOfEventIndicators)(Instance *instance, size_t *count) {
    (void)instance;
    *count = 0;
    return OK;
}

EXPORT Status FMI(GetNumberOfContinuousStates)(Instance *instance, size_t *count) {
    (void)instance;
    *count = STATES;
    return OK;
}

EXPORT Status FMI(GetOutputDerivatives)(Instance *instance, const Reference *references, size_t count,
                                        const int32_t *orders, double *values, size_t size) {
    (void)references;
    (void)orders;
    (void)values;
    (void)size;
    return count ? failed(instance, ERROR, "this FMU gives no derivatives of outputs") : OK;
}

EXPORT Status FMI(DoStep)(Instance *instance, double time, double seconds, bool no_return, bool *event, bool *terminate,
                          bool *early, double *last) {
    (void)no_return;
    *event = *terminate = *early = false;
    if (!(seconds >= 0)) return failed(instance, ERROR, "a step cannot go back in time");
    instance->now.time = time;
    if (!$name_fmu_step(&instance->now, seconds)) return not_finite(instance);
    instance->now.time = *last = time + seconds;
    return OK;
}

EXPORT Status FMI(ActivateModelPartition)(Instance *instance, Reference clock, double time) {
    (void)clock;
    (void)time;
    return failed(instance, ERROR, "this FMU has no scheduled execution");
}
