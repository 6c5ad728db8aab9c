"""A plan as a shell script: it explains each step, runs nothing without a yes, and goes on after a reboot."""

from __future__ import annotations

import hashlib
import re
import textwrap
from collections.abc import Iterable

from rocmend.cli.views.plan import in_lines, reboot_of
from rocmend.cli.views.plan_shell import ASK_FOR_CHECKS, END, HEAD, MAIN, REBOOT_LEFT, TOOLS
from rocmend.core.records import Phase, Risk
from rocmend.core.secrets import hide_tokens
from rocmend.core.units import count_text
from rocmend.core.visible import visible
from rocmend.doctor.records import Alternative, Diagnosis, Plan, Step
from rocmend.kb.action import setting_of
from rocmend.report.terminal import plain

_WIDTH = 76
_BLANK = re.compile(r"(?<![\w${./:-])(?:[A-Z][A-Z_]*[A-Z]|your_\w+)\b(?![\w=])")
"""A word that a person must replace: ``IMAGE``, ``your_script.py``."""
_COMMENT = re.compile(r"\s{2,}# ")

_IMPORTS = re.compile(r"(?:^|[\s/(])(?:python[\d.]*['\"]?\s+-[cm]|pip|rocmend)\s")
"""A check that Python could load modules of the working folder for."""


def plan_script(diagnosis: Diagnosis, host: str = "") -> str:
    """Return a diagnosis's plan as a POSIX shell script; tokens and passwords that a value holds are left out.

    Args:
        diagnosis: As doctor made it.
        host: The name of the machine that the script is made on, where the plan is for that machine; the script asks
            before it goes on under another name, and always where it is empty.
    """
    plan = diagnosis.plan
    targets = list(dict.fromkeys(gpu.gfx_target for gpu in diagnosis.gpus if gpu.gfx_target))
    more = [*targets, *([] if host else ["captured or made up"])]
    name = (host or diagnosis.about) + (f" ({', '.join(more)})" if more else "")
    head = HEAD.format(machine=_one_line(name), date=_one_line(diagnosis.captured_at))
    if not plan.steps and not plan.optional:
        return _written(f"{head}\nprintf '%s\\n' {_quoted(_nothing(diagnosis))}\n{_rest(plan)}")
    title = _quoted(f"Plan for {name}: {_counted(diagnosis)}")
    confirm = " ".join(["confirm_machine", *map(_quoted, (name, host, *targets))])
    named = _in_order(plan)
    calls = "\n" + "".join(f"    {_call(key, step)}\n" for key, step in named)
    if not reboot_of(plan) and any("reboot" in step.needs for _, step in named):
        calls += REBOOT_LEFT
    asking = ASK_FOR_CHECKS if any(_test(step) == "user" for _, step in named) else ""
    steps = "".join(_functions(key, step, plan) for key, step in named)
    keys = " ".join(key for key, _ in named)
    main = MAIN.format(digest=_digest(diagnosis), title=title, confirm=confirm, all=keys)
    return _written(f'{head}{main}{asking}{calls}{END}{TOOLS}{steps}{_rest(plan)}\nmain "$@"\n')


def _counted(diagnosis: Diagnosis) -> str:
    """Return how many steps there are."""
    plan = diagnosis.plan
    optional = count_text(len(plan.optional), "optional step") if plan.optional else ""
    if not plan.steps:
        return f"{_nothing(diagnosis)} {optional}."
    return f"{count_text(len(plan.steps), 'step')}{f' and {optional}' if optional else ''}."


def _in_order(plan: Plan) -> list[tuple[str, Step]]:
    """Return the steps by the names of their functions; what is optional and needs a reboot comes before the plan's."""
    optional = [(f"o{number}", step) for number, step in enumerate(plan.optional, 1)]
    early = [one for one in optional if reboot_of(plan) and "reboot" in one[1].needs]
    named: list[tuple[str, Step]] = []
    for step in plan.steps:
        named += early if step.phase is Phase.REBOOT else []
        named.append((str(step.number), step))
    return [*named, *(one for one in optional if one not in early)]


def _written(script: str) -> str:
    return hide_tokens(visible(script), "REMOVED")


def _nothing(diagnosis: Diagnosis) -> str:
    """Return why there is no step."""
    plan = diagnosis.plan
    more = "This file ends with what to look into. " if plan.investigate else ""
    told = "Nothing needs to be done." if diagnosis.nothing_to_do else "No finding needs a step."
    count = len(diagnosis.undecided)
    left = f"{count_text(count, 'question')} could not be decided: see: rocmend doctor. " if count else ""
    return f"{told} {more}{left}".rstrip()


def _digest(diagnosis: Diagnosis) -> str:
    """Return what tells a plan from any other: of other steps, another GPU, or another day."""
    told = [diagnosis.machine, diagnosis.captured_at, *(gpu.gfx_target or "" for gpu in diagnosis.gpus)]
    plan = diagnosis.plan
    told += [part for step in (*plan.steps, *plan.optional) for part in (step.action, step.check, *step.commands)]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:8]


def _test(step: Step) -> str:
    if not step.check or step.phase is Phase.REBOOT:
        return "none"
    return "root" if "sudo" in step.check else "user"


def _call(key: str, step: Step) -> str:
    if step.phase is Phase.REBOOT:
        return f"reboot_step {key}"
    how = "hand" if _by_hand(step) else "run"
    of_variable = setting_of(step.action).startswith("variable:")  # its phase may be another finding's
    of_shell = how == "hand" and (of_variable or step.phase is Phase.ENVIRONMENT)
    effect = "reboot" if "reboot" in step.needs else "next" if of_shell else "now"
    return f"step {key} {how} {_test(step)} {effect}"


def _by_hand(step: Step) -> bool:
    return step.by_hand or not step.commands or any(_BLANK.search(_split(line)[0]) for line in step.commands)


def _functions(key: str, step: Step, plan: Plan) -> str:
    place = f"{step.number} of {len(plan.steps)}" if step.number else "Optional"
    lines = [f"{place}: {step.title}", *_told(step)]
    needs = f" needs {', '.join(step.needs)};" if step.needs else ""
    parts = [f"\n# Step {key}:{needs} risk {step.risk}\n", _about(key, lines)]
    if not _by_hand(step):
        body = "".join(f"    {_guarded(line)}\n" for line in step.commands)
        parts.append(f"do_{key}() {{\n{body}}}\n")
    if _test(step) != "none":
        line = "(cd / && limited)" if _IMPORTS.search(step.check) else "limited"
        parts.append(f"check_{key}() {{\n    {line} <<'CHECK'\n{in_lines(_one_line(step.check))}\nCHECK\n}}\n")
    return "".join(parts)


def _about(key: str, lines: Iterable[str]) -> str:
    """Return a function that prints; only the first line begins with no blank, and that with the step's place."""
    body = "\n".join(map(_one_line, lines))
    return f"about_{key}() {{\n    cat <<'TEXT'\n{body}\nTEXT\n}}\n"


def _told(step: Step) -> list[str]:
    """Return what a person should know before a yes."""
    lines = _wrapped(step.text)
    lines += [f"     {line}" for line in step.commands]
    lines += _wrapped(f"Needs {', '.join(step.needs)}." if step.needs else "")
    lines += _wrapped(_risk(step))
    expected = f"Expected afterwards: {step.expect}"
    lines += _wrapped(f"{expected}, from" if step.check else expected if step.expect else "")
    lines += [f"     {line}" for line in in_lines(_one_line(step.check)).splitlines()]
    lines += _wrapped(f"Undo: {step.undo}" if step.undo else "")
    for other in step.alternatives:
        lines += _wrapped(f"{'Until then' if other.interim else 'Or'}: {other.title}. {other.text}".rstrip())
        lines += _wrapped(f"Needs {', '.join(other.needs)}." if other.needs else "")
        lines += [f"     {line}" for line in other.commands]
        lines += _wrapped(_risk(other))
        lines += _wrapped(f"Undo: {other.undo}" if other.undo else "")
    return lines


def _risk(item: Step | Alternative) -> str:
    return f"Risk: {item.risk}. {item.risk_note}".rstrip() if item.risk is not Risk.NONE else ""


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(plain(text), _WIDTH, initial_indent="   ", subsequent_indent="   ", break_on_hyphens=False)


def _rest(plan: Plan) -> str:
    """Return as comments what the script does not do."""
    made = ""
    look = "If it still fails, investigate" if plan.steps else "Look into"
    if plan.investigate:
        made += f"\n# {look}:\n"
    for step in plan.investigate:
        texts = textwrap.wrap(plain(f"{step.title}. {step.text}"), _WIDTH)
        made += "".join(f"# {line}\n" for line in texts)
        made += "".join(f"#     {_one_line(line)}\n" for line in step.commands)
    return made


def _guarded(command: str) -> str:
    """Return a command that ends its function where it fails."""
    line, comment = _split(command)
    whole = f"{{ {line}; }}" if re.search(r"&&|\|\|", line) else line
    return f"{whole} || return{comment}"


def _split(command: str) -> tuple[str, str]:
    found = _COMMENT.search(command)
    return (command, "") if found is None else (command[: found.start()], f"  # {command[found.end() :]}")


def _quoted(text: str) -> str:
    return "'" + _one_line(text).replace("'", "'\\''") + "'"


def _one_line(text: str) -> str:
    return text.replace("\n", " ").replace("\r", " ")
