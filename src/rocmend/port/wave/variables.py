"""Whether a variable may get another value than the one that it was declared with, from the tokens of its function."""

from __future__ import annotations

from rocmend.port.cuda.declarations import Declaration
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.functions import Function
from rocmend.port.cuda.lexer import Kind
from rocmend.port.wave.tokens import text_at

__all__ = ["assigned_again", "changed"]

_CHANGES = frozenset((b"=", b"+=", b"-=", b"*=", b"/=", b"%=", b"&=", b"|=", b"^=", b"<<=", b">>=", b"++", b"--"))
_NO_CALLS = frozenset(
    b"if while for switch return sizeof and or not static_cast const_cast reinterpret_cast decltype".split()
)
_BY_VALUE = frozenset(
    b"min max abs fabsf fminf fmaxf sqrtf ceil floor int unsigned float double size_t bool long short char uint32_t "
    b"int32_t uint64_t int64_t dim3 printf assert __ldg __popc __ffs __clz static_assert make_int2 make_float2 "
    b"make_float4 make_int4 __syncthreads_or __syncthreads_and __syncthreads_count".split()
)
_BY_VALUE_BEGINNINGS = (b"__shfl", b"__any", b"__all", b"__ballot", b"__reduce_", b"__match_any", b"atomic", b"warp32_")


def assigned_again(file: CudaFile, function: Function, declared: Declaration) -> bool:
    """Tell whether a function assigns to a variable after its declaration, or takes its address."""
    uses = (at for at in file.names(declared.name.text, shared=False) if at != declared.at)
    inside = (at for at in uses if function.head <= file.tokens[at].start < function.end)
    return any(_assigned(file, at, True, frozenset()) or text_at(file, at - 1) == b"&" for at in inside)


def changed(file: CudaFile, function: Function, declared: Declaration, *, but: frozenset[bytes] = frozenset()) -> bool:
    """Tell whether a variable of a function may be changed after its declaration, in any way that tokens show.

    Assignments count, to a part of it too, and whatever may take it by reference: an address, a reference, a function
    that is not known to take values, an output of assembly.

    Args:
        file: The source.
        function: The function that the variable is used in.
        declared: Its declaration.
        but: Signs of assignments that do not count.
    """
    if {b"const", b"constexpr"} & declared.qualifiers and not declared.pointers:
        return False
    holds = b"*" not in declared.pointers  # what a pointer points to is no part of it
    for index in file.names(declared.name.text, shared=False):
        if index == declared.at or not function.head <= file.tokens[index].start < function.end:
            continue
        if text_at(file, index - 1) in (b".", b"->", b"::"):
            continue  # a member of that name
        if _assigned(file, index, holds, but) or _given_away(file, index) or (declared.extents and _bare(file, index)):
            return True
    return False


def _assigned(file: CudaFile, index: int, holds: bool, but: frozenset[bytes]) -> bool:
    """Tell whether a use assigns to the variable, or to an element or member of it."""
    if text_at(file, index - 1) in (b"++", b"--") and text_at(file, index - 1) not in but:
        return True
    after = index + 1
    while holds and text_at(file, after) in (b"[", b".", b"->"):
        if text_at(file, after) == b"[":
            if after not in file.partner:
                return True
            after = file.partner[after] + 1
        else:
            after += 2
            if text_at(file, after) in (b"(", b"<"):
                return True  # a method may change it
    return text_at(file, after) in _CHANGES - but


def _given_away(file: CudaFile, index: int) -> bool:  # noqa: PLR0911  each return names one way to give it away
    """Tell whether a use gives out the variable's address or a reference to it."""
    before = text_at(file, index - 1)
    if before == b"&" and text_at(file, index - 2) in (b"(", b",", b"=", b"return", b"{", b"[", b"?", b":"):
        return True
    if before in (b"=", b"{", b"(") and text_at(file, index - 3) in (b"&", b"&&") and _is_name(file, index - 2):
        return True  # T& other = variable
    if before not in (b"(", b",") or text_at(file, index + 1) not in (b",", b")"):
        return False
    opened, place = _opening(file, index)
    if opened < 1:
        return opened < 0  # not in brackets as far as they are understood
    callee = file.tokens[opened - 1]
    if callee.kind == Kind.STRING:
        text = file.data[callee.start : callee.end]
        return b"=" in text or b"+" in text  # an output of assembly
    if callee.text == b">":
        return not _is_cast(file, opened - 1)
    if callee.text in (b"]", b")"):
        return True  # a call of what cannot be named
    if callee.kind != Kind.NAME or callee.text in _NO_CALLS or callee.text in _BY_VALUE:
        return False
    return not callee.text.startswith(_BY_VALUE_BEGINNINGS) and not _takes_values(file, callee.text, place)


def _bare(file: CudaFile, index: int) -> bool:
    """Tell whether an array is named without an element: it is a pointer to itself then."""
    return text_at(file, index + 1) != b"["


def _is_name(file: CudaFile, index: int) -> bool:
    return index >= 0 and file.tokens[index].kind == Kind.NAME


def _opening(file: CudaFile, index: int) -> tuple[int, int]:
    """Return the index of the bracket around an argument, and how many arguments come before it; -1 for none."""
    place = 0
    at = index - 1
    while at >= 0:
        text = text_at(file, at)
        if text == b"(":
            return at, place
        if text in (b")", b"]", b"}"):
            if at not in file.partner:
                return -1, 0
            at = file.partner[at]
        elif text in (b";", b"{", b"["):
            return 0, 0
        elif text == b",":
            place += 1
        at -= 1
    return -1, 0


def _is_cast(file: CudaFile, closed: int) -> bool:
    at = closed
    while at > 0 and closed - at < 16:
        if text_at(file, at) == b"<":
            return text_at(file, at - 1) in (b"static_cast", b"const_cast", b"reinterpret_cast")
        at -= 1
    return False


def _takes_values(file: CudaFile, name: bytes, place: int) -> bool:
    """Tell whether all functions of a name that the file has take the argument at a place by value."""
    found = [one for one in file.functions if one.name.text == name]
    if not found or name in file.macros:
        return False
    for one in found:
        if place >= len(one.parameters):
            return False
        given = one.parameters[place]
        words = [token.text for token in file.tokens[given.first : given.last]]
        if b"&" in words or b"&&" in words or b"..." in words:
            return False
    return True
