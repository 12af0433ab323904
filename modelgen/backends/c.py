"""C99 source for one sample: a header, the functions, and a driver that evaluates rows of numbers from a pipe.

No allocation, no state, no dependency but libm. NAME_REAL is the number type. By default it is double under an
operating system, and float without one: most microcontrollers compute in double by a library only.
"""

from __future__ import annotations

from modelgen.backends.statements import Assignment, Text, statements
from modelgen.errors import ModelError
from modelgen.metadata import Input, Metadata, Parameter, State
from modelgen.program.functions import Function, Program

#: Headers of the C library that ours or others of them include; a robot's header of that name would hide them.
HEADERS = {"math", "tgmath", "complex", "stdio", "string", "stddef", "stdint", "stdlib", "float", "limits"}
HEADERS |= {"features", "errno", "ctype"}

_HEADER = """\
/* {name}: {description}
 *
 * SPDX-License-Identifier: MIT
 * Functions of one sample, made by modelgen; not to be edited. SI units; matrices row by row.
 *     cc -std=c99 -O3 -c {name}.c
 * computes in double under an operating system, and in float on a chip without one. -D{NAME}_REAL=float or double says
 * otherwise; give it wherever this header is read.
 *
{tables}
 */
#ifndef {NAME}_H
#define {NAME}_H

#ifndef {NAME}_REAL
#if defined(__unix__) || defined(__APPLE__) || defined(_WIN32)
#define {NAME}_REAL double
#else
#define {NAME}_REAL float
#endif
#endif

#ifdef __cplusplus
extern "C" {{
#endif

typedef {NAME}_REAL {name}_real;

/* {NAME}_CALL(sin) is sin in double and sinf in float. Not every compiler for microcontrollers has <tgmath.h>. */
#define {NAME}_CALL(function) {NAME}_JOINED({NAME}_CALL_, {NAME}_REAL)(function)
#define {NAME}_CALL_double(function) function
#define {NAME}_CALL_float(function) function##f
#define {NAME}_JOINED(begin, end) {NAME}_JOIN(begin, end)
#define {NAME}_JOIN(begin, end) begin##end

{constants}

{declarations}

#ifdef __cplusplus
}}
#endif

#endif
"""

_SOURCE = """\
/* {name}: made by modelgen; not to be edited. See {name}.h. */

#include "{name}.h"

#include <math.h>

typedef {name}_real real;
#define R(value) ((real)(value))
#define REAL(function) {NAME}_CALL(function)

"""

#: What C99 has under another name, or treats NaN in another way than the other backends.
_HELPERS = {
    "sign": "static real sign(real a) { return a > 0 ? R(1) : a < 0 ? R(-1) : a; }",
    "minimum": "static real minimum(real a, real b) { return a < b || isnan(a) ? a : b; }",
    "maximum": "static real maximum(real a, real b) { return a > b || isnan(a) ? a : b; }",
}

_DRIVER = """\
/* {name}: evaluates one function for rows of numbers from the standard input; made by modelgen, not to be edited.
 *     cc -std=c99 -O3 {name}.c {name}_driver.c -lm -o {name}_driver
 *     echo "x ... u ... theta ..." | ./{name}_driver dynamics
 */

#include <stdio.h>
#include <string.h>

#include "{name}.h"

static {name}_real in[{inputs}], out[{outputs}];

/* 1 when a row was read, 0 at the end, -1 within a row. */
static int row(int count) {{
    for (int i = 0; i < count; i++) {{
        double value;
        if (scanf("%lf", &value) != 1) return i == 0 && feof(stdin) ? 0 : -1;
        in[i] = ({name}_real)value;
    }}
    return 1;
}}

int main(int count, char **arguments) {{
    const char *name = count == 2 ? arguments[1] : "";
    int read = 1, numbers = 0, results = 0;

{sizes}
    else {{
        fprintf(stderr, "usage: {name}_driver FUNCTION < ROWS\\n{usage}");
        return 2;
    }}
    while ((read = row(numbers)) > 0) {{
{calls}
        for (int i = 0; i < results; i++) printf(i + 1 < results ? "%.17g " : "%.17g\\n", (double)out[i]);
    }}
    if (read < 0) fprintf(stderr, "a row of %s has %d numbers\\n", name, numbers);
    return read < 0;
}}
"""


def emit(program: Program, robot: Metadata) -> dict[str, bytes]:
    """NAME.h, NAME.c and NAME_driver.c. Raises ModelError where a header of the C library has that name."""
    if robot.name in HEADERS:
        raise ModelError(
            f"the header of the robot `{robot.name}` would hide {robot.name}.h of the C library. Give the "
            "robot another name."
        )
    texts = {
        f"{robot.name}.h": _header(program, robot),
        f"{robot.name}.c": _source(program, robot),
        f"{robot.name}_driver.c": _driver(program, robot.name),
    }
    return {name: text.encode() for name, text in texts.items()}


def _header(program: Program, robot: Metadata) -> str:
    tables = [f"x[{i}] {state.name} ({state.unit}) {state.meaning}" for i, state in enumerate(robot.states)]
    tables += [f"u[{i}] {entry.name} ({entry.unit}) {entry.meaning}" for i, entry in enumerate(robot.inputs)]
    tables += [f"w[{i}] derivative of the value function along {entry.name}" for i, entry in enumerate(robot.inputs)]
    tables += [
        f"theta[{i}] {entry.name} ({entry.unit}) {entry.meaning}, nominally {entry.value:g}"
        for i, entry in enumerate(robot.parameters)
    ]
    declarations = []
    if robot.parameters:
        declarations.append(
            f"extern const {robot.name}_real {robot.name}_nominal[{len(robot.parameters)}];  /* theta */"
        )
    for function in program.functions:
        shapes = ", ".join(f"{out.name} {'x'.join(map(str, out.shape)) or 'a number'}" for out in function.outputs)
        declarations.append(f"/* {shapes} */\n{_signature(function, robot.name, f'{robot.name}_real')};")
    return _HEADER.format(
        name=robot.name,
        NAME=robot.name.upper(),
        description=_comment(robot.description),
        tables="\n".join(f" * {_comment(line).rstrip()}" for line in tables),
        constants="\n".join(_constants(robot)),
        declarations="\n\n".join(declarations),
    )


def _constants(robot: Metadata) -> list[str]:
    """Lines with a macro for every constant of the robot: counts, rate, indices, limits, nominal values and units.

    An angle that has any number of turns has no limit.
    """
    capital = robot.name.upper()
    named: list[State | Input | Parameter] = [*robot.states, *robot.inputs, *robot.parameters]
    capitals = [entry.name.upper() for entry in named]
    short = dict(zip((entry.name for entry in named), capitals, strict=True))
    if len(set(capitals)) < len(named):
        short = {entry.name: entry.name for entry in named}
    rows: list[tuple[str, str]] = [
        ("STATES", str(len(robot.states))),
        ("INPUTS", str(len(robot.inputs))),
        ("PARAMETERS", str(len(robot.parameters))),
    ]

    def number(name: str, value: float, unit: str) -> None:
        rows.append((name, f"(({robot.name}_real){value!r}) /* {_comment(unit)} */"))

    number("CONTROL_RATE", float(robot.task.control_rate), "Hz")
    number("CONTROL_PERIOD", 1.0 / robot.task.control_rate, "s")
    for i, state in enumerate(robot.states):
        rows.append((f"STATE_{short[state.name]}", str(i)))
        if not state.continuous:
            number(f"LIMIT_{short[state.name]}", state.limit, state.unit)
    for i, entry in enumerate(robot.inputs):
        rows.append((f"INPUT_{short[entry.name]}", str(i)))
        number(f"LOWER_{short[entry.name]}", entry.lower, entry.unit)
        number(f"UPPER_{short[entry.name]}", entry.upper, entry.unit)
    for i, parameter in enumerate(robot.parameters):
        rows.append((f"PARAMETER_{short[parameter.name]}", str(i)))
        number(f"NOMINAL_{short[parameter.name]}", parameter.value, parameter.unit)
    rows += [(f"UNIT_{short[entry.name]}", _quoted(entry.unit)) for entry in named]
    about = "/* Counts, places in x, u and theta, limits, nominal parameters, units. */"
    return [about, *(f"#define {capital}_{name} {value}" for name, value in rows)]


def _quoted(text: str) -> str:
    """A string literal of C. Other characters than those of ASCII stand as their bytes in UTF-8."""
    plain = "".join(
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in text.encode()
    )
    return f'"{plain}"'


def _comment(text: str) -> str:
    return " ".join(text.replace("*/", "* /").replace("/*", "/ *").split())


def _signature(function: Function, robot: str, real: str) -> str:
    given = [f"const {real} *{argument.name}" for argument in function.arguments]
    made = [f"{real} *{output.name}" for output in function.outputs]
    return f"void {robot}_{function.name}({', '.join(given + made)})"


def _source(program: Program, robot: Metadata) -> str:
    helpers: dict[str, str] = {}
    functions = [_function(program, function, robot.name, helpers) for function in program.functions]
    parts = list(helpers.values())
    if robot.parameters:
        values = ", ".join(f"R({parameter.value!r})" for parameter in robot.parameters)
        parts.append(f"const real {robot.name}_nominal[{len(robot.parameters)}] = {{{values}}};")
    return _SOURCE.format(name=robot.name, NAME=robot.name.upper()) + "\n\n".join([*parts, *functions]) + "\n"


def in_double(program: Program, function: Function, robot: str) -> str:
    """A static function that computes in double whatever NAME_REAL is, with what it needs beside <math.h>."""
    helpers: dict[str, str] = {}
    text = _function(program, function, robot, helpers, "double")
    return "\n".join(
        [*(one.replace("real", "double").replace("R(", "(") for one in helpers.values()), f"static {text}"]
    )


def _function(program: Program, function: Function, robot: str, helpers: dict[str, str], real: str = "real") -> str:
    def call(name: str, arguments: list[str]) -> str:
        if name in _HELPERS:
            helpers[name] = _HELPERS[name]
        named = "fabs" if name == "abs" else name
        called = name if name in _HELPERS else f"REAL({named})" if real == "real" else named
        return f"{called}({', '.join(arguments)})"

    code = statements(program.graph, function)
    text = Text(code, lambda value: f"R({value!r})" if real == "real" else repr(value), call)
    read = {entry.array for entry in code.entries}
    body = [f"(void){argument.name};" for argument in function.arguments if argument.name not in read]
    body += [f"const {real} {code.names[entry.node]} = {entry.array}[{entry.index}];" for entry in code.entries]
    for line in code.body:
        if isinstance(line, Assignment):
            body += [f"const {real} {name} = {value};" for name, value in text.assigned(line)]
        else:
            body.append(f"{line.array}[{line.index}] = {text(line.node)};")
    body += [f"(void){output.name};" for output in function.outputs if not output.entries]
    return "\n".join([f"{_signature(function, robot, real)} {{", *(f"    {line}" for line in body), "}"])


def _driver(program: Program, robot: str) -> str:
    sizes: list[str] = []
    calls: list[str] = []
    usage, widths = [], []
    for function in program.functions:
        addresses, position = [], 0
        for argument in function.arguments:
            addresses.append(f"in + {position}")
            position += len(argument.entries)
        numbers, position = position, 0
        for output in function.outputs:
            addresses.append(f"out + {position}")
            position += len(output.entries)
        widths.append((numbers, position))
        test = f'if (strcmp(name, "{function.name}") == 0)'
        sizes.append(f"    {'else ' if sizes else ''}{test} numbers = {numbers}, results = {position};")
        calls.append(f"        {'else ' if calls else ''}{test} {robot}_{function.name}({', '.join(addresses)});")
        usage.append(f"  {function.name}: {' '.join(argument.name for argument in function.arguments)}\\n")
    inputs, outputs = (max(column) for column in zip(*widths, strict=True))
    return _DRIVER.format(
        name=robot, inputs=inputs, outputs=outputs, sizes="\n".join(sizes), calls="\n".join(calls), usage="".join(usage)
    )
