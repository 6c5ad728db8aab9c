"""Reading the instruction tables, and writing the functions that the engine calls.

A table's line says what an instruction is called, what it reads and writes, and what it computes, as an expression in
C. There is no second statement of it: the functions are generated from the line, and the decoder takes the types of
operands from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import NamedTuple

__all__ = ["Operation", "scalar_table", "source", "vector_table"]


class Operation(NamedTuple):
    """An instruction, as its table states it.

    Args:
        names: What LLVM calls it, on one generation or another, without the encoding's suffix.
        number: Of its function.
        result: Type of the result; ``none`` where there is none.
        operands: Types of the operands.
        words: What the line says besides: ``z``, ``clamp``, ``halves``, ``c``, ``r``, ``k``, ``x``, ``w``, ``high``.
        reads_result: Whether the result's register is an operand, too.
        mask: Whether it writes a mask of a bit a lane.
        text: What it computes, in C.
    """

    names: tuple[str, ...]
    number: int
    result: str
    operands: tuple[str, ...]
    words: frozenset[str]
    reads_result: bool
    mask: bool
    text: str


_COMPARES = {"lt": "<", "eq": "==", "le": "<=", "gt": ">", "ge": ">="}
_INTEGER_COMPARES = {"f": "0", "t": "1", "ne": "S0 != S1"} | {name: f"S0 {sign} S1" for name, sign in _COMPARES.items()}
_FLOAT_COMPARES = {
    "f": "0",
    "lt": "S0 < S1",
    "eq": "S0 == S1",
    "le": "S0 <= S1",
    "gt": "S0 > S1",
    "lg": "S0 < S1 || S0 > S1",
    "ge": "S0 >= S1",
    "o": "S0 == S0 && S1 == S1",
    "u": "S0 != S0 || S1 != S1",
    "nge": "!(S0 >= S1)",
    "nlg": "!(S0 < S1 || S0 > S1)",
    "ngt": "!(S0 > S1)",
    "nle": "!(S0 <= S1)",
    "neq": "!(S0 == S1)",
    "nlt": "!(S0 < S1)",
    "tru/t": "1",
}
_LOGIC = {
    "and": "S0 & S1",
    "or": "S0 | S1",
    "xor": "S0 ^ S1",
    "nand": "~(S0 & S1)",
    "nor": "~(S0 | S1)",
    "xnor": "~(S0 ^ S1)",
    "andn2/and_not1": "S0 & ~S1",
    "orn2/or_not1": "S0 | ~S1",
}


def _families() -> Iterator[str]:
    """Yield the lines of comparisons, which are many of a kind."""
    for test, text in _FLOAT_COMPARES.items():
        for kind in ("f16", "f32", "f64"):
            for prefix in ("cmp", "cmpx"):
                names = "/".join(f"v_{prefix}_{name}_{kind}" for name in test.split("/"))
                yield f"{names} none m : {kind} {kind} | M = {text}"
    for bits in ("16", "32", "64"):
        for sign in "iu":
            for test, text in _INTEGER_COMPARES.items():
                for prefix in ("cmp", "cmpx"):
                    yield f"v_{prefix}_{test}_{sign}{bits} none m : {sign}{bits} {sign}{bits} | M = {text}"
    for kind, bit, wanted in (("f16", "b16", "u16"), ("f32", "b32", "b32"), ("f64", "rf64", "b32")):
        for prefix in ("cmp", "cmpx"):
            yield f"v_{prefix}_class_{kind} none m : {bit} {wanted} | M = class_{kind}(S0, S1)"


def _scalar_families() -> Iterator[str]:
    for test, sign_of in (_COMPARES | {"lg": "!="}).items():
        for kind in ("i32", "u32"):
            yield f"s_cmp_{test}_{kind} c none : {kind} {kind} | C = S0 {sign_of} S1"
    for test, text in _FLOAT_COMPARES.items():
        for name in test.split("/"):
            yield f"s_cmp_{name}_f32 c none : f32 f32 | C = {text}"
    for names, text in _LOGIC.items():
        for bits in (32, 64):
            spelled = "/".join(f"s_{name}_b{bits}" for name in names.split("/"))
            yield f"{spelled} c u{bits} : u{bits} u{bits} | D = {text}; C = D != 0"


_LINE = re.compile(r"(?P<names>\S+) (?P<result>[^:]*):(?P<operands>[^|]*)\|(?P<text>.*)")
_WORDS = frozenset({"z", "clamp", "halves", "high", "c", "r", "rc", "k", "x", "w"})


def _read(name: str, more: Iterator[str]) -> dict[str, Operation]:
    table: dict[str, Operation] = {}
    lines = (files(__package__) / name).read_text(encoding="utf-8").splitlines()
    whole = [*(line for line in lines if line and not line.startswith("#")), *more]
    for number, line in enumerate(whole):
        found = _LINE.fullmatch(line)
        if found is None:
            raise ValueError(f"{name}: {line}")
        said = found["result"].split()
        words = {letter for word in said if word in _WORDS for letter in (word if word == "rc" else [word])}
        kinds = [word for word in said if word not in _WORDS and word != "m"]
        result = kinds[0] if kinds else "none"
        one = Operation(
            tuple(found["names"].split("/")),
            number,
            result.removeprefix("+"),
            tuple(found["operands"].split()),
            frozenset(words),
            result.startswith("+"),
            "m" in said,
            found["text"].strip(),
        )
        for each in one.names:
            if each in table:
                raise ValueError(f"{name}: {each} stands there twice")
            table[each] = one
    return table


@cache
def vector_table() -> dict[str, Operation]:
    """Return the vector instructions by name."""
    return _read("vector.txt", _families())


@cache
def scalar_table() -> dict[str, Operation]:
    """Return the scalar instructions by name."""
    return _read("scalar.txt", _scalar_families())


_C_TYPES = {
    "f32": "f32",
    "f64": "f64",
    "u32": "u32",
    "i32": "i32",
    "b32": "u32",
    "u64": "u64",
    "i64": "i64",
    "b64": "u64",
}
_WIDE = frozenset({"f64", "rf64", "u64", "i64", "b64", "pkb32", "pk32"})


def _load(kind: str, source: str, half: str = "") -> str:
    """Return the expression of an operand's value in lane ``l``; ``half`` picks one of a packed pair."""
    wide = f"(x->{source}[l] | (u64)x->{source}[n + l] << 32)"
    part = f"(x->{source}[l] >> {16 if half == 'H' else 0} & 0xffff)"
    loads = {
        "f32": f"as_f32(x->{source}[l])",
        "mix": f"as_f32(x->{source}[l])",
        "f64": f"as_f64({wide})",
        "f16": f"as_f16(x->{source}[l])",
        "bf16": f"as_bf16(x->{source}[l])",
        "i16": f"(i32)(i16)x->{source}[l]",
        "pkf16": f"as_f16({part})",
        "pku16": part,
        "pki16": f"(i32)(i16){part}",
        "pk32": f"as_f32(x->{source}[{'n + ' if half == 'H' else ''}l])",
        "i32": f"(i32)x->{source}[l]",
        "i64": f"(i64){wide}",
    }
    return loads.get(kind) or (wide if kind in _WIDE else f"x->{source}[l]")


_VALUE = {
    "f32": "f32", "mix": "f32", "f64": "f64", "f16": "f32", "bf16": "f32", "i16": "i32", "pkf16": "f32", "pki16": "i32",
    "pk32": "f32", "rf64": "u64", "i32": "i32", "i64": "i64", "u64": "u64", "b64": "u64", "pkb32": "u64",
}  # fmt: skip
_RESULT = _VALUE | {"f16": "f64", "pkf16": "f64"}


def _store(kind: str, half: str) -> str:
    if kind in {"f64", "u64", "i64", "b64"}:
        bits = "of_f64(D)" if kind == "f64" else "(u64)D"
        return f"u64 made = {bits}; x->d[l] = (u32)made; x->d[n + l] = (u32)(made >> 32);"
    if kind.startswith("pk") and kind != "pk32":
        bits = "of_f16(D)" if kind == "pkf16" else "(u32)D & 0xffff"
        return f"packed |= ({bits}) << {16 if half == 'H' else 0};"
    stores = {
        "f32": "x->d[l] = of_f32(D);",
        "f16": "x->d[l] = of_f16(D);",
        "pk32": f"x->d[{'n + ' if half == 'H' else ''}l] = of_f32(D);",
        "none": "(void)D;",
    }
    return stores.get(
        kind, "x->d[l] = (u32)D;" if kind not in {"u16", "i16", "b16", "rf16"} else "x->d[l] = (u32)D & 0xffff;"
    )


def _statements(text: str, target: str) -> str:
    return text if re.search(r"\b[DMC]\s*=(?!=)", text) else f"{target} = {text}"


def _vector_function(one: Operation) -> str:
    text = one.text.replace("CLAMPED", "(x->inst->flags & CLAMP)").replace("FNUZ", "!!(x->inst->flags & FNUZ)")
    text = re.sub(r"\bG\b", "x->inst->generation", text)
    halves = ["L", "H"] if one.result in {"pkf16", "pku16", "pki16", "pk32"} else [""]
    body = []
    for half in halves:
        lines = []
        for number, kind in enumerate(one.operands):
            if kind == "m":
                lines.append(f"const int S{number} = (int)(x->mask[{number}] >> l & 1);")
            elif kind == "vcc":
                lines.append("const int V = (int)(x->mask[3] >> l & 1);")
            else:
                lines.append(f"const {_VALUE.get(kind, 'u32')} S{number} = {_load(kind, f's[{number}]', half)};")
        kind = one.result
        start = _load(kind, "d", half) if one.reads_result else "0"
        lines.append(f"{_RESULT.get(kind, 'u32')} D = {start}; u64 M = 0;")
        lines.append(_statements(text, "D") + ";")
        lines.append(_store(kind, half))
        lines.append("out |= (M & 1) << l;" if one.mask else "(void)M;")
        body.append("{ " + " ".join(lines) + " }")
    packed = "u32 packed = 0; " if halves != [""] and one.result != "pk32" else ""
    after = " x->d[l] = packed;" if packed else ""
    mask = "x->out = out;" if one.mask else ""
    out = "u64 out = 0; " if one.mask else ""
    return (
        f"static void vector_{one.number}(Vector *x) {{ /* {one.names[0]} */\n"
        f"  const u32 n = x->lanes; {out}\n"
        f"  for (u32 l = 0; l < n; l++) {{ {packed}{' '.join(body)}{after} }}\n  {mask}\n}}\n"
    )


def _scalar_function(one: Operation) -> str:
    lines = []
    for number, kind in enumerate(one.operands):
        value = f"x->s[{number}]"
        loads = {"f32": f"as_f32((u32){value})", "u64": value, "i64": f"(i64){value}", "i32": f"(i32){value}"}
        lines.append(f"const {_C_TYPES[kind]} S{number} = {loads.get(kind, f'(u32){value}')};")
    if one.words & {"x", "w"}:
        lines += ["const u64 S0 = x->s[0], S1 = x->s[1];"]
    if "k" in one.words:
        lines.append("const i32 K = x->inst->immediate;")
    kind = "u64" if one.words & {"x", "w"} else one.result if one.result in _C_TYPES else "u32"
    start = {"i32": "(i32)x->d", "u32": "(u32)x->d", "f32": "as_f32((u32)x->d)"}.get(kind, "x->d")
    lines.append(f"{kind} D = {start if one.reads_result else '0'}; u32 C = x->scc;")
    lines.append(_statements(one.text, "D") + ";")
    result = "of_f32(D)" if kind == "f32" else f"(u64)({'(u32)' if kind.endswith('32') else ''}D)"
    lines.append(f"x->d = {result}; x->scc = C;")
    return f"static void scalar_{one.number}(Scalar *x) {{ /* {one.names[0]} */ {' '.join(lines)} }}\n"


def source() -> str:
    """Return the C source of all functions and of the tables that they are called through."""
    parts = []
    for word, table, function, signature in (
        ("vector", vector_table(), _vector_function, "VectorOp"),
        ("scalar", scalar_table(), _scalar_function, "ScalarOp"),
    ):
        unique = {one.number: one for one in table.values()}
        parts += [function(one) for one in unique.values()]
        parts.append(f"const {signature} {word}_ops[] = {{{', '.join(f'{word}_{number}' for number in unique)}}};\n")
    return "".join(parts)
