"""Where a file works across the lanes of a warp, and what stands in the way of doing it with 32 lanes everywhere."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple
from weakref import WeakKeyDictionary

from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.lexer import Kind, Token
from rocmend.port.cuda.structure import Call, call_at
from rocmend.port.wave.intrinsics import INTRINSICS, Intrinsic
from rocmend.port.wave.tokens import text_at
from rocmend.port.wave.variables import changed

__all__ = ["Site", "Wave", "literal_mask", "own_lanes", "wave"]


class Site(NamedTuple):
    """An operation across lanes.

    Attributes:
        at: Index of its name among the tokens.
        intrinsic: What it is.
        call: The call; None where the name stands without arguments (an alias in a macro).
        defines: Whether the project defines a function of that name here.
        tested: Whether a condition of the preprocessor asks for the name.
    """

    at: int
    intrinsic: Intrinsic
    call: Call | None
    defines: bool
    tested: bool

    @property
    def start(self) -> int:
        """Return the offset of its name; of the call's first byte where there is a call."""
        return self.call.start if self.call else -1


class Wave(NamedTuple):
    """What a file does across lanes.

    Attributes:
        sites: Its operations across lanes, in code that both sides compile.
        other_width: Offset and words of a place where code for ROCm alone counts a warp with other than 32 lanes.
        defined: Names of operations that the project defines itself.
    """

    sites: tuple[Site, ...]
    other_width: tuple[int, int, str] | None
    defined: frozenset[bytes]


_kept: WeakKeyDictionary[CudaFile, Wave] = WeakKeyDictionary()
_CONDITIONS = frozenset((b"if", b"ifdef", b"ifndef", b"elif", b"undef", b"elifdef", b"elifndef"))
_WIDTH_NAME = re.compile(
    rb"\w*(?:(?:warp|wave)_?(?:front)?_?(?:size|threads|width|lanes)|(?:threads|lanes)_?per_?(?:warp|wave))\w*",
    re.IGNORECASE,
)
_WAVE_WIDE = frozenset(
    b"warpSize __AMDGCN_WAVEFRONT_SIZE __AMDGCN_WAVEFRONT_SIZE__ __GFX9__ ROCM_WARP_SIZE HIPCUB_WARP_THREADS "
    b"HIPCUB_DEVICE_WARP_THREADS ROCPRIM_WARP_SIZE __lane_id __ballot64 C10_WARP_SIZE".split()
)
_WIDTH_32 = re.compile(rb"32[uUlL]*|0[xX]20[uUlL]*")


def wave(file: CudaFile) -> Wave:
    """Return what a file does across lanes; computed once for each file."""
    found = _kept.get(file)
    if found is None:
        found = _kept[file] = _read(file)
    return found


def _read(file: CudaFile) -> Wave:
    sites = []
    defined = set()
    for index in file.names(*INTRINSICS):
        token = file.tokens[index]
        call = call_at(file.tokens, file.partner, index)
        if call is not None and call.qualifier and call.qualifier != b"::":
            continue  # a member or another namespace's function
        directive = file.directives[token.directive] if token.directive >= 0 else None
        tested = directive is not None and directive.name in _CONDITIONS
        defines = call is not None and call.declares and directive is None
        if defines and not _own_type(file, call):
            defined.add(token.text)
        sites.append(Site(index, INTRINSICS[token.text], call, defines, tested))
    return Wave(tuple(sites), _other_width(file, works_across_lanes=bool(sites)), frozenset(defined))


_NUMBERS = frozenset(b"int unsigned long short char float double bool half __half half2 __half2".split())


def _own_type(file: CudaFile, call: Call | None) -> bool:
    """Tell whether a function is an overload for a type that no helper takes: vectors, structures."""
    if call is None or not call.args:
        return False
    intrinsic = INTRINSICS[call.name.text]
    if len(call.args) <= intrinsic.masked:
        return False
    given = call.args[int(intrinsic.masked)]
    words = [token.text for token in file.tokens[given.first : given.last]]
    kinds = [word for word in words if word not in (b"const", b"&", b"volatile")]
    return bool(kinds) and kinds[0] not in _NUMBERS and _VECTOR.fullmatch(kinds[0]) is not None


_VECTOR = re.compile(rb"(?:u?(?:char|short|int|long|longlong)|float|double)[1-4]|cu(?:da|Float|Double)\w*[Cc]omplex")


def _other_width(file: CudaFile, *, works_across_lanes: bool) -> tuple[int, int, str] | None:
    """Return where code that only ROCm compiles has a warp of other than 32 lanes."""
    if all(branch.nvidia is not False for branch in file.branches):
        return None
    for index, token in enumerate(file.tokens):
        if token.text in INTRINSICS or token.text in _WAVE_WIDE or _WIDTH_NAME.fullmatch(token.text):
            branch = file.branch_at(token.start)
            if branch is None or branch.nvidia is not False:
                continue
            directive = file.directives[token.directive] if token.directive >= 0 else None
            if directive is not None and directive.name in _CONDITIONS:
                continue
            if (token.text in INTRINSICS and _width_of_shuffle(file, index)) or _set_to_32(file, index):
                continue
            return token.start, token.end, token.text.decode("utf-8", "replace")
    group = _group_beyond_32(file)
    return group or _set_to_64(file, _ANY if works_across_lanes else _OF_WARPS)


_TILES = (b"tiled_partition", b"thread_block_tile")
_GROUPS = (b"coalesced_threads", b"binary_partition", b"labeled_partition")
"""Functions that give groups of a whole wavefront in HIP."""


def _group_beyond_32(file: CudaFile) -> tuple[int, int, str] | None:
    """Return where code for ROCm alone makes a group that may have more than 32 threads."""
    for index in file.names(*_TILES, *_GROUPS, shared=False):
        token = file.tokens[index]
        branch = file.branch_at(token.start)
        if branch is None or branch.nvidia is not False or text_at(file, index - 2) == b"warp32_groups":
            continue
        if token.text in _GROUPS:
            if text_at(file, index + 1) == b"(":
                return token.start, token.end, token.text.decode()
            continue
        size = text_at(file, index + 2) if text_at(file, index + 1) == b"<" else b""
        if size.isdigit() and int(size) > 32:
            return token.start, file.tokens[index + 2].end, f"{token.text.decode()}<{size.decode()}>"
    return None


_VALUES = {b"32": b"64", b"5": b"6", b"31": b"63", b"0x1f": b"0x3f", b"0xffffffff": b"0xffffffffffffffff"}


_ANY = re.compile(rb"\w+")
_OF_WARPS = re.compile(rb"\w*(?:warp|wave|lane|simd)\w*", re.IGNORECASE)


def _set_to_64(file: CudaFile, names: re.Pattern[bytes]) -> tuple[int, int, str] | None:
    """Return where code for ROCm gives a name 64 that code for NVIDIA's compiler gives 32."""
    given: dict[bytes, bytes] = {}
    wide: list[tuple[Token, bytes, int]] = []
    for index, token in enumerate(file.tokens):
        if token.kind != Kind.NAME or text_at(file, index + 1) not in (b"=", b"{", b"(", *_VALUES, *_VALUES.values()):
            continue
        branch = file.branch_at(token.start)
        if branch is None:
            continue
        at = index + 1
        while text_at(file, at) in (b"=", b"{", b"("):
            at += 1
        value = text_at(file, at).lower().rstrip(b"ul")
        if branch.nvidia is False:
            wide.append((token, value, file.tokens[min(at, len(file.tokens) - 1)].end))
        elif value in _VALUES:
            given[token.text] = value
    for token, value, end in wide:
        if token.text in given and value == _VALUES[given[token.text]] and names.fullmatch(token.text):
            return token.start, end, " ".join(file.data[token.start : end].decode("utf-8", "replace").split())
    return None


def _width_of_shuffle(file: CudaFile, index: int) -> bool:
    """Tell whether an operation across lanes in code for ROCm says that it means at most 32 lanes."""
    intrinsic = INTRINSICS[file.tokens[index].text]
    call = call_at(file.tokens, file.partner, index)
    if intrinsic.kind == "sync":
        return True
    if intrinsic.kind != "shuffle" or call is None:
        return False
    at = 3 if intrinsic.masked else 2
    if len(call.args) <= at:
        return False
    width = file.data[call.args[at].start : call.args[at].end]
    return width.isdigit() and int(width) <= 32


def _set_to_32(file: CudaFile, index: int) -> bool:
    """Tell whether a name is given the value 32 here, or is only used (what it is was said elsewhere)."""
    token = file.tokens[index]
    if token.text in _WAVE_WIDE or token.text in INTRINSICS:
        return False
    after = file.tokens[index + 1] if index + 1 < len(file.tokens) else None
    if after is None or after.directive != token.directive:
        return True
    macro = index >= 1 and file.tokens[index - 1].text == b"define"
    if macro:
        return bool(_WIDTH_32.fullmatch(after.text))
    if after.text in (b"=", b"{"):
        return bool(_WIDTH_32.fullmatch(text_at(file, index + 2)))
    return True


_FULL = re.compile(rb"\(?(?:0[xX][fF]{8}[uUlL]*|-1|~0[uUlL]*|4294967295[uUlL]*|UINT32_MAX|UINT_MAX)\)?")
_FULL_CAST = re.compile(rb"(?:\(?(?:uint32_t|unsigned|unsigned int|int)\)?\s*\(?\s*)(?:-1|~0[uU]?)\s*\)?")
_WIDE = re.compile(
    rb"\(?(?:0[xX][fF]{8}[uU]?(?:ll|LL|l|L)[uU]?|0[xX][fF]{16}[uUlL]*|~0[uU]?(?:ll|LL|l|L)[uU]?|-1(?:ll|LL)|UINT64_MAX|"
    rb"ULLONG_MAX)\)?"
)
_NUMBER = re.compile(rb"\(?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+)[uUlL]*\)?")


@cache
def literal_mask(text: bytes) -> str:
    """Return ``full`` for a literal that names all 32 lanes, ``wide`` for one of 64 bits, ``part``, or ``named``."""
    if _WIDE.fullmatch(text):
        return "wide"
    if _FULL.fullmatch(text) or _FULL_CAST.fullmatch(text):
        return "full"
    return "part" if _NUMBER.fullmatch(text) else "named"


def own_lanes(file: CudaFile, site: Site) -> int:
    """Return where a mask is made of lanes that were seen to be there: by ``__activemask``, a ballot or a match.

    It names lanes of the other side of a branch where it was made before that branch.

    Returns:
        The index of the token at which it is made; -1 where it is made otherwise, or may be changed afterwards.
    """
    if not site.intrinsic.masked:
        return site.at
    if site.call is None or not site.call.args:
        return -1
    mask = site.call.args[0]
    born, first, last = site.at, mask.first, mask.last
    if last - first == 1:
        token = file.tokens[first]
        declared = file.declaration_of(token.text, token.start)
        function = file.function_at(token.start)
        if declared is None or declared.value is None or function is None:
            return -1
        if changed(file, function, declared, but=frozenset((b"&=",))):
            return -1
        born, first, last = declared.at, declared.value.first, declared.value.last
    words = {one.text for one in file.tokens[first:last]}
    made = any(name in INTRINSICS and INTRINSICS[name].kind in {"ballot", "match"} for name in words)
    return born if made and not words & {b"~", b"|", b"^", b"?", b"+"} else -1
