"""Several changes of the kernel command line as one step: one edit of the boot configuration, one undo."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rocmend.core.records import Risk
from rocmend.core.units import count_text
from rocmend.doctor.records import Step

ACTION = "edit-kernel-command-line"
_COMMENT = re.compile(r"\s{2,}# ")
_GRUBBY = "sudo grubby --update-kernel=ALL"
_RPM_OSTREE = "sudo rpm-ostree kargs"
_OPTION = re.compile(r"""(--(?:remove-)?args)=(?:"([^"]*)"|'([^']*)'|(\S+))""")
_SENTENCE = re.compile(r"(?<=[\w)`])\.\s+(?=[A-Z])")
_FOR_EACH = re.compile(r"! for p in (.+?); do (.+)")
_RISKS = list(Risk)


def joined(steps: Sequence[Step]) -> Step:
    """Return one step that does what several do to the kernel command line.

    Args:
        steps: At least two, the most urgent first.
    """
    checked = all(step.check for step in steps)
    expects = [step.expect if checked or not step.check else f"`{step.check}` prints {step.expect}" for step in steps]
    return Step(
        number=0,
        action=ACTION,
        title=f"Edit the kernel command line: {count_text(len(steps), 'change')}",
        phase=steps[0].phase,
        text=_text(steps),
        commands=joined_commands([step.commands for step in steps]),
        needs=tuple(dict.fromkeys(need for step in steps for need in step.needs)),
        risk=max((step.risk for step in steps), key=_RISKS.index),
        risk_note=" ".join(dict.fromkeys(step.risk_note for step in steps if step.risk_note)),
        check=_check(steps) if checked else "",
        expect=("; " if checked is False else " and ").join(dict.fromkeys(filter(None, expects))),
        undo=_undo(steps),
        by_hand=any(step.by_hand or not step.commands for step in steps),
        joins=tuple(step.action for step in steps),
        settles=tuple(dict.fromkeys(entry for step in steps for entry in step.settles)),
        serves=all(step.serves for step in steps),
    )


def joined_commands(parts: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return the lines of several steps, each program run once where it takes all changes at once.

    What a step runs before another line stands before it here, too.
    """
    made: dict[str, str] = {}
    for lines in parts:
        for place, line in enumerate(lines):
            key = _key(line)
            if key in made:
                made[key] = _together(key, made[key], line)
                continue
            later = {_key(other) for other in lines[place + 1 :]}
            at = next((number for number, known in enumerate(made) if known in later), len(made))
            items = list(made.items())
            made = dict([*items[:at], (key, line), *items[at:]])
    return tuple(made.values())


def _key(line: str) -> str:
    command = _COMMENT.split(line)[0]
    tools = (_GRUBBY, _RPM_OSTREE) if "--editor" not in command else ()
    return next((tool for tool in tools if command.startswith(f"{tool} ")), command)


def _together(key: str, first: str, second: str) -> str:
    """Return one line for two with the same key."""
    if first == second:
        return first
    if key == _GRUBBY:  # of an option that is given twice, it takes the last
        values: dict[str, list[str]] = {}
        for found in _OPTION.finditer(f"{first} {second}"):
            values.setdefault(found[1], []).append(found[2] or found[3] or found[4] or "")
        return " ".join([key, *(f'{option}="{" ".join(words)}"' for option, words in values.items())])
    if key == _RPM_OSTREE:
        return f"{first}{second.removeprefix(key)}"
    comment, other = (_COMMENT.split(line, maxsplit=1)[-1] for line in (first, second))
    subject = comment.partition(": ")[0]
    return f"{first}; {other.removeprefix(f'{subject}: ')}"


def _text(steps: Sequence[Step]) -> str:
    """Return what the changes are, numbered, and what is said of them, each sentence once."""
    said: set[str] = set()
    parts = []
    for number, step in enumerate(steps, 1):
        sentences = [text.rstrip(".") for text in _SENTENCE.split(step.text) if text]
        new = [text for text in sentences if text not in said]
        said.update(new)
        parts.append(" ".join(f"{text}." for text in (f"({number}) {step.title}", *new)))
    return " ".join(parts)


def _check(steps: Sequence[Step]) -> str:
    """Return one check for all; those that look for words in the same way are one loop over all words."""
    made: dict[str, list[str]] = {}
    for step in steps:
        found = _FOR_EACH.fullmatch(step.check)
        words, check = (found[1], f"! for p in @; do {found[2]}") if found else ("", step.check)
        made.setdefault(check, []).append(words)
    checks = [
        check.replace("@", " ".join(filter(None, words)), 1) if any(words) else check for check, words in made.items()
    ]
    return checks[0] if len(checks) == 1 else " && ".join(f"{{ {check}; }}" for check in checks)


def _undo(steps: Sequence[Step]) -> str:
    if not any("`" in step.undo for step in steps):
        return "Put the old kernel command line back the same way, and reboot."
    return " ".join(f"({number}) {step.undo}" for number, step in enumerate(steps, 1))
