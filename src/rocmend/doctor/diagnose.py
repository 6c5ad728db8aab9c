"""Matching what is known against a machine. Nothing is ever changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from rocmend.core.records import CollectorStatus, Fact, Finding, Gap, Remedy, Severity
from rocmend.core.suggest import unknown
from rocmend.doctor.plan import make_plan
from rocmend.doctor.records import Diagnosis, GpuSummary, Missing, PythonSummary, Undecided
from rocmend.kb.action import Action, action_name, on_machine, serves
from rocmend.kb.entry import Entry, Status
from rocmend.kb.general import headline, in_spans
from rocmend.kb.load import Knowledge
from rocmend.kb.match import Match, Matcher, helps
from rocmend.kb.predicate import PredicateError
from rocmend.kb.template import fill, is_filled, only_gpu
from rocmend.kb.vocabulary import WORKLOADS
from rocmend.machine.collect import THIS_MACHINE
from rocmend.machine.facts import Machine, declared_facts
from rocmend.machine.hypothetical import target_alone
from rocmend.machine.software.python_env import IN_FOLDER

SPEAKING = frozenset({Status.ACTIVE, Status.DISPUTED, Status.FIXED_IN})
"""Statuses of entries that become findings; a claim fixed in some version still holds where its predicate matches."""

_ASKED = {
    "ask.workload": "Say what the machine is for: --for WORKLOAD.",
    "ask.model_bytes": "Give the size of the model: --model-size SIZE.",
}


def diagnose(machine: Machine, knowledge: Knowledge, *, workload: str | None = None) -> Diagnosis:
    """Return what is the matter with a machine, and what could not be told.

    Args:
        machine: Its facts.
        knowledge: The entries.
        workload: What it is for; None keeps what the facts say, if anything.

    Raises:
        UsageError: There is no such workload.
    """
    machine = target_alone(asked(machine, workload))
    matcher = Matcher(machine)
    findings: list[Finding] = []
    unknown: list[tuple[Entry, list[Match]]] = []
    problems = [str(problem) for problem in knowledge.problems]
    healthy = 0
    for entry in knowledge.entries.values():
        if not entry.when.strip() or entry.severity is None or entry.status not in SPEAKING:
            continue
        try:
            matches = matcher.match(entry)
        except PredicateError as error:
            problems.append(f"{entry.id}: {error}")
            continue
        findings += _findings(entry, [match for match in matches if match.applies], machine, knowledge.actions)
        undecided = [match for match in matches if match.applies is None]
        if undecided:
            unknown.append((entry, undecided))
        decided = any(match.in_scope for match in matches)
        healthy += decided and all(match.applies is False for match in matches)
    ordered = tuple(sorted(findings, key=_order))
    open_questions = _undecided(unknown)
    return Diagnosis(
        machine=machine.name,
        captured_at=machine.captured_at,
        workload=machine.value("ask.workload"),
        gpus=tuple(_summary(machine, index) for index in matcher.gpus),
        findings=ordered,
        undecided=open_questions,
        healthy=healthy,
        plan=make_plan(
            ordered,
            () if machine.hypothetical_target else open_questions,
            knowledge.actions,
            captured=machine.name != THIS_MACHINE,
        ),
        collector_problems=tuple(run for run in machine.collectors if run.status is not CollectorStatus.OK),
        knowledge_problems=tuple(problems),
        python=_python(machine),
        hypothetical_target=machine.hypothetical_target,
        no_amd_gpu=machine.value("gpus.amd_present") is False and not machine.hypothetical_target,
    )


def _order(finding: Finding) -> tuple[int, bool, str, str]:
    """Most severe first; among equals, causes before the traces they leave in the kernel log."""
    only_logged = bool(finding.evidence) and all(fact.key.startswith("dmesg.") for fact in finding.evidence)
    return finding.severity.rank, only_logged, finding.entry_id, finding.subject


def asked(machine: Machine, workload: str | None) -> Machine:
    """Return a machine whose facts say what it is for.

    Raises:
        UsageError: There is no such workload.
    """
    if workload is None:
        return machine
    if workload not in WORKLOADS:
        raise unknown("doctor", "workload", workload, sorted(WORKLOADS))
    fact = Fact("ask.workload", workload, "--for")
    return msgspec.structs.replace(machine, facts={**machine.facts, fact.key: fact})


def _findings(entry: Entry, matches: list[Match], machine: Machine, actions: Mapping[str, Action]) -> list[Finding]:
    """Return one finding for all subjects of which the same is said: eight equal GPUs make one finding."""
    alike: dict[tuple[str, tuple[Remedy, ...]], list[tuple[Match, tuple[Remedy, ...]]]] = {}
    for match in matches:
        helping = [remedy for remedy in entry.remedy if helps(remedy, machine, match.gpu)]
        serving = tuple(one for one in helping if serves(actions.get(action_name(one.action)), machine))
        if helping and not serving:
            continue  # what it is about is not used for what the machine is for
        remedies = tuple(
            _filled(remedy, actions.get(action_name(remedy.action)), machine, match.gpu) for remedy in serving
        )
        alike.setdefault((match.title, serving), []).append((match, remedies))
    return [
        Finding(
            entry_id=entry.id,
            title=title,
            severity=entry.severity or Severity.INFO,
            subject=_subjects([match for match, _ in group]),
            explanation=fill(entry.body, machine, group[0][0].gpu),
            evidence=_evidence([match for match, _ in group]),
            remedies=tuple(dict.fromkeys(remedy for _, remedies in group for remedy in remedies)),
            sources=entry.source,
            status=entry.status.value,
            see=_linked(entry),
            fixed_in=entry.fixed_in,
        )
        for (title, _), group in alike.items()
    ]


_PROSE = ("text", "title", "risk_note", "expect", "undo")


def _filled(remedy: Remedy, action: Action | None, machine: Machine, gpu: int | None) -> Remedy:
    gpu = only_gpu(machine) if gpu is None else gpu
    remedy = on_machine(remedy, action, machine, gpu)
    unasked = "{python.executable}" in remedy.check and machine.value("python.found_by") == IN_FOLDER
    if unasked or not is_filled(remedy.check, machine, gpu):
        # a plan's script runs checks unasked: not a stranger's interpreter, and nothing with a word to be replaced
        remedy = msgspec.structs.replace(remedy, check="", expect=f"`{remedy.check}` prints {remedy.expect}")

    def code(text: str) -> str:
        return fill(text, machine, gpu, for_shell=True)

    texts = {name: fill(in_spans(getattr(remedy, name), code), machine, gpu) for name in _PROSE}
    shell = {name: code(getattr(remedy, name)) for name in ("action", "check")}
    return msgspec.structs.replace(remedy, commands=tuple(map(code, remedy.commands)), **texts, **shell)


def _subjects(matches: list[Match]) -> str:
    return ", ".join(dict.fromkeys(match.subject for match in matches))


def _linked(entry: Entry) -> tuple[str, ...]:
    links = entry.links
    return tuple(dict.fromkeys((*links.contradicts, *links.resolved_by, *links.see)))


def _evidence(matches: list[Match]) -> tuple[Fact, ...]:
    """Return what was read, each value once: what equal GPUs have in common is shown for the first of them."""
    shown: list[Fact] = []
    seen: list[tuple[str, Any]] = []
    for match in matches:
        for fact in match.evidence:
            mark = (_without_index(fact.key), fact.value)
            if mark not in seen:
                seen.append(mark)
                shown.append(fact)
    return tuple(shown)


def _without_index(key: str) -> str:
    first, _, rest = key.partition(".")
    index, _, last = rest.partition(".")
    return f"{first}.*.{last}" if index.isdigit() else key


def _undecided(unknown: list[tuple[Entry, list[Match]]]) -> tuple[Undecided, ...]:
    if not unknown:
        return ()
    units = {pattern: f"{text} ({unit})" for pattern, text, unit in declared_facts()}

    def establishes(key: str) -> str:
        parts = ["*" if part.isdigit() else part for part in key.split(".")]
        for end in range(len(parts), 0, -1):  # a member of a mapping is established by what declares the mapping
            prefix = ".".join(parts[:end])
            found = units.get(prefix) or units.get(f"{prefix}.*")
            if found is not None:
                return found
        return ""

    def missing(gaps: Iterable[Gap]) -> tuple[Missing, ...]:
        return tuple(Missing(gap.key, gap.reason, _ASKED.get(gap.key) or establishes(gap.key)) for gap in gaps)

    records = [
        Undecided(
            entry_id=entry.id,
            title=_open_title(entry, matches[0].title),
            severity=entry.severity or Severity.INFO,
            subject=_subjects(matches),
            missing=missing({gap.key: gap for match in matches for gap in match.missing}.values()),
            notes=tuple(dict.fromkeys(note for match in matches for note in match.notes)),
            gfx=entry.scope.gfx,
        )
        for entry, matches in unknown
    ]
    return tuple(sorted(records, key=lambda item: (item.severity.rank, item.entry_id)))


def _open_title(entry: Entry, filled: str) -> str:
    """Return the title with the machine's values, in general words where one of them is not known."""
    return headline(entry) if "unknown" in filled and "unknown" not in entry.title else filled


def _python(machine: Machine) -> PythonSummary | None:
    values = [machine.value(f"python.{name}") for name in PythonSummary.__struct_fields__]
    return PythonSummary(*map(str, values)) if None not in values else None


def _summary(machine: Machine, index: int) -> GpuSummary:
    fields = {name: machine.value(f"gpu.{index}.{name}") for name in GpuSummary.__struct_fields__[1:]}
    return GpuSummary(index=index, **fields)
