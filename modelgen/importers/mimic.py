"""Joints of a URDF that follow another (<mimic>): a spring and damper, stated in the file, that pull them along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

LIMITED = ("revolute", "prismatic")
FREQUENCY = 60.0  # rad/s, of the spring with what the joint moves: stiff beside a hand's motion, no burden to integrate


def uncoupled(joint: Any, joints: Sequence[Any]) -> str | None:
    """Why a joint that follows another cannot be coupled to it; None where it can."""
    leader = next((each for each in joints if each.name == joint.mimic.joint), None)
    if leader is None:
        return f"which is not there, so that `{joint.name}` has nothing to follow"
    if leader is joint or leader.type not in LIMITED or joint.type not in LIMITED:
        return "and a spring can couple two different revolute or prismatic joints with limits only"
    ahead = [joint]
    while leader is not None and leader.mimic is not None and leader not in ahead:
        ahead.append(leader)
        leader = next((each for each in joints if each.name == leader.mimic.joint), None)
    if leader is joint:
        return "which follows it in turn, so that none of them leads"
    if joint.mimic.offset:
        return f"with an offset of {joint.mimic.offset:g}, and a spring couples without one only"
    return None


def coupling(described: Any, joints: Sequence[Any], joint: Any) -> tuple[float, float, float]:
    """Ratio, stiffness and damping that pull a joint to ratio times its leader; the last two are guesses."""
    multiplier = joint.mimic.multiplier
    inertia = carried_inertia(described, joints, joint)
    return 1.0 if multiplier is None else float(multiplier), FREQUENCY**2 * inertia, FREQUENCY * inertia


def carried_inertia(described: Any, joints: Sequence[Any], joint: Any, rigidly: bool = False) -> float:
    """Inertia about the joint's axis (kg m^2), mass along it (kg), of all links that it carries at zero.

    rigidly: only of its own link and what is fixed to that, which it carries wherever the other joints are.
    """
    axis = np.asarray([1.0, 0, 0] if joint.axis is None else joint.axis, np.float64)
    axis = axis / np.linalg.norm(axis)
    frames = {joint.child: np.eye(4)}
    for each in joints:
        if each.parent in frames and (each.type == "fixed" or not rigidly):
            frames[each.child] = frames[each.parent] @ (np.eye(4) if each.origin is None else each.origin)
    total = 0.0
    for link in described.links:
        if link.name in frames and link.inertial is not None and link.inertial.mass:
            inertial = link.inertial
            frame = frames[link.name] @ (np.eye(4) if inertial.origin is None else inertial.origin)
            arm, own = np.cross(axis, frame[:3, 3]), frame[:3, :3].T @ axis
            about = inertial.mass * arm @ arm + own @ np.asarray(inertial.inertia, np.float64) @ own
            total += float(inertial.mass if joint.type == "prismatic" else about)
    return total
