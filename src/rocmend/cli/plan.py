"""A plan with what other rooms know put in: the install commands that ``rocmend wheel choose`` prints."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from rocmend.core.records import Remedy
from rocmend.doctor.records import Decide, Diagnosis, Step
from rocmend.kb.load import Knowledge
from rocmend.kb.template import OWN_PYTHON, fill
from rocmend.machine.collect import THIS_MACHINE
from rocmend.machine.facts import Machine
from rocmend.machine.software.python_env import IN_FOLDER
from rocmend.setup.choose import Choice, for_all

if TYPE_CHECKING:
    from rocmend.doctor.explain import Explanation

_Doable = TypeVar("_Doable", bound=Step | Remedy)

_CHOOSE = "rocmend wheel choose"
_DRY_RUN = (22, 2)
"""The version of pip from which on it says what it would do. Source: https://pip.pypa.io/en/stable/news/#v22-2"""
_PIP_INSTALL = re.compile(r"(?<![\w./-])(?<!uv )(?<!-m )pip install")
_EXTRAS = re.compile(r"\brocm\[([^\]]+)\]")
_OR_LATER = re.compile(r"\bROCm (\d+)\.(\d+)(?:\.\d+)* or later")
_OWN_FOLDER = OWN_PYTHON.removesuffix("/bin/python")
_OWN_TEXT = (
    "This Python belongs to the distribution, which lets pip install nothing into it: an environment of your own is "
    f"made first (on Debian and Ubuntu, python3-venv has `venv`). Work in it: `. {_OWN_FOLDER}/bin/activate`."
)


def with_installs(
    diagnosis: Diagnosis, machine: Machine, knowledge: Knowledge, workload: str | None = None
) -> Diagnosis:
    """Return a diagnosis whose plan has the best install command for its GPUs in place of ``rocmend wheel choose``.

    Args:
        diagnosis: As doctor made it.
        machine: The facts.
        knowledge: The entries, which say how to install.
        workload: What the machine is for.
    """

    def made_of(steps: Sequence[Step]) -> tuple[Step, ...]:
        return _installed(steps, machine, knowledge, workload)

    plan = diagnosis.plan
    made = {name: made_of(getattr(plan, name)) for name in ("steps", "optional")}
    decide = tuple(map(_with_own_path, plan.decide)) if machine.name == THIS_MACHINE else plan.decide
    return msgspec.structs.replace(diagnosis, plan=msgspec.structs.replace(plan, decide=decide, **made))


def explained_with_installs(
    explanation: Explanation, machine: Machine, knowledge: Knowledge, workload: str | None = None
) -> Explanation:
    """Return an explanation whose remedies install, check and undo as the plan of the same machine does.

    Args:
        explanation: As doctor made it.
        machine: The facts.
        knowledge: The entries, which say how to install.
        workload: What the machine is for.
    """
    if not any(match.applies for match in explanation.matches):
        return explanation
    remedies = _installed(explanation.entry.remedy, machine, knowledge, workload)
    return msgspec.structs.replace(explanation, entry=msgspec.structs.replace(explanation.entry, remedy=remedies))


def _installed(
    parts: Sequence[_Doable], machine: Machine, knowledge: Knowledge, workload: str | None
) -> tuple[_Doable, ...]:
    """Put the best install command into each step or remedy that asks for one."""

    def filled(part: _Doable) -> _Doable:
        asked = [line for line in part.commands if line == _CHOOSE or line.startswith(f"{_CHOOSE} ")]
        if not asked or asked[0].removeprefix(_CHOOSE).strip().startswith("-"):
            return part
        package = asked[0].removeprefix(_CHOOSE).strip() or "torch"
        best = for_all(machine, knowledge, package, workload)
        return part if best is None else _with(part, asked[0], best, machine)

    return _in_own_environment(tuple(filled(part) for part in parts))


def _with_own_path(one: Decide) -> Decide:
    """Name the running program by its path where PATH does not lead to it: as root it leads to even less."""
    own = _own_command()
    found = shutil.which("rocmend")
    if found and Path(found).resolve() == Path(own[0]).resolve():
        return one
    return msgspec.structs.replace(
        one, command=re.sub(r"\brocmend doctor", lambda _: f"{shlex.join(own)} doctor", one.command)
    )


def _own_command() -> list[str]:
    """Return how this program was started."""
    started = Path(sys.argv[0])
    if started.name == "rocmend" and started.is_file():
        return [str(started.absolute())]
    return [sys.executable, "-P", "-m", "rocmend"]  # root imports nothing from the folder that it is run in


def _with(step: _Doable, line: str, best: Choice, machine: Machine) -> _Doable:
    """Put an installation into a step, and say of it what holds for it: what it needs, its check and its undo."""
    python = fill("{python.executable}", machine, for_shell=True)
    present = best.package in (machine.value("packages") or {})
    install = f"{python} -m pip install"
    commands = tuple(
        part
        for old in step.commands
        for part in (_PIP_INSTALL.sub(install, best.command).splitlines() if old == line else [old])
    )
    know = f"Caution: {best.caution.rstrip('.')}." if best.caution else ""
    text = " ".join(filter(None, (step.text, know, f"Other ways: `{_CHOOSE} {best.package}`.")))
    needs: tuple[str, ...] = step.needs
    if any("sudo " in command for command in commands):
        needs = tuple(dict.fromkeys(("root", *needs)))
    step = msgspec.structs.replace(step, commands=commands, text=text, needs=needs)
    if best.package != "rocm":
        return step
    if not _PIP_INSTALL.search(best.command):
        return msgspec.structs.replace(step, undo="Remove the packages that it added with the package manager.")
    use = f'export ROCM_PATH="$({python} -m rocm_sdk path --root)"; export PATH="$ROCM_PATH/bin:$PATH"'
    step = msgspec.structs.replace(
        step, text=f"{step.text} To build and run programs with it: `{use}`; `rocmend doctor` names the ROCm in use."
    )
    check, expected = _newer_rocm(python, step.text, machine)
    printed = f"already satisfied, with {expected}" if "--dry-run" in check else expected
    pip = re.match(r"(\d+)\.(\d+)", str((machine.value("packages") or {}).get("pip") or ""))
    by_eye = present or machine.value("python.found_by") == IN_FOLDER  # a script runs checks unasked
    by_eye = by_eye or (pip is not None and (int(pip[1]), int(pip[2])) < _DRY_RUN)
    return msgspec.structs.replace(
        step,
        check="" if by_eye else check,
        expect=f"`{python} -m pip show rocm` names {expected}" if by_eye else printed,
        undo=_undo_rocm(python, best.command, machine),
    )


def _newer_rocm(python: str, text: str, machine: Machine) -> tuple[str, str]:
    """Return a check that this Python has the ROCm which a step's text asks for, and which that is.

    Of several versions the highest counts; where the text names none, any that is newer than the one in use.
    """
    asked = [(int(major), int(minor)) for major, minor in _OR_LATER.findall(text)]
    old = re.match(r"(\d+)\.(\d+)", str(machine.value("rocm.version") or ""))
    if asked:
        (major, minor), expected = max(asked), "{0}.{1} or later"
    elif old:
        major, minor, expected = int(old[1]), int(old[2]) + 1, f"a version newer than {old[0]}"
    else:
        return f"{python} -m pip show rocm", "the new version"
    # what is there already satisfies it, or there is none: nothing is looked for elsewhere
    return f'{python} -m pip install --no-index --dry-run "rocm>={major}.{minor}"', expected.format(major, minor)


def _undo_rocm(python: str, command: str, machine: Machine) -> str:
    """Return how an installation of ROCm by pip is taken back, with the packages that its extras pull in."""
    old = (machine.value("packages") or {}).get("rocm")
    if old:
        return f"Install the version that was there ({old}) from the index that it came from."
    found = _EXTRAS.search(command)
    extras = [extra.strip() for extra in found[1].split(",")] if found else []
    names = " ".join(["rocm", "rocm-sdk-core", *(f"rocm-sdk-{extra}" for extra in extras)])
    return (
        f"`{python} -m pip uninstall -y {names}`. A PyTorch from the same index uses these packages: where one is "
        "installed, keep them or remove it too."
    )


def _in_own_environment(steps: tuple[_Doable, ...]) -> tuple[_Doable, ...]:
    """Make the environment where the first step that installs into it does."""
    made = list(steps)
    for place, step in enumerate(made):
        if any(f"{OWN_PYTHON} -m pip" in line for line in step.commands):
            commands = (f"python3 -m venv {_OWN_FOLDER}", *step.commands)
            made[place] = msgspec.structs.replace(step, commands=commands, text=f"{step.text} {_OWN_TEXT}".strip())
            break
    return tuple(made)
