"""Find a model file by name or path, and execute it."""

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
from modelgen.files import shipped
from modelgen.statement.checker import repaired
from modelgen.statement.robot import Robot

OWN = Path("models")
SHIPPED = shipped("models")


def available() -> dict[str, Path]:
    """Model files by name; one in ./models hides a shipped one of the same name."""
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
    """The file of NAME (./models/NAME.py, else the shipped one), or PATH. Raises ModelError when there is none."""
    if name_or_path.endswith(".py") or "/" in name_or_path or "\\" in name_or_path:
        path = Path(name_or_path)
        if not path.is_file():
            raise ModelError(f"there is no model file {name_or_path}. Write one with `modelgen new NAME`.")
        return path
    known = available()
    if name_or_path not in known:
        raise ModelError(
            f"there is no model `{name_or_path}` in ./models or among the shipped ones."
            f"{suggestion(name_or_path, known)} Known: {', '.join(sorted(known))}. {_next(name_or_path)}"
        )
    return known[name_or_path]


def _next(name: str) -> str:
    """The command that makes a model of a name that is not known."""
    if name.endswith(".urdf"):
        return f"`modelgen import {name}` writes one from the URDF."
    return f"`modelgen new {repaired(name)}` writes a new one."


def load(name_or_path: str) -> Robot:
    """Execute a model file and return the robot it states. Every failure raises ModelError with its line."""
    path = find(name_or_path)
    name = shortened(path.resolve())
    try:
        code = compile(path.read_bytes(), str(path.resolve()), "exec")
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}.") from error
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:  # the latter two: nested too deeply
        line = getattr(error, "lineno", None) or 1
        words = getattr(error, "msg", None) or str(error) or "it is nested too deeply"
        raise ModelError(f"this is not valid Python: {words}.", Place(name, line)) from error
    robot = _only_robot(_executed(code, path.resolve()), name)
    if robot.name != path.stem:
        raise ModelError(
            f"the file {path.name} states a robot named `{robot.name}`. They must agree, for commands know a "
            f'robot by one name: write Robot("{path.stem}") or rename the file to {robot.name}.py.',
            robot.place,
        )
    return robot


def _executed(code: object, path: Path) -> dict[str, object]:
    """The namespace after executing the file; its neighbours can be imported."""
    module = ModuleType(f"model_file_{path.stem}")  # no name of a module that it may import
    module.__file__ = str(path)
    name = shortened(path)
    try:
        with _importable(path.parent), supervised(name):
            sys.modules[module.__name__] = module  # dataclasses look for their module there
            exec(code, vars(module))  # type: ignore[arg-type]
    except ModelError:
        raise
    except (Exception, SystemExit, Stopped) as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).parent == path.parent]
        place = Place(shortened(Path(frames[-1].filename)), frames[-1].lineno or 1) if frames else Place(name, 1)
        if isinstance(error, Stopped):
            raise ModelError(str(error), place) from error
        words = " ".join(traceback.format_exception_only(error)[-1].split())
        line = f", in `{frames[-1].line}`" if frames and frames[-1].line else ""
        hint = ". Take sin, cos, sqrt and the like from sympy, not from math or numpy" if _is_numeric(error) else ""
        hint = f": {TOO_DEEP}" if isinstance(error, RecursionError) else hint or _keyword(error)
        raise ModelError(f"{words}{line}{hint}", place) from error
    return vars(module)


def _keyword(error: BaseException) -> str:
    """The keyword argument of a method of Robot that was probably meant, where a file gives one that it has not."""
    found = re.search(r"Robot\.(\w+)\(\) got an unexpected keyword argument '(\w+)'", str(error))
    return "." + suggestion(found[2], inspect.signature(getattr(Robot, found[1])).parameters) if found else ""


def _is_numeric(error: BaseException) -> bool:
    """Whether a function of `math` or NumPy was called with a symbol."""
    return any(words in str(error) for words in ("Cannot convert expression to float", "loop of ufunc"))


def _only_robot(namespace: dict[str, object], name: str) -> Robot:
    robots = {id(value): value for value in namespace.values() if isinstance(value, Robot)}
    if not robots:
        raise ModelError(
            'this file states no robot. Write robot = Robot("NAME"), and see `modelgen new`. A module that only '
            "helps others is left alone when its name starts with an underscore.",
            Place(name, 1),
        )
    if len(robots) > 1:
        names = ", ".join(f"`{robot.name}`" for robot in robots.values())
        raise ModelError(f"this file states {len(robots)} robots, {names}; write one file for each.", Place(name, 1))
    return next(iter(robots.values()))


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Let a model file import its neighbours, and forget them afterwards, so that edited ones are read anew; the
    working folder is put back."""
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
