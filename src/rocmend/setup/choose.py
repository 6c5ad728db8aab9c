"""Which wheel or package to install for a gfx target, out of the knowledge entries' ways to install."""

from __future__ import annotations

import datetime as dt
import itertools
import re
from collections.abc import Iterator

import msgspec

from rocmend.core.gfx import GfxTarget, find
from rocmend.core.records import Source
from rocmend.kb.entry import Entry, Install, Scope
from rocmend.kb.indexes import Index
from rocmend.kb.load import Knowledge
from rocmend.kb.match import Matcher
from rocmend.machine.facts import Machine
from rocmend.setup.environment import STANDING

_LISTED = 6
_PIP_INSTALL = re.compile(r"(?<![\w./-])(?<!uv )pip install")
_SITE = re.compile(r"https?://([^/\s\"]+)")
CHECKS = {
    "torch": (
        "rocmend wheel inspect torch --native",
        "python -c 'import torch; print(torch.version.hip, torch.cuda.get_device_name())'",
        "rocmend probe",
    ),
    "rocm": ("rocminfo | grep gfx",),
    "jax": ("python -c 'import jax; print(jax.devices())'",),
    "onnxruntime": ("python -c 'import onnxruntime; print(onnxruntime.get_available_providers())'",),
    "cupy": ("rocmend wheel inspect cupy --native", "python -c 'import cupy; print(cupy.arange(3).sum())'"),
    "bitsandbytes": ("rocmend wheel inspect bitsandbytes --native", "python -m bitsandbytes"),
    "flash-attn": (
        "rocmend wheel inspect flash-attn --native",
        "python -c 'import flash_attn; print(flash_attn.__version__)'",
    ),
    "llama.cpp": ("llama-cli --list-devices",),
    "vllm": ("python -c 'import torch, vllm; print(vllm.__version__, torch.cuda.get_device_name())'",),
    "aiter": ("python -c 'import aiter'",),
}
"""Package to commands that show whether what was installed works on the GPU, the quickest first."""


class Choice(msgspec.Struct, frozen=True, omit_defaults=True):
    """One way to install a package.

    Attributes:
        command: The command line, for a person to read and run.
        package: What is installed.
        channel: stable, preview, nightly, community.
        serves: True where it carries code for the target, False where it does not, None where the entries do not say.
        reason: Why it ranks where it does, or why it does not serve.
        caution: What speaks against it for this GPU on this machine.
        entry_id: The knowledge entry it comes from.
        status: The entry's status.
        sources: Who says so.
        rank: Lower is better.
        check: Commands that show afterwards whether it works.
        name: What way it is, where the entry says so.
        replaces: The version that the machine has now; pip would leave it in place, so the command forces pip.
        index: Where it comes from, as the table of indexes calls it.
        read: The day that the index was last looked at.
        stale_days: How long ago that was, where it is time to look again; else 0.
    """

    command: str
    package: str
    channel: str
    serves: bool | None
    reason: str
    entry_id: str
    status: str
    rank: int
    caution: str = ""
    sources: tuple[Source, ...] = ()
    check: tuple[str, ...] = ()
    name: str = ""
    replaces: str = ""
    index: str = ""
    read: dt.date | None = None
    stale_days: int = 0

    @property
    def place(self) -> str:
        """What way it is, in a few words: its name, else the index or site, else how its command begins."""
        if self.name:
            return self.name
        site = _SITE.search(self.command)
        if site:
            return site[1]
        words = itertools.dropwhile(lambda word: "=" in word or word == "sudo", self.command.split())
        return " ".join(itertools.islice((word for word in words if not word.startswith("-")), 3))


class Choices(msgspec.Struct, frozen=True):
    """Ways to install a package for a target, best first; those that do not serve it come last.

    Attributes:
        package: What is to be installed.
        target: The gfx target; empty where the machine has none.
        choices: The ways.
        known_packages: Every package some entry says how to install.
        own_environment: The machine's Python belongs to the distribution, which lets pip install nothing into it.
        installed: The version that is installed and has code for the target; empty where there is none, or it is not
            known.
    """

    package: str
    target: str
    choices: tuple[Choice, ...]
    known_packages: tuple[str, ...]
    own_environment: bool = False
    installed: str = ""

    @property
    def serving(self) -> tuple[Choice, ...]:
        """Those that carry code for the target, or may; the first is the one to take."""
        return tuple(choice for choice in self.choices if choice.serves is not False)

    @property
    def refused(self) -> tuple[Choice, ...]:
        """Those that cannot run on the target, or not on this machine."""
        return tuple(choice for choice in self.choices if choice.serves is False)


def choose(  # noqa: PLR0913  the day is for tests
    machine: Machine,
    knowledge: Knowledge,
    package: str,
    target: str,
    workload: str | None = None,
    *,
    today: dt.date | None = None,
) -> Choices:
    """Rank the ways to install a package.

    Args:
        machine: The facts that ``when`` predicates read.
        knowledge: The entries.
        package: ``torch``, ``rocm``, ``jax`` …
        target: The gfx target it must run on.
        workload: Leave out ways that are meant for other workloads.
        today: The day from which the age of what is known is counted.
    """
    matcher = Matcher(machine)
    today = today or dt.datetime.now(tz=dt.UTC).date()
    gfx = find(target)
    made: list[Choice] = []
    for entry in knowledge.entries.values():
        if entry.status not in STANDING:
            continue
        for install in entry.install:
            fits = not install.workload or workload is None or workload in install.workload
            if install.package == package and fits:
                choice = _from_index(_choice(entry, install, target, gfx, matcher), install, knowledge, machine, today)
                made.append(_replacing(choice, machine, target))
    made.sort(key=lambda item: (item.serves is False, item.serves is None, item.rank, item.entry_id))
    refuses = machine.value("python.externally_managed") is True and not machine.hypothetical_target
    installed = _installed(machine, target) if package == "torch" else ""
    return Choices(
        package, target, tuple(made), known_packages(knowledge), own_environment=refuses, installed=installed
    )


def _installed(machine: Machine, target: str) -> str:
    """Return the machine's version of torch if it has code for all of its GPUs of a target, else nothing."""
    services = {
        machine.value(f"gpu.{index}.torch_service")
        for index in machine.indices("gpu")
        if machine.value(f"gpu.{index}.gfx_target") == target
    }
    packages = machine.value("packages")
    serves = bool(services) and services <= {"native", "generic"} and not machine.hypothetical_target
    return str(packages.get("torch", "")) if serves and isinstance(packages, dict) else ""


def known_packages(knowledge: Knowledge) -> tuple[str, ...]:
    """Return every package that some entry says how to install, in order of their names."""
    standing = (entry for entry in knowledge.entries.values() if entry.status in STANDING)
    return tuple(sorted({install.package for entry in standing for install in entry.install}))


def gpu_targets(machine: Machine) -> list[str]:
    """Return the gfx targets of a machine's GPUs, each once: cards before processor graphics, which is rarely meant."""
    found = [(machine.value(f"gpu.{index}.is_apu") is True, index) for index in machine.indices("gpu")]
    names = [machine.value(f"gpu.{index}.gfx_target") for _, index in sorted(found)]
    return list(dict.fromkeys(name for name in names if isinstance(name, str) and name))


def install_targets(machine: Machine) -> list[str]:
    """Return the gfx targets that an installation must serve: the cards', or without a card the APU's."""
    cards = {machine.value(f"gpu.{index}.gfx_target") for index in machine.indices("gpu") if _is_card(machine, index)}
    targets = gpu_targets(machine)
    return [target for target in targets if target in cards] or targets


def _is_card(machine: Machine, index: int) -> bool:
    return machine.value(f"gpu.{index}.is_apu") is not True


def for_all(machine: Machine, knowledge: Knowledge, package: str, workload: str | None = None) -> Choice | None:
    """Return the best way to install a package for every GPU that is meant, or None where no one way serves them all.

    Args:
        machine: The facts.
        knowledge: The entries.
        package: What is to be installed.
        workload: What it is for.
    """
    first, *others = install_targets(machine) or [""]
    if not first:
        return None
    found = {target: choose(machine, knowledge, package, target, workload).serving for target in (first, *others)}
    for choice in found[first]:
        way = (choice.entry_id, choice.channel, choice.rank)
        if all(any(way == (one.entry_id, one.channel, one.rank) for one in found[target]) for target in others):
            device = f"device-{first}"
            more = "".join(f",device-{target}" for target in others)
            return msgspec.structs.replace(choice, command=choice.command.replace(device, f"{device}{more}"))
    return None


def _choice(entry: Entry, install: Install, target: str, gfx: GfxTarget | None, matcher: Matcher) -> Choice:
    serves, reason = _serves(entry, install, target, gfx, matcher)
    return Choice(
        command=_filled(install.command, target, gfx),
        package=install.package,
        channel=install.channel,
        serves=serves,
        reason=reason,
        entry_id=entry.id,
        status=entry.status.value,
        rank=install.rank,
        caution=" ".join(_cautions(entry, install, target, gfx, matcher)),
        sources=entry.source,
        check=CHECKS.get(install.package, ()),
        name=install.name,
    )


def _from_index(choice: Choice, install: Install, knowledge: Knowledge, machine: Machine, today: dt.date) -> Choice:
    """Add what the table of indexes says: its age, its end, and whether it has wheels for this system and Python."""
    row = knowledge.indexes.get(install.index)
    if row is None:
        return choice
    stale = row.age_days(today) if row.is_due(today) else 0
    ended = _ended_caution(row, knowledge)
    caution = " ".join(filter(None, (ended, choice.caution)))
    choice = msgspec.structs.replace(choice, index=install.index, read=row.read, stale_days=stale, caution=caution)
    if machine.hypothetical_target:
        return choice
    system = machine.value("host.os_family")
    if row.os and isinstance(system, str) and system not in row.os:
        return msgspec.structs.replace(choice, serves=False, reason=f"it has wheels for {' and '.join(row.os)} only")
    python = _python_caution(row, machine.value("python.version"))
    return (
        msgspec.structs.replace(choice, caution=" ".join(filter(None, (python, choice.caution)))) if python else choice
    )


def _ended_caution(row: Index, knowledge: Knowledge) -> str:
    """Say that an index gets no new builds, what took its place, and what it is still good for."""
    if row.ended is None:
        return ""
    successor = knowledge.indexes.get(row.successor)
    instead = f"; its successor is {successor.name}, {successor.url}" if successor is not None else ""
    return f"This index has had no new builds since {row.ended}{instead}. {row.note}".strip()


def _python_caution(row: Index, version: object) -> str:
    if not row.python or not isinstance(version, str):
        return ""
    minor = ".".join(version.split(".")[:2])
    if minor in row.python:
        return ""
    first, last = row.python[0], row.python[-1]
    return (
        f"It has wheels for Python {first} to {last}, and this environment has Python {minor}: make one with another."
    )


def _replacing(choice: Choice, machine: Machine, target: str) -> Choice:
    """Make pip replace the version that is installed on the machine, where the package is for a GPU of it.

    pip takes any installed version for what was asked: its command would change nothing.
    """
    packages = machine.value("packages")
    present = packages.get(choice.package, "") if isinstance(packages, dict) else ""
    here = target in gpu_targets(machine) and not machine.hypothetical_target
    if not present or not here or not _PIP_INSTALL.search(choice.command):
        return choice
    command = _PIP_INSTALL.sub("pip install --force-reinstall", choice.command)
    return msgspec.structs.replace(choice, command=command, replaces=str(present))


def _serves(
    entry: Entry, install: Install, target: str, gfx: GfxTarget | None, matcher: Matcher
) -> tuple[bool | None, str]:
    named = install.gfx or entry.scope.gfx
    if not _concerns(named, target, gfx):
        return False, f"it carries no code for {target or 'an unknown GPU'} (it is for {_listed(named)})"
    if install.when:
        holds = _holds(entry, install.when, matcher)
        if holds is False:
            return False, f"it needs {install.needs}"
        if holds is None:
            return None, f"{install.why} (needs {install.needs})"
    if named:
        return True, install.why
    return (True if install.when else None), install.why


def _cautions(entry: Entry, install: Install, target: str, gfx: GfxTarget | None, matcher: Matcher) -> Iterator[str]:
    """Yield what speaks against it for this GPU, or may where a condition cannot be decided."""
    for caution in install.caution:
        if _concerns(caution.gfx, target, gfx) and _holds(entry, caution.when, matcher) is not False:
            yield caution.text


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def _concerns(named: tuple[str, ...], target: str, gfx: GfxTarget | None) -> bool:
    generic = gfx.generic_class if gfx is not None else None
    return not named or target in named or generic in named


def _holds(entry: Entry, when: str, matcher: Matcher) -> bool | None:
    """Evaluate a predicate over the machine; None where the facts do not suffice."""
    if not when:
        return True
    outcomes = [
        match.applies for match in matcher.match(msgspec.structs.replace(entry, when=when, subject="", scope=Scope()))
    ]
    return True if any(outcomes) else None if None in outcomes else False


def _filled(command: str, target: str, gfx: GfxTarget | None) -> str:
    """Put the target and its package family into a command; ``{family}`` is its TheRock family."""
    families = [name for name in gfx.families if re.match(r"gfx\w+X-all\Z", name)] if gfx is not None else []
    family = families[0] if families else target
    return command.replace("{gfx}", target or "{gfx}").replace("{family}", family or "{family}")
