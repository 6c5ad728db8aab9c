"""What the tokens of a loop ask of other threads: what they read that others change, and the locks that they take."""

from __future__ import annotations

import re

from rocmend.port.cuda.declarations import Declaration
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.lexer import Kind
from rocmend.port.wave.statements import Statement
from rocmend.port.wave.tokens import text_at

__all__ = ["CHANGES", "MEMBER", "READS", "TAKES", "Asking"]

TAKES = frozenset((b"atomicCAS", b"atomicExch", b"atomicOr", b"atomicAnd", b"atomicMax"))
READS = frozenset(
    b"atomicAdd atomicOr atomicLoad load __ldcg __ldcv ld_acquire test_and_set __atomic_load_n __atomic_load".split()
)
CHANGES = frozenset((b"=", b"+=", b"-=", b"*=", b"/=", b"%=", b"&=", b"|=", b"^=", b"<<=", b">>=", b"++", b"--"))
_TAKING_MEMBERS = frozenset(b"exchange fetch_or fetch_and test_and_set".split())
_COMPARING_MEMBERS = frozenset(b"compare_exchange_weak compare_exchange_strong".split())
_TRIES = re.compile(rb"\w*try_?(?:lock|acquire)", re.IGNORECASE)
_READING = (b"volatile", b"__ldc", b".load(", b"ld.")
MEMBER = (b".", b"->")


class Asking:
    """A loop's body, and what it asks.

    Args:
        file: The source.
        body: The loop's body.
    """

    def __init__(self, file: CudaFile, body: Statement) -> None:
        self.file = file
        self.body = body

    def names(self, first: int, last: int) -> set[bytes]:
        """Return the names between two indices; members that take a lock as the atomic function that does."""
        found = {token.text for token in self.file.tokens[first:last] if token.kind == Kind.NAME}
        if any(self.takes_at(index) for index in range(first, last)):
            found.add(b"atomicExch")
        again = {
            text_at(self.file, at + 2) for at in range(first, last) if text_at(self.file, at) in _COMPARING_MEMBERS
        }
        return found - again  # what was expected is said anew

    def takes_at(self, index: int) -> bool:
        """Tell whether a lock is taken by the call at an index, as far as its name says."""
        name = self.file.tokens[index].text
        if name in TAKES or text_at(self.file, index + 1) != b"(":
            return name in TAKES
        if text_at(self.file, index - 1) in MEMBER and name in _COMPARING_MEMBERS:
            # What was seen is expected next, so that it succeeds, where nothing else is.
            expected = self.file.tokens[index + 2]
            declared = self.file.declaration_of(expected.text, expected.start)
            return self._is_set(expected.text) or (declared is not None and self.inside(declared.at))
        return bool(_TRIES.fullmatch(name)) or (
            text_at(self.file, index - 1) in MEMBER and name in _TAKING_MEMBERS and self.of_memory(index - 2)
        )

    def inside(self, index: int) -> bool:
        """Tell whether an index stands in the body."""
        return self.body.first <= index < self.body.last

    def _is_set(self, name: bytes) -> bool:
        """Tell whether the loop's body sets a variable to what does not change in it."""
        return any(
            self.inside(at) and text_at(self.file, at + 1) == b"=" and self.file.tokens[at + 2].kind == Kind.NUMBER
            for at in self.file.names(name)
        )

    def of_memory(self, index: int) -> bool:
        """Tell whether a variable is one that other threads may change: volatile, atomic, or of the device."""
        token = self.file.tokens[index]
        member = text_at(self.file, index + 2) if text_at(self.file, index + 1) in MEMBER else b""
        if member in _COMPARING_MEMBERS and not self.takes_at(index + 2):
            return False
        declared = self.file.declaration_of(token.text, token.start) if token.kind == Kind.NAME else None
        return declared is not None and _others_change(declared)

    def changes(self, index: int) -> bool:
        """Tell whether the variable at an index is assigned to."""
        return text_at(self.file, index + 1) in CHANGES or text_at(self.file, index - 1) in (b"++", b"--")

    def asks(self, first: int, last: int) -> bool:
        """Tell whether an expression reads what another thread sets, and takes nothing."""
        names = self.names(first, last)
        called = b"".join(self.file.data[one.head : one.end] for one in self.file.functions if one.name.text in names)
        if any(word in called for word in TAKES) or names & TAKES:
            return False
        return (
            bool(names & READS)
            or any(word in called for word in _READING)
            or any(self.of_memory(index) for index in range(first, last))
        )

    def sets(self, index: int) -> bool:
        """Tell whether a token stores to memory, or calls a function that does."""
        token = self.file.tokens[index]
        if token.kind != Kind.NAME or text_at(self.file, index + 1) != b"(":
            return self._stores(index)
        bodies = [one for one in self.file.functions if one.name.text == token.text]
        if not bodies:
            return token.text.startswith(b"atomic")
        spans = [(self.file.token_at(one.start), self.file.token_at(one.end)) for one in bodies]
        within = (at for first, last in spans for at in range(first, last))
        return any(self._stores(at) or self.file.tokens[at].text.startswith(b"atomic") for at in within)

    def _stores(self, index: int) -> bool:
        """Tell whether a token ends what is stored to: ``a[i] = …``, ``*p = …``; not ``int *p = …``."""
        if text_at(self.file, index + 1) not in CHANGES:
            return False
        token = self.file.tokens[index]
        return token.text == b"]" or (
            token.kind == Kind.NAME
            and text_at(self.file, index - 1) == b"*"
            and text_at(self.file, index - 2) in (b";", b"{", b"}", b")", b"else", b"*")
        )

    def changed(self, names: set[bytes], within: Statement | None = None) -> bool:
        """Tell whether the body, or one statement of it, assigns to a variable of these names."""
        one = within or self.body
        inside = range(one.first, one.last - 1)
        return any(self.file.tokens[index].text in names and self.changes(index) for index in inside)


def _others_change(declared: Declaration) -> bool:
    """Tell whether other threads may change a variable: it says so, or is one variable of the device or the block."""
    words = declared.qualifiers | set(declared.type.split())
    return (
        b"volatile" in words
        or b"atomic" in declared.type
        or (bool(words & {b"__device__", b"__shared__"}) and not declared.extents and b"const" not in words)
    )
