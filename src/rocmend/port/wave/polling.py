"""Whether a loop ends by nothing but what other threads do."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.lexer import Kind
from rocmend.port.cuda.structure import call_at
from rocmend.port.wave.asking import CHANGES, MEMBER, READS, TAKES, Asking
from rocmend.port.wave.statements import Statement
from rocmend.port.wave.tokens import text_at

__all__ = ["ends_by_others"]

_CLOCKS = frozenset(b"clock64 clock wall_clock64 __clock64 __globaltimer globaltimer __nanosleep_clock".split())
_HARMLESS = (
    frozenset(b"__nanosleep __threadfence __threadfence_block __threadfence_system __syncwarp".split()) | _CLOCKS
)
_ENDS_ALL = frozenset(b"__trap trap abort __builtin_trap".split())
_LOCKS = re.compile(rb"(?:(?<=atomic)|(?<=sync)|(?<![bc]))lock|acquire|wait|ready|flag|volatile", re.IGNORECASE)
_RELEASES = re.compile(rb"unlock|release", re.IGNORECASE)
_NOT_ALONE = frozenset((b"break", b"return", b"goto", b"continue", b"(", b"[", b"->", b".", b"*"))
_TYPES = frozenset(b"int unsigned volatile const reinterpret_cast static_cast const_cast".split())


def ends_by_others(file: CudaFile, loop: Statement) -> bool:
    """Tell whether a loop only waits: it polls until another thread changes what it asks for."""
    return _Loop(file, loop).waits()


class _Loop(Asking):
    def __init__(self, file: CudaFile, loop: Statement) -> None:
        super().__init__(file, loop.parts[0])
        self.loop = loop
        self.times = self._times()
        self.parts = list(self._unguarded(self.body))

    def waits(self) -> bool:
        if self.loop.condition is None:
            return self.loop.keyword == b"goto" and self._breaks_by_waiting()
        first, last = self.loop.condition
        if [token.text for token in self.file.tokens[first:last]] in ([b"0"], [b"false"]):
            return False  # do { … } while (0)
        if self._endless(first, last):
            return self._breaks_by_waiting() or self._keeps_a_lock(set())
        if self.loop.keyword == b"for":
            # for (; flag == 0;) is a while.
            signs = [index for index in range(first, last) if self.file.tokens[index].text == b";"]
            if len(signs) != 2 or signs[1] != last - 1:
                return False
            first, last = signs[0] + 1, signs[1]
        return (
            self._until_others(first, last)
            or self._goes_on_when_told(first, last)
            or self._keeps_a_lock(self.names(first, last))
        )

    def _times(self) -> set[bytes]:
        """Return the variables that hold what a clock said."""
        found: set[bytes] = set()
        for index in self.file.names(*_CLOCKS):
            start = self.file.outline.statement_start[index] + 1
            signs = [at for at in range(start, index) if self.file.tokens[at].text == b"="]
            found.update(self.file.tokens[at - 1].text for at in signs)
        return found

    def _unguarded(self, statement: Statement) -> Iterator[Statement]:
        """Yield what a body does, outer statements first, without what only ends a wait that takes too long."""
        if statement.kind == "if" and len(statement.parts) == 1 and statement.condition is not None:
            last = statement.parts[0]
            while last.kind == "block" and last.parts:
                last = last.parts[-1]
            if (
                self.names(*statement.condition) & (_CLOCKS | self.times)
                or self.names(last.first, last.last) & _ENDS_ALL
            ):
                return
        yield statement
        for part in statement.parts:
            yield from self._unguarded(part)

    def _goes_on_when_told(self, first: int, last: int) -> bool:
        """Tell whether a loop goes on only where a flag of another thread says so, and sets none itself.

        A loop that sets its own flag too lets the other lanes of its wavefront go on: all of them repeat it together.
        """
        names = self.names(first, last)
        told = [
            one.parts[0]
            for one in self.parts
            if one.kind == "if" and len(one.parts) == 1 and one.condition is not None and self.asks(*one.condition)
        ]
        inside = range(self.body.first, self.body.last - 1)
        changes = [index for index in inside if self.file.tokens[index].text in names and self.changes(index)]
        leaves = [index for index in inside if self.file.tokens[index].text in (b"break", b"return", b"goto")]
        guarded = all(any(part.first <= index < part.last for part in told) for index in (*changes, *leaves))
        return bool(changes) and guarded and not any(self.sets(index) for index in inside)

    def _until_others(self, first: int, last: int) -> bool:
        """Tell whether a loop with a condition of its own ends by what other threads do alone."""
        names = self.names(first, last)
        takes = bool(names & TAKES)
        if self._idle(names):
            return takes or bool(names & READS) or self._reads_memory(first, last) or self._asks_anew()
        if takes:
            return not self.changed(names - TAKES)
        # do { old = atomicCAS(lock, 0, 1); } while (old != 0): constants are taken, nothing is computed anew.
        return self._retries(names)

    def _endless(self, first: int, last: int) -> bool:
        """Tell whether a loop has no condition of its own: ``while (true)``, ``for (;;)``."""
        texts = [token.text for token in self.file.tokens[first:last]]
        if self.loop.keyword == b"for":
            signs = [at for at, text in enumerate(texts) if text == b";"]
            return len(signs) == 2 and texts[signs[0] + 1 : signs[1]] in ([], [b"true"], [b"1"])
        return texts in ([b"true"], [b"1"])

    def _breaks_by_waiting(self) -> bool:
        """Tell whether an endless loop does nothing but ask, and leave when the answer is right."""
        waits = False
        asked: set[bytes] = set()
        for one in self.parts:
            if one.kind == "if" and len(one.parts) == 1 and one.condition is not None:
                names = self.names(*one.condition)
                asked |= names
                waits |= bool(names & (TAKES | READS)) or self._reads_memory(*one.condition)
            elif one.kind == "plain":
                if one.keyword in (b"break", b"return", b"goto", b";") or self._counts(one):
                    continue
                names = self.names(one.first, one.last)
                reads = self._reads_anew(one)
                if not names & (_HARMLESS | READS | TAKES | {b"asm"}) and not reads:
                    return False
                asked |= names
                waits |= bool(names & (READS | TAKES)) or reads
            elif one.kind != "block":
                return False
        counted = [one for one in self.parts if one.kind == "plain" and self._counts(one)]
        return waits and not any(self.changed(asked, one) for one in counted)

    def _asks_anew(self) -> bool:
        """Tell whether an idle body reads what another thread may change, by an intrinsic or by assembly."""
        words = self.file.tokens[self.body.first : self.body.last]
        if any(token.text in READS for token in words) or any(map(self._reads_anew, self.parts)):
            return True
        text = self.file.data[words[0].start : words[-1].end] if words else b""
        return b"asm" in text and b"ld." in text

    def _idle(self, names: set[bytes]) -> bool:
        """Tell whether a body does nothing but sleep, fence, read anew and count what the condition does not ask."""
        for one in self.parts:
            if one.kind == "block":
                continue
            if one.kind != "plain":
                return False
            words = self.file.tokens[one.first : one.last]
            if not words or words[0].text == b";" or (self._counts(one) and not self.changed(names, one)):
                continue
            own = {token.text for token in words if token.kind == Kind.NAME}
            if not own & (_HARMLESS | READS | {b"asm"}) and not self._reads_anew(one):
                return False
        return True

    def _counts(self, one: Statement) -> bool:
        """Tell whether a statement is arithmetic on variables: its thread reads and writes nothing."""
        return _NOT_ALONE.isdisjoint(token.text for token in self.file.tokens[one.first : one.last])

    def _reads_anew(self, one: Statement) -> bool:
        """Tell whether a statement reads into a variable what others change, and does nothing else."""
        signs = [index for index in range(one.first, one.last) if self.file.tokens[index].text in CHANGES]
        if len(signs) != 1 or text_at(self.file, signs[0]) != b"=" or text_at(self.file, signs[0] - 1) == b"]":
            return False
        inside = range(signs[0], one.last)
        if any(self.file.tokens[index].text == b"volatile" or self.of_memory(index) for index in inside):
            return True
        asks = self.asks(signs[0], one.last) or self._calls_a_lock(signs[0], one.last, known=False)
        return asks and not any(self.sets(index) for index in inside)

    def _reads_memory(self, first: int, last: int) -> bool:
        """Tell whether a condition reads what another thread may change."""
        for index in range(first, last):
            token = self.file.tokens[index]
            if token.text == b"[" or (token.text == b"*" and self._dereferences(index, first)):
                return True
            if self.of_memory(index):
                return True
        return self._calls_a_lock(first, last, known=True)

    def _calls_a_lock(self, first: int, last: int, *, known: bool) -> bool:
        """Tell whether a function is called that takes a lock or reads a flag, as far as that can be seen.

        Args:
            first: Index of an expression's first token.
            last: Index after its last one.
            known: Whether functions that the file has are looked into, too; else names alone.
        """
        for index in range(first, last - 1):
            name = self.file.tokens[index]
            if name.kind != Kind.NAME or text_at(self.file, index + 1) != b"(":
                continue
            bodies = [one for one in self.file.functions if one.name.text == name.text]
            inside = b"".join(self.file.data[one.head : one.end] for one in bodies) if known else b""
            if any(word in inside for word in (b"atomic", b"volatile", b"asm", b"__ldc", b".load(")) or (
                not bodies and _LOCKS.search(name.text)
            ):
                return True
        return False

    def _dereferences(self, index: int, first: int) -> bool:
        before = (b"(", b"!", b"==", b"!=", b"<", b">", b"&&", b"||", b"=")
        return index == first or text_at(self.file, index - 1) in before

    def _retries(self, names: set[bytes]) -> bool:
        """Tell whether a body only takes a lock, by constants, into what the condition asks."""
        plain = [one for one in self.parts if one.kind == "plain"]
        if len(plain) != 1 or any(one.kind in {"if", "loop", "switch"} for one in self.parts):
            return False
        words = self.file.tokens[plain[0].first : plain[0].last]
        texts = [token.text for token in words]
        called = next((index for index, text in enumerate(texts) if text in (b"atomicCAS", b"atomicExch")), -1)
        if called < 0 or not names & set(texts[:called]):
            return False
        numbers = [token for token in words[called:] if token.kind == Kind.NUMBER]
        return len(numbers) >= (2 if texts[called] == b"atomicCAS" else 1)

    def _keeps_a_lock(self, names: set[bytes]) -> bool:
        """Tell whether a loop is left only by a lane that took a lock, which it does not release in the loop.

        Args:
            names: What the loop's condition asks.
        """
        asked = [one for one in self.parts if one.kind == "if" and one.condition is not None]
        takes = [at for one in asked if one.condition for at in range(*one.condition) if self.takes_at(at)]
        results: set[bytes] = set()
        for one in self.parts:
            signs = [at for at in range(one.first, one.last) if text_at(self.file, at) == b"="]
            if one.kind == "plain" and len(signs) == 1:
                given = [at for at in range(signs[0], one.last) if self.takes_at(at)]
                takes += given
                results |= {text_at(self.file, signs[0] - 1)} if given else set()
        took = [
            part
            for one in asked
            if one.condition is not None
            if any(one.condition[0] <= at < one.condition[1] for at in takes) or self.names(*one.condition) & results
            for part in one.parts
        ]
        exits = list(self._exits(names))
        if not takes or not exits or not any(all(part.first <= at < part.last for at in exits) for part in took):
            return False
        return not any(self._may_succeed_alone(at) or self._released(at, takes) for at in takes)

    def _exits(self, names: set[bytes]) -> Iterator[int]:
        """Yield where the loop is left, or what its condition asks is changed."""
        for one in self.parts:
            if one.kind == "plain":
                if one.keyword in (b"break", b"return", b"goto"):
                    yield one.first
                yield from (
                    index
                    for index in range(one.first, one.last)
                    if self.file.tokens[index].text in names and self.changes(index)
                )

    def _lock(self, take: int) -> tuple[bytes, set[bytes]]:
        """Return the name of the lock that a call takes, and all names that say which it is, and what is expected."""
        tokens = self.file.tokens
        if text_at(self.file, take - 1) in MEMBER:
            return tokens[take - 2].text, {tokens[take - 2].text}
        call = call_at(tokens, self.file.partner, take)
        if call is None or not call.args:
            return b"", set()
        base, depth = b"", 0
        for token in tokens[call.args[0].first : call.args[0].last]:
            depth += (token.text == b"[") - (token.text == b"]")
            if depth == 0 and token.kind == Kind.NAME and token.text not in _TYPES:
                base = token.text
        known = call.args[: 2 if tokens[take].text == b"atomicCAS" else 1]
        names = {token.text for one in known for token in tokens[one.first : one.last] if token.kind == Kind.NAME}
        return base, names

    def _may_succeed_alone(self, take: int) -> bool:
        """Tell whether another lock is tried next time, or another value expected."""
        base, names = self._lock(take)
        declared = (self.file.declaration_of(name, self.file.tokens[take].start) for name in names)
        return not base or self.changed(names) or any(one is not None and self.inside(one.at) for one in declared)

    def _released(self, take: int, takes: list[int]) -> bool:
        """Tell whether the loop gives the lock, or anything under its name, to an assignment or another call."""
        base, _ = self._lock(take)
        within = [(at, self.file.partner.get(at + 1, at)) for at in takes]
        for index in range(self.body.first, self.body.last):
            token = self.file.tokens[index]
            called = token.kind == Kind.NAME and text_at(self.file, index + 1) == b"("
            if called and index not in takes:
                bodies = (one for one in self.file.functions if one.name.text == token.text)
                if _RELEASES.search(token.text) or any(base in self.file.data[one.start : one.end] for one in bodies):
                    return True
            if token.text != base or any(first < index < last or index == first - 2 for first, last in within):
                continue
            after = index + 1
            while text_at(self.file, after) == b"[" and after in self.file.partner:
                after = self.file.partner[after] + 1
            around = self.file.outline.around[index]
            given = text_at(self.file, around) == b"(" and self.file.tokens[around - 1].kind == Kind.NAME
            head = given and text_at(self.file, around - 1) in (b"if", b"while", b"for", b"switch")
            if text_at(self.file, after) in CHANGES or text_at(self.file, after) in MEMBER or (given and not head):
                return True
        return False
