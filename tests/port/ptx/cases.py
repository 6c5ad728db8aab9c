"""Instructions with the model of each: text, constraints of outputs and inputs, what the outputs are."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import NamedTuple

from tests.port.ptx import model
from tests.port.ptx.model import BF16, F16, F32, F64, M32, M64

Model = Callable[..., int | tuple[int, ...]]


class Case(NamedTuple):
    """One statement: ``tolerance`` is for approximations, relative; ``form`` says that outputs are floating point."""

    text: str
    outputs: str
    inputs: str
    model: Model
    form: model.Format | None = None
    tolerance: float = 0.0


def wrap(operation: Callable[..., int], size: int, *, is_signed: bool = False) -> Model:
    def run(*words: int) -> int:
        values = [model.signed(word, size) for word in words] if is_signed else list(words)
        return operation(*values) & ((1 << size) - 1)

    return run


CASES: list[Case] = []


def case(  # noqa: PLR0917  the columns of a table
    text: str, outputs: str, inputs: str, run: Model, form: model.Format | None = None, near: float = 0
) -> None:
    CASES.append(Case(text, outputs, inputs, run, form, near))


# --- bits ---
case("prmt.b32 %0, %1, %2, %3;", "r", "rrr", model.prmt)
for mode in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16"):
    case(f"prmt.b32.{mode} %0, %1, %2, %3;", "r", "rrr", partial(model.prmt, mode=mode))
for table in (0x96, 0xE8, 0xEA, 0xCA, 0x01, 0x80, 0xFE, 0x6A, 0x00, 0xFF, 0x2D):
    case(f"lop3.b32 %0, %1, %2, %3, {table:#x};", "r", "rrr", partial(model.lop3, table=table))
case("shl.b32 %0, %1, %2;", "r", "rr", partial(model.shifted, size=32, left=True))
case("shl.b64 %0, %1, %2;", "l", "lr", partial(model.shifted, size=64, left=True))
case("shr.u32 %0, %1, %2;", "r", "rr", partial(model.shifted, size=32, left=False))
case("shr.b32 %0, %1, %2;", "r", "rr", partial(model.shifted, size=32, left=False))
case("shr.s32 %0, %1, %2;", "r", "rr", partial(model.shifted, size=32, left=False, is_signed=True))
case("shr.s64 %0, %1, %2;", "l", "lr", partial(model.shifted, size=64, left=False, is_signed=True))
case("shr.u16 %0, %1, %2;", "h", "hr", partial(model.shifted, size=16, left=False))
for side in "lr":
    for mode in ("wrap", "clamp"):
        run = partial(model.funnel, left=side == "l", clamp=mode == "clamp")
        case(f"shf.{side}.{mode}.b32 %0, %1, %2, %3;", "r", "rrr", run)
for kind, size, letter in (("u32", 32, "r"), ("s32", 32, "r"), ("u64", 64, "l"), ("s64", 64, "l")):
    s = kind[0] == "s"
    case(f"bfe.{kind} %0, %1, %2, %3;", letter, letter + "rr", partial(model.bfe, size=size, is_signed=s))
    case(f"bfind.{kind} %0, %1;", "r", letter, partial(model.bfind, size=size, is_signed=s))
    case(f"mul.lo.{kind} %0, %1, %2;", letter, letter * 2, wrap(lambda a, b: a * b, size, is_signed=s))
    high = wrap(lambda a, b, n=size: a * b >> n, size, is_signed=s)
    case(f"mul.hi.{kind} %0, %1, %2;", letter, letter * 2, high)
    case(f"min.{kind} %0, %1, %2;", letter, letter * 2, wrap(min, size, is_signed=s))
    case(f"max.{kind} %0, %1, %2;", letter, letter * 2, wrap(max, size, is_signed=s))
    case(f"add.{kind} %0, %1, %2;", letter, letter * 2, wrap(lambda a, b: a + b, size))
    case(f"sub.{kind} %0, %1, %2;", letter, letter * 2, wrap(lambda a, b: a - b, size))
    case(f"mad.lo.{kind} %0, %1, %2, %3;", letter, letter * 3, wrap(lambda a, b, c: a * b + c, size))
    mad = wrap(lambda a, b, c, n=size: (a * b >> n) + c, size, is_signed=s)
    case(f"mad.hi.{kind} %0, %1, %2, %3;", letter, letter * 3, mad)
    for name, test in (("lt", lambda a, b: a < b), ("ge", lambda a, b: a >= b), ("ne", lambda a, b: a != b)):
        text = f"{{ .reg .pred p; setp.{name}.{kind} p, %1, %2; selp.b32 %0, 17, 4, p; }}"
        chosen = wrap(lambda a, b, t=test: 17 if t(a, b) else 4, size, is_signed=s)
        case(text, "r", letter * 2, chosen)
case("bfi.b32 %0, %1, %2, %3, %4;", "r", "rrrr", partial(model.bfi, size=32))
case("bfi.b64 %0, %1, %2, %3, %4;", "l", "llrr", partial(model.bfi, size=64))
case("clz.b32 %0, %1;", "r", "r", lambda a: 32 - a.bit_length())
case("clz.b64 %0, %1;", "r", "l", lambda a: 64 - a.bit_length())
case("popc.b32 %0, %1;", "r", "r", lambda a: a.bit_count())
case("popc.b64 %0, %1;", "r", "l", lambda a: a.bit_count())
case("brev.b32 %0, %1;", "r", "r", lambda a: int(f"{a:032b}"[::-1], 2))
case("brev.b64 %0, %1;", "l", "l", lambda a: int(f"{a:064b}"[::-1], 2))
case("and.b32 %0, %1, %2;", "r", "rr", lambda a, b: a & b)
case("or.b64 %0, %1, %2;", "l", "ll", lambda a, b: a | b)
case("xor.b16 %0, %1, %2;", "h", "hh", lambda a, b: a ^ b)
case("not.b32 %0, %1;", "r", "r", lambda a: ~a & M32)
case("cnot.b32 %0, %1;", "r", "r", lambda a: int(a == 0))
case("abs.s32 %0, %1;", "r", "r", wrap(abs, 32, is_signed=True))
case("neg.s32 %0, %1;", "r", "r", wrap(lambda a: -a, 32))
case("abs.s64 %0, %1;", "l", "l", wrap(abs, 64, is_signed=True))
case("sad.s32 %0, %1, %2, %3;", "r", "rrr", wrap(lambda a, b, c: abs(a - b) + c, 32, is_signed=True))
case("sad.u32 %0, %1, %2, %3;", "r", "rrr", wrap(lambda a, b, c: abs(a - b) + c, 32))
for name, sign in (("add", 1), ("sub", -1)):
    cut = wrap(lambda a, b, n=sign: max(-(1 << 31), min((1 << 31) - 1, a + n * b)), 32, is_signed=True)
    case(f"{name}.sat.s32 %0, %1, %2;", "r", "rr", cut)
case("mul.wide.u32 %0, %1, %2;", "l", "rr", lambda a, b: a * b)
case("mul.wide.s32 %0, %1, %2;", "l", "rr", lambda a, b: model.signed(a, 32) * model.signed(b, 32) & M64)
case("mul.wide.u16 %0, %1, %2;", "r", "hh", lambda a, b: a * b)
case("mul.wide.s16 %0, %1, %2;", "r", "hh", lambda a, b: model.signed(a, 16) * model.signed(b, 16) & M32)
case("mul.hi.s16 %0, %1, %2;", "h", "hh", lambda a, b: model.signed(a, 16) * model.signed(b, 16) >> 16 & 65535)
case("mad.wide.u32 %0, %1, %2, %3;", "l", "rrl", lambda a, b, c: a * b + c & M64)
case("mul24.lo.u32 %0, %1, %2;", "r", "rr", lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF) & M32)
case("mul24.lo.s32 %0, %1, %2;", "r", "rr", lambda a, b: model.signed(a, 24) * model.signed(b, 24) & M32)
case("add.u16 %0, %1, %2;", "h", "hh", lambda a, b: a + b & 65535)
for one in (True, False):
    for other in (True, False):
        kinds = ".".join("s32" if k else "u32" for k in (one, other))
        case(f"dp4a.{kinds} %0, %1, %2, %3;", "r", "rrr", partial(model.dot, kinds=(one, other)))
        for half in ("lo", "hi"):
            dot2 = partial(model.dot2, kinds=(one, other), high=half == "hi")
            case(f"dp2a.{half}.{kinds} %0, %1, %2, %3;", "r", "rrr", dot2)
# --- carries ---
case(
    "add.cc.u32 %0, %3, %6; addc.cc.u32 %1, %4, %7; addc.u32 %2, %5, %8;",
    "rrr",
    "rrrrrr",
    lambda a, b, c, d, e, f: tuple(
        ((c << 64 | b << 32 | a) + (f << 64 | e << 32 | d)) >> 32 * i & M32 for i in range(3)
    ),
)
case(
    "sub.cc.u32 %0, %3, %6;\n\tsubc.cc.u32 %1, %4, %7;\n\tsubc.u32 %2, %5, %8;\n\t",
    "rrr",
    "rrrrrr",
    lambda a, b, c, d, e, f: tuple(
        ((c << 64 | b << 32 | a) - (f << 64 | e << 32 | d)) >> 32 * i & M32 for i in range(3)
    ),
)
case(
    "mad.lo.cc.u32 %0, %2, %3, %4; madc.hi.u32 %1, %2, %3, %5;",
    "rr",
    "rrrr",
    lambda a, b, c, d: ((v := a * b + (d << 32 | c)) & M32, v >> 32 & M32),
)
case("add.cc.u64 %0, %2, %3; addc.u64 %1, 0, 0;", "ll", "ll", lambda a, b: (a + b & M64, a + b >> 64))
# --- moves ---
case("mov.b32 %0, {%1, %2};", "r", "hh", lambda a, b: b << 16 | a)
case("mov.b64 {%0, %1}, %2;", "rr", "l", lambda a: (a & M32, a >> 32))
case("mov.b64 %0, {%1, %2};", "l", "rr", lambda a, b: b << 32 | a)
case("mov.b32 %0, %1;", "r", "f", lambda a: a)
case("mov.u32 %0, 0xdeadbeef;", "r", "", lambda: 0xDEADBEEF)
case("mov.f32 %0, 0f3FC00000;", "f", "", lambda: 0x3FC00000)
case("slct.u32.s32 %0, %1, %2, %3;", "r", "rrr", lambda a, b, c: a if model.signed(c, 32) >= 0 else b)
case("set.lt.u32.s32 %0, %1, %2;", "r", "rr", lambda a, b: M32 * (model.signed(a, 32) < model.signed(b, 32)))
case(
    "{ .reg .pred p, q, r; setp.gt.u32 r, %1, 7; setp.lt.and.s32 p|q, %1, %2, r;"
    " selp.u32 %0, 1, 0, p; @q add.u32 %0, %0, 2; }",
    "r",
    "rr",
    lambda a, b: (a > 7) * ((s := model.signed(a, 32) < model.signed(b, 32)) + 2 * (not s)),
)
case(
    "{ .reg .pred p; setp.eq.u32 p, %1, %2; @!p mov.u32 %0, 5; @p mov.u32 %0, 9; }",
    "r",
    "rr",
    lambda a, b: 9 if a == b else 5,
)
case(
    "{ .reg .pred %%p; setp.eq.u32 %%p, %1, %2; @!%%p mov.u32 %0, 5; @%%p mov.u32 %0, 9; }",
    "r",
    "rr",
    lambda a, b: 9 if a == b else 5,
)
# --- floating point ---
for kind, letter, form in (("f32", "f", F32), ("f64", "d", F64)):
    case(f"add.rn.{kind} %0, %1, %2;", letter, letter * 2, partial(model.add, form=form), form)
    case(f"sub.{kind} %0, %1, %2;", letter, letter * 2, lambda a, b, g=form: model.add(a, model.neg(b, g), g), form)
    case(f"mul.rn.{kind} %0, %1, %2;", letter, letter * 2, partial(model.mul, form=form), form)
    case(f"fma.rn.{kind} %0, %1, %2, %3;", letter, letter * 3, partial(model.fma, form=form), form)
    case(f"min.{kind} %0, %1, %2;", letter, letter * 2, partial(model.smaller, form=form), form)
    case(f"max.{kind} %0, %1, %2;", letter, letter * 2, partial(model.larger, form=form), form)
    case(f"neg.{kind} %0, %1;", letter, letter, partial(model.neg, form=form), form)
    case(f"abs.{kind} %0, %1;", letter, letter, lambda a, g=form: a & ~(1 << (g.size - 1)), form)
case("add.sat.f32 %0, %1, %2;", "f", "ff", lambda a, b: model.saturated(model.add(a, b, F32), F32), F32)
case("min.NaN.f32 %0, %1, %2;", "f", "ff", partial(model.smaller, form=F32, keep=True), F32)
case(
    "mul.ftz.f32 %0, %1, %2;",
    "f",
    "ff",
    lambda a, b: model.flushed(model.mul(model.flushed(a), model.flushed(b), F32)),
    F32,
)
# A product and a sum that a compiler might join.
case(
    "{ .reg .f32 t; mul.rn.f32 t, %1, %2; add.rn.f32 %0, t, %3; }",
    "f",
    "fff",
    lambda a, b, c: model.add(model.mul(a, b, F32), c, F32),
    F32,
)
halves: tuple[tuple[str, Callable[..., int]], ...] = (
    ("add.f16", partial(model.add, form=F16)),
    ("sub.rn.f16", lambda a, b: model.add(a, model.neg(b, F16), F16)),
    ("mul.f16", partial(model.mul, form=F16)),
    ("min.f16", partial(model.smaller, form=F16)),
    ("max.f16", partial(model.larger, form=F16)),
)
for name, one_half in halves:
    case(f"{name} %0, %1, %2;", "h", "hh", one_half, F16)
    case(f"{name}x2 %0, %1, %2;", "r", "rr", model.pairs(one_half), F16)
case("fma.rn.f16 %0, %1, %2, %3;", "h", "hhh", partial(model.fma, form=F16), F16)
case("fma.rn.f16x2 %0, %1, %2, %3;", "r", "rrr", model.pairs(partial(model.fma, form=F16)), F16)
case("neg.f16x2 %0, %1;", "r", "r", model.pairs(partial(model.neg, form=F16)), F16)


def _power(x: float) -> float:
    return 2.0**x if x < 1000 else math.inf


def _logarithm(x: float) -> float:
    if x > 0:
        return math.log2(x)
    return -math.inf if x == 0 else math.nan


def _near(function: Callable[[float], float], word: int) -> int:
    value = model.as_float(word)
    if math.isnan(value):
        return F32.nan
    result = function(value)
    return model.rounded(result if math.isinf(result) or math.isnan(result) else Fraction(result), F32)


def _reciprocal(word: int) -> int:
    value = model.as_float(word)
    sign = word & 0x80000000
    if math.isnan(value):
        return F32.nan
    if value == 0 or math.isinf(value):
        return sign | (F32.infinity if value == 0 else 0)
    return model.flushed(model.rounded(1 / Fraction(value), F32))


def _root(word: int) -> int:
    value = model.as_float(word)
    if math.isnan(value) or value < 0:
        return F32.nan
    if value == 0:
        return F32.infinity | (word & 0x80000000)
    return 0 if math.isinf(value) else model.rounded(Fraction(1 / math.sqrt(value)), F32)


case("ex2.approx.f32 %0, %1;", "f", "f", partial(_near, _power), F32, 1e-6)
case("tanh.approx.f32 %0, %1;", "f", "f", partial(_near, math.tanh), F32, 1e-6)
case("ex2.approx.ftz.f32 %0, %1;", "f", "f", lambda a: model.flushed(_near(_power, a)), F32, 1e-6)
case("lg2.approx.f32 %0, %1;", "f", "f", partial(_near, _logarithm), F32, 1e-6)
case("rcp.approx.ftz.f32 %0, %1;", "f", "f", lambda a: _reciprocal(model.flushed(a)), F32, 1e-6)
case("rsqrt.approx.f32 %0, %1;", "f", "f", _root, F32, 1e-6)


# --- conversions ---
def _narrowed(a: int, given: model.Format, form: model.Format, mode: str = "rn") -> int:
    return model.rounded(model.decoded(a, given), form, mode, negative_zero=bool(a >> (given.size - 1)))


def _whole_float(word: int) -> int:
    value = model.decoded(word, F32)
    if isinstance(value, float):
        return F32.nan if math.isnan(value) else word
    return model.rounded(Fraction(math.trunc(value)), F32, negative_zero=word >> 31 > 0)


def _byte(word: int) -> int:
    return model.signed(model.to_whole(word, F32, "rzi", 8, is_signed=True), 8) & M32


for kind, size, letter in (("s32", 32, "r"), ("u32", 32, "r"), ("s64", 64, "l"), ("u64", 64, "l")):
    s = kind[0] == "s"
    for mode in ("rni", "rzi", "rmi", "rpi"):
        run = partial(model.to_whole, form=F32, mode=mode, size=size, is_signed=s)
        case(f"cvt.{mode}.{kind}.f32 %0, %1;", letter, "f", run)
        run = partial(model.to_whole, form=F64, mode=mode, size=size, is_signed=s)
        case(f"cvt.{mode}.{kind}.f64 %0, %1;", letter, "d", run)
    for target, wide, form in (("f32", "f", F32), ("f64", "d", F64)):
        number = lambda a, n=size, t=s, g=form: model.rounded(Fraction(model.signed(a, n) if t else a), g)  # noqa: E731
        case(f"cvt.rn.{target}.{kind} %0, %1;", wide, letter, number, form)
case("cvt.rzi.s8.f32 %0, %1;", "r", "f", _byte)
case("cvt.rni.sat.u8.f32 %0, %1;", "r", "f", partial(model.to_whole, form=F32, mode="rni", size=8, is_signed=False))
case("cvt.rn.f16.f32 %0, %1;", "h", "f", partial(_narrowed, given=F32, form=F16), F16)
case("cvt.rz.f16.f32 %0, %1;", "h", "f", partial(_narrowed, given=F32, form=F16, mode="rz"), F16)
case("cvt.rn.bf16.f32 %0, %1;", "h", "f", partial(_narrowed, given=F32, form=BF16), BF16)
case("cvt.rz.bf16.f32 %0, %1;", "h", "f", partial(_narrowed, given=F32, form=BF16, mode="rz"), BF16)
case("cvt.f32.f16 %0, %1;", "f", "h", partial(_narrowed, given=F16, form=F32), F32)
case("cvt.f32.bf16 %0, %1;", "f", "h", lambda a: a << 16, F32)
case("cvt.rn.f32.f64 %0, %1;", "f", "d", partial(_narrowed, given=F64, form=F32), F32)
case("cvt.f64.f32 %0, %1;", "d", "f", partial(_narrowed, given=F32, form=F64), F64)
case("cvt.rn.f16x2.f32 %0, %1, %2;", "r", "ff", lambda a, b: _narrowed(a, F32, F16) << 16 | _narrowed(b, F32, F16), F16)
case("cvt.sat.s8.s32 %0, %1;", "r", "r", wrap(lambda a: max(-128, min(127, a)), 32, is_signed=True))
case("cvt.sat.u8.s32 %0, %1;", "r", "r", wrap(lambda a: max(0, min(255, a)), 32, is_signed=True))
case("cvt.sat.u16.u32 %0, %1;", "h", "r", lambda a: min(a, 65535))
case("cvt.u32.u64 %0, %1;", "r", "l", lambda a: a & M32)
case("cvt.s64.s32 %0, %1;", "l", "r", lambda a: model.signed(a, 32) & M64)
case("cvt.s32.s8 %0, %1;", "r", "r", lambda a: model.signed(a, 8) & M32)
case("cvt.u64.u32 %0, %1;", "l", "r", lambda a: a)
case("cvt.rzi.f32.f32 %0, %1;", "f", "f", _whole_float, F32)
