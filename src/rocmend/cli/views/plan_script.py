"""A plan as a shell script: it explains each step, runs nothing without a yes, and goes on after a reboot."""

from __future__ import annotations

import hashlib
import re
import textwrap
from collections.abc import Iterable

from rocmend.core.records import Phase, Risk
from rocmend.core.secrets import hide_tokens
from rocmend.core.units import count_text
from rocmend.core.visible import visible
from rocmend.doctor.records import Alternative, Diagnosis, Plan, Step
from rocmend.kb.action import setting_of
from rocmend.report.terminal import plain

_WIDTH = 76
_BLANK = re.compile(r"(?<![\w$./:-])(?:[A-Z]{2,}|your_\w+)\b(?![\w=])")
"""A word that a person must replace: ``IMAGE``, ``your_script.py``."""
_COMMENT = re.compile(r"\s{2,}# ")

_IMPORTS = re.compile(r"(?:^|[\s/(])(?:python[\d.]*['\"]?\s+-[cm]|pip|rocmend)\s")
"""A check that Python could load modules of the working folder for."""
_CHECK_LIMIT_S = 180
"""Enough to read a PyTorch of several gigabytes from a slow disk."""

_HEAD = r"""#!/bin/sh
# Plan for {machine}.
# Made by `rocmend doctor --plan sh` from facts read on {date}.
# Where it is started on another machine it says so, and asks before it goes on.
#
# It stops at each step, says what it will do, and asks. It runs nothing without a yes. The steps' checks, which only
# look, it runs after one yes at the beginning. Steps that it cannot do (a variable of your shell, a file to edit, the
# BIOS) it explains, and waits. Finished steps are kept in ~/.local/state/rocmend: after a reboot, or whenever you
# stopped, run it again and it goes on.
#
# Save it and run it: sh plan.sh
# shellcheck disable=SC2024  # the files that sudo's output goes to are yours
# shellcheck disable=SC2016  # a check is handed to a shell of its own
set -u
"""
_MAIN = r"""
main() {{
    machine=$(cat /etc/machine-id 2>/dev/null || uname -n)
    boot=$(cat /proc/sys/kernel/random/boot_id 2>/dev/null || echo unknown)
    state_dir=${{XDG_STATE_HOME:-${{HOME:?is not set}}/.local/state}}/rocmend
    state=$state_dir/plan-{digest}-$(printf '%s' "$machine" | cksum | cut -d ' ' -f 1)
    printed=$state.check
    mkdir -p "$state_dir" && touch "$state" || exit 2
    printf '%s\n' {title} "Finished steps are kept in $state"
    {confirm}
    grep -q '^begun ' "$state" || printf 'begun %s\n' "$boot" >>"$state"
    pending=no
    checks=no
"""
_ASK_FOR_CHECKS = r"""
    printf '\nSteps have checks that only look: whether the step is needed, and whether it worked.\n'
    ask 'Run these checks?' && checks=yes
"""
_END = r"""
    printf '\nThat was the last step. See what is left: rocmend doctor\n'
}
"""
_TOOLS = r"""
# ask QUESTION: succeed on yes, fail on skip, leave on quit or where there is nobody to answer
ask() {
    while :; do
        printf '   %s [y]es, [s]kip, [q]uit: ' "$1"
        IFS= read -r answer || { printf '\nNobody answers: stopped.\n'; exit 1; }
        case $answer in
            [Yy] | [Yy]es | YES) return 0 ;;
            [Nn] | [Nn]o | NO | [Ss] | [Ss]kip) return 1 ;;
            [Qq] | [Qq]uit) printf 'Stopped. Run this again to go on.\n'; exit 1 ;;
        esac
        printf '   Answer y, s or q.\n'
    done
}

# gpus_here: print the gfx targets of the GPUs that the driver shows
gpus_here() {
    cat /sys/class/kfd/kfd/topology/nodes/*/properties 2>/dev/null | awk '$1 == "gfx_target_version" && $2 > 0 {
        printf "%sgfx%d%x%x", found++ ? " " : "", int($2 / 10000), int($2 / 100) % 100, $2 % 100 }'
}

# confirm_machine NAME HOST [TARGET ...]: ask once where this is another machine than the plan was made for; HOST is
# empty where its name is not known
confirm_machine() {
    name=$1
    host=$2
    shift 2
    here=$(gpus_here)
    other=no
    [ "$host" = "$(uname -n)" ] || other=yes
    for target in "$@"; do
        case " $here " in
            "  " | *" $target "*) ;;
            *) other=yes ;;
        esac
    done
    if [ "$other" = no ] || grep -q '^machine ' "$state"; then return; fi
    printf '\nThis plan was made for %s.\n' "$name"
    printf 'This machine is %s, with %s.\n' "$(uname -n)" "${here:-no AMD GPU that the driver shows}"
    ask 'Use the plan here all the same?' || { printf 'Stopped.\n'; exit 1; }
    remember machine
}

# boot_of NUMBER: print in which boot a step was done
boot_of() { sed -n "s/^$1 //p" "$state" | tail -n 1; }
remember() { printf '%s %s\n' "$1" "$boot" >>"$state"; }

# limited TEST: run a check in a shell of its own, which is stopped after @LIMIT@ s
limited() {
    limit=
    if command -v timeout >/dev/null; then limit='timeout -k 5 @LIMIT@'; fi
    # shellcheck disable=SC2086  # words
    PYTHONSAFEPATH=1 $limit sh -c "$1" </dev/null &
    # it is in a process group of its own, which Ctrl-C does not reach
    trap 'kill "$!"; exit 130' INT
    wait "$!"
    found=$?
    trap - INT
    return "$found"
}

# look NUMBER TEST: run a step's check; 0 it passes, 1 it does not, 2 it was not run
look() {
    case $2 in
        none) return 2 ;;
        root)
            ask 'Run its check as root?' || return 2
            sudo -v && "check_$1"
            ;;
        *)
            [ "$checks" = yes ] || return 2
            "check_$1" >"$printed" 2>&1
            ;;
    esac
    case $? in
        0) return 0 ;;
        124 | 137) printf '   Its check took more than @LIMIT@ s and was stopped.\n' ;;
    esac
    return 1
}

# say_why TEST: show what a check that did not pass printed, and the programs that it did not find
say_why() {
    [ "$1" = user ] && [ -s "$printed" ] || return 0
    printf '   It printed:\n'
    tail -n 8 "$printed" | cut -c 1-200 | sed 's/^/     /'
    sed -n 's/^.*: \([^ :]*\): \(command \)*not found$/\1/p' "$printed" | sort -u | while IFS= read -r tool; do
        printf '   The check needs %s, which is not installed here.\n' "$tool"
    done
}

# step NUMBER HOW TEST EFFECT: HOW is run or hand, TEST is none, user or root, EFFECT is now, reboot or next: in the
# shell that runs the script the next time
step() {
    printf '\n'
    "about_$1"
    done_in=$(boot_of "$1")
    if [ -n "$done_in" ]; then
        if [ "$4" = reboot ] && [ "$done_in" = "$boot" ]; then
            pending=yes
            printf '   Done; it takes effect with the reboot.\n'
            return
        fi
        look "$1" "$3"
        found=$?
        if [ "$found" != 1 ]; then
            printf '   Done.\n'
            return
        fi
        printf '   Done before, but its check does not pass.\n'
        say_why "$3"
    elif [ "$3" = user ] && look "$1" "$3"; then
        printf '   Nothing to do: its check passes.\n'
        return
    fi
    if [ "$2" = hand ]; then
        ask 'This one is yours to do. Have you done it?' || return
    else
        ask 'Run the commands?' || return
        if ! "do_$1"; then
            printf '   A command failed: the step is not finished. Its undo is shown above.\n'
            ask 'Go on with the next step?' || exit 1
            return
        fi
    fi
    remember "$1"
    if [ "$4" = reboot ]; then
        pending=yes
        return
    fi
    if [ "$4" = next ] && [ "$3" != none ]; then
        printf '   This script still has the old environment: run it again from that shell to check it.\n'
        return
    fi
    look "$1" "$3"
    found=$?
    if [ "$found" = 1 ]; then
        printf '   Its check does not pass here yet: see above what it expects.\n'
        say_why "$3"
    fi
}

# reboot_step NUMBER: it is done once the machine was booted anew after the steps before it
reboot_step() {
    printf '\n'
    "about_$1"
    if [ "$pending" = no ] && ! grep -qxF "begun $boot" "$state"; then
        printf '   Done.\n'
        return
    fi
    ask 'Reboot now? Run this again afterwards.' || return
    "do_$1"
    exit 0
}
""".replace("@LIMIT@", str(_CHECK_LIMIT_S))


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
    head = _HEAD.format(machine=_one_line(name), date=_one_line(diagnosis.captured_at))
    if not plan.steps:
        return _written(f"{head}\nprintf '%s\\n' {_quoted(_nothing(diagnosis))}\n{_rest(plan)}")
    title = _quoted(f"Plan for {name}: {count_text(len(plan.steps), 'step')}.")
    confirm = " ".join(["confirm_machine", *map(_quoted, (name, host, *targets))])
    calls = "\n" + "".join(f"    {_call(step)}\n" for step in plan.steps)
    asking = _ASK_FOR_CHECKS if any(_test(step) == "user" for step in plan.steps) else ""
    steps = "".join(_functions(step, len(plan.steps)) for step in plan.steps)
    main = _MAIN.format(digest=_digest(diagnosis), title=title, confirm=confirm)
    return _written(f'{head}{main}{asking}{calls}{_END}{_TOOLS}{steps}{_rest(plan)}\nmain "$@"\n')


def _written(script: str) -> str:
    return hide_tokens(visible(script), "REMOVED")


def _nothing(diagnosis: Diagnosis) -> str:
    """Return why there is no step."""
    plan = diagnosis.plan
    more = "This file ends with what else can be done. " if plan.optional or plan.investigate else ""
    told = "Nothing needs to be done." if diagnosis.nothing_to_do else "No finding needs a step."
    count = len(diagnosis.undecided)
    left = f"{count_text(count, 'question')} could not be decided: see: rocmend doctor. " if count else ""
    return f"{told} {more}{left}".rstrip()


def _digest(diagnosis: Diagnosis) -> str:
    """Return what tells a plan from any other: of other steps, another GPU, or another day."""
    told = [diagnosis.machine, diagnosis.captured_at, *(gpu.gfx_target or "" for gpu in diagnosis.gpus)]
    told += [part for step in diagnosis.plan.steps for part in (step.action, step.check, *step.commands)]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:8]


def _test(step: Step) -> str:
    if not step.check or step.phase is Phase.REBOOT:
        return "none"
    return "root" if "sudo" in step.check else "user"


def _call(step: Step) -> str:
    if step.phase is Phase.REBOOT:
        return f"reboot_step {step.number}"
    how = "hand" if _by_hand(step) else "run"
    of_variable = setting_of(step.action).startswith("variable:")  # its phase may be another finding's
    of_shell = how == "hand" and (of_variable or step.phase is Phase.ENVIRONMENT)
    effect = "reboot" if "reboot" in step.needs else "next" if of_shell else "now"
    return f"step {step.number} {how} {_test(step)} {effect}"


def _by_hand(step: Step) -> bool:
    return step.by_hand or not step.commands or any(_BLANK.search(_split(line)[0]) for line in step.commands)


def _functions(step: Step, count: int) -> str:
    lines = [f"{step.number} of {count}: {step.title}", *_told(step)]
    needs = f" needs {', '.join(step.needs)};" if step.needs else ""
    parts = [f"\n# Step {step.number}:{needs} risk {step.risk}\n", _about(step.number, lines)]
    if not _by_hand(step):
        body = "".join(f"    {_guarded(line)}\n" for line in step.commands)
        parts.append(f"do_{step.number}() {{\n{body}}}\n")
    if _test(step) != "none":
        line = f"limited {_quoted(step.check)}"
        body = f"(cd / && {line})" if _IMPORTS.search(step.check) else line
        parts.append(f"check_{step.number}() {{\n    {body}\n}}\n")
    return "".join(parts)


def _about(number: int, lines: Iterable[str]) -> str:
    """Return a function that prints; only the first line begins with no blank, and that with the step's number."""
    body = "\n".join(map(_one_line, lines))
    return f"about_{number}() {{\n    cat <<'TEXT'\n{body}\nTEXT\n}}\n"


def _told(step: Step) -> list[str]:
    """Return what a person should know before a yes."""
    lines = _wrapped(step.text)
    lines += [f"     {line}" for line in step.commands]
    lines += _wrapped(f"Needs {', '.join(step.needs)}." if step.needs else "")
    lines += _wrapped(_risk(step))
    expected = f"Expected afterwards: {step.expect}"
    lines += _wrapped(f"{expected}, from" if step.check else expected if step.expect else "")
    lines += [f"     {step.check}"] if step.check else []
    lines += _wrapped(f"Undo: {step.undo}" if step.undo else "")
    for other in step.alternatives:
        lines += _wrapped(f"{'Until then' if other.interim else 'Or'}: {other.title}. {other.text}".rstrip())
        lines += [f"     {line}" for line in other.commands]
        lines += _wrapped(_risk(other))
    return lines


def _risk(item: Step | Alternative) -> str:
    return f"Risk: {item.risk}. {item.risk_note}".rstrip() if item.risk is not Risk.NONE else ""


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(plain(text), _WIDTH, initial_indent="   ", subsequent_indent="   ", break_on_hyphens=False)


def _rest(plan: Plan) -> str:
    """Return as comments what the script does not do."""
    made = ""
    look = "If it still fails, investigate" if plan.steps else "Look into"
    for heading, steps in ((look, plan.investigate), ("Optional", plan.optional)):
        if steps:
            made += f"\n# {heading}:\n"
        for step in steps:
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
