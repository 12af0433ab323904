"""Model files: find one by name or path, and execute it."""

from __future__ import annotations

import inspect
import os
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from modelgen.derivation.supervision import Stopped, supervised
from modelgen.errors import TOO_DEEP, ModelError, Place, shortened, suggestion
from modelgen.files import file_hash, shipped
from modelgen.statement.checker import repaired
from modelgen.statement.robot import Robot

OWN = Path("models")  # in the working folder
SHIPPED = shipped("models")


def available() -> dict[str, Path]:
    """Model files by name. A file in ./models hides a shipped one of the same name."""
    folders = (SHIPPED, OWN)
    return {
        path.stem: path
        for folder in folders
        if folder.is_dir()
        for path in sorted(folder.glob("*.py"))
        if not path.stem.startswith("_")
    }


def own() -> dict[str, Path]:
    """Model files of ./models, by name."""
    return {name: path for name, path in available().items() if path.parent == OWN}


def find(name_or_path: str) -> Path:
    """The file NAME (./models/NAME.py or the shipped one) or PATH. Raises ModelError if it does not exist."""
    if name_or_path.endswith(".py") or "/" in name_or_path or "\\" in name_or_path:
        path = Path(name_or_path)
        if not path.is_file():
            raise ModelError(f"there is no model file {name_or_path}. Write one with `modelgen new NAME`.")
        return path
    known = available()
    if name_or_path not in known:
        raise ModelError(
            f"there is no model `{name_or_path}` in ./models or among the shipped models."
            f"{suggestion(name_or_path, known)} Known: {', '.join(sorted(known))}. {_next(name_or_path)}"
        )
    return known[name_or_path]


def _next(name: str) -> str:
    """The command that makes a model with an unknown name."""
    if name.endswith((".urdf", ".xml")):
        return f"`modelgen import {name}` writes one from it."
    return f"`modelgen new {repaired(name)}` writes a new one."


def load(name_or_path: str) -> Robot:
    """The robot of a model file, which is executed. Raises ModelError with the line for every failure."""
    path = find(name_or_path)
    name = shortened(path.resolve())
    try:
        content = path.read_bytes()
        code = compile(content, str(path.resolve()), "exec")
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}.") from error
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:  # the last two: nested too deeply
        line = getattr(error, "lineno", None) or 1
        words = getattr(error, "msg", None) or str(error) or "it is nested too deeply"
        raise ModelError(f"this is not valid Python: {words}.", Place(name, line)) from error
    robot = _only_robot(_executed(code, path.resolve()), name)
    if robot.name != path.stem:
        raise ModelError(
            f"the file {path.name} declares a robot named `{robot.name}`. The names must agree: write "
            f'Robot("{path.stem}") or rename the file to {robot.name}.py.',
            robot.place,
        )
    robot.file_hash = file_hash(content)
    return robot


def _executed(code: object, path: Path) -> dict[str, object]:
    """The namespace after the execution of the file, which can import its neighbours."""
    module = ModuleType(f"model_file_{path.stem}")  # not the name of a module that it may import
    module.__file__ = str(path)
    name = shortened(path)
    try:
        with _importable(path.parent), supervised(name):
            sys.modules[module.__name__] = module  # dataclasses look up their module there
            exec(code, vars(module))  # type: ignore[arg-type]
    except ModelError:
        raise
    except (Exception, SystemExit, Stopped) as error:
        frames = [
            frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).parent == path.parent
        ]
        place = Place(shortened(Path(frames[-1].filename)), frames[-1].lineno or 1) if frames else Place(name, 1)
        if isinstance(error, Stopped):
            raise ModelError(str(error), place) from error
        words = " ".join(traceback.format_exception_only(error)[-1].split())
        line = f", in `{frames[-1].line}`" if frames and frames[-1].line else ""
        hint = ". Import sin, cos, sqrt and similar from sympy, not from math or numpy" if _is_numeric(error) else ""
        hint = f": {TOO_DEEP}" if isinstance(error, RecursionError) else hint or _keyword(error)
        raise ModelError(f"{words}{line}{hint}", place) from error
    return vars(module)


def _keyword(error: BaseException) -> str:
    """The end of the message for an unknown keyword argument of a method of Robot: the argument that was meant."""
    match = re.search(r"Robot\.(\w+)\(\) got an unexpected keyword argument '(\w+)'", str(error))
    return "." + suggestion(match[2], inspect.signature(getattr(Robot, match[1])).parameters) if match else ""


def _is_numeric(error: BaseException) -> bool:
    """Whether the error comes from a call of `math` or NumPy with a symbol."""
    return any(words in str(error) for words in ("Cannot convert expression to float", "loop of ufunc"))


def _only_robot(namespace: dict[str, object], name: str) -> Robot:
    robots = {id(value): value for value in namespace.values() if isinstance(value, Robot)}
    if not robots:
        raise ModelError(
            'this file declares no robot. Write robot = Robot("NAME"), or see `modelgen new`. Start the name of a '
            "helper module with an underscore.",
            Place(name, 1),
        )
    if len(robots) > 1:
        names = ", ".join(f"`{robot.name}`" for robot in robots.values())
        raise ModelError(f"this file declares {len(robots)} robots, {names}; write one file for each.", Place(name, 1))
    return next(iter(robots.values()))


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Let a model file import its neighbours. Afterwards remove them from sys.modules, and restore the working folder.

    The next load then reads edited neighbours again.
    """
    before, write, here = set(sys.modules), sys.dont_write_bytecode, Path.cwd()
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        os.chdir(here)
        sys.dont_write_bytecode = write
        sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            if Path(getattr(sys.modules[name], "__file__", None) or "/").parent == folder:
                del sys.modules[name]
