"""What an op declares: reference, implementations, domain, cost, tolerances. Imports neither torch nor triton."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from rocmend.kernels.target import Target

Tier = Literal["vendor", "triton", "reference"]

# A Problem is a NamedTuple that each op defines: what its rules, cost and shape classes depend on. It is hashable and
# holds only strings, ints, floats and bools, so that a choice can be remembered by it and given on a command line.
Problem = Any
Rule = Callable[[Problem, Target], str | None]
"""Says why an implementation is not taken for a problem on a target; None where it may be."""


class Cost(NamedTuple):
    """What an op must do at least.

    Args:
        flops: Arithmetic operations; a multiply-add counts as two.
        bytes: Bytes read and written where each operand is read or written once.
    """

    flops: float
    bytes: float


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far an output may stand from the float64 reference, element by element.

    ``|out - ref| <= ulps * ulp(ref) + scaled * max|ref|``, with ``ulp`` that of the output's dtype. ``Tolerance()``
    asks for equality bit by bit with the reference computed in the op's own dtypes (NaN equals NaN, 0.0 is not -0.0).

    Args:
        ulps: Units in the last place of the output's dtype; 0.5 is a correctly rounded result.
        scaled: Part relative to the largest magnitude of the reference, for sums of many terms that cancel.
    """

    ulps: float = 0.0
    scaled: float = 0.0

    @property
    def exact(self) -> bool:
        """Whether equality bit by bit is asked."""
        return self.ulps == 0.0 and self.scaled == 0.0


@dataclass(frozen=True, slots=True)
class Implementation:
    """One way to compute an op: a function of a library, or a kernel.

    Args:
        name: Unique within the op, e.g. ``torch.nn.functional.rms_norm`` or ``held``. A kernel's is that of its tuning
            records.
        tier: ``vendor`` (torch and the libraries below it), ``triton`` or ``reference``.
        run: ``module:function`` that computes it; its arguments are the op's own business.
        rejects: Says why it cannot or should not compute a problem on a target; None where it may.
        note: Where the preference comes from (a measurement, an issue), in a sentence.
        avoid: Says why it is not taken unless it is asked for by name: another implementation is faster.
        vendor: The only vendor whose GPUs it is for, e.g. ``nvidia``; empty for any.
        aligned: Whether it takes only tensors that begin at multiples of 16 bytes.
        record_class: Names the tuning records of a problem, with blanks between: ``class``, or ``kernel/class`` or
            ``op/kernel/class`` where these are not the implementation's own. None where it looks none up.
        calls: Other ops that it calls, with their problems; what several calls share is named once.
    """

    name: str
    tier: Tier
    run: str
    rejects: Rule = lambda _problem, _target: None
    note: str = ""
    avoid: Rule = lambda _problem, _target: None
    vendor: str = ""
    aligned: bool = False
    record_class: Callable[[Problem], str] | None = None
    calls: Callable[[Problem], tuple[tuple[str, Problem], ...]] = lambda _problem: ()

    def records_of(self, op: str, problem: Problem) -> Iterator[tuple[str, str, str]]:
        """Yield op, kernel and class of each tuning record that a problem may need."""
        for name in self.record_class(problem).split() if self.record_class else ():
            kind, *where = reversed(name.split("/"))
            kernel, owner = (*where, *(self.name, op)[len(where) :])
            yield owner, kernel, kind


@dataclass(frozen=True, slots=True)
class Op:
    """An op: one folder of ``rocmend.kernels.ops``.

    Args:
        name: Its folder's name.
        summary: One line.
        functions: Public name to ``module:function``.
        reference: ``module:function``; takes the same arguments as the first public function and computes in the dtype
            of its floating inputs, float64 among them.
        problem: The op's NamedTuple of what choices depend on.
        implementations: In order of preference; the first that does not reject the problem is taken. The last is the
            reference.
        dtypes: Element types that the op takes.
        domain: Which shapes and options, in a sentence or two.
        cost: Flops and bytes of a problem.
        tolerance: By output dtype.
        cases: ``module:function`` that yields the suite's cases.
        formats: ``module:function`` that yields cases that are compiled and never run: each format of quantized weights
            with each class of tuning records.
        shape_class: Names the class of shapes that a problem belongs to, for tuning records.
        example: Fields of a problem of real use, ``rows=8 size=4096``, where those of other ops' are not fit.
        mlx: Name in MLX whose semantics the op has, if any.
        sources: URLs of what was followed.
    """

    name: str
    summary: str
    functions: Mapping[str, str]
    reference: str
    problem: type
    implementations: tuple[Implementation, ...]
    dtypes: tuple[str, ...]
    domain: str
    cost: Callable[[Problem], Cost]
    tolerance: Mapping[str, Tolerance]
    cases: str
    formats: str = ""
    shape_class: Callable[[Problem], str] = lambda _problem: "any"
    example: str = ""
    mlx: str | None = None
    sources: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def reference_of(self, function: str | None) -> str:
        """Return the reference of a public function: that of its name; ``module:function`` is returned as it is."""
        if function is None or ":" in function:
            return function or self.reference
        return f"{self.reference.partition(':')[0]}:{function}"


def first_reason(*rules: tuple[bool, str]) -> str | None:
    """Return the reason of the first rule that does not hold; None where all hold."""
    return next((reason for holds, reason in rules if not holds), None)


def resolve(reference: str) -> Any:
    """Import ``module:attribute``."""
    module, _, attribute = reference.partition(":")
    return getattr(importlib.import_module(module), attribute)


def beside(function: Callable[..., Any], name: str) -> Any:
    """Return another function of an implementation: the attribute of this name in a function's module."""
    return getattr(sys.modules[function.__module__], name)
