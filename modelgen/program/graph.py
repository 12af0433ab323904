"""A scalar expression graph: hash-consed nodes, so that equal subexpressions are one node as they are made.

Nodes are numbered in the order they are made and refer only to smaller numbers, so the numbers are a
topological order and a deterministic one. Every constructor folds constants and removes zeros and ones: an
exact zero never becomes an operation. SymPy is not needed here.

Linear systems M c = r are kept implicit: `solve` makes the unrolled LDL^T factorisation, hash-consing shares
it between all systems with the same M, and the solution's entries are nodes of kind "solution" that
`differentiate` treats as free symbols instead of looking into the factorisation.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

Node = int

FLAT_POWER = "flat power"  # of `Graph.evaluate`
#: Operations that have Python's operators.
ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "negative": operator.neg,
    "solution": lambda value: value,
}
#: Functions of one argument with their values for constant folding; backends spell them by these names.
UNARY: dict[str, Callable[[float], float]] = {
    "sin": math.sin,
    "cos": math.cos,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "sinh": math.sinh,
    "cosh": math.cosh,
    "tanh": math.tanh,
    "exp": math.exp,
    "log": math.log,
    "log1p": math.log1p,
    "sqrt": math.sqrt,
    "abs": abs,
    "sign": lambda a: float((a > 0) - (a < 0)),
}
#: Functions of two arguments besides add, sub, mul and div.
BINARY: dict[str, Callable[[float, float], float]] = {
    "atan2": math.atan2,
    "pow": math.pow,
    "minimum": min,
    "maximum": max,
}


class Operation(NamedTuple):
    """One node: an operation and its arguments; a constant has a `value`, an input a `name`, a solution its row."""

    kind: str
    arguments: tuple[Node, ...] = ()
    value: float = 0.0
    name: str = ""


@dataclass(frozen=True)
class LinearSystem:
    """M c = r with M symmetric positive definite, given by its full rows; `solution` are c's nodes."""

    matrix: tuple[tuple[Node, ...], ...]
    right: tuple[Node, ...]
    solution: tuple[Node, ...]


class Graph:
    """Nodes and the linear systems among them."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.systems: dict[Node, tuple[LinearSystem, int]] = {}  # solution node -> its system and row
        self.implicit: dict[Node, tuple[tuple[Node, Node], ...]] = {}  # node -> variables and the slopes along them
        self._index: dict[Operation, Node] = {}
        self._solved: dict[tuple[object, ...], tuple[Node, ...]] = {}
        self.zero = self.constant(0.0)
        self.one = self.constant(1.0)

    def append(self, operation: Operation) -> Node:
        """The node of an operation as it stands, with nothing folded; a new one unless there is an equal one."""
        known = self._index.get(operation)
        if known is None:
            known = self._index[operation] = len(self.operations)
            self.operations.append(operation)
        return known

    def absorb(self, other: Graph, roots: Sequence[Node], known: Mapping[Node, Node]) -> tuple[Node, ...]:
        """The nodes here of the roots of another graph, whose operations are added as they stand.

        known: nodes of the other graph, its inputs for example, with the nodes here that they are.
        """
        here = dict(known)
        for node in other.reachable(roots):
            if node not in here:
                operation = other.operations[node]
                arguments = tuple(here[argument] for argument in operation.arguments)
                here[node] = self.append(operation._replace(arguments=arguments))
        return tuple(here[root] for root in roots)

    def _value(self, node: Node) -> float | None:
        operation = self.operations[node]
        return operation.value if operation.kind == "constant" else None

    def constant(self, value: float) -> Node:
        return self.append(Operation("constant", value=float(value) + 0.0))  # + 0.0 makes -0.0 the same zero

    def input(self, name: str) -> Node:
        return self.append(Operation("input", name=name))

    def negative(self, a: Node) -> Node:
        operation = self.operations[a]
        if operation.kind == "constant":
            return self.constant(-operation.value)
        if operation.kind == "negative":
            return operation.arguments[0]
        if operation.kind == "sub":
            return self.sub(operation.arguments[1], operation.arguments[0])
        return self.append(Operation("negative", (a,)))

    def _split_sign(self, a: Node) -> tuple[bool, Node]:
        operation = self.operations[a]
        if operation.kind == "negative":
            return True, operation.arguments[0]
        if operation.kind == "constant" and operation.value < 0:
            return True, self.constant(-operation.value)
        return False, a

    def add(self, a: Node, b: Node) -> Node:
        if a == self.zero or b == self.zero:
            return b if a == self.zero else a
        value_a, value_b = self._value(a), self._value(b)
        if value_a is not None and value_b is not None:
            return self.constant(value_a + value_b)
        (negative_a, bare_a), (negative_b, bare_b) = self._split_sign(a), self._split_sign(b)
        if negative_a and negative_b:
            return self.negative(self.add(bare_a, bare_b))
        if negative_b:
            return self.sub(a, bare_b)
        if negative_a:
            return self.sub(b, bare_a)
        return self.append(Operation("add", (min(a, b), max(a, b))))

    def sub(self, a: Node, b: Node) -> Node:
        if a == b:
            return self.zero
        if b == self.zero:
            return a
        if a == self.zero:
            return self.negative(b)
        value_a, value_b = self._value(a), self._value(b)
        if value_a is not None and value_b is not None:
            return self.constant(value_a - value_b)
        negative_b, bare_b = self._split_sign(b)
        if negative_b:
            return self.add(a, bare_b)
        negative_a, bare_a = self._split_sign(a)
        if negative_a:
            return self.negative(self.add(bare_a, b))
        return self.append(Operation("sub", (a, b)))

    def mul(self, a: Node, b: Node) -> Node:
        if self.zero in (a, b):
            return self.zero
        if a == self.one or b == self.one:
            return b if a == self.one else a
        value_a, value_b = self._value(a), self._value(b)
        if value_a is not None and value_b is not None:
            return self.constant(value_a * value_b)
        (negative_a, a), (negative_b, b) = self._split_sign(a), self._split_sign(b)
        if self.one in (a, b):
            product = b if a == self.one else a
        else:
            product = self.append(Operation("mul", (min(a, b), max(a, b))))
        return self.negative(product) if negative_a != negative_b else product

    def div(self, a: Node, b: Node) -> Node:
        if b == self.zero:
            raise ZeroDivisionError("division by an exact zero in the model's equations")
        if a == self.zero or b == self.one:
            return a
        if a == b:
            return self.one
        value_a, value_b = self._value(a), self._value(b)
        if value_b is not None:
            return self.constant(value_a / value_b) if value_a is not None else self.mul(a, self.constant(1 / value_b))
        (negative_a, a), (negative_b, b) = self._split_sign(a), self._split_sign(b)
        quotient = self.append(Operation("div", (a, b)))
        return self.negative(quotient) if negative_a != negative_b else quotient

    def power(self, a: Node, exponent: int) -> Node:
        """Power of `a` with a whole exponent, as products by repeated squaring."""
        if exponent < 0:
            return self.div(self.one, self.power(a, -exponent))
        if exponent == 0:
            return self.one
        half = self.power(a, exponent // 2)
        square = self.mul(half, half)
        return self.mul(square, a) if exponent % 2 else square

    def call(self, function: str, *arguments: Node) -> Node:
        """Value of a function of UNARY or BINARY."""
        values = [value for value in map(self._value, arguments) if value is not None]
        if len(values) == len(arguments):
            return self.constant((UNARY | BINARY)[function](*values))
        return self.append(Operation(function, arguments))

    def sum(self, terms: Iterable[Node]) -> Node:
        total = self.zero
        for term in terms:
            total = self.add(total, term)
        return total

    def dot(self, a: Sequence[Node], b: Sequence[Node]) -> Node:
        return self.sum(self.mul(left, right) for left, right in zip(a, b, strict=True))

    def solve(self, matrix: Sequence[Sequence[Node]], right: Sequence[Node]) -> tuple[Node, ...]:
        """Nodes of c in M c = r. M is symmetric positive definite; only its lower triangle is read."""
        size = len(matrix)
        full = tuple(tuple(matrix[max(i, j)][min(i, j)] for j in range(size)) for i in range(size))
        key = (full, tuple(right))
        if key not in self._solved:
            values = self._substitute(*self._factorise(full), right)
            free = tuple(
                value if self._value(value) is not None else self.append(Operation("solution", (value,), name=str(row)))
                for row, value in enumerate(values)
            )
            system = LinearSystem(full, tuple(right), free)
            for row, node in enumerate(free):
                if self._value(node) is None:  # a constant is older than M and r, and has no derivative
                    self.systems.setdefault(node, (system, row))
            self._solved[key] = free
        return self._solved[key]

    def _factorise(self, matrix: Sequence[Sequence[Node]]) -> tuple[list[list[Node]], list[Node]]:
        """L (unit lower triangular, strict part) and the reciprocals of D in M = L D L^T."""
        size = len(matrix)
        lower: list[list[Node]] = [[] for _ in range(size)]
        reciprocal: list[Node] = []
        for i in range(size):
            scaled: list[Node] = []  # L_ij D_j
            for j in range(i):
                scaled.append(self.sub(matrix[i][j], self.dot(scaled, lower[j])))
            lower[i] = [self.mul(entry, inverse) for entry, inverse in zip(scaled, reciprocal, strict=True)]
            reciprocal.append(self.div(self.one, self.sub(matrix[i][i], self.dot(scaled, lower[i]))))
        return lower, reciprocal

    def _substitute(self, lower: list[list[Node]], reciprocal: list[Node], right: Sequence[Node]) -> list[Node]:
        size = len(right)
        values = list(right)
        for i in range(size):
            values[i] = self.sub(values[i], self.dot(lower[i], values[:i]))
        values = [self.mul(value, inverse) for value, inverse in zip(values, reciprocal, strict=True)]
        for i in reversed(range(size)):
            below = range(i + 1, size)
            values[i] = self.sub(values[i], self.dot([lower[j][i] for j in below], [values[j] for j in below]))
        return values

    def reachable(self, roots: Iterable[Node]) -> list[Node]:
        """The nodes that an evaluation of `roots` needs, in order."""
        return self._closure(roots, lambda node: self.operations[node].arguments)

    def evaluate(
        self,
        roots: Iterable[Node],
        values: dict[Node, Any],
        operations: Mapping[str, Callable[..., Any]],
        constant: Callable[[float], Any] = float,
    ) -> None:
        """Complete `values`, which hold those of the inputs, by what `roots` need, in the numbers of a backend.

        operations: by kind, with `FLAT_POWER` for a power of which `is_flat_power` holds.
        """
        for node in self.reachable(roots):
            operation = self.operations[node]
            if operation.kind == "constant":
                values[node] = constant(operation.value)
            elif node not in values:
                make = operations[FLAT_POWER if self.is_flat_power(node) else operation.kind]
                values[node] = make(*(values[argument] for argument in operation.arguments))

    def of_kind(self, roots: Iterable[Node], *kinds: str) -> list[Node]:
        """The operations of some kinds that `roots` need. Where a `sign` changes, a root may jump, and its derivatives
        do not tell."""
        return [node for node in self.reachable(roots) if self.operations[node].kind in kinds]

    def is_flat_power(self, node: Node) -> bool:
        """Whether a node is max(0, w)**p with a constant p > 0, as the force of a contact that may be open."""
        operation = self.operations[node]
        if operation.kind != "pow":
            return False
        base, exponent = (self.operations[argument] for argument in operation.arguments)
        constant = exponent.kind == "constant" and exponent.value > 0
        return constant and base.kind == "maximum" and self.zero in base.arguments

    def dependencies(self, node: Node) -> tuple[Node, ...]:
        """Arguments of a node for differentiation: a solution depends on M and r, not on L and D.

        The result of an iteration depends on its variables, not on the steps of the iteration.
        """
        if node in self.implicit:
            return tuple(variable for variable, _ in self.implicit[node])
        if node in self.systems:
            system, _ = self.systems[node]
            lower = [system.matrix[i][j] for i in range(len(system.matrix)) for j in range(i + 1)]
            return (*lower, *system.right)
        return self.operations[node].arguments

    def ancestors(self, roots: Iterable[Node]) -> list[Node]:
        """The nodes on which `roots` depend for differentiation, in order."""
        return self._closure(roots, self.dependencies)

    @staticmethod
    def _closure(roots: Iterable[Node], neighbours: Callable[[Node], tuple[Node, ...]]) -> list[Node]:
        stack, closure = list(roots), set(roots)
        while stack:
            for neighbour in neighbours(stack.pop()):
                if neighbour not in closure:
                    closure.add(neighbour)
                    stack.append(neighbour)
        return sorted(closure)
