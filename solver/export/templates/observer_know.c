void ${name}_observer_know(${name}_observer *o, const real *parameters) {
    memcpy(o->known, parameters, sizeof o->known);
    for (int f = 0; f < FILTERS; f++)
        for (int p = $e; p < PARAMETERS; p++) o->filters[f].parameters[order[p]] = parameters[order[p]];
}

