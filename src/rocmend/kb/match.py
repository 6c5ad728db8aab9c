"""Whether an entry applies to a machine."""

from __future__ import annotations

import msgspec

from rocmend.core.records import Fact, Gap, Remedy
from rocmend.kb.entry import Entry
from rocmend.kb.predicate import Outcome, Predicate, compile_predicate
from rocmend.kb.reading import NOT_COLLECTED
from rocmend.kb.template import fill
from rocmend.machine.facts import Machine

GPU_SUBJECT = "gpu"


class Match(msgspec.Struct, frozen=True):
    """What an entry says of a machine, or of one of its GPUs.

    Attributes:
        applies: True, False, or None where the facts do not suffice to tell.
        subject: ``gpu.0`` where the entry is matched against each GPU, else the entry's subject.
        gpu: Index of the GPU, or None.
        title: The entry's title with this machine's values filled in (as written where it does not apply).
        in_scope: Whether the scope allows it; an entry that is out of scope says nothing of the machine.
        evidence: The facts that were read.
        missing: Where unknown: the facts that were wanted, and why they are not known.
        notes: Where unknown: operations that made no sense on the values found.
    """

    applies: bool | None
    subject: str
    gpu: int | None
    title: str
    in_scope: bool = True
    evidence: tuple[Fact, ...] = ()
    missing: tuple[Gap, ...] = ()
    notes: tuple[str, ...] = ()


class Matcher:
    """Matches entries against one machine; what they share is worked out once.

    An entry applies where its predicate and its scope's ``gfx`` and ``workload`` hold. The rest of the scope (``rocm``,
    ``kernel``, ``package``, ``os``) tells a reader where the claim holds; what it means for a machine is for ``when``
    to say.

    * An entry with the subject ``gpu``, or whose predicate reads ``gpu.x``, is matched against each GPU. One whose
      target is neither in ``scope.gfx`` nor of a generic class in it does not match.
    * Any other entry with a ``scope.gfx`` needs one such GPU in the machine.
    * ``scope.workload`` counts where ``ask.workload`` is known and not null; a person who names no workload sees all.

    Args:
        machine: The facts.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.gpus = machine.indices("gpu")
        self._workload = machine.fact("ask.workload")

    def match(self, entry: Entry) -> list[Match]:
        """Return one match a GPU, or one for the machine; none where there is no GPU to match against.

        Raises:
            PredicateError: The entry's predicate is malformed.
        """
        predicate = compile_predicate(entry.when) if entry.when.strip() else None
        if entry.subject != GPU_SUBJECT and not (predicate is not None and predicate.reads_gpu):
            return [self._match(entry, predicate, None)]
        if self.gpus:
            return [self._match(entry, predicate, gpu) for gpu in self.gpus]
        return [] if self._has_no_gpu() else [self._match(entry, predicate, None)]

    def _match(self, entry: Entry, predicate: Predicate | None, gpu: int | None) -> Match:
        subject = f"gpu.{gpu}" if entry.subject == GPU_SUBJECT and gpu is not None else entry.subject
        parts: list[Outcome] = []
        for part in (self._workload_scope(entry), self._gfx_scope(entry, gpu)):
            if part.value is False:
                return Match(False, subject, gpu, entry.title, in_scope=False, evidence=part.read)
            parts.append(part)
        if predicate is not None:
            outcome = predicate.evaluate(self.machine, gpu)
            if outcome.value is False:
                return Match(False, subject, gpu, entry.title, evidence=outcome.read)
            parts.append(outcome)
        unknown = any(part.value is None for part in parts)
        return Match(
            applies=None if unknown else True,
            subject=subject,
            gpu=gpu,
            title=fill(entry.title, self.machine, gpu),
            evidence=tuple({fact.key: fact for part in reversed(parts) for fact in part.read}.values()),
            missing=tuple({gap.key: gap for part in parts for gap in part.missing}.values()),
            notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        )

    def _has_no_gpu(self) -> bool:
        return bool(self.machine.value("gpus.count") == 0)

    def _workload_scope(self, entry: Entry) -> Outcome:
        fact = self._workload
        if not entry.scope.workload or fact is None or fact.value is None:
            return Outcome(value=True, read=())
        return Outcome(value=fact.value in entry.scope.workload, read=(fact,))

    def _gfx_scope(self, entry: Entry, gpu: int | None) -> Outcome:
        wanted = entry.scope.gfx
        if not wanted:
            return Outcome(value=True, read=())
        if gpu is not None:
            return self._gpu_in_scope(wanted, gpu)
        if not self.gpus:
            if self._has_no_gpu():
                return Outcome(value=False, read=())
            return Outcome(value=None, read=(), missing=(self._gap("gpu.*.gfx_target"),))
        outcomes = [self._gpu_in_scope(wanted, index) for index in self.gpus]
        inside = next((outcome for outcome in outcomes if outcome.value), None)
        return inside or next((outcome for outcome in outcomes if outcome.value is None), outcomes[0])

    def _gpu_in_scope(self, wanted: tuple[str, ...], gpu: int) -> Outcome:
        fact = self.machine.fact(f"gpu.{gpu}.gfx_target")
        if fact is None:
            return Outcome(value=None, read=(), missing=(self._gap(f"gpu.{gpu}.gfx_target"),))
        if fact.value in wanted:
            return Outcome(value=True, read=(fact,))
        generic = [name for name in wanted if name.endswith("-generic")]
        inside = bool(generic) and self._generic_class(gpu, fact.value) in generic
        return Outcome(value=inside, read=(fact,))

    def _generic_class(self, gpu: int, target: object) -> object:
        fact = self.machine.fact(f"gpu.{gpu}.generic_class")
        if fact is not None:
            return fact.value
        from rocmend.core.gfx import find  # read only where a generic class is asked for

        known = find(target) if isinstance(target, str) else None
        return None if known is None else known.generic_class

    def _gap(self, key: str) -> Gap:
        return self.machine.gap(key) or Gap(key, NOT_COLLECTED)


def match(entry: Entry, machine: Machine) -> list[Match]:
    """Return what an entry says of a machine; see Matcher, which is faster for many entries.

    Raises:
        PredicateError: The entry's predicate is malformed.
    """
    return Matcher(machine).match(entry)


def helps(remedy: Remedy, machine: Machine, gpu: int | None) -> bool:
    """Whether a remedy's condition holds, for some GPU where none is given; one that cannot be decided does.

    Raises:
        PredicateError: The condition is malformed.
    """
    if not remedy.when:
        return True
    predicate = compile_predicate(remedy.when)
    gpus: list[int | None] = [gpu]
    if gpu is None and predicate.reads_gpu:
        gpus = [*machine.indices("gpu")] or [None]
    return any(predicate.evaluate(machine, index).value is not False for index in gpus)
