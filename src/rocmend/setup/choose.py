"""Which wheel or package to install for a gfx target, out of the knowledge entries' ways to install."""

from __future__ import annotations

import re

import msgspec

from rocmend.core.gfx import GfxTarget, find
from rocmend.core.records import Source
from rocmend.kb.entry import Entry, Install
from rocmend.kb.load import Knowledge
from rocmend.kb.match import Matcher
from rocmend.machine.facts import Machine
from rocmend.setup.environment import STANDING


class Choice(msgspec.Struct, frozen=True, omit_defaults=True):
    """One way to install a package.

    Attributes:
        command: The command line, for a person to read and run.
        package: What is installed.
        channel: stable, preview, nightly, community.
        serves: True where it carries code for the target, False where it does not, None where the entries do not say.
        reason: Why it ranks where it does, or why it does not serve.
        caution: What speaks against it.
        entry_id: The knowledge entry it comes from.
        status: The entry's status.
        sources: Who says so.
        rank: Lower is better.
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


class Choices(msgspec.Struct, frozen=True):
    """Ways to install a package for a target, best first; those that do not serve it come last.

    Attributes:
        package: What is to be installed.
        target: The gfx target; empty where the machine has none.
        choices: The ways.
        known_packages: Every package some entry says how to install.
    """

    package: str
    target: str
    choices: tuple[Choice, ...]
    known_packages: tuple[str, ...]


def choose(machine: Machine, knowledge: Knowledge, package: str, target: str, workload: str | None = None) -> Choices:
    """Rank the ways to install a package.

    Args:
        machine: The facts that ``when`` predicates read.
        knowledge: The entries.
        package: ``torch``, ``rocm``, ``jax`` …
        target: The gfx target it must run on.
        workload: Leave out ways that are meant for other workloads.
    """
    matcher = Matcher(machine)
    gfx = find(target)
    made: list[Choice] = []
    packages: set[str] = set()
    for entry in knowledge.entries.values():
        if entry.status not in STANDING:
            continue
        for install in entry.install:
            packages.add(install.package)
            fits = not install.workload or workload is None or workload in install.workload
            if install.package == package and fits:
                made.append(_choice(entry, install, target, gfx, matcher))
    made.sort(key=lambda item: (item.serves is False, item.serves is None, item.rank, item.entry_id))
    return Choices(package, target, tuple(made), tuple(sorted(packages)))


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
        caution=install.caution,
        sources=entry.source,
    )


def _serves(
    entry: Entry, install: Install, target: str, gfx: GfxTarget | None, matcher: Matcher
) -> tuple[bool | None, str]:
    generic = gfx.generic_class if gfx is not None else None
    named = install.gfx or entry.scope.gfx
    if named and target not in named and generic not in named:
        return False, f"it carries no code for {target or 'an unknown GPU'} (it is for {', '.join(named)})"
    if install.when:
        scoped = msgspec.structs.replace(entry, when=install.when, subject="", scope=type(entry.scope)())
        outcomes = [match.applies for match in matcher.match(scoped)]
        if not any(outcomes):
            unknown = any(outcome is None for outcome in outcomes)
            return (None, f"it depends on: {install.when}") if unknown else (False, f"not here: {install.when}")
    if named:
        return True, install.why
    return (True if install.when else None), install.why


def _filled(command: str, target: str, gfx: GfxTarget | None) -> str:
    """Put the target and its package family into a command; ``{family}`` is its TheRock family."""
    families = [name for name in gfx.families if re.match(r"gfx\w+X-all\Z", name)] if gfx is not None else []
    family = families[0] if families else target
    return command.replace("{gfx}", target or "{gfx}").replace("{family}", family or "{family}")
