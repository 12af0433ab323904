/* $name: the functions of FMI 2.0 (https://fmi-standard.org), for model exchange and co-simulation; made by modelgen,
 * not to be edited. A tool that links several FMUs statically defines FMI2_FUNCTION_PREFIX. */

#include "$name_fmu.h"

#include <stdlib.h>
#include <string.h>

#if defined _WIN32
#define EXPORT __declspec(dllexport)
#elif defined __GNUC__
#define EXPORT __attribute__((visibility("default")))
#else
#define EXPORT
#endif

#ifdef FMI2_FUNCTION_PREFIX
#define JOIN(a, b) a##b
#define JOINED(a, b) JOIN(a, b)
#define FMI(function) JOINED(FMI2_FUNCTION_PREFIX, fmi2##function)
#else
#define FMI(function) fmi2##function
#endif

typedef enum { OK, WARNING, DISCARD, ERROR, FATAL, PENDING } Status;
typedef int Boolean;
typedef unsigned Reference;
typedef const char *String;
typedef $name_fmu Memory;

typedef struct {
    void (*logger)(void *environment, String name, Status status, String category, String message, ...);
    void *(*allocate)(size_t count, size_t size);
    void (*release)(void *memory);
    void (*finished)(void *environment, Status status);
    void *environment;
} Callbacks;

typedef struct {
    Boolean again, terminate, nominals, states, next;
    double next_time;
} Event;

typedef struct {
    Memory now;
    Callbacks callbacks;
    Boolean logging;
} Instance;

static Status failed(const Instance *instance, Status status, const char *message) {
    if (instance->logging && instance->callbacks.logger)
        instance->callbacks.logger(instance->callbacks.environment, "$name", status, "logStatusError", "%s", message);
    return status;
}

static Status not_finite(const Instance *instance) {
    return failed(instance, DISCARD, "a derivative or a state is not a finite number");
}

EXPORT const char *FMI(GetTypesPlatform)(void) { return "default"; }

EXPORT const char *FMI(GetVersion)(void) { return "2.0"; }

EXPORT Status FMI(SetDebugLogging)(Instance *instance, Boolean on, size_t count, const String *categories) {
    (void)count;
    (void)categories;
    instance->logging = on;
    return OK;
}

EXPORT Instance *FMI(Instantiate)(String name, int kind, String token, String resources, const Callbacks *callbacks,
                                  Boolean visible, Boolean logging) {
    Instance given = {.callbacks = *callbacks, .logging = 1}, *instance;
    (void)name;
    (void)kind;
    (void)resources;
    (void)visible;
    if (!token || strcmp(token, $name_fmu_token)) {
        failed(&given, ERROR, "the GUID is that of another FMU");
        return NULL;
    }
    instance = calloc(1, sizeof *instance);
    if (!instance) return NULL;
    instance->callbacks = *callbacks;
    instance->logging = logging;
    $name_fmu_reset(&instance->now);
    return instance;
}

EXPORT void FMI(FreeInstance)(Instance *instance) { free(instance); }

EXPORT Status FMI(SetupExperiment)(Instance *instance, Boolean given, double tolerance, double start, Boolean ends,
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
NOTHING(EnterInitializationMode)
NOTHING(ExitInitializationMode)
NOTHING(EnterEventMode)
NOTHING(EnterContinuousTimeMode)
NOTHING(Terminate)

static Status refreshed(Instance *instance) {
    if (!instance->now.fresh && !$name_fmu_refresh(&instance->now)) return not_finite(instance);
    return OK;
}

EXPORT Status FMI(GetReal)(Instance *instance, const Reference *references, size_t count, double *values) {
    const Status status = refreshed(instance);
    for (size_t i = 0; i < count; i++) {
        if (references[i] > VALUES) return failed(instance, ERROR, "there is no variable of this value reference");
        values[i] = references[i] == VALUES ? instance->now.time : instance->now.value[references[i]];
    }
    return status;
}

EXPORT Status FMI(SetReal)(Instance *instance, const Reference *references, size_t count, const double *values) {
    for (size_t i = 0; i < count; i++)
        if (!$name_fmu_settable(references[i]))
            return failed(instance, ERROR, "this variable cannot be set");
        else if (!$name_fmu_within(references[i], values[i]))
            return failed(instance, ERROR, "this value of a parameter is not between its min and max");
    for (size_t i = 0; i < count; i++) instance->now.value[references[i]] = values[i];
    if (count) instance->now.fresh = 0;
    return OK;
}

/* The FMU has variables of type Real only. */
static Status none(const Instance *instance, size_t count) {
    return count ? failed(instance, ERROR, "this FMU has variables of type Real only") : OK;
}

#define OTHER_TYPE(name, type) \
    EXPORT Status FMI(Get##name)(Instance * instance, const Reference *references, size_t count, type *values) { \
        (void)references; \
        (void)values; \
        return none(instance, count); \
    } \
    EXPORT Status FMI(Set##name)(Instance * instance, const Reference *references, size_t count, const type *values) { \
        (void)references; \
        (void)values; \
        return none(instance, count); \
    }
OTHER_TYPE(Integer, int)
OTHER_TYPE(Boolean, Boolean)
OTHER_TYPE(String, String)

EXPORT Status FMI(GetFMUstate)(Instance *instance, Memory **state) {
    if (!*state) *state = malloc(sizeof **state);
    if (!*state) return failed(instance, ERROR, "there is no memory left");
    **state = instance->now;
    return OK;
}

EXPORT Status FMI(SetFMUstate)(Instance *instance, const Memory *state) {
    instance->now = *state;
    return OK;
}

EXPORT Status FMI(FreeFMUstate)(Instance *instance, Memory **state) {
    (void)instance;
    free(*state);
    *state = NULL;
    return OK;
}

EXPORT Status FMI(SerializedFMUstateSize)(Instance *instance, const Memory *state, size_t *size) {
    (void)instance;
    *size = sizeof *state;
    return OK;
}

EXPORT Status FMI(SerializeFMUstate)(Instance *instance, const Memory *state, char *bytes, size_t size) {
    if (size < sizeof *state) return failed(instance, ERROR, "the memory for the state is too small");
    memcpy(bytes, state, sizeof *state);
    return OK;
}

EXPORT Status FMI(DeSerializeFMUstate)(Instance *instance, const char *bytes, size_t size, Memory **state) {
    Status status;
    if (size != sizeof **state) return failed(instance, ERROR, "these bytes are no state of this FMU");
    status = FMI(GetFMUstate)(instance, state);
    if (status == OK) memcpy(*state, bytes, size);
    return status;
}

EXPORT Status FMI(GetDirectionalDerivative)(Instance *instance, const Reference *unknowns, size_t rows,
                                            const Reference *knowns, size_t columns, const double *seed,
                                            double *sensitivity) {
    double space[JACOBIAN + 1];
    const double *jacobian = $name_fmu_jacobian(&instance->now, space);
    if (!jacobian) return failed(instance, ERROR, "this FMU has no derivatives");
    for (size_t i = 0; i < rows; i++) {
        sensitivity[i] = 0;
        for (size_t j = 0; j < columns; j++)
            sensitivity[i] += $name_fmu_derivative(jacobian, unknowns[i], knowns[j]) * seed[j];
    }
    return OK;
}

EXPORT Status FMI(NewDiscreteStates)(Instance *instance, Event *event) {
    (void)instance;
    memset(event, 0, sizeof *event);
    return OK;
}

EXPORT Status FMI(CompletedIntegratorStep)(Instance *instance, Boolean no_return, Boolean *event, Boolean *terminate) {
    (void)instance;
    (void)no_return;
    *event = *terminate = 0;
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

EXPORT Status FMI(GetDerivatives)(Instance *instance, double *derivatives, size_t count) {
    Status status;
    if (count != STATES) return failed(instance, ERROR, "this FMU has another number of states");
    status = refreshed(instance);
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

#define DERIVATIVES(function, type) \
    EXPORT Status FMI(function)(Instance * instance, const Reference *references, size_t count, const int *orders, \
                                type *values) { \
        (void)references; \
        (void)orders; \
        (void)values; \
        return count ? failed(instance, ERROR, "this FMU takes and gives no derivatives of inputs and outputs") : OK; \
    }
DERIVATIVES(SetRealInputDerivatives, const double)
DERIVATIVES(GetRealOutputDerivatives, double)

EXPORT Status FMI(DoStep)(Instance *instance, double time, double seconds, Boolean no_return) {
    (void)no_return;
    if (!(seconds >= 0)) return failed(instance, ERROR, "a step cannot go back in time");
    instance->now.time = time;
    if (!$name_fmu_step(&instance->now, seconds)) return not_finite(instance);
    instance->now.time = time + seconds;
    return OK;
}

EXPORT Status FMI(CancelStep)(Instance *instance) { return failed(instance, ERROR, "every step ends at once"); }

#define STATUS(function, type) \
    EXPORT Status FMI(function)(Instance * instance, int kind, type *value) { \
        (void)kind; \
        (void)value; \
        return failed(instance, DISCARD, "every step ends at once"); \
    }
STATUS(GetStatus, Status)
STATUS(GetRealStatus, double)
STATUS(GetIntegerStatus, int)
STATUS(GetBooleanStatus, Boolean)
STATUS(GetStringStatus, String)
