enum { TERMS = $terms, DEGREE = $degree, NUMBERS = $numbers };

static const int place[ENTRIES] = {$places}, degree[TERMS][ENTRIES] = {$degrees}; /* of theta; of the polynomials */
static const real middle[ENTRIES] = {$middles}, half[ENTRIES] = {$halves};

/* Of every product of Chebyshev polynomials: $of_product. */
static const real polynomial[TERMS][NUMBERS] = {
$polynomial
};

int ${name}_tell(const ${name}_context *context, ${name}_told *told) {
    static const real nominal[] = {$nominal_values};
    const real given[ENTRIES] = {$given}, usual[ENTRIES] = ${NAME}_CONTEXT_NOMINAL;
    real power[ENTRIES][DEGREE + 1], number[NUMBERS] = {0};
    int inside = 1;
    for (int p = 0; p < $p; p++) told->parameters[p] = nominal[p];
    for (int i = 0; i < ENTRIES; i++) {
        real c = ((isnan(given[i]) ? usual[i] : given[i]) - middle[i]) / half[i];
        inside &= c >= (real)-1.00001 && c <= (real)1.00001 && !isnan(given[i]);
        c = c > 1 ? 1 : c < -1 ? -1 : c;
        told->entries[i] = c;
        told->parameters[place[i]] = middle[i] + half[i] * c;
        power[i][0] = 1;
        power[i][1] = c;
        for (int d = 2; d <= DEGREE; d++) power[i][d] = 2 * c * power[i][d - 1] - power[i][d - 2];
    }
$shift_target    for (int t = 0; t < TERMS; t++) {
        real term = 1;
        for (int i = 0; i < ENTRIES; i++) term *= power[i][degree[t][i]];
        for (int j = 0; j < NUMBERS; j++) number[j] += term * polynomial[t][j];
    }
$unpacked$trimmed    return inside;
}

