"""Pictures of an episode, and the frame rate of a video."""

from __future__ import annotations

import numpy as np
import pytest

from solver.errors import SolverError

gymnasium = pytest.importorskip("gymnasium")


from solver.gym import NAMESPACE  # noqa: E402
from solver.gym.environment import RobotEnv, RobotVectorEnv  # noqa: E402

PENDULUM = f"{NAMESPACE}/pendulum-v0"


def test_frame_rate_is_the_rate_of_the_held_actions() -> None:
    env = RobotEnv("pendulum", hold=np.int64(5), render_mode="rgb_array")  # type: ignore[arg-type]
    assert env.metadata["render_fps"] == 25
    assert RobotVectorEnv("pendulum", 2, hold=5).metadata["render_fps"] == 25


@pytest.mark.parametrize("robot", ["pendulum", "cartpole", "planar_quadrotor"])
def test_pictures_show_the_segments_at_their_places(robot: str) -> None:
    env = RobotVectorEnv(robot, 2, render_mode="rgb_array")
    env.reset(seed=0)
    env.episodes.x[1] = 0.0
    first, second = env.render() or ()
    assert first.dtype == np.uint8
    assert max(first.shape) == 400
    assert not np.array_equal(first, second)
    left, right, bottom, top = env.problem.robot.drawing.view
    for picture, x in zip((first, second), env.episodes.x.numpy(), strict=True):
        inked = np.argwhere((picture != 255).any(2))
        ends = env.problem.robot.drawing.segments(x[None])[0].reshape(-1, 2)
        across = (ends[:, 0] - left) / (right - left) * picture.shape[1]
        down = (top - ends[:, 1]) / (top - bottom) * picture.shape[0]
        np.testing.assert_allclose(inked.min(0), [down.min(), across.min()], atol=8)
        np.testing.assert_allclose(inked.max(0), [down.max(), across.max()], atol=8)


def test_environment_without_a_render_mode_draws_no_picture() -> None:
    env = RobotEnv("pendulum")
    env.reset(seed=0)
    assert env.render() is None


def test_unknown_render_mode_is_an_error() -> None:
    with pytest.raises(SolverError, match=r"'human'.*'rgb_array'"):
        RobotEnv("pendulum", render_mode="human")
