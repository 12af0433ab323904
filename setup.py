"""Puts the shipped models, artifacts and pages into the wheel, as modelgen/models, generated and docs."""

from pathlib import Path
from shutil import copyfile, copytree, ignore_patterns

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithData(build_py):
    """Copies models, artifacts and pages below modelgen, so that no top-level name of a user's is taken."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            for name in ("models", "generated"):
                target = Path(self.build_lib) / "modelgen" / name
                copytree(name, target, dirs_exist_ok=True, ignore=ignore_patterns("__pycache__", "*.pyc", "*.md", ".*"))
            for page in Path("docs").rglob("*.md"):
                target = Path(self.build_lib) / "modelgen" / page
                target.parent.mkdir(parents=True, exist_ok=True)
                copyfile(page, target)


setup(cmdclass={"build_py": BuildWithData})
