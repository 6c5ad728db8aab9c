"""A plan with what other rooms know put in: the install commands that ``rocmend wheel choose`` prints."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from pathlib import Path

import msgspec

from rocmend.doctor.records import Decide, Diagnosis, Step
from rocmend.kb.load import Knowledge
from rocmend.kb.template import OWN_PYTHON, fill
from rocmend.machine.facts import Machine
from rocmend.machine.software.python_env import IN_FOLDER
from rocmend.setup.choose import Choice, for_all

LIVE = "this machine"
"""What a machine is called whose facts were not read from a capture."""
_CHOOSE = "rocmend wheel choose"
_PIP_INSTALL = re.compile(r"(?<![\w./-])(?<!uv )(?<!-m )pip install")
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

    def filled(step: Step) -> Step:
        asked = [line for line in step.commands if line == _CHOOSE or line.startswith(f"{_CHOOSE} ")]
        if not asked or asked[0].removeprefix(_CHOOSE).strip().startswith("-"):
            return step
        package = asked[0].removeprefix(_CHOOSE).strip() or "torch"
        best = for_all(machine, knowledge, package, workload)
        return step if best is None else _with(step, asked[0], best, machine)

    plan = diagnosis.plan
    made = {
        name: _in_own_environment(tuple(filled(step) for step in getattr(plan, name))) for name in ("steps", "optional")
    }
    decide = tuple(map(_with_own_path, plan.decide)) if machine.name == LIVE else plan.decide
    return msgspec.structs.replace(diagnosis, plan=msgspec.structs.replace(plan, decide=decide, **made))


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


def _with(step: Step, line: str, best: Choice, machine: Machine) -> Step:
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
    needs = step.needs
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
    by_eye = present or machine.value("python.found_by") == IN_FOLDER  # a script runs checks unasked
    return msgspec.structs.replace(
        step,
        check="" if by_eye else f"{python} -m pip show rocm",
        expect="the new version" if not by_eye else f"`{python} -m pip show rocm` names the new version",
        undo=f"`{python} -m pip uninstall -y rocm`",
    )


def _in_own_environment(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Make the environment where the first step that installs into it does."""
    uses = next((step for step in steps if any(f"{OWN_PYTHON} -m pip" in line for line in step.commands)), None)
    if uses is None:
        return steps
    made = msgspec.structs.replace(
        uses, commands=(f"python3 -m venv {_OWN_FOLDER}", *uses.commands), text=f"{uses.text} {_OWN_TEXT}".strip()
    )
    return tuple(made if step is uses else step for step in steps)
