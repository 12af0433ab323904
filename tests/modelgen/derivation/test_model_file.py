"""Finding and executing model files: no mistake of a user ends in a traceback."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import modelgen
from modelgen import ModelError
from modelgen.cli import main
from modelgen.derivation import model_file as modelfile
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.description import metadata
from modelgen.derivation.domain_checks import check_domain
from tests.modelgen.support.cases import CASES
from tests.modelgen.support.model_files import MODEL, written


def rejects(*words: str, model: str = "slider") -> None:
    with pytest.raises(ModelError) as caught:
        modelfile.load(model)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message, message


class TestFinding:
    def test_a_file_of_the_own_folder_hides_the_shipped_one(self, folder: Path) -> None:
        assert modelfile.find("pendulum") == modelfile.SHIPPED / "pendulum.py"
        own = written(folder, MODEL, "pendulum")
        assert modelfile.find("pendulum").resolve() == own
        assert set(modelfile.own()) == {"pendulum"}

    def test_a_path_finds_a_file_outside_models(self, folder: Path) -> None:
        path = folder / "slider.py"
        path.write_text(MODEL)
        assert modelfile.load("slider.py").name == "slider"
        assert modelfile.load(str(path)).name == "slider"

    def test_an_unknown_name_is_refused_with_a_suggestion(self, folder: Path) -> None:
        written(folder, MODEL)
        rejects("`slidr`", "Did you mean `slider`", "modelgen new slidr", model="slidr")

    @pytest.mark.usefixtures("folder")
    def test_a_missing_path_is_refused(self) -> None:
        rejects("other/robot.py", "modelgen new", model="other/robot.py")

    def test_a_folder_is_refused_as_a_model(self, folder: Path) -> None:
        (folder / "thing.py").mkdir()
        rejects("thing.py", model="thing.py")

    def test_a_name_with_an_underscore_is_not_a_model(self, folder: Path) -> None:
        written(folder, "x = 1", "_shared")
        written(folder, MODEL)
        assert set(modelfile.own()) == {"slider"}


class TestExecuting:
    def test_a_syntax_error_names_the_file(self, folder: Path) -> None:
        written(folder, "robot = Robot(\n\nx = 3 +* 4\n")
        rejects("models/slider.py:", "not valid Python")

    def test_null_bytes_and_a_wrong_encoding_are_refused(self, folder: Path) -> None:
        path = written(folder, "")
        path.write_bytes(b"x = 1\x00\n")
        rejects("models/slider.py:", "not valid Python")
        path.write_bytes(b"x = '\xff\xfe'\n")
        rejects("models/slider.py:", "not valid Python")

    def test_an_exception_names_its_line(self, folder: Path) -> None:
        written(folder, "x = 1\ny = x / 0\n")
        rejects("models/slider.py:2: ZeroDivisionError: division by zero, in `y = x / 0`")

    def test_a_missing_argument_names_the_coordinate(self, folder: Path) -> None:
        written(folder, MODEL.replace(", rate_limit=2", ""))
        rejects("models/slider.py:4: ", "`s`", "rate_limit")

    def test_a_misspelt_method_is_refused_with_a_suggestion(self, folder: Path) -> None:
        written(folder, MODEL.replace("point_mass", "pointmass"))
        rejects("models/slider.py:6: AttributeError", "`pointmass`", "`point_mass`")

    def test_an_error_of_a_robots_method_keeps_its_line(self, folder: Path) -> None:
        written(folder, MODEL.replace("bounds=(0.5, 2)", "bounds=(1.5, 2)"))
        rejects("models/slider.py:5: ", "`mass`", "(1.5, 2)")

    def test_exit_and_endless_recursion_are_refused(self, folder: Path) -> None:
        written(folder, "import sys\nsys.exit(3)\n")
        rejects("models/slider.py:2: SystemExit")
        written(folder, "def f():\n    f()\nf()\n")
        rejects("models/slider.py:", "RecursionError")

    @pytest.mark.parametrize("module", ["math", "numpy"])
    def test_a_sine_of_math_or_numpy_is_refused(self, folder: Path, module: str) -> None:
        written(folder, MODEL.replace("robot.point_mass(mass, (s, 0))", f"import {module}\n{module}.sin(s)"))
        rejects(f"`{module}.sin(s)`", "from sympy")

    @pytest.mark.parametrize(
        ("line", "remedy"),
        [
            ("robot.spring(s, 2.0 * s^2)", r"Write \*\*"),
            ("robot.damp(s, 1.0 if s > 0 else 2.0)", "write Max"),
            ("robot.apply(s, -s.rate())", "leave out the brackets"),
            ("robot.apply(s, -s.velocity)", r"coordinate\.rate"),
            ("robot.apply(s, -s_rate)", r"coordinate\.rate"),
        ],
    )
    def test_a_usual_mistake_of_python_has_a_remedy(self, folder: Path, line: str, remedy: str) -> None:
        written(folder, MODEL.replace("robot.point_mass(mass, (s, 0))", line))
        with pytest.raises(ModelError, match=rf"models/slider\.py:6: .*{remedy}"):
            modelfile.load("slider")

    def test_a_model_file_may_define_dataclasses(self, folder: Path) -> None:
        text = "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        written(folder, f"{text}@dataclass\nclass Rail:\n    length: float\n" + MODEL)
        before = set(sys.modules)
        assert modelfile.load("slider").name == "slider"
        assert set(sys.modules) == before

    def test_errors_of_a_robot_named_modelgen_keep_their_line(self, folder: Path) -> None:
        written(folder, MODEL.replace('"slider"', '"modelgen"').replace("rate_limit=2", "rate_limit=-2"), "modelgen")
        rejects("models/modelgen.py:4", model="modelgen")

    def test_a_missing_import_is_refused(self, folder: Path) -> None:
        written(folder, "import nothing_of_this_name\n" + MODEL)
        rejects("models/slider.py:1: ModuleNotFoundError", "nothing_of_this_name")

    def test_a_file_without_a_robot_is_refused(self, folder: Path) -> None:
        written(folder, "x = 1\n")
        rejects("models/slider.py", "robot = Robot(")

    def test_a_file_with_two_robots_is_refused(self, folder: Path) -> None:
        written(folder, MODEL + "\nother = Robot('other')\n")
        rejects("2 robots, `slider`, `other`")

    def test_a_robot_with_two_variables_is_accepted(self, folder: Path) -> None:
        written(folder, MODEL + "\nalias = robot\n")
        assert modelfile.load("slider").name == "slider"

    def test_a_robot_named_unlike_its_file_is_refused(self, folder: Path) -> None:
        written(folder, MODEL, "glider")
        rejects("glider.py", "`slider`", 'Robot("glider")', model="glider")

    def test_an_unreadable_file_is_refused(self, folder: Path) -> None:
        if os.geteuid() == 0:
            pytest.skip("the superuser can read every file")
        written(folder, MODEL).chmod(0)
        rejects("slider.py", "cannot read")

    def test_neighbours_can_be_imported_and_do_not_stay_in_sys_modules(self, folder: Path) -> None:
        written(folder, "limit = 3\n", "_shared")
        written(folder, "from _shared import limit\n" + MODEL.replace('"force", 3', '"force", limit'))
        before, path = set(sys.modules), list(sys.path)
        assert metadata(modelfile.load("slider")).inputs[0].limit == 3
        assert "_shared" not in set(sys.modules) - before
        assert sys.path == path
        assert not (folder / "models" / "__pycache__").exists()

    @pytest.mark.parametrize(("right", "wrong"), [("rate_limit", "rate_limt"), ("horizon", "horizont")])
    def test_a_misspelt_argument_is_refused_with_a_suggestion(self, folder: Path, right: str, wrong: str) -> None:
        assert f" {right}=" in MODEL
        written(folder, MODEL.replace(f" {right}=", f" {wrong}="))
        rejects(f"'{wrong}'", f"Did you mean `{right}`?")

    def test_a_wrong_call_says_what_the_method_takes(self, folder: Path) -> None:
        written(folder, MODEL.replace("robot.apply(s, ", "robot.apply("))
        rejects("missing 1 required positional argument", "Write robot.apply(displacement, force)")

    def test_the_working_folder_is_restored(self, folder: Path) -> None:
        written(folder, "import os\nos.chdir(os.sep)\n" + MODEL)
        before = Path.cwd()
        modelfile.load("slider")
        assert Path.cwd() == before

    def test_a_file_that_closes_the_output_does_not_silence_the_command(
        self, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        written(folder, "import sys\nsys.stdout.close()\nsys.stderr.close()\n" + MODEL)
        assert main(["build", "slider", "--generated", str(folder / "made")]) == 0
        assert "made/slider" in capsys.readouterr().out


class TestDamagedFiles:
    """Any damaged file is accepted or refused with one paragraph, never with a traceback."""

    TEMPLATE = (Path(modelgen.__file__).parent / "commands" / "template.py.txt").read_text().replace("NAME", "slider")
    WORDS = tuple(dict.fromkeys(re.findall(r"[a-z_]+|[0-9.]+|[*/()+=,-]|\"[^\"]*\"", TEMPLATE.split('"""')[2])))

    def outcome(self, folder: Path, text: str) -> str:
        written(folder, text)
        try:
            robot = modelfile.load("slider")
            check_domain(robot, equations_of_motion(robot))
        except ModelError as error:
            return str(error)
        return ""

    @pytest.mark.slow
    def test_a_missing_line_causes_no_traceback(self, folder: Path) -> None:
        lines = self.TEMPLATE.splitlines(keepends=True)
        assert not self.outcome(folder, self.TEMPLATE)
        for missing in range(len(lines)):
            message = self.outcome(folder, "".join(lines[:missing] + lines[missing + 1 :]))
            assert "\n" not in message
            needed = lines[missing].startswith(("robot", "trolley", "swing", "load", "force", "    horizon"))
            if needed and not lines[missing].startswith("robot.draw"):
                assert message, lines[missing]

    @settings(max_examples=CASES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    @pytest.mark.slow
    def test_exchanged_words_cause_no_traceback(self, folder: Path, data: st.DataObject) -> None:
        old, new = data.draw(st.sampled_from(self.WORDS)), data.draw(st.sampled_from(self.WORDS))
        parts = self.TEMPLATE.split(old)
        place = data.draw(st.integers(1, len(parts) - 1))
        text = old.join(parts[:place]) + new + old.join(parts[place:])
        assert "\n" not in self.outcome(folder, text)
