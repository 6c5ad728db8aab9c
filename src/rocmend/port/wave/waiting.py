"""Loops of device code that wait for another thread."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.functions import Function
from rocmend.port.cuda.lexer import Kind
from rocmend.port.wave.statements import Statement, statements, walk
from rocmend.port.wave.tokens import text_at

__all__ = ["Wait", "waits"]

_TAKES = frozenset((b"atomicCAS", b"atomicExch", b"atomicOr", b"atomicAnd", b"atomicMax"))
_READS = frozenset(
    (
        b"atomicAdd",
        b"atomicOr",
        b"atomicLoad",
        b"load",
        b"__ldcg",
        b"__ldcv",
        b"ld_acquire",
        b"test_and_set",
        b"__atomic_load_n",
        b"__atomic_load",
    )
)
_HARMLESS = frozenset(
    (b"__nanosleep", b"__threadfence", b"__threadfence_block", b"__threadfence_system", b"__syncwarp")
)
_CHANGES = frozenset((b"=", b"+=", b"-=", b"*=", b"/=", b"%=", b"&=", b"|=", b"^=", b"<<=", b">>=", b"++", b"--"))


_LOCKS = re.compile(rb"(?:(?<=atomic)|(?<=sync)|(?<![bc]))lock|acquire|wait|ready|flag", re.IGNORECASE)


class Wait(NamedTuple):
    """A waiting loop.

    Attributes:
        start: Offset of its first byte.
        end: Offset after its condition.
        one_of_block: Whether only the first thread of a block comes to it.
        own_block: Whether it does, and waits for what other threads of its own block set.
    """

    start: int
    end: int
    one_of_block: bool
    own_block: bool


def waits(file: CudaFile) -> Iterator[Wait]:
    """Yield the loops that wait, in code that both sides compile, and the macros that hold one or the head of one."""
    yield from _in_macros(file)
    for function in file.functions:
        if not _on_device(file, function) or not file.shared(function.start):
            continue
        body = statements(file, function)
        if body is None:
            continue
        for one in (*walk(body), *_jumps(file, body)):
            if one.kind == "loop" and _waits(file, one):
                tokens = file.tokens
                end = tokens[one.condition[1]].end if one.condition else tokens[one.last - 1].end
                end = max(tokens[one.first].end, end)
                branch = _first_thread(file, body, one)
                own = branch is not None and _of_own_block(file, body, branch, one)
                yield Wait(tokens[one.first].start, end, branch is not None, own)


def _in_macros(file: CudaFile) -> Iterator[Wait]:
    for macro in (one for macros in file.macros.values() for one in macros):
        words = {token.text for token in file.tokens[macro.first : macro.last]}
        if (
            words & (_TAKES | _READS | {b"volatile"})
            and words & {b"while", b"for", b"goto"}
            and file.shared(macro.start)
        ):
            body = file.data[macro.start : macro.end].replace(b"\\\n", b" \n").replace(b"\\\r\n", b" \r\n")
            whole = CudaFile(file.path, b"__device__ void macro() {" + body + b";}")
            if next(waits(whole), None) is not None:
                yield Wait(macro.name.start, macro.end, one_of_block=False, own_block=False)


def _jumps(file: CudaFile, body: Statement) -> Iterator[Statement]:
    """Yield what a `goto` back to a label of its block repeats: as a loop, without a condition where it has none."""
    if b"goto" not in file.all_names:
        return
    labels = {text_at(file, at): at for at in range(body.first, body.last) if text_at(file, at + 1) == b":"}
    for block in walk(body):
        for at, one in enumerate(block.parts if block.kind == "block" else ()):
            inner = one.parts[0] if one.kind == "if" and len(one.parts) == 1 else one
            more = inner.parts[:-1] if inner.kind == "block" else ()
            jump = inner.parts[-1] if inner.kind == "block" and inner.parts and one.kind == "if" else inner
            if jump.keyword != b"goto":
                continue
            label = labels.get(text_at(file, jump.first + 1), -1)
            if not 0 < one.first - label < _LONGEST_WAIT or file.outline.around[label] != block.first:
                continue
            parts = tuple(part for part in block.parts[max(0, at - _LONGEST_WAIT) : at] if part.first > label)
            first = parts[0].first if parts else one.first
            repeated = Statement("block", first, one.first, None, (*parts, *more), b"{")
            yield Statement("loop", first, one.last, one.condition, (repeated,), b"do" if one.condition else b"goto")


_LONGEST_WAIT = 400
"""Tokens between a label and the jump back to it: a loop that does nothing but wait is short."""
_OF_A_DEVICE = re.compile(
    rb"\b(?:atomicCAS|atomicExch|threadIdx|blockIdx|__threadfence|__syncwarp|__nanosleep|__ld\w\w)\b"
)


def _on_device(file: CudaFile, function: Function) -> bool:
    """Tell whether a GPU runs a function: a project's own macros may say so, and what it calls does."""
    if function.on_device:
        return True
    if b"__host__" in function.qualifiers:
        return False
    return _OF_A_DEVICE.search(file.data, function.start, function.end) is not None


def _waits(file: CudaFile, loop: Statement) -> bool:
    body = loop.parts[0]
    if loop.condition is None:
        return loop.keyword == b"goto" and _breaks_by_waiting(file, body)
    first, last = loop.condition
    if [token.text for token in file.tokens[first:last]] in ([b"0"], [b"false"]):
        return False  # do { … } while (0)
    if _endless(file, loop):
        return _breaks_by_waiting(file, body)
    if loop.keyword == b"for":
        # for (; flag == 0;) is a while.
        signs = [index for index in range(first, last) if file.tokens[index].text == b";"]
        if len(signs) != 2 or signs[1] != last - 1:
            return False
        first, last = signs[0] + 1, signs[1]
    return _until_others(file, body, first, last) or _goes_on_when_told(file, body, first, last)


def _goes_on_when_told(file: CudaFile, body: Statement, first: int, last: int) -> bool:
    """Tell whether a loop goes on only where a flag of another thread says so, and sets none itself.

    A loop that sets its own flag too lets the other lanes of its wavefront go on: all of them repeat it together.
    """
    names = {token.text for token in file.tokens[first:last] if token.kind == Kind.NAME}
    told = [
        one.parts[0]
        for one in walk(body)
        if one.kind == "if" and len(one.parts) == 1 and one.condition is not None and _asks(file, *one.condition)
    ]
    inside = range(body.first, body.last - 1)
    changes = [
        index
        for index in inside
        if file.tokens[index].text in names
        and (text_at(file, index + 1) in _CHANGES or text_at(file, index - 1) in (b"++", b"--"))
    ]
    leaves = [index for index in inside if file.tokens[index].text in (b"break", b"return", b"goto")]
    guarded = all(any(part.first <= index < part.last for part in told) for index in (*changes, *leaves))
    return bool(changes) and guarded and not any(_sets(file, index) for index in inside)


def _asks(file: CudaFile, first: int, last: int) -> bool:
    """Tell whether a condition reads what another thread sets, and takes nothing."""
    names = {token.text for token in file.tokens[first:last] if token.kind == Kind.NAME}
    called = b"".join(file.data[one.head : one.end] for one in file.functions if one.name.text in names)
    if any(word in called for word in _TAKES) or names & _TAKES:
        return False
    volatile = (file.declaration_of(token.text, token.start) for token in file.tokens[first:last])
    return (
        bool(names & _READS)
        or any(word in called for word in (b"volatile", b"__ldc", b".load("))
        or any(one is not None and b"volatile" in one.qualifiers | set(one.type.split()) for one in volatile)
    )


def _sets(file: CudaFile, index: int) -> bool:
    """Tell whether a token stores to memory, or calls a function that does."""
    token = file.tokens[index]
    if token.kind != Kind.NAME or text_at(file, index + 1) != b"(":
        return _stores(file, index)
    bodies = [one for one in file.functions if one.name.text == token.text]
    if not bodies:
        return token.text.startswith(b"atomic")
    within = (at for at, one in enumerate(file.tokens) if any(body.start <= one.start < body.end for body in bodies))
    return any(_stores(file, at) or file.tokens[at].text.startswith(b"atomic") for at in within)


def _stores(file: CudaFile, index: int) -> bool:
    """Tell whether a token ends what is stored to: ``a[i] = …``, ``*p = …``; not ``int *p = …``."""
    if text_at(file, index + 1) not in _CHANGES:
        return False
    token = file.tokens[index]
    return token.text == b"]" or (
        token.kind == Kind.NAME
        and text_at(file, index - 1) == b"*"
        and text_at(file, index - 2) in (b";", b"{", b"}", b")", b"else", b"*")
    )


def _until_others(file: CudaFile, body: Statement, first: int, last: int) -> bool:
    """Tell whether a loop with a condition of its own ends by what other threads do alone."""
    names = {token.text for token in file.tokens[first:last] if token.kind == Kind.NAME}
    takes = bool(names & _TAKES)
    if _idle(file, body):
        return takes or bool(names & _READS) or _reads_memory(file, first, last) or _asks_anew(file, body)
    if _counts(file, body) and not _changed_in(file, body, names):
        return takes or _reads_memory(file, first, last)
    if takes:
        return not _changed_in(file, body, _arguments_of(file, first, last))
    # do { old = atomicCAS(lock, 0, 1); } while (old != 0): constants are taken, nothing is computed anew.
    return _retries(file, body, names)


def _endless(file: CudaFile, loop: Statement) -> bool:
    """Tell whether a loop has no condition of its own: ``while (true)``, ``for (;;)``."""
    if loop.condition is None:
        return True
    texts = [token.text for token in file.tokens[loop.condition[0] : loop.condition[1]]]
    if loop.keyword == b"for":
        signs = [at for at, text in enumerate(texts) if text == b";"]
        return len(signs) == 2 and texts[signs[0] + 1 : signs[1]] in ([], [b"true"], [b"1"])
    return texts in ([b"true"], [b"1"])


def _breaks_by_waiting(file: CudaFile, body: Statement) -> bool:
    """Tell whether an endless loop does nothing but ask, and leave when the answer is right."""
    waits = False
    for one in walk(body):
        if one.kind == "if" and len(one.parts) == 1 and one.condition is not None:
            names = {token.text for token in file.tokens[one.condition[0] : one.condition[1]]}
            waits |= bool(names & (_TAKES | _READS)) or _reads_memory(file, *one.condition)
        elif one.kind == "plain":
            names = {token.text for token in file.tokens[one.first : one.last] if token.kind == Kind.NAME}
            if one.keyword in (b"break", b"return", b"goto", b";"):
                continue
            volatile = _volatile(file, one.first, one.last)
            if not names & (_HARMLESS | _READS | _TAKES | {b"asm"}) and not volatile:
                return False
            waits |= bool(names & (_READS | _TAKES)) or volatile
        elif one.kind != "block":
            return False
    return waits


def _asks_anew(file: CudaFile, body: Statement) -> bool:
    """Tell whether an idle body reads what another thread may change, by an intrinsic or by assembly."""
    words = file.tokens[body.first : body.last]
    if any(token.text in _READS for token in words) or _volatile(file, body.first, body.last):
        return True
    text = file.data[words[0].start : words[-1].end] if words else b""
    return b"asm" in text and b"ld." in text


def _idle(file: CudaFile, body: Statement) -> bool:
    """Tell whether a loop's body does nothing but sleep, fence or read anew."""
    for one in walk(body):
        if one.kind == "block":
            continue
        if one.kind != "plain":
            return False
        words = file.tokens[one.first : one.last]
        if words and words[0].text == b";":
            continue
        names = {token.text for token in words if token.kind == Kind.NAME}
        if not names & (_HARMLESS | _READS | {b"asm"}) and not _volatile(file, one.first, one.last):
            return False
    return True


def _counts(file: CudaFile, body: Statement) -> bool:
    """Tell whether a loop's body does nothing but arithmetic on variables: its thread reads and writes nothing."""
    plain = [one for one in walk(body) if one.kind == "plain"]
    words = [token.text for one in plain for token in file.tokens[one.first : one.last]]
    leaves = {b"break", b"return", b"goto", b"continue", b"(", b"[", b"->", b".", b"*"}
    return bool(plain) and all(one.kind in {"plain", "block"} for one in walk(body)) and leaves.isdisjoint(words)


def _volatile(file: CudaFile, first: int, last: int) -> bool:
    """Tell whether something volatile is read into a variable, and nothing else is done."""
    signs = [index for index in range(first, last) if file.tokens[index].text in _CHANGES]
    if len(signs) != 1 or file.tokens[signs[0]].text != b"=" or text_at(file, signs[0] - 1) == b"]":
        return False
    for index in range(signs[0], last):
        token = file.tokens[index]
        if token.text == b"volatile":
            return True
        declared = file.declaration_of(token.text, token.start) if token.kind == Kind.NAME else None
        if declared is not None and b"volatile" in declared.qualifiers | set(declared.type.split()):
            return True
    return False


def _reads_memory(file: CudaFile, first: int, last: int) -> bool:
    """Tell whether a condition reads what another thread may change."""
    for index in range(first, last):
        token = file.tokens[index]
        if token.text == b"[" or (token.text == b"*" and _dereferences(file, index, first)):
            return True
        if token.kind == Kind.NAME:
            declared = file.declaration_of(token.text, token.start)
            if declared is not None and b"volatile" in declared.qualifiers | set(declared.type.split()):
                return True
    return _asks_a_lock(file, first, last)


def _asks_a_lock(file: CudaFile, first: int, last: int) -> bool:
    """Tell whether a condition calls a function that takes a lock or reads a flag, as far as that can be seen."""
    for index in range(first, last - 1):
        name = file.tokens[index]
        if name.kind != Kind.NAME or text_at(file, index + 1) != b"(":
            continue
        bodies = [one for one in file.functions if one.name.text == name.text]
        inside = b"".join(file.data[one.head : one.end] for one in bodies)
        if any(word in inside for word in (b"atomic", b"volatile", b"asm", b"__ldc", b".load(")) or (
            not bodies and _LOCKS.search(name.text)
        ):
            return True
    return False


def _dereferences(file: CudaFile, index: int, first: int) -> bool:
    return index == first or file.tokens[index - 1].text in (b"(", b"!", b"==", b"!=", b"<", b">", b"&&", b"||", b"=")


def _arguments_of(file: CudaFile, first: int, last: int) -> set[bytes]:
    return {token.text for token in file.tokens[first:last] if token.kind == Kind.NAME} - _TAKES


def _changed_in(file: CudaFile, body: Statement, names: set[bytes]) -> bool:
    for index in range(body.first, body.last - 1):
        around = (text_at(file, index - 1), text_at(file, index + 1))
        if file.tokens[index].text in names and (around[1] in _CHANGES or around[0] in (b"++", b"--")):
            return True
    return False


def _retries(file: CudaFile, body: Statement, names: set[bytes]) -> bool:
    """Tell whether a body only takes a lock, by constants, into what the condition asks."""
    plain = [one for one in walk(body) if one.kind == "plain"]
    if len(plain) != 1 or any(one.kind in {"if", "loop", "switch"} for one in walk(body)):
        return False
    words = file.tokens[plain[0].first : plain[0].last]
    texts = [token.text for token in words]
    called = next((index for index, text in enumerate(texts) if text in (b"atomicCAS", b"atomicExch")), -1)
    if called < 0 or not names & set(texts[:called]):
        return False
    numbers = [token for token in words[called:] if token.kind == Kind.NUMBER]
    return len(numbers) >= (2 if texts[called] == b"atomicCAS" else 1)


def _of_own_block(file: CudaFile, body: Statement, branch: Statement, loop: Statement) -> bool:
    """Tell whether a loop waits for shared memory, or for what the other threads of the block write in that kernel."""
    tokens = file.tokens
    first, last = loop.first, max(loop.last, loop.condition[1] if loop.condition else 0)
    for index in range(first, last):
        token = tokens[index]
        declared = file.declaration_of(token.text, token.start) if token.kind == Kind.NAME else None
        if declared is None:
            continue
        if b"__shared__" in declared.qualifiers | set(declared.type.split()):
            return True
        end = file.partner[index + 1] + 1 if text_at(file, index + 1) == b"[" and index + 1 in file.partner else 0
        if not end or b"blockIdx" not in file.data[token.start : tokens[end - 1].end]:
            continue
        place = [one.text for one in tokens[index:end]]
        for other in file.names(token.text):
            outside = body.first <= other < body.last and not branch.parts[0].first <= other < branch.parts[0].last
            same = [one.text for one in tokens[other : other + len(place)]] == place
            if outside and same and text_at(file, other + len(place)) in _CHANGES:
                return True
    return False


def _first_thread(file: CudaFile, body: Statement, loop: Statement) -> Statement | None:
    """Return the branch around a loop that lets only the first thread of a block in, whose threads are in a row."""
    rows = _several_rows(file, body)
    for one in walk(body):
        if one.kind == "if" and one.condition is not None and one.parts[0].first <= loop.first < one.parts[0].last:
            texts = b"".join(token.text for token in file.tokens[one.condition[0] : one.condition[1]])
            alone = not rows or b"threadIdx.y==0" in texts
            if alone and b"||" not in texts and (b"threadIdx.x==0" in texts or texts == b"!threadIdx.x"):
                return one
    return None


def _several_rows(file: CudaFile, body: Statement) -> bool:
    """Tell whether a kernel's blocks have more than one dimension: it asks for the second one."""
    for index in range(body.first, body.last):
        if file.tokens[index].text in (b"y", b"z") and text_at(file, index - 2) in (b"threadIdx", b"blockDim"):
            return True
    return False
