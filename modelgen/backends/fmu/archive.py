"""The zip file of an FMU: its description in XML for FMI 2.0 and 3.0, its sources, and their machine code."""

from __future__ import annotations

import hashlib
import io
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from modelgen.errors import ModelError
from modelgen.units import BASE, parse, plain

RADIANS = re.compile(r"\brad\b(?:\^\(?(-?\d+))?")  # with its exponent

Causality = Literal["input", "output", "parameter", "local"]
Variability = Literal["continuous", "discrete", "tunable"]


@dataclass(frozen=True)
class Variable:
    """One number of an FMU. Its value reference is its place among the variables; the time follows them."""

    name: str
    unit: str
    meaning: str
    causality: Causality
    variability: Variability
    start: float | None = None  # None: it is computed
    lower: float | None = None
    upper: float | None = None
    nominal: float | None = None
    derivative_of: int | None = None  # place of the state whose derivative it is
    depends_on: tuple[int, ...] = ()  # of a computed value: places of the states, inputs and parameters behind it


@dataclass(frozen=True)
class Unit:
    """What an FMU is, besides its machine code."""

    name: str  # model identifier
    title: str
    description: str
    variables: Sequence[Variable]
    step: float  # s, between two communication points
    stop: float  # s
    continuous: bool  # whether it has states and serves model exchange
    sources: Sequence[str] = ()


def model_description(unit: Unit, version: int, token: str) -> bytes:
    """The file, with `token` as the unit's identity. version: 2 or 3."""
    root = Element("fmiModelDescription", fmiVersion=f"{version}.0", modelName=unit.title)
    root.set("guid" if version == 2 else "instantiationToken", token)
    root.attrib |= {"description": unit.description, "generationTool": "modelgen", "variableNamingConvention": "flat"}
    if version == 2:
        root.set("numberOfEventIndicators", "0")
    state, derivatives = ("canGetAndSetFMUstate", "canSerializeFMUstate"), "providesDirectionalDerivative"
    if version == 3:
        state, derivatives = ("canGetAndSetFMUState", "canSerializeFMUState"), "providesDirectionalDerivatives"
    for kind in ("ModelExchange", "CoSimulation")[not unit.continuous :]:
        element = SubElement(root, kind, {"modelIdentifier": unit.name} | dict.fromkeys(state, "true"))
        if unit.continuous:
            element.set(derivatives, "true")
            if version == 3:
                element.set("providesAdjointDerivatives", "true")
        if kind == "CoSimulation":
            element.set("canHandleVariableCommunicationStepSize", "true")
        if version == 2:
            element.set("canNotUseMemoryManagementFunctions", "true")  # its own calloc, as FMI 3.0 asks for
            files = SubElement(element, "SourceFiles")
            for source in unit.sources:
                SubElement(files, "File", name=source)
    _units(root, unit)
    categories = SubElement(root, "LogCategories")
    SubElement(categories, "Category", name="logStatusError", description="Why a call failed")
    SubElement(root, "DefaultExperiment", startTime="0", stopTime=repr(unit.stop), stepSize=repr(unit.step))
    (_variables_2 if version == 2 else _variables_3)(root, unit)
    return _written(root)


def build_description(unit: Unit, definitions: dict[str, str]) -> bytes:
    """`buildDescription.xml` of FMI 3.0: what to compile, and with which definitions of the preprocessor."""
    root = Element("fmiBuildDescription", fmiVersion="3.0")
    configuration = SubElement(root, "BuildConfiguration", modelIdentifier=unit.name)
    files = SubElement(configuration, "SourceFileSet", language="C99")
    for source in unit.sources:
        SubElement(files, "SourceFile", name=source)
    for name, value in definitions.items():
        SubElement(files, "PreprocessorDefinition", name=name, value=value)
    return _written(root)


def _written(root: Element) -> bytes:
    indent(root)
    text: str = tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'.encode()


def _units(root: Element, unit: Unit) -> None:
    """The units that the variables have, as products of kg, m, s, A, K and rad."""
    names = sorted({variable.unit for variable in unit.variables if _has_unit(variable)} | {"s"})
    definitions = SubElement(root, "UnitDefinitions")
    for name in names:
        dimension = parse(name, "unit") or ()
        exponents = {base: str(int(power)) for base, power in zip(BASE, dimension, strict=True) if power}
        above, _, below = plain(name).partition("/")  # an angle has no dimension in modelgen, and one in FMI
        if turns := sum(sign * int(n or 1) for sign, part in ((1, above), (-1, below)) for n in RADIANS.findall(part)):
            exponents["rad"] = str(turns)
        SubElement(SubElement(definitions, "Unit", name=name), "BaseUnit", exponents)


def _has_unit(variable: Variable) -> bool:
    return variable.unit not in ("", "1")


def _numbers(variable: Variable) -> dict[str, str]:
    """Unit, bounds, size and start as attributes."""
    numbers = {"min": variable.lower, "max": variable.upper, "nominal": variable.nominal, "start": variable.start}
    unit = {"unit": variable.unit} if _has_unit(variable) else {}
    return unit | {name: repr(float(value)) for name, value in numbers.items() if value is not None}


def _attributes(variable: Variable, reference: int) -> dict[str, str]:
    result = {"name": variable.name, "valueReference": str(reference), "causality": variable.causality}
    result |= {"variability": variable.variability} | ({"description": variable.meaning} if variable.meaning else {})
    if variable.causality != "input":
        result["initial"] = "calculated" if variable.start is None else "exact"
    return result


def _variables_3(root: Element, unit: Unit) -> None:
    parent = SubElement(root, "ModelVariables")
    for reference, variable in enumerate(unit.variables):
        element = SubElement(parent, "Float64", _attributes(variable, reference) | _numbers(variable))
        if variable.derivative_of is not None:
            element.set("derivative", str(variable.derivative_of))
    time = {"causality": "independent", "variability": "continuous", "unit": "s"}
    SubElement(parent, "Float64", {"name": "time", "valueReference": str(len(unit.variables)), **time})
    structure = SubElement(root, "ModelStructure")
    for kind, reference, variable in _unknowns(unit, ("Output", "ContinuousStateDerivative", "InitialUnknown")):
        _unknown(structure, kind, "valueReference", reference, variable, 0)


def _variables_2(root: Element, unit: Unit) -> None:
    parent = SubElement(root, "ModelVariables")
    for reference, variable in enumerate(unit.variables):
        scalar = SubElement(parent, "ScalarVariable", _attributes(variable, reference))
        real = SubElement(scalar, "Real", _numbers(variable))
        if variable.derivative_of is not None:
            real.set("derivative", str(variable.derivative_of + 1))
    time = {"causality": "independent", "variability": "continuous"}
    scalar = SubElement(parent, "ScalarVariable", {"name": "time", "valueReference": str(len(unit.variables)), **time})
    SubElement(scalar, "Real", unit="s")
    structure = SubElement(root, "ModelStructure")
    groups: dict[str, Element] = {}
    for group, reference, variable in _unknowns(unit, ("Outputs", "Derivatives", "InitialUnknowns")):
        if group not in groups:
            groups[group] = SubElement(structure, group)
        _unknown(groups[group], "Unknown", "index", reference, variable, 1)


def _unknowns(unit: Unit, elements: tuple[str, str, str]) -> list[tuple[str, int, Variable]]:
    """Outputs, derivatives, and what the initialisation computes, with the element of each."""
    listed = list(enumerate(unit.variables))
    outputs = [(elements[0], i, v) for i, v in listed if v.causality == "output"]
    derivatives = [(elements[1], i, v) for i, v in listed if v.derivative_of is not None]
    initial = [(elements[2], i, v) for i, v in listed if v.start is None]
    return outputs + derivatives + initial


def _unknown(parent: Element, element: str, key: str, reference: int, variable: Variable, first: int) -> None:
    """One unknown; in FMI 2.0 variables are counted from 1."""
    attributes: dict[str, Any] = {key: str(reference + first)}
    known = (reference,) if variable.start is not None else variable.depends_on
    SubElement(parent, element, attributes | {"dependencies": " ".join(str(place + first) for place in known)})


TEMPLATES = Path(__file__).parent
LIBRARIES = {"linux": "so", "darwin": "dylib", "win32": "dll"}
OLD_PLATFORMS = {"linux": "linux64", "darwin": "darwin64", "win32": "win64"}
PLATFORMS = {"linux": "linux", "darwin": "darwin", "win32": "windows"}
MACHINES = {"amd64": "x86_64", "x86_64": "x86_64", "arm64": "aarch64", "aarch64": "aarch64"}


def filled(template: Path, fields: dict[str, object]) -> bytes:
    """A C source, with every $field replaced."""
    text = template.read_text(encoding="utf-8")
    return re.sub(
        r"\$(NAME|[a-z]+(?=_fmu|_dynamics|_jacobians)|[a-z_]+)", lambda match: str(fields[match[1]]), text
    ).encode()


def _limits(unit: Unit) -> str:
    """Rows of C with the value reference, min and max of every parameter."""
    parameters = ((k, one) for k, one in enumerate(unit.variables) if one.causality == "parameter")
    return "".join(f"{{{k}, {one.lower or 0.0!r}, {one.upper or 0.0!r}}}, " for k, one in parameters)


def archive(unit: Unit, version: int, sources: dict[str, bytes], fields: dict[str, object], real: str) -> bytes:
    """The bytes of NAME.fmu.

    sources: by file name; they are compiled together with the functions of FMI, and $token in a source becomes the
    identity of this unit. fields: of the templates `fmu.h` and fmi2.c or fmi3.c. real: the definition of the number
    type, `PENDULUM_REAL`. Raises ModelError for another version than 2 or 3, and without a C compiler.
    """
    if version not in (2, 3):
        raise ModelError(f"there is no FMI {version}; write --fmi 2 or --fmi 3.")
    templates, filling = ("fmu.h", f"fmi{version}.c"), fields | {"limits": _limits(unit)}
    texts = sources | {f"{unit.name}_{name}": filled(TEMPLATES / name, filling) for name in templates}
    unit = replace(unit, sources=sorted(name for name in texts if name.endswith(".c")))
    described = model_description(unit, version, "")
    digest = hashlib.sha256(described + b"".join(name.encode() + texts[name] for name in sorted(texts))).hexdigest()
    token = f"{{{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}}}"
    texts = {name: text.replace(b"$token", token.encode()) for name, text in texts.items()}
    binary, place = _compiled(unit, texts, real), _place(unit.name, version)
    files = {"modelDescription.xml": model_description(unit, version, token), place: binary}
    files |= {f"sources/{name}": text for name, text in texts.items()}
    if version == 3:
        files["sources/buildDescription.xml"] = build_description(unit, {real: "double"})
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in files.items():
            file.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)  # with the date 1980: the same bytes
    return packed.getvalue()


def _place(name: str, version: int) -> str:
    """Where machine code for this machine lies. Raises ModelError for a machine that FMI has no name for."""
    machine = MACHINES.get(platform.machine().lower())
    if sys.platform not in LIBRARIES or machine is None or (version == 2 and machine != "x86_64"):
        raise ModelError(
            f"FMI {version} has no name for machine code of {platform.machine()} under {sys.platform}. Write --fmi 3, "
            "or export on a computer with Linux, macOS or Windows."
        )
    folder = OLD_PLATFORMS[sys.platform] if version == 2 else f"{machine}-{PLATFORMS[sys.platform]}"
    return f"binaries/{folder}/{name}.{LIBRARIES[sys.platform]}"


def _compiled(unit: Unit, texts: dict[str, bytes], real: str) -> bytes:
    """Machine code of the sources as a shared library."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise ModelError(
            "an FMU holds machine code, and there is no C compiler here. Install gcc or clang, so that one of cc, gcc "
            "and clang is found."
        )
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts.items():
            (Path(folder) / name).write_bytes(text)
        position = [] if sys.platform == "win32" else ["-fPIC", "-fvisibility=hidden"]
        options = ["-std=c99", "-O2", "-shared", *position, f"-D{real}=double", "-o", "library", *unit.sources, "-lm"]
        result = subprocess.run([compiler, *options], cwd=folder, capture_output=True, text=True, check=False)
        if result.returncode:
            raise ModelError(f"{compiler} does not compile the sources of the FMU:\n{result.stderr.strip()}")
        return (Path(folder) / "library").read_bytes()
