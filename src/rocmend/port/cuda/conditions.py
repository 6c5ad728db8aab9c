"""What the conditions of the preprocessor come to on the ROCm side and on the NVIDIA side.

Three values: True, False, and None where a name decides that nobody knows here. A branch that is False on one side is
never compiled there: this tells the code that both share from the code that was already ported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rocmend.port.cuda.lexer import Directive, Kind, Token
from rocmend.port.nesting import MOST_NESTED, NestingError

__all__ = ["NVIDIA", "OWN", "ROCM", "SAYS_ROCM", "Branch", "Group", "branches", "condition", "evaluated", "use_macros"]

_TARGETS = (
    b"803 900 902 904 906 908 909 90a 90c 940 941 942 950 1010 1011 1012 1013 1030 1031 1032 1033 1034 1035 1036 "
    b"1100 1101 1102 1103 1150 1151 1152 1153 1200 1201 1250"
).split()
_HIP_ONLY = (
    b"USE_ROCM",
    b"__HIP_PLATFORM_AMD__",
    b"__HIP_PLATFORM_HCC__",
    b"__HIPCC__",
    b"__HIP__",
    b"__HCC__",
    b"__AMDGCN__",
    b"__AMDGPU__",
    b"__AMD__",
    b"__AMDGCN_WAVEFRONT_SIZE",
    b"__AMDGCN_WAVEFRONT_SIZE__",
    *(f"__GFX{family}__".encode() for family in range(6, 14)),
    *(b"__gfx%s__" % target for target in _TARGETS),
    b"USE_HIP",
    b"ENABLE_HIP",
    b"__HIP_DEVICE_COMPILE__",
    b"__HIP_ARCH_GFX942__",
    b"HIP_VERSION",
    b"TORCH_HIP_VERSION",
    b"ROCM_VERSION",
)

SAYS_ROCM = re.compile(rb"(?<![A-Za-z])(?:ROCM|HIP|HCC|AMDGCN|AMDGPU|AMD_|_AMD|GFX|gfx)|hip/hip_runtime")
"""Found in every source with code for ROCm of its own; a source without it is not parsed for any."""

ROCM: dict[bytes, int | None] = {
    b"USE_ROCM": 1,
    b"__HIP_PLATFORM_AMD__": 1,
    b"__HIPCC__": 1,
    b"__HIP__": 1,
    b"__HIP_PLATFORM_NVIDIA__": None,
    b"__CUDACC_RTC__": None,
}
"""Names whose value is known on the ROCm side; a value None: not defined."""

ZERO = frozenset(
    (b"__CUDA_ARCH__", b"CUDART_VERSION", b"CUDA_VERSION", b"__CUDACC_VER_MAJOR__", b"__CUDACC_VER_MINOR__")
)
"""Names that are 0 in a comparison on the ROCm side. Whether they are defined is left open: a port may change that."""

_WITHOUT: dict[bytes, int | None] = {**ROCM, **dict.fromkeys(ZERO)}

NVIDIA: dict[bytes, int | None] = dict.fromkeys(_HIP_ONLY)
"""Names whose value is known on the NVIDIA side; a value None: not defined."""

OWN: dict[bytes, tuple[int | None, int | None]] = {}
"""The project's own names that tell ROCm from CUDA, with their values on the ROCm and on the NVIDIA side."""


def use_macros(own: Mapping[bytes, tuple[int | None, int | None]]) -> None:
    """Evaluate conditions with the macros of one project, in this process, until the next call.

    Args:
        own: Their values on the ROCm and on the NVIDIA side; None: not defined.
    """
    for known in (ROCM, _WITHOUT, NVIDIA):
        for name in OWN:
            known.pop(name, None)
    OWN.clear()
    OWN.update((name, values) for name, values in own.items() if name not in ROCM and name not in NVIDIA)
    for name, (here, elsewhere) in OWN.items():
        ROCM[name] = _WITHOUT[name] = here
        NVIDIA[name] = elsewhere


class Branch(NamedTuple):
    """One branch of a conditional group.

    Attributes:
        directive: Number of the directive that opens it.
        start: Offset after that directive's line.
        end: Offset of the directive that ends it.
        rocm: Whether it is compiled on the ROCm side (None: unknown), for itself and what is around it.
        nvidia: The same for the NVIDIA side.
        parent: Index of the branch around it; -1 where there is none.
        group: Number of its group.
        chosen: Whether the ROCm side compiles it where it compiles what is around it.
    """

    directive: int
    start: int
    end: int
    rocm: bool | None
    nvidia: bool | None
    parent: int
    group: int
    chosen: bool | None


class Group(NamedTuple):
    """A conditional group from ``#if`` to ``#endif``.

    Attributes:
        first: Number of the directive that opens it.
        last: Number of its ``#endif``; -1 where the file ends first.
        start: Offset of its first line.
        end: Offset after its last line.
        parent: Number of the group around it; -1 where there is none.
    """

    first: int
    last: int
    start: int
    end: int
    parent: int


_OPENING = frozenset((b"if", b"ifdef", b"ifndef"))
_NEXT = frozenset((b"elif", b"else", b"elifdef", b"elifndef"))


def branches(
    tokens: Sequence[Token], directives: Sequence[Directive], size: int
) -> tuple[list[Branch], list[Group], list[int]]:
    """Return the branches and groups of a file, and the numbers of directives that open or end nothing.

    Args:
        tokens: Of the file.
        directives: Of the file.
        size: Of the file, in bytes.
    """
    made: list[Branch] = []
    groups: list[Group] = []
    stray: list[int] = []
    stack: list[_Open] = []
    for number, directive in enumerate(directives):
        name = directive.name
        if name in _OPENING:
            group = len(groups)
            groups.append(Group(number, -1, directive.start, size, stack[-1].group if stack else -1))
            opened = _Open(group, stack[-1].branch if stack else -1)
            stack.append(opened)
            if len(stack) > MOST_NESTED:
                raise NestingError("conditionals")
            opened.enter(made, tokens, directives, number)
        elif name in _NEXT or name == b"endif":
            if not stack:
                stray.append(number)
                continue
            opened = stack[-1]
            made[opened.branch] = made[opened.branch]._replace(end=directive.start)
            if name == b"endif":
                stack.pop()
                groups[opened.group] = groups[opened.group]._replace(last=number, end=directive.end)
            else:
                opened.enter(made, tokens, directives, number)
    for opened in stack:
        made[opened.branch] = made[opened.branch]._replace(end=size)
        stray.append(groups[opened.group].first)
    return made, groups, stray


class _Open:
    """A group that has not ended yet, and whether one of its branches was taken, on each side."""

    def __init__(self, group: int, parent: int) -> None:
        self.group = group
        self.parent = parent
        self.branch = -1
        self.taken: dict[str, bool | None] = {"rocm": False, "nvidia": False}

    def enter(self, made: list[Branch], tokens: Sequence[Token], directives: Sequence[Directive], number: int) -> None:
        directive = directives[number]
        words = tokens[directive.first + 2 : directive.last]
        around = made[self.parent] if self.parent >= 0 else None
        values: dict[str, bool | None] = {}
        for side, known in (("rocm", ROCM), ("nvidia", NVIDIA)):
            own = condition(directive.name, words, known)
            taken = self.taken[side]
            values[side] = _and(_not(taken), own)
            self.taken[side] = _or(taken, own)
        chosen = values["rocm"]
        if around is not None:
            values = {"rocm": _and(around.rocm, values["rocm"]), "nvidia": _and(around.nvidia, values["nvidia"])}
        self.branch = len(made)
        made.append(
            Branch(
                number,
                directive.end,
                directive.end,
                values["rocm"],
                values["nvidia"],
                self.parent,
                self.group,
                chosen,
            )
        )


def condition(name: bytes, words: Sequence[Token], known: Mapping[bytes, int | None]) -> bool | None:
    """Return whether a directive's own condition holds, without what is around it and what was taken before it.

    Args:
        name: ``if``, ``ifdef``, ``elif``, ``else`` …
        words: The tokens after the directive's name.
        known: Values of names; None for one that is known to be undefined.
    """
    if name == b"else":
        return True
    if name in (b"ifdef", b"ifndef", b"elifdef", b"elifndef"):
        if not words:
            return None
        defined = known[words[0].text] is not None if words[0].text in known else None
        return _not(defined) if name in (b"ifndef", b"elifndef") else defined
    texts = [word.text for word in words if word.kind != Kind.OTHER]
    if known is ROCM and any(_as_number(texts, at) for at in range(len(texts))):
        known = _WITHOUT  # a test that compares is not changed by a port: ROCm sees it as it stands
    value = evaluated(texts, known)
    return None if value is None else bool(value)


def _as_number(words: Sequence[bytes], at: int) -> bool:
    """Return whether a name of ``ZERO`` is compared, and not only asked for with ``defined``."""
    asked = at >= 1 and (words[at - 1] == b"defined" or (at >= 2 and words[at - 2] == b"defined"))
    return words[at] in ZERO and not asked


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _and(one: bool | None, other: bool | None) -> bool | None:
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def _or(one: bool | None, other: bool | None) -> bool | None:
    if one is True or other is True:
        return True
    return None if one is None or other is None else False


_LEVELS: tuple[frozenset[bytes], ...] = (
    frozenset((b"||",)),
    frozenset((b"&&",)),
    frozenset((b"|",)),
    frozenset((b"^",)),
    frozenset((b"&",)),
    frozenset((b"==", b"!=")),
    frozenset((b"<", b">", b"<=", b">=")),
    frozenset((b"<<", b">>")),
    frozenset((b"+", b"-")),
    frozenset((b"*", b"/", b"%")),
)
_INTEGER = re.compile(rb"(0[xX][0-9a-fA-F']+|0[bB][01']+|[0-9][0-9']*)[uUlLzZ]*")
_DEEPEST = 64
_MOST_BITS = 128
_MOST_WORDS = 10_000
"""Of an expression; what a longer one comes to is not known here."""


def evaluated(words: Sequence[bytes], known: Mapping[bytes, int | None]) -> int | None:
    """Return the value of an ``#if`` expression, or None where it depends on what is not known.

    A name that is known as not defined is 0, as in the language. What is not understood gives None.
    """
    if len(words) > _MOST_WORDS:
        return None
    reader = _Expression(words, known)
    try:
        value = reader.level(0)
    except (IndexError, ValueError, OverflowError, RecursionError):
        return None
    return value if reader.at == len(words) else None


class _Expression:
    def __init__(self, words: Sequence[bytes], known: Mapping[bytes, int | None]) -> None:
        self.words = words
        self.known = known
        self.at = 0
        self.depth = 0

    def level(self, number: int) -> int | None:
        if number == len(_LEVELS):
            return self.unary()
        value = self.level(number + 1)
        while self.at < len(self.words) and self.words[self.at] in _LEVELS[number]:
            sign = self.words[self.at]
            self.at += 1
            value = _combined(sign, value, self.level(number + 1))
            if value is not None and value.bit_length() > _MOST_BITS:  # no compiler's integer
                raise OverflowError
        return value

    def unary(self) -> int | None:
        word = self.words[self.at]
        self.at += 1
        if word in (b"!", b"-", b"+", b"~"):
            value = self.unary()
            if value is None:
                return None
            return {b"!": int(not value), b"-": -value, b"+": value, b"~": ~value}[word]
        if word == b"(":
            self.depth += 1
            if self.depth > _DEEPEST:
                raise ValueError
            value = self.level(0)
            if self.words[self.at] != b")":
                raise ValueError
            self.at += 1
            return value
        if word == b"defined":
            bracket = self.words[self.at] == b"("
            name = self.words[self.at + bracket]
            self.at += 3 if bracket else 1
            return None if name not in self.known else int(self.known[name] is not None)
        number = _INTEGER.fullmatch(word)
        if number:
            digits = number[1].replace(b"'", b"")
            octal = len(digits) > 1 and digits.isdigit() and digits.startswith(b"0")
            return int(digits, 8 if octal else 0)
        return self.name(word)

    def name(self, word: bytes) -> int | None:
        if self.at < len(self.words) and self.words[self.at] == b"(":  # __has_include(…) and function-like macros
            depth = 0
            while True:
                depth += {b"(": 1, b")": -1}.get(self.words[self.at], 0)
                self.at += 1
                if depth == 0:
                    return None
        if word not in self.known:
            return None
        return self.known[word] or 0


def _combined(sign: bytes, one: int | None, other: int | None) -> int | None:  # noqa: PLR0911  one a sign
    if sign == b"&&":
        if one == 0 or other == 0:
            return 0
        return None if one is None or other is None else 1
    if sign == b"||":
        if one or other:
            return 1
        return None if one is None or other is None else 0
    if one is None or other is None:
        return None
    if sign in (b"/", b"%"):
        if other == 0:
            return None
        whole = abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)
        return whole if sign == b"/" else one - whole * other
    if sign in (b"<<", b">>") and not 0 <= other < 64:
        return None
    simple = {
        b"|": lambda: one | other,
        b"^": lambda: one ^ other,
        b"&": lambda: one & other,
        b"==": lambda: int(one == other),
        b"!=": lambda: int(one != other),
        b"<": lambda: int(one < other),
        b">": lambda: int(one > other),
        b"<=": lambda: int(one <= other),
        b">=": lambda: int(one >= other),
        b"<<": lambda: one << other,
        b">>": lambda: one >> other,
        b"+": lambda: one + other,
        b"-": lambda: one - other,
        b"*": lambda: one * other,
    }
    return simple[sign]()
