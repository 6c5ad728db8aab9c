"""What a run is denied, and what it is given back: each with its reason.

The rules are data. The command line of a container or of ssh and the manifest of a Job are built from them, and
``rocmend lab plan`` shows them: what is shown is what runs.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from rocmend.runner.spec import Container, Kubernetes, Ssh, Where


class Effect(StrEnum):
    """What a rule does."""

    DENIED = "denied"
    LIMITED = "limited"
    GIVEN = "given"
    """Given back because a GPU needs it."""
    ASKED = "asked for"
    """Given back because the experiment asks for it."""


class Rule(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that a run is denied or given.

    Attributes:
        effect: What the rule does.
        what: What it is about.
        reason: Why.
        arguments: How it stands on the command line of the engine or of ssh.
        setting: How it stands in a Job's manifest.
    """

    effect: Effect
    what: str
    reason: str
    arguments: tuple[str, ...] = ()
    setting: str = ""

    @property
    def text(self) -> str:
        """How it is written, on one line."""
        return self.setting or " ".join(self.arguments)


def rules_of(where: Where) -> tuple[Rule, ...]:
    """Return the rules for a place; none for a local run, which runs as we do.

    Raises:
        NotStartedError: The place asks for something that there is not.
    """
    if isinstance(where, Container):
        from rocmend.runner.remote.container_rules import container_rules

        return container_rules(where)
    if isinstance(where, Ssh):
        from rocmend.runner.remote.ssh_rules import ssh_rules

        return ssh_rules(where)
    if isinstance(where, Kubernetes):
        from rocmend.runner.remote.pod_rules import pod_rules

        return pod_rules(where)
    return ()
