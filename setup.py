"""Puts the shipped models and artifacts into the wheel, as modelgen/models and modelgen/generated."""

from pathlib import Path
from shutil import copytree, ignore_patterns

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithData(build_py):
    """Copies the folders models and generated below modelgen, so that no top-level name of a user's is taken."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            for name in ("models", "generated"):
                target = Path(self.build_lib) / "modelgen" / name
                copytree(name, target, dirs_exist_ok=True, ignore=ignore_patterns("__pycache__", "*.pyc", "*.md", ".*"))


setup(cmdclass={"build_py": BuildWithData})
