"""One plan out of all findings: each thing to do once, in an order in which no step needs or undoes a later one."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from rocmend.core.records import Finding, Phase, Remedy, Risk, Severity
from rocmend.doctor import command_line
from rocmend.doctor.records import Alternative, Decide, Missing, Plan, Step, Undecided
from rocmend.kb.action import Action, action_name, setting_of, with_argument

REBOOT = "reboot"
_RISKS = list(Risk)
_SENTENCE = re.compile(r"(?<=[\w)`])\.\s+(?=[A-Z])")


class _Wish(msgspec.Struct, frozen=True):
    """A remedy that a finding asks for."""

    finding: Finding
    remedy: Remedy

    @property
    def optional(self) -> bool:
        """Whether nothing is wrong without it."""
        return self.remedy.optional or self.finding.severity is Severity.INFO

    @property
    def rank(self) -> tuple[int, str, str]:
        """Most severe first."""
        return self.finding.severity.rank, self.finding.entry_id, self.finding.subject


_Wishes = dict[str, list[_Wish]]


def make_plan(
    findings: Sequence[Finding],
    undecided: Sequence[Undecided],
    actions: Mapping[str, Action],
    *,
    captured: bool = False,
) -> Plan:
    """Return what to do about findings.

    An action that several ask for is one step. Where two set the same thing differently, the more severe finding's
    stands and the other becomes an alternative. Steps that only notes (``info``)
    and optional remedies ask for are optional.

    Args:
        findings: What was found.
        undecided: What could not be decided.
        actions: The actions that remedies name.
        captured: The facts are those of a captured machine: what decides the rest is done there.
    """
    wishes = sorted((_Wish(one, remedy) for one in findings for remedy in one.remedies), key=lambda wish: wish.rank)
    main, others, looks = _sorted_out(wishes)
    _drop_conflicts(main, others)
    steps = {action: _step(action, asked, actions) for action, asked in main.items()}
    brought = _bring_along(steps, main, actions)
    needed = {
        action: step
        for action, step in steps.items()
        if action not in brought and not all(wish.optional for wish in main[action])
    }
    optional = {action: step for action, step in steps.items() if action not in needed}
    if REBOOT not in needed and any("reboot" in step.needs for step in needed.values()) and REBOOT in actions:
        optional.pop(REBOOT, None)
        known = actions[REBOOT]
        needed[REBOOT] = _made(known, known.phase, known.title, known.text)
        main.setdefault(REBOOT, [])
    _join_command_line_edits(needed, main, actions)
    after = _order_of(needed, main)
    ordered = [needed[action] for action in _topological(needed, main, after)]
    numbers = {step.action: number for number, step in enumerate(ordered, 1)}
    made = [
        msgspec.structs.replace(
            step,
            number=numbers[step.action],
            after=tuple(sorted(numbers[other] for other in after[step.action])),
            alternatives=_alternatives(step, others, actions),
        )
        for step in ordered
    ]
    extra = [optional[action] for action in _topological(optional, main, _order_of(optional, main))]
    return Plan(
        steps=tuple(made),
        optional=(
            *(msgspec.structs.replace(one, alternatives=_alternatives(one, others, actions)) for one in extra),
            *_looks([wish for wish in looks if wish.optional]),
        ),
        investigate=_looks([wish for wish in looks if not wish.optional]),
        decide=_decide(undecided, captured=captured),
    )


def _bring_along(steps: dict[str, Step], main: _Wishes, actions: Mapping[str, Action]) -> set[str]:
    """Return the actions that another one brings along, which then settles their findings too."""
    brought: set[str] = set()
    for action, asked in main.items():
        bringers = {wish.remedy.brought_by for wish in asked}
        found = [next((other for other in main if names_action(pattern, other)), "") for pattern in bringers if pattern]
        if len(found) != len(bringers) or not all(found):
            continue
        brought.add(action)
        for other in found:
            settles = dict.fromkeys((*steps[other].settles, *steps[action].settles))
            steps[other] = msgspec.structs.replace(steps[other], settles=tuple(settles))
        known = actions.get(action_name(action))
        if known is not None and known.brought:
            text = f"{known.brought} {steps[action].text}".strip()
            steps[action] = msgspec.structs.replace(steps[action], text=text)
    return brought


def names_action(pattern: str, action: str) -> bool:
    """Whether ``after``, ``until`` or ``instead_of`` means this action; without an argument or value it means any."""
    return action == pattern or action.startswith(f"{pattern}=" if ":" in pattern else f"{pattern}:")


def _means(pattern: str, step: Step) -> bool:
    return any(names_action(pattern, action) for action in step.joins or (step.action,))


def _sorted_out(wishes: Iterable[_Wish]) -> tuple[_Wishes, _Wishes, list[_Wish]]:
    """Return what is to be done, the alternatives to it, and what only looks; each most severe first."""
    main: _Wishes = {}
    waiting: list[_Wish] = []
    looks: list[_Wish] = []
    for wish in wishes:
        remedy = wish.remedy
        if remedy.instead_of or remedy.until:
            waiting.append(wish)
        elif remedy.action and remedy.phase is not Phase.INVESTIGATE:
            main.setdefault(remedy.action, []).append(wish)
        else:
            looks.append(wish)
    others: _Wishes = {}
    for wish in waiting:
        pattern = wish.remedy.until or wish.remedy.instead_of
        target = next((action for action in main if names_action(pattern, action)), None)
        if target is not None and wish.remedy.action not in main:
            others.setdefault(target, []).append(wish)
        elif target is None and wish.remedy.action:
            main.setdefault(wish.remedy.action, []).append(wish)
        elif target is None:
            looks.append(wish)
        else:
            main[wish.remedy.action].append(wish)
    return main, others, looks


def _drop_conflicts(main: _Wishes, others: _Wishes) -> None:
    """Of two actions that set one thing differently, keep the more severe finding's."""
    kept: dict[str, str] = {}
    for action in sorted(main, key=lambda action: (main[action][0].rank, action)):
        setting = setting_of(action)
        first = kept.setdefault(setting, action) if setting else action
        if first != action:
            moved = [
                _Wish(wish.finding, msgspec.structs.replace(wish.remedy, instead_of=first, until=""))
                for wish in main.pop(action)
            ]
            others.setdefault(first, []).extend(moved)
            others[first] += others.pop(action, [])


def _title(action: str, remedy: Remedy, actions: Mapping[str, Action]) -> str:
    """Return a step's title: the remedy's own, its action's, else the remedy's first sentence."""
    if remedy.title:
        return remedy.title
    known = actions.get(action_name(action)) if action else None
    return with_argument(known.title, action) if known is not None else _SENTENCE.split(remedy.text)[0].rstrip(".")


def _detail(title: str, remedy: Remedy) -> str:
    """Return what a remedy says beyond its title."""
    return remedy.text.removeprefix(title).lstrip(".").strip()


def _step(action: str, asked: Sequence[_Wish], actions: Mapping[str, Action]) -> Step:
    """Merge what several findings say of one action."""
    remedies = [wish.remedy for wish in asked]
    title = _title(action, next((one for one in remedies if one.title), remedies[0]), actions)
    known = actions.get(action_name(action))
    usual = (with_argument(known.check, action), with_argument(known.expect, action)) if known is not None else ("", "")
    checked = next((one for one in remedies if (one.check, one.expect) != usual), remedies[0])
    details = dict.fromkeys(detail for one in remedies if (detail := _detail(_title(action, one, actions), one)))
    if known is not None and known.text:
        details[with_argument(known.text, action)] = None
    phase = min((one.phase or Phase.ENVIRONMENT for one in remedies), key=lambda phase: phase.rank)
    return msgspec.structs.replace(
        _made(checked, phase, title, " ".join(details), asked),
        commands=next((one.commands for one in remedies if one.commands), ()),
        needs=tuple(dict.fromkeys(need for one in remedies for need in one.needs)),
        risk=max((one.risk for one in remedies), key=_RISKS.index),
        risk_note=" ".join(dict.fromkeys(one.risk_note for one in remedies if one.risk_note)),
        undo=next((one.undo for one in remedies if one.undo), ""),
        by_hand=any(one.by_hand for one in remedies),
        serves=known is not None and not known.settles,
    )


def _made(source: Remedy | Action, phase: Phase, title: str, text: str, asked: Iterable[_Wish] = ()) -> Step:
    """Return the step of one remedy or action, that these findings ask for; it has no number yet."""
    return Step(
        number=0,
        action=source.action if isinstance(source, Remedy) else source.id,
        title=title.replace("`", ""),
        phase=phase,
        text=text,
        commands=source.commands,
        needs=source.needs,
        risk=source.risk,
        risk_note=source.risk_note,
        check=source.check,
        expect=source.expect,
        undo=source.undo,
        by_hand=source.by_hand,
        settles=tuple(dict.fromkeys(wish.finding.entry_id for wish in asked)),
    )


def _join_command_line_edits(steps: dict[str, Step], main: _Wishes, actions: Mapping[str, Action]) -> None:
    """Make one step of all that edit the kernel command line, where there are several."""
    edits = [
        action
        for action in steps
        if (known := actions.get(action_name(action))) is not None and known.kernel_command_line
    ]
    if len(edits) > 1:
        edits.sort(key=lambda action: (main[action][0].rank, action))
        steps[command_line.ACTION] = command_line.joined([steps.pop(action) for action in edits])
        asked = (wish for action in edits for wish in main.pop(action))
        main[command_line.ACTION] = sorted(asked, key=lambda wish: wish.rank)


def _order_of(steps: Mapping[str, Step], main: _Wishes) -> dict[str, set[str]]:
    """Return for each action those that come before it; an order that would close a circle is left out.

    What the more severe finding says is taken first, so that of two orders that exclude each other, its stands. An
    action that needs a reboot takes effect with it: what comes after such a one comes after the reboot.
    """
    after: dict[str, set[str]] = {action: set() for action in steps}

    def add(first: str, then: str) -> None:
        if first != then and not _reaches(after, first, then):
            after[then].add(first)

    reboots = {action for action, step in steps.items() if "reboot" in step.needs} - {REBOOT}
    if REBOOT in steps:
        for action in sorted(reboots):
            add(action, REBOOT)
        for action, step in sorted(steps.items()):
            if step.phase is Phase.RUNTIME:
                add(REBOOT, action)
    said = sorted(
        (wish.rank, action, pattern) for action in steps for wish in main[action] for pattern in wish.remedy.after
    )
    for _, action, pattern in said:
        for other in sorted(other for other, step in steps.items() if _means(pattern, step)):
            effective = REBOOT if other in reboots and action not in reboots and action != REBOOT else other
            add(effective if effective in steps else other, action)
    return after


def _reaches(after: Mapping[str, set[str]], start: str, goal: str) -> bool:
    """Whether ``goal`` comes before ``start`` already, in so many steps."""
    seen: set[str] = set()
    open_ = [start]
    while open_:
        action = open_.pop()
        if action == goal:
            return True
        if action not in seen:
            seen.add(action)
            open_ += after[action]
    return False


def _topological(steps: Mapping[str, Step], main: _Wishes, after: Mapping[str, set[str]]) -> list[str]:
    """Return the actions in order: by phase and severity where nothing else is said."""

    def key(action: str) -> tuple[int, int, str]:
        severities = [wish.finding.severity.rank for wish in main[action]]
        return steps[action].phase.rank, min(severities, default=0), action

    missing = {action: set(before) for action, before in after.items()}
    ready = [key(action) for action, before in missing.items() if not before]
    heapq.heapify(ready)
    ordered: list[str] = []
    while ready:
        action = heapq.heappop(ready)[-1]
        ordered.append(action)
        for other, before in missing.items():
            if action in before:
                before.remove(action)
                if not before:
                    heapq.heappush(ready, key(other))
    return ordered


def _alternatives(step: Step, others: _Wishes, actions: Mapping[str, Action]) -> tuple[Alternative, ...]:
    made: dict[tuple[str, str, bool], Alternative] = {}
    for wish in (wish for action in step.joins or (step.action,) for wish in others.get(action, ())):
        remedy = wish.remedy
        title = _title(remedy.action, remedy, actions)
        interim = bool(remedy.until)
        before = made.get((remedy.action, title, interim))
        settles = (*(before.settles if before is not None else ()), wish.finding.entry_id)
        made[remedy.action, title, interim] = Alternative(
            title=title.replace("`", ""),
            interim=interim,
            action=remedy.action,
            text=_detail(title, remedy),
            commands=remedy.commands,
            needs=remedy.needs,
            risk=remedy.risk,
            risk_note=remedy.risk_note,
            undo=remedy.undo,
            settles=tuple(dict.fromkeys(settles)),
        )
    return tuple(made.values())


def _looks(wishes: Iterable[_Wish]) -> tuple[Step, ...]:
    """Return what only looks, each text once."""
    alike: dict[tuple[str, tuple[str, ...]], list[_Wish]] = {}
    for wish in wishes:
        alike.setdefault((wish.remedy.text, wish.remedy.commands), []).append(wish)
    made = []
    for asked in alike.values():
        remedy = asked[-1].remedy
        title = _title("", remedy, {})
        made.append(_made(remedy, Phase.INVESTIGATE, title, _detail(title, remedy), asked))
    return tuple(made)


_ASKED = {
    "ask.workload": "say what the machine is for: `--for WORKLOAD`",
    "ask.model_bytes": "give the size of the model: `--model-size SIZE`",
}
_DENIED = re.compile(r"permission|not permitted|denied|\broot\b|sudo", re.IGNORECASE)
_ROOT = 'sudo -E env "PATH=$PATH" rocmend doctor'
_CAPTURE = 'sudo -E env "PATH=$PATH" rocmend machine capture FOLDER'
_READS_ALL = "run it as root, who may read all of it"
_READS_LOG = (
    f"{_READS_ALL} (the command below). Or open the kernel log to every user until the next reboot: "
    "`sudo sysctl kernel.dmesg_restrict=0`. Undo: `sudo sysctl kernel.dmesg_restrict=1`"
)


def _way(missing: Missing, *, captured: bool) -> tuple[str, str, str]:
    """Return what establishes a fact: a command, what that does, and why the fact is not known."""
    if missing.key in _ASKED:
        return "", _ASKED[missing.key], ""
    if _DENIED.search(missing.reason):
        if captured:
            return _CAPTURE, "on that machine, capture it again as root, who may read all of it", missing.reason
        return _ROOT, _READS_LOG if missing.key.startswith("dmesg.") else _READS_ALL, missing.reason
    return "", "", missing.reason


def _decide(undecided: Iterable[Undecided], *, captured: bool) -> tuple[Decide, ...]:
    """Return what would decide the rest, each way once."""
    made: dict[str, tuple[dict[tuple[str, str], None], dict[str, None], dict[str, None], dict[str, None]]] = {}
    for item in undecided:
        ways = [(_way(missing, captured=captured), missing.key) for missing in item.missing]
        ways = ways or [(("", "", "; ".join(item.notes)), "")]
        for (command, how, reason), key in ways:
            hows, reasons, keys, entries = made.setdefault(command or how or reason, ({}, {}, {}, {}))
            hows[command, how] = None
            reasons[reason] = None
            keys[key] = None
            entries[item.entry_id] = None
    return tuple(
        Decide(
            reason="; ".join(filter(None, reasons)),
            command=next(command for command, _ in hows),
            how=max((how for _, how in hows), key=len),
            keys=tuple(filter(None, keys)),
            entries=tuple(entries),
        )
        for hows, reasons, keys, entries in made.values()
    )
