"""Who has proven what on which GPU: records of many machines, counted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

import msgspec

from rocmend.core.evidence import Evidence
from rocmend.core.verdict import Verdict

SILENT = frozenset({Verdict.SKIPPED, Verdict.INFRA})
"""Verdicts that prove nothing."""


class Proof(msgspec.Struct, frozen=True):
    """What records say of a subject on a target.

    Attributes:
        verdicts: Verdict to number of machines whose newest record says it.
        machines: Machines; records without a snapshot count as one for each place that they come from.
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


def proven(records: Iterable[tuple[Evidence, str]]) -> Proven:
    """Count records.

    Args:
        records: Each with the place that it comes from: a file, or nothing for this store.
    """
    newest: dict[tuple[str, str, str, str], Evidence] = {}
    count = 0
    for evidence, source in records:
        if evidence.verdict in SILENT or not evidence.gfx_target:
            continue
        count += 1
        machine = evidence.machine or source
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
    told = [record for record in records if record.kind != "bench" or record.verdict is not Verdict.UNSUPPORTED]
    others = Counter(record.verdict.value for record in told or records if record.verdict is not Verdict.PASS)
    return others.most_common(1)[0][0] if others else Verdict.PASS.value
