"""An imported MJCF file in MuJoCo, at the states and inputs of its model file: the check of the importer.

What the model file does not hold is switched off in MuJoCo, and what it holds only as a guess (the springs of
couplings, the smoothing of dry friction) acts there as an applied force.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from modelgen.arrays import Array
from modelgen.importers.mechanism import BALL, FLOATING, IN_PLANE, PLANAR, Linear
from modelgen.importers.mjcf import MjcfRobot
from modelgen.importers.mjcf_loops import Equality

STEP = 1e-5  # rad or m, of a difference
HELD = ("jnt_actfrclimited", "tendon_actfrclimited", "actuator_forcelimited", "actuator_delay")  # switched off
CURVED = tuple(
    f"{what}poly" for what in ("jnt_stiffness", "dof_damping", "tendon_stiffness", "tendon_damping", "actuator_damping")
)


#: Coordinates and speeds of a joint that has more than one.
COUNTS = {BALL: (4, 3), FLOATING: (7, 6), **{kind: (len(names),) * 2 for kind, names in PLANAR.items()}}


class ImportedMjcf:
    """Accelerations of the coordinates of a model file by MuJoCo, which has read the MJCF file.

    The joints that the model file holds in place, such as a free base, are removed by a projection P (nv, n_q) of the
    velocities: P^T M P a = P^T force.
    """

    def __init__(self, robot: MjcfRobot) -> None:
        self._robot, self._mujoco, self._model = robot, robot.compiled.mujoco, robot.compiled.model
        self.label = f"mujoco {self._mujoco.__version__}"
        self._joints = [joint for joint in robot.mechanism.joints if joint.type != "fixed"]
        numbers = {robot.compiled.joint_name(number): number for number in range(self._model.njnt)}
        self._numbers = {joint.name: numbers[joint.name] for joint in self._joints}
        self._rows: dict[str, int] = {}  # of q
        self._columns: dict[str, int] = {}  # of v
        self._positions = self._speeds = 0
        leading: tuple[list[int], list[int]] = ([], [])  # rows and columns of the joints that follow no other in a loop
        for joint in self._joints:
            self._rows[joint.name], self._columns[joint.name] = self._positions, self._speeds
            positions, speeds = COUNTS.get(joint.type, (1, 1))
            if joint.name not in robot.mechanism.dependent:
                leading[0].extend(range(self._positions, self._positions + positions))
                leading[1].extend(range(self._speeds, self._speeds + speeds))
            self._positions, self._speeds = self._positions + positions, self._speeds + speeds
        self._leading_rows, self._leading_columns = leading
        self._switch_off()
        self._data = self._mujoco.MjData(self._model)

    def acceleration(self, x: Array, u: Array) -> Array:
        """vdot (N, n_v) at the states x = (q, v) (N, n_q + n_v) and the inputs u (N, m)."""
        return np.array(
            [
                self._sample(state[: len(self._leading_rows)], state[len(self._leading_rows) :], inputs)
                for state, inputs in zip(x, u, strict=True)
            ]
        )

    def _switch_off(self) -> None:
        """Switch off what the model file does not hold."""
        model, flags = self._model, self._mujoco.mjtDisableBit
        model.opt.disableflags |= int(flags.mjDSBL_CONSTRAINT) | int(flags.mjDSBL_CLAMPCTRL)
        model.opt.density = model.opt.viscosity = 0
        for name in (*HELD, *CURVED):
            getattr(model, name)[:] = 0
        if any("gravcomp" in what for what in self._robot.compiled.left_out):
            model.body_gravcomp[:] = 0
        kept = {command.actuator for command in self._robot.commands}
        for index in set(range(model.nactuator)) - kept:
            model.actuator_gainprm[index] = model.actuator_biasprm[index] = 0
        wraps = self._mujoco.mjtWrap.mjWRAP_JOINT
        for tendon in range(model.ntendon):
            spatial = model.wrap_type[model.tendon_adr[tendon]] != int(wraps)
            if spatial or model.tendon_lengthspring[tendon, 0] != model.tendon_lengthspring[tendon, 1]:
                model.tendon_stiffness[tendon] = 0
            if spatial:
                model.tendon_damping[tendon] = model.tendon_armature[tendon] = 0

    def _sample(self, q: Array, v: Array, u: Array) -> Array:
        model, data, mujoco = self._model, self._data, self._mujoco
        q, projection = self._place(q)
        follow, drift = self._loops(projection, v)
        v = follow @ v
        data.qvel[:] = projection @ v
        data.qfrc_applied[:] = 0
        mujoco.mj_fwdPosition(model, data)
        mujoco.mj_fwdVelocity(model, data)
        for command, value in zip(self._robot.commands, u, strict=True):
            number, control = command.actuator, value
            if command.force:
                by_length = float(model.actuator_biasprm[number, 1]) * float(data.actuator_length[number])
                by_velocity = float(model.actuator_biasprm[number, 2]) * float(data.actuator_velocity[number])
                bias = float(model.actuator_biasprm[number, 0]) + by_length + by_velocity
                control = (value - bias) / float(model.actuator_gainprm[number, 0])
            data.ctrl[int(model.actuator_ctrladr[number])] = control
            if model.actuator_actadr[number] >= 0:
                data.act[int(model.actuator_actadr[number])] = control
        mujoco.mj_forward(model, data)
        mass = np.empty((model.nv, len(v)))
        for column in range(len(v)):
            product = np.empty(model.nv)
            mujoco.mj_mulM(model, data, product, np.ascontiguousarray(projection[:, column]))
            mass[:, column] = product
        force = projection.T @ data.qfrc_smooth + self._guesses(q, v)
        reduced = projection.T @ mass
        force = follow.T @ (force - reduced @ drift)
        return np.asarray(np.linalg.solve(follow.T @ reduced @ follow, force), np.float64)

    def _loops(self, projection: Array, v: Array) -> tuple[Array, Array]:
        """The matrix from the speeds of the model file to those of all joints, and accelerations where vdot is zero.

        The joints that follow in loops keep the rate of the gaps zero, J w = 0, and so J wdot = -Jdot w.
        """
        follow, drift = np.eye(self._speeds)[:, self._leading_columns], np.zeros(self._speeds)
        loops = self._robot.loops
        for group in loops.groups:
            names = [self._robot.compiled.joint_name(joint) for joint in group.dependent]
            columns = [self._columns[name] for name in names]
            qpos = self._data.qpos.copy()
            slopes = loops.kinematics.gap(group.loops, qpos)[1] @ projection
            inverse = np.linalg.pinv(slopes[:, columns], rcond=1e-9)
            follow[columns] = -inverse @ slopes @ follow
            rate = self._rate(group.loops, qpos, projection @ follow @ v)
            drift[columns] = -inverse @ rate
        return follow, drift

    def _rate(self, loops: Sequence[Equality], qpos: Array, qvel: Array) -> Array:
        """The rate of the gaps' slopes times the speeds (rows,), by a central difference along the motion."""
        step, sides = STEP / max(1.0, float(np.abs(qvel).max())), []
        for sign in (1, -1):
            moved = qpos.copy()
            self._mujoco.mj_integratePos(self._model, moved, qvel, sign * step)
            sides.append(self._robot.loops.kinematics.gap(loops, moved)[1] @ qvel)
        return np.asarray((sides[0] - sides[1]) / (2 * step))

    def _place(self, leading: Array) -> tuple[Array, Array]:
        """Place the joints, and return their positions and the projection P (nv, n_v) to MuJoCo's velocities."""
        q = np.zeros(self._positions)
        q[self._leading_rows] = leading
        projection = self._placed(q)
        if self._robot.loops.groups:
            closed = self._robot.loops.closed(self._data.qpos)
            self._data.qpos[:] = closed
            for name in self._robot.mechanism.dependent:
                joint = self._robot.mechanism.joint(name)
                q[self._rows[name]] = closed[self._model.jnt_qposadr[self._numbers[name]]] - joint.zero
        return q, projection

    def _placed(self, q: Array) -> Array:
        """Place the joints at their positions, and return the projection."""
        model, data = self._model, self._data
        data.qpos[:] = model.qpos0
        projection = np.zeros((model.nv, self._speeds))
        for joint in self._joints:
            number, column = self._numbers[joint.name], self._columns[joint.name]
            row = self._rows[joint.name]
            at, dof = int(model.jnt_qposadr[number]), int(model.jnt_dofadr[number])
            if joint.type == BALL:
                data.qpos[at : at + 4] = q[row : row + 4]
                projection[dof : dof + 3, column : column + 3] = np.eye(3)
                continue
            if joint.type == FLOATING:
                frame, turned = np.empty(9), np.empty(4)
                self._mujoco.mju_quat2Mat(frame, data.qpos[at + 3 : at + 7].copy())
                self._mujoco.mju_mulQuat(turned, data.qpos[at + 3 : at + 7].copy(), q[row + 3 : row + 7].copy())
                data.qpos[at : at + 3] += frame.reshape(3, 3) @ q[row : row + 3]
                data.qpos[at + 3 : at + 7] = turned
                projection[dof : dof + 3, column : column + 3] = frame.reshape(3, 3)
                projection[dof + 3 : dof + 6, column + 3 : column + 6] = np.eye(3)
                continue
            if joint.type != IN_PLANE:
                data.qpos[at] = q[row] + joint.zero
                projection[dof, column] = 1
                continue
            data.qpos[at] += q[row]
            data.qpos[at + 2] += q[row + 1]
            turn, orientation, own = np.empty(4), np.empty(4), np.empty(3)
            self._mujoco.mju_axisAngle2Quat(turn, np.array([0, 1.0, 0]), q[row + 2])
            self._mujoco.mju_mulQuat(orientation, turn, data.qpos[at + 3 : at + 7].copy())
            data.qpos[at + 3 : at + 7] = orientation
            self._mujoco.mju_negQuat(turn, orientation)
            self._mujoco.mju_rotVecQuat(own, np.array([0, 1.0, 0]), turn)
            projection[dof, column] = projection[dof + 2, column + 1] = 1
            projection[dof + 3 : dof + 6, column + 2] = own
        return projection

    def _row(self, along: Linear) -> Array:
        row = np.zeros(self._speeds)
        for name, coefficient in along:
            row[self._columns[name]] += coefficient
        return row

    def _value(self, along: Linear, q: Array) -> float:
        return float(sum(coefficient * q[self._rows[name]] for name, coefficient in along))

    def _guesses(self, q: Array, v: Array) -> Array:
        """The generalized forces (n_q,) of the smoothed dry friction and of the springs in place of rigid couplings."""
        mechanism, total = self._robot.mechanism, np.zeros(len(v))
        frictions: list[tuple[Linear, float]]
        frictions = [(((joint.name, 1.0),), joint.friction) for joint in self._joints if joint.friction]
        frictions += [(passive.along, passive.friction) for passive in mechanism.passive if passive.friction]
        for along, friction in frictions:
            row = self._row(along)
            total -= row * friction * np.tanh(row @ v / mechanism.smoothing(along, friction)[0])
        for coupling in mechanism.couplings:
            first, second = self._row(coupling.first), self._row(coupling.second)
            ahead, behind = self._value(coupling.first, q), self._value(coupling.second, q)
            value = np.polynomial.Polynomial(coupling.polynomial)
            at = behind + mechanism.shift(coupling.second)
            gap = ahead + mechanism.shift(coupling.first) - value(at)
            slope = first - value.deriv()(at) * second
            stiffness, damping = mechanism.stiffness_and_damping(coupling)
            turns = [mechanism.joint(name).type for name, _ in coupling.first + coupling.second]
            pull = np.sin(gap) if "continuous" in turns else gap
            total -= slope * (stiffness * pull + damping * (slope @ v))
        return total
