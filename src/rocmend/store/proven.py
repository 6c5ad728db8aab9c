"""Who has proven what on which GPU: records of many machines, counted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from rocmend.core.evidence import Evidence, identity_of
from rocmend.core.verdict import Verdict

if TYPE_CHECKING:
    from rocmend.machine.facts import Machine

SILENT = frozenset({Verdict.SKIPPED, Verdict.INFRA})
"""Verdicts that prove nothing."""
_YARDSTICKS = {"bench kernels": frozenset({"torch", "torch-compile"})}
"""Settings of a benchmark that others are held against: that they ran proves nothing about its subject."""
_HARDWARE = ("host.vendor", "host.product", "cpu.model", "cpu.count")
_HARDWARE_GPU = ("gfx_target", "name", "device_id", "kfd_memory_bytes")


class Proof(msgspec.Struct, frozen=True):
    """What records say of a subject on a target.

    Attributes:
        verdicts: Verdict to number of machines whose newest record says it.
        machines: Machines, as ``proven`` was told them.
        newest: When the newest record was made (ISO, UTC).
    """

    verdicts: dict[str, int]
    machines: int
    newest: str

    @property
    def passed(self) -> int:
        """Machines on which it passed."""
        return self.verdicts.get(Verdict.PASS.value, 0)


class Proven(msgspec.Struct, frozen=True):
    """All of it.

    Attributes:
        targets: The GPUs that some record is of, in order.
        subjects: Kind and subject to target to what is proven.
        records: How many records were counted.
        machines: On how many machines in all.
    """

    targets: tuple[str, ...]
    subjects: dict[str, dict[str, Proof]]
    records: int
    machines: int


def subject_of(evidence: Evidence) -> str:
    """Return what a record proves something about: ``probe matmul``; the dtype, setting or shape is left out."""
    name = evidence.subject.partition(" @ ")[0]
    parts = name.split("/") if evidence.kind in {"bench", "calibration"} else name.split(":")
    return f"{evidence.kind} {parts[0]}"


def hardware_of(machine: Machine) -> str:
    """Return what identifies a machine by its hardware: its model, its processor and its GPUs.

    Packages, drivers and free memory change on a machine, so a snapshot does not identify it. Serial numbers are not
    kept, so machines of the same hardware count as one: a matrix never says more machines than there are.
    """
    gpus = sorted(
        [str(machine.value(f"gpu.{index}.{name}", "")) for name in _HARDWARE_GPU] for index in machine.indices("gpu")
    )
    return identity_of({**{name: str(machine.value(name, "")) for name in _HARDWARE}, "gpus": gpus})


def proven(records: Iterable[tuple[Evidence, str]]) -> Proven:
    """Count records.

    Args:
        records: Each with the machine that it is of: its hardware; where it has no snapshot, the place that it comes
            from (a file, or nothing for this store).
    """
    newest: dict[tuple[str, str, str, str], Evidence] = {}
    count = 0
    for evidence, machine in records:
        if evidence.verdict in SILENT or not evidence.gfx_target:
            continue
        if evidence.settings.get("setting") in _YARDSTICKS.get(subject_of(evidence), ()):
            continue
        count += 1
        # each dtype, shape and setting by itself: what one proves, another does not
        key = (subject_of(evidence), evidence.gfx_target, machine, evidence.subject)
        if key not in newest or newest[key].started_at < evidence.started_at:
            newest[key] = evidence
    by_machine: dict[tuple[str, str], dict[str, list[Evidence]]] = defaultdict(lambda: defaultdict(list))
    for (subject, target, machine, _), evidence in newest.items():
        by_machine[subject, target][machine].append(evidence)
    subjects: dict[str, dict[str, Proof]] = defaultdict(dict)
    for (subject, target), machines in sorted(by_machine.items()):
        worst = Counter(_worst(some) for some in machines.values())
        last = max(evidence.started_at for some in machines.values() for evidence in some)
        subjects[subject][target] = Proof(dict(worst), len(machines), last)
    targets = tuple(sorted({target for _, target in by_machine}, key=lambda name: (not name.startswith("gfx"), name)))
    return Proven(targets, dict(subjects), count, len({machine for _, _, machine, _ in newest}))


def _worst(records: list[Evidence]) -> str:
    """Return ``pass`` where all passed, else the verdict that is most frequent among the others.

    A setting of a benchmark that a GPU has not is no failure where others were measured.
    """
    whole = records[0].kind != "bench" or subject_of(records[0]) in _YARDSTICKS
    told = [record for record in records if whole or record.verdict is not Verdict.UNSUPPORTED]
    others = Counter(record.verdict.value for record in told or records if record.verdict is not Verdict.PASS)
    return others.most_common(1)[0][0] if others else Verdict.PASS.value
