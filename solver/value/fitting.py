"""What fits the weights of one member: the loss with its gradient, and the optimiser that follows it.

The loss is the mean of w |V - V_tar| over a minibatch (paper, eq. 13; w = 1). `LossGradient` computes its gradient
without autograd, whose many small operations would make the threads of a fit wait for the interpreter. The formula of V
is `solver.value.network.Factor.forward`.

The optimisers are Adam (Kingma and Ba, 2015), AMSGrad (Reddi et al., 2018) and SOAP (Vyas et al., 2024).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import pad, softplus
from torch.optim.adam import adam

from solver.value.kernel import LANES, REALS, Shape, pass_kernel
from solver.value.network import DIAGONAL_FLOOR, Ensemble, Factor


@dataclass(frozen=True)
class Samples:
    """N samples, from which minibatches are drawn."""

    z: Tensor  # (n_z + k, N) inputs of the networks: features, then contexts
    error: Tensor  # (n_z, N) y
    target: Tensor  # (N,) V_tar
    weight: Tensor  # (N,) w

    @classmethod
    def of(cls, ensemble: Ensemble, x: Tensor, target: Tensor, weight: Tensor) -> Samples:
        """Samples at the rows x (N, n + k) with targets and weights (N,)."""
        frame = ensemble.frame
        states, features, _ = frame.at(x)
        z = features(states)
        return cls(frame.inputs(z, x).T.contiguous(), features.error(z).T.contiguous(), target, weight)

    @property
    def arrays(self) -> tuple[Tensor, ...]:
        """All of them."""
        return self.z, self.error, self.target, self.weight

    def shuffled(self, order: Tensor) -> Samples:
        """The samples with the indices `order` (N,)."""
        return Samples(*(array.index_select(-1, order) for array in self.arrays))

    def minibatches(self, size: int) -> Iterator[Samples]:
        """Groups of `size` consecutive samples, without a copy."""
        parts = (torch.split(array, size, dim=-1) for array in self.arrays)
        return (Samples(*part) for part in zip(*parts, strict=True))


class LossGradient:
    """Loss of one member on a minibatch of B samples. A call writes the gradient to the `.grad` of the parameters.

    weights: the vector of which the parameters are views. size: the largest B.
    """

    def __init__(self, member: Factor, weights: Tensor, size: int) -> None:
        self.weights, self.biases = list(member.weights), list(member.biases)
        on_processor = weights.device.type == "cpu"
        self.passes = CompiledPass(member, weights, size) if on_processor else TorchPass(member)

    @torch.no_grad()
    def __call__(self, batch: Samples) -> Tensor:
        """Mean of |V - V_tar| over the batch (). The gradient is the one of the mean weighted by w."""
        size = len(batch.target)
        hidden, adjoint, residual = self.passes(batch.z, batch.error, batch.target, batch.weight / size)
        for weight, bias, x, g in zip(self.weights, self.biases, hidden, adjoint, strict=True):
            assert weight.grad is not None
            assert bias.grad is not None
            torch.mm(x, g.T, out=weight.grad)
            torch.sum(g, 1, out=bias.grad)
        return residual.abs().mean()


Pass = tuple[list[Tensor], list[Tensor], Tensor]


class CompiledPass:
    """Forward and reverse pass of a member for the gradient of its fit, on minibatches of at most `size` samples.

    weights: vector of its weights and biases, in their order.
    """

    def __init__(self, member: Factor, weights: Tensor, size: int) -> None:
        shape, self._weights, real = Shape.of([member]), weights, REALS[weights.dtype]
        self._lanes = LANES[real]
        # One more vector than the samples need: rows whose distance is a power of two would share a place in the cache.
        columns = (-(-size // self._lanes) + 1) * self._lanes
        self._kernel, places = pass_kernel(shape, real, columns)
        self._space = weights.new_zeros(max(part.stop for part in places.values()), columns)
        rows = {name: self._space[part] for name, part in places.items()}
        inner = range(1, len(shape.layers) - 1)
        self._hidden = [rows[f"h{i}"] for i in inner]
        self._adjoint, self._residual = [*(rows[f"g{i}"] for i in inner), rows["entries"]], rows["residual"][0]

    def __call__(self, z: Tensor, error: Tensor, target: Tensor, weight: Tensor) -> Pass:
        """Inputs (in, B) of all layers, derivatives (out, B) of w |V - V_tar| in their sums, and V - V_tar (B,).

        z: (n_z + k, B). error: (n_z, B). target, weight: (B,) V_tar and w. The results are valid until the next call.
        """
        size = len(target)
        given = [z, error, target, weight]
        if size < self._lanes:
            given = [pad(array, (0, self._lanes - size)) for array in given]
        step = given[0].stride(0)
        assert step == given[1].stride(0)
        addresses = [array.data_ptr() for array in (*given, self._weights, self._space)]
        self._kernel(step, max(size, self._lanes), *addresses)
        hidden, adjoint = ([rows[:, :size] for rows in some] for some in (self._hidden, self._adjoint))
        return [z, *hidden], adjoint, self._residual[:size]


class TorchPass:
    """Forward and reverse pass of a member by matrix products, on a GPU."""

    def __init__(self, member: Factor) -> None:
        self.weights, self.biases = list(member.weights), list(member.biases)
        self.rows, self.columns, self.diagonal = member.rows, member.columns, member.diagonal.nonzero()[:, 0]
        self.sum_into_columns = member.column_sum.T.contiguous()

    def __call__(self, z: Tensor, error: Tensor, target: Tensor, weight: Tensor) -> Pass:
        """As `CompiledPass`."""
        hidden, factor = [z], error.index_select(0, self.rows)
        for w, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            hidden.append(torch.addmm(bias[:, None], w.T, hidden[-1]).tanh_())
        entries = torch.addmm(self.biases[-1][:, None], self.weights[-1].T, hidden[-1])
        diagonal = entries.index_select(0, self.diagonal)
        entries.index_copy_(0, self.diagonal, softplus(diagonal) + DIAGONAL_FLOOR)
        y = self.sum_into_columns @ entries.mul_(factor)
        residual = (y * y).sum(0).neg_().sub_(target)
        outer = y.mul_(torch.sign(residual).mul_(weight).mul_(-2.0)).index_select(0, self.columns).mul_(factor)
        steepness = torch.sigmoid(diagonal).mul_(outer.index_select(0, self.diagonal))
        adjoint = [outer.index_copy_(0, self.diagonal, steepness)]
        for w, h in zip(reversed(self.weights[1:]), reversed(hidden[1:]), strict=True):
            adjoint.append((w @ adjoint[-1]).mul_(1.0 - h * h))
        return hidden, adjoint[::-1], residual


PERIOD = 20  # steps of SOAP between two changes of its basis
DECAY = 0.95  # of all running means of SOAP
FIRST, TURNING, USUAL = range(3)  # kinds of steps of SOAP: the first, one that changes the basis, another


class Optimiser(ABC):
    """Base class: steps on the vector of all weights of a member, with a state from which a training can resume.

    The parameters of `member` become views of the vector `weights`, and their gradients views of `gradient`. held: mask
    of the weights that do not change.
    """

    def __init__(
        self, member: nn.Module, learning_rate: float, weight_decay: float, held: Tensor | None = None
    ) -> None:
        parameters = list(member.parameters())
        self.weights = torch.cat([parameter.detach().flatten() for parameter in parameters])
        self.gradient = torch.zeros_like(self.weights)
        begin = 0
        for parameter in parameters:
            end = begin + parameter.numel()
            parameter.data, parameter.grad = (
                part[begin:end].view(parameter.shape) for part in (self.weights, self.gradient)
            )
            begin = end
        self.weight_decay, self.held = weight_decay, held
        self.taken = 0  # steps so far, kept here too because reading it from the state would wait for a GPU
        self._rate: float | Tensor = learning_rate
        if self.weights.device.type != "cpu":
            self._rate = torch.tensor(learning_rate, device=self.weights.device)
        self.state = {
            "steps": torch.zeros((), device=self.weights.device),
            "mean": torch.zeros_like(self.weights),
            "square": torch.zeros_like(self.weights),
        }

    @property
    def learning_rate(self) -> float | Tensor:
        """Step size. On a GPU it is a tensor, so that a recorded step can be replayed with another value."""
        return self._rate

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        if isinstance(self._rate, Tensor):
            self._rate.fill_(rate)
        else:
            self._rate = rate

    @property
    def kind(self) -> int:
        """Kind of the next step. Steps of one kind have the same operations, so that a GPU can replay them."""
        return 0

    def step(self) -> None:
        """Change the weights by one step with the gradients in `gradient`."""
        self.compute(self.kind)
        self.count()

    @abstractmethod
    def compute(self, kind: int) -> None:
        """Operations of a step of this kind."""

    def penalise(self) -> None:
        """Add the gradient of the L2 penalty, and take away that of held weights."""
        if self.weight_decay:
            self.gradient.add_(self.weights, alpha=self.weight_decay)
        if self.held is not None:
            self.gradient.masked_fill_(self.held, 0.0)

    def count(self) -> None:
        """Count a step that was computed or replayed."""
        self.taken += 1

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Copy the `state` of another instance. Raises KeyError or RuntimeError if names or shapes differ."""
        self.taken = int(state["steps"])
        for name, values in self.state.items():
            values.copy_(state[name])


class Adam(Optimiser):
    """Adam, or AMSGrad, on the parameters of one member. A step is one operation on their vector.

    It calls the function behind `torch.optim.Adam`. The class would import Torch's compiler and SymPy, which takes
    longer than a small training.
    """

    def __init__(
        self, member: nn.Module, learning_rate: float, weight_decay: float, amsgrad: bool, held: Tensor | None = None
    ) -> None:
        super().__init__(member, learning_rate, weight_decay, held)
        self.amsgrad = amsgrad
        self.state["largest_square"] = torch.zeros_like(self.weights)  # unused without amsgrad

    @torch.no_grad()
    def compute(self, kind: int) -> None:  # noqa: ARG002
        """Operations of a step. All steps are of one kind."""
        self.penalise()
        adam_step(self.weights, self.gradient, self.state, self.learning_rate, (0.9, 0.999), self.amsgrad)


def adam_step(
    weights: Tensor,
    gradient: Tensor,
    state: Mapping[str, Tensor],
    learning_rate: float | Tensor,
    decays: tuple[float, float],
    amsgrad: bool = False,
) -> None:
    """Change weights and state of an `Optimiser` in place by a step of Adam. decays: of the mean and of the square."""
    adam(
        [weights],
        [gradient],
        [state["mean"]],
        [state["square"]],
        [state["largest_square"]] if amsgrad else [],
        [state["steps"]],
        fused=True,
        amsgrad=amsgrad,
        beta1=decays[0],
        beta2=decays[1],
        lr=learning_rate,
        weight_decay=0.0,
        eps=1e-8,
        maximize=False,
    )


class Soap(Optimiser):
    """SOAP on the parameters of one member: Adam in the eigenbasis of Shampoo's preconditioner.

    Adam divides every entry of a gradient by its own size. SOAP does it in the directions in which the gradients of a
    weight matrix vary together, so that steep and flat directions of the loss get steps of the same size. A matrix has
    one basis for its rows and one for its columns. Biases are changed by Adam.
    """

    def __init__(
        self, member: nn.Module, learning_rate: float, weight_decay: float, held: Tensor | None = None
    ) -> None:
        super().__init__(member, learning_rate, weight_decay, held)
        self.rotated, self.change = torch.zeros_like(self.weights), torch.zeros_like(self.weights)
        self.matrices: list[_Matrix] = []
        self.biases: list[slice] = []
        begin = 0
        for name, parameter in member.named_parameters():
            part = slice(begin, begin + parameter.numel())
            begin = part.stop
            if parameter.dim() == 2:
                self.matrices.append(_Matrix(self, part, parameter.shape, name))
            else:
                self.biases.append(part)

    @property
    def kind(self) -> int:
        """FIRST, TURNING (a step that changes the basis) or USUAL."""
        return USUAL if self.taken % PERIOD else TURNING if self.taken else FIRST

    @torch.no_grad()
    def compute(self, kind: int) -> None:
        """Operations of a step of this kind."""
        self.penalise()
        for matrix in self.matrices:
            matrix.observe(0.0 if kind == FIRST else DECAY)
            if kind != USUAL:
                matrix.turn_basis()
            matrix.rotate()
        for part in self.biases:
            self.rotated[part] = self.gradient[part]
        adam_step(self.change.zero_(), self.rotated, self.state, self.learning_rate, (DECAY, DECAY))
        for matrix in self.matrices:
            matrix.apply()
        for part in self.biases:
            self.weights[part] += self.change[part]


class _Matrix:
    """Weight matrix W (m, n): the covariances E[G G'] and E[G' G] of its gradient G, and a basis for each."""

    def __init__(self, of: Soap, part: slice, shape: torch.Size, name: str) -> None:
        self.weight, self.gradient, self.rotated, self.change, self.mean = (
            vector[part].view(shape) for vector in (of.weights, of.gradient, of.rotated, of.change, of.state["mean"])
        )
        self.covariances, self.bases = [], []
        for side, size in zip(("rows", "columns"), shape, strict=True):
            covariance, basis = self.weight.new_zeros(size, size), torch.eye(size).to(self.weight)
            of.state |= {f"{name} {side} covariance": covariance, f"{name} {side} basis": basis}
            self.covariances.append(covariance)
            self.bases.append(basis)
        self.product = torch.empty_like(self.weight)

    def observe(self, decay: float) -> None:
        """Update the covariances with the gradient."""
        g = self.gradient
        for covariance, left, right in zip(self.covariances, (g, g.T), (g.T, g), strict=True):
            torch.addmm(covariance, left, right, beta=decay, alpha=1.0 - decay, out=covariance)

    def turn_basis(self) -> None:
        """Change the basis by a step of the QR algorithm towards the eigenvectors, and express the mean in it."""
        turns = []
        for covariance, basis in zip(self.covariances, self.bases, strict=True):
            new = torch.linalg.qr(covariance @ basis)[0]
            turns.append(basis.T @ new)
            basis.copy_(new)
        self.mean.copy_(turns[0].T @ self.mean @ turns[1])

    def rotate(self) -> None:
        """Express the gradient in the bases."""
        torch.mm(self.bases[0].T, self.gradient, out=self.product)
        torch.mm(self.product, self.bases[1], out=self.rotated)

    def apply(self) -> None:
        """Add the change, expressed in the bases, to the weights."""
        torch.mm(self.bases[0], self.change, out=self.product)
        self.weight.addmm_(self.product, self.bases[1].T)
