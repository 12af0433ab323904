"""LLVM code for a loop over vectors of samples.

Every number of a sample is a vector of LANES samples, so nothing is left for LLVM to vectorise: its optimiser, whose
time grows much faster than a kernel's length, need not run at all.
"""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

LANES = {"double": 8, "float": 16}  # 64 bytes; LLVM splits them where registers are shorter
#: Instructions beyond which a kernel is cut into parts: LLVM's time for one function grows faster than its length.
PART = 3_000
#: Fused multiply-add and the freedom to ignore the sign of zero; NaN and infinity keep their meaning.
FLAGS = "contract nsz"
_NAME = re.compile(r"%v\d+")


@dataclass(frozen=True)
class Value:
    """An operand of LLVM; `uniform` if it is one number for all samples."""

    text: str
    uniform: bool = False
    type: str = "real"  # or "i1"


@dataclass(frozen=True, eq=False)
class Number:
    """A value in arithmetic written as Python, which notes every operation as code."""

    code: Code
    value: Value

    def _value(self, operand: Operand) -> Value:
        return operand.value if isinstance(operand, Number) else self.code.constant(operand)

    def _apply(self, instruction: str, *operands: Operand, type: str = "real") -> Number:
        values = map(self._value, operands)
        return Number(self.code, self.code.apply(instruction, *values, type=type))

    def __add__(self, other: Operand) -> Number:
        return self._apply(f"fadd {FLAGS}", self, other)

    def __radd__(self, other: Operand) -> Number:
        return self._apply(f"fadd {FLAGS}", other, self)

    def __sub__(self, other: Operand) -> Number:
        return self._apply(f"fsub {FLAGS}", self, other)

    def __rsub__(self, other: Operand) -> Number:
        return self._apply(f"fsub {FLAGS}", other, self)

    def __mul__(self, other: Operand) -> Number:
        return self._apply(f"fmul {FLAGS}", self, other)

    def __rmul__(self, other: Operand) -> Number:
        return self._apply(f"fmul {FLAGS}", other, self)

    def __truediv__(self, other: Operand) -> Number:
        return self._apply(f"fdiv {FLAGS}", self, other)

    def __rtruediv__(self, other: Operand) -> Number:
        return self._apply(f"fdiv {FLAGS}", other, self)

    def __neg__(self) -> Number:
        return self._apply(f"fneg {FLAGS}", self)

    def __abs__(self) -> Number:
        return Number(self.code, self.code.instruction("fabs", self.value))

    def __floor__(self) -> Number:
        return Number(self.code, self.code.instruction("floor", self.value))

    def __lt__(self, other: Operand) -> Number:
        return self._apply("fcmp olt", self, other, type="i1")

    def __gt__(self, other: Operand) -> Number:
        return self._apply("fcmp ogt", self, other, type="i1")

    def __ge__(self, other: Operand) -> Number:
        return self._apply("fcmp oge", self, other, type="i1")

    def __eq__(self, other: Operand) -> Number:  # type: ignore[override]
        return self._apply("fcmp oeq", self, other, type="i1")

    def __ne__(self, other: Operand) -> Number:  # type: ignore[override]
        return self._apply("fcmp une", self, other, type="i1")

    def __or__(self, other: Number) -> Number:
        return self._apply("or", self, other, type="i1")

    def select(self, yes: Operand, no: Operand) -> Number:
        """`yes` in the lanes in which this condition holds."""
        return Number(self.code, self.code.select(self.value, self._value(yes), self._value(no)))

    def split(self) -> tuple[Number, Number]:
        """m and e of a positive number m 2^e with 1 <= m < 2."""
        mantissa, exponent = self.code.split(self.value)
        return Number(self.code, mantissa), Number(self.code, exponent)

    def power_of_two(self) -> Number:
        """2 to this whole number, which an exponent can hold."""
        return Number(self.code, self.code.power_of_two(self.value))


Operand = Number | float


class Layout(NamedTuple):
    """Bits of a number: all, those of its mantissa, which its exponent is shifted by, and the exponent of 1."""

    size: int
    shift: int
    bias: int


BITS = {"double": Layout(64, 52, 1023), "float": Layout(32, 23, 127)}


class _Bits:
    """Arithmetic of the bits of numbers, for all lanes or for one number."""

    def __init__(self, code: Code, uniform: bool) -> None:
        self._code, self._uniform = code, uniform
        self._one = f"i{BITS[code.real].size}"
        self.kind = code.real if uniform else code.vector
        self.integers = self._one if uniform else f"<{code.lanes} x {self._one}>"

    def integer(self, value: Value) -> str:
        return self._code.make(f"bitcast {self.kind} {value.text} to {self.integers}", before=self._uniform)

    def made(self, instruction: str, operand: str, count: int) -> str:
        other = str(count) if self._uniform else f"<{', '.join([f'{self._one} {count}'] * self._code.lanes)}>"
        return self._code.make(f"{instruction} {self.integers} {operand}, {other}", before=self._uniform)

    def real(self, whole: str) -> Value:
        made = self._code.make(f"bitcast {self.integers} {whole} to {self.kind}", before=self._uniform)
        return Value(made, self._uniform)


class Code:
    """LLVM's instructions as they are made: those before the loop over samples, and its body."""

    def __init__(self, real: str) -> None:
        self.real = real
        self.lanes = LANES[real]
        self.vector = f"<{self.lanes} x {real}>"
        self._before: list[str] = []
        self._body: list[str] = []
        self.declared: dict[str, None] = {}
        self._wide: dict[Value, str] = {}
        self._conditions: set[str] = set()  # among the vectors made before the loop
        self._cuts = [0]  # where the body can be cut into parts

    def make(self, instruction: str, before: bool = False) -> str:
        """The name of an instruction's result."""
        name = f"%v{len(self._before) + len(self._body)}"
        (self._before if before else self._body).append(f"  {name} = {instruction}")
        return name

    def do(self, instruction: str) -> None:
        """An instruction without a result."""
        self._body.append(f"  {instruction}")

    def address(self, array: str, width: int, row: int, column: int) -> str:
        """Where an entry of the sample `row` lanes after the loop's lies."""
        start = self.make(f"mul nuw nsw i64 %i, {width}")
        place = self.make(f"add nuw nsw i64 {start}, {row * width + column}")
        return self.make(f"getelementptr inbounds {self.real}, ptr %{array}, i64 {place}")

    def number(self, array: str, column: int) -> Value:
        """An entry of an array of one row."""
        place = self.make(f"getelementptr inbounds {self.real}, ptr %{array}, i64 {column}", before=True)
        return Value(self.make(f"load {self.real}, ptr {place}", before=True), uniform=True)

    def constant(self, value: float) -> Value:
        rounded = ctypes.c_float(value).value if self.real == "float" else value
        return Value(f"0x{struct.unpack('<Q', struct.pack('<d', rounded))[0]:016X}", uniform=True)

    def wide(self, value: Value) -> str:
        """The operand as a vector."""
        if not value.uniform:
            return value.text
        if value not in self._wide:
            kind = self.real if value.type == "real" else value.type
            if value.text.startswith("%"):
                one = self.make(
                    f"insertelement <{self.lanes} x {kind}> poison, {kind} {value.text}, i32 0", before=True
                )
                zeros = f"<{self.lanes} x i32> zeroinitializer"
                vector = f"<{self.lanes} x {kind}>"
                name = self.make(f"shufflevector {vector} {one}, {vector} poison, {zeros}", before=True)
                self._wide[value] = name
                if value.type == "i1":
                    self._conditions.add(name)
            else:
                self._wide[value] = f"<{', '.join([f'{kind} {value.text}'] * self.lanes)}>"
        return self._wide[value]

    def apply(self, instruction: str, *values: Value, type: str = "real") -> Value:
        """One instruction on reals, on vectors unless all of them are uniform."""
        uniform = all(value.uniform for value in values)
        operands = ", ".join(value.text if uniform else self.wide(value) for value in values)
        kind = self.real if values[0].type == "real" else values[0].type
        kind = kind if uniform else f"<{self.lanes} x {kind}>"
        return Value(self.make(f"{instruction} {kind} {operands}", before=uniform), uniform, type)

    def select(self, condition: Value, yes: Value, no: Value) -> Value:
        uniform = condition.uniform and yes.uniform and no.uniform
        kind = self.real if uniform else self.vector
        chosen, other = (value.text if uniform else self.wide(value) for value in (yes, no))
        test = "i1" if condition.uniform else f"<{self.lanes} x i1>"
        return Value(
            self.make(f"select {test} {condition.text}, {kind} {chosen}, {kind} {other}", before=uniform), uniform
        )

    def instruction(self, name: str, value: Value) -> Value:
        """A function of one argument that the processor has."""
        kind = self.real if value.uniform else self.vector
        suffix = {"double": "f64", "float": "f32"}[self.real]
        symbol = f"llvm.{name}.{suffix if value.uniform else f'v{self.lanes}{suffix}'}"
        self.declared[f"declare {kind} @{symbol}({kind})"] = None
        return Value(self.make(f"call {kind} @{symbol}({kind} {value.text})", before=value.uniform), value.uniform)

    def split(self, value: Value) -> tuple[Value, Value]:
        """m and e of a positive number m 2^e with 1 <= m < 2, from its bits."""
        of, bits = _Bits(self, value.uniform), BITS[self.real]
        whole = of.integer(value)
        exponent = of.made("sub", of.made("lshr", whole, bits.shift), bits.bias)
        mantissa = of.made("or", of.made("and", whole, (1 << bits.shift) - 1), bits.bias << bits.shift)
        converted = self.make(f"sitofp {of.integers} {exponent} to {of.kind}", before=value.uniform)
        return of.real(mantissa), Value(converted, value.uniform)

    def power_of_two(self, value: Value) -> Value:
        """2 to a whole number n, from its bits: those of 1.5 2^k + n end with those of n, for a mantissa of k bits."""
        of, bits = _Bits(self, value.uniform), BITS[self.real]
        whole = of.integer(self.apply("fadd", value, self.constant(1.5 * 2.0**bits.shift)))
        return of.real(of.made("add", of.made("shl", whole, bits.shift), bits.bias << bits.shift))

    def library(self, name: str, values: Sequence[Value]) -> Value:
        """A function of the C library, sample after sample."""
        symbol = name if self.real == "double" else f"{name}f"
        self.declared[f"declare {self.real} @{symbol}({', '.join([self.real] * len(values))})"] = None
        if all(value.uniform for value in values):
            arguments = ", ".join(f"{self.real} {value.text}" for value in values)
            return Value(self.make(f"call {self.real} @{symbol}({arguments})", before=True), uniform=True)
        result = "poison"
        for lane in range(self.lanes):
            numbers = [self.make(f"extractelement {self.vector} {self.wide(value)}, i32 {lane}") for value in values]
            arguments = ", ".join(f"{self.real} {number}" for number in numbers)
            number = self.make(f"call {self.real} @{symbol}({arguments})")
            result = self.make(f"insertelement {self.vector} {result}, {self.real} {number}, i32 {lane}")
        return Value(result)

    def end_statement(self) -> None:
        """Note a place where the code can be cut: all values are vectors of reals."""
        if len(self._body) - self._cuts[-1] >= PART:
            self._cuts.append(len(self._body))

    def function(self, name: str, arguments: str, internal: bool = True) -> str:
        """Function with the body alone."""
        return "\n".join(
            [f"define {'internal ' if internal else ''}void @{name}({arguments}) {{", *self._body, "  ret void", "}"]
        )

    def text(self, name: str, widths: dict[str, int], outputs: AbstractSet[str], uniform: AbstractSet[str]) -> str:
        """Module with the loop, whose last vector overlaps the one before, and the function that calls it."""
        arguments = "".join(f", ptr noalias %{array}" for array in widths)
        parts, before, body = list[str](), self._before, self._body
        if len(self._cuts) > 1:
            parts, before, body = self._parts(name, arguments)
        return "\n".join(
            [
                *self.declared,
                *parts,
                f"define internal void @{name}_loop(i64 %first, i64 %last{arguments}) {{",
                "entry:",
                f"  %end = sub nsw i64 %last, {self.lanes}",
                *before,
                "  br label %loop",
                "loop:",
                "  %i = phi i64 [%first, %entry], [%next, %loop]",
                *body,
                f"  %ahead = add nuw nsw i64 %i, {self.lanes}",
                "  %near = icmp sgt i64 %ahead, %end",
                "  %next = select i1 %near, i64 %end, i64 %ahead",
                "  %done = icmp eq i64 %i, %end",
                "  br i1 %done, label %exit, label %loop",
                "exit:",
                "  ret void",
                "}",
                self._entry(name, widths, outputs, uniform),
            ]
        )

    def _entry(self, name: str, widths: dict[str, int], outputs: AbstractSet[str], uniform: AbstractSet[str]) -> str:
        """The function that is called: fewer samples than lanes are moved to arrays of that many rows and back."""
        size = 8 if self.real == "double" else 4
        moved = {array: width * size for array, width in widths.items() if width and array not in uniform}
        copy = "call void @llvm.memcpy.p0.p0.i64(ptr"
        few = [f"  %{array}_few = alloca [{self.lanes * row} x i8], align 64" for array, row in moved.items()]
        few += ["  %count = sub nsw i64 %last, %first"]
        for array, row in moved.items():
            few += [
                f"  %{array}_size = mul nsw i64 %count, {row}",
                f"  %{array}_start = mul nsw i64 %first, {row}",
                f"  %{array}_rows = getelementptr inbounds i8, ptr %{array}, i64 %{array}_start",
            ]
            if array not in outputs:
                few += [
                    f"  call void @llvm.memset.p0.i64(ptr %{array}_few, i8 0, i64 {self.lanes * row}, i1 false)",
                    f"  {copy} %{array}_few, ptr %{array}_rows, i64 %{array}_size, i1 false)",
                ]
        there = "".join(f", ptr %{array}" for array in widths)
        here = "".join(f", ptr %{array}_few" if array in moved else f", ptr %{array}" for array in widths)
        return "\n".join(
            [
                "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
                "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
                f"define internal void @{name}_few(i64 %first, i64 %last{there}) {{",
                *few,
                f"  call void @{name}_loop(i64 0, i64 {self.lanes}{here})",
                *(f"  {copy} %{a}_rows, ptr %{a}_few, i64 %{a}_size, i1 false)" for a in moved if a in outputs),
                "  ret void",
                "}",
                f"define void @{name}(i64 %first, i64 %last{there}) {{",
                "  %count = sub i64 %last, %first",
                f"  %many = icmp sge i64 %count, {self.lanes}",
                "  br i1 %many, label %loop, label %few",
                "loop:",
                f"  call void @{name}_loop(i64 %first, i64 %last{there})",
                "  ret void",
                "few:",
                f"  call void @{name}_few(i64 %first, i64 %last{there})",
                "  ret void",
                "}",
                "",
            ]
        )

    def _parts(self, name: str, arguments: str) -> tuple[list[str], list[str], list[str]]:
        """Parts of the body as functions, code before the loop, and calls. Values for later parts are in memory."""
        bounds = [*self._cuts, len(self._body)]
        chunks = [self._body[start:stop] for start, stop in pairwise(bounds) if stop > start]
        made = {line.split(" ", 3)[2]: k for k, lines in enumerate(chunks) for line in lines if " = " in line}
        reads = [sorted({value for line in lines for value in _NAME.findall(line)}) for lines in chunks]
        last_read = {value: k for k, names in enumerate(reads) for value in names}
        # Values from before the loop keep their places in every round.
        places = {value: place for place, value in enumerate(value for value in last_read if value not in made)}
        count, free = len(places), list[int]()
        before = [*self._before, *(self._store(value, place) for value, place in places.items())]
        texts, calls = [], []
        for k, lines in enumerate(chunks):
            incoming = [self._load(value, places[value]) for value in reads[k] if value in places]
            outgoing = []
            for value in (value for value, part in made.items() if part == k and last_read.get(value, k) > k):
                if not free:
                    free.append(count)
                    count += 1
                places[value] = free.pop()
                outgoing.append(self._store(value, places[value]))
            free += [places.pop(value) for value in [*places] if value in made and last_read[value] == k]
            head = f"define internal void @{name}_{k}(i64 %i{arguments}, ptr noalias %kept) {{"
            texts += [head, *incoming, *lines, *outgoing, "  ret void", "}"]
            passed = arguments.replace(" noalias", "")
            calls.append(f"  call void @{name}_{k}(i64 %i{passed}, ptr %kept)")
        return texts, [f"  %kept = alloca [{count} x {self.vector}], align 64", *before], calls

    def _load(self, name: str, place: int) -> str:
        at = f"  {name}_at = getelementptr inbounds {self.vector}, ptr %kept, i64 {place}"
        return f"{at}\n  {name} = load {self._type(name)}, ptr {name}_at, align 64"

    def _store(self, name: str, place: int) -> str:
        at = f"  {name}_to = getelementptr inbounds {self.vector}, ptr %kept, i64 {place}"
        return f"{at}\n  store {self._type(name)} {name}, ptr {name}_to, align 64"

    def _type(self, name: str) -> str:
        return f"<{self.lanes} x i1>" if name in self._conditions else self.vector
