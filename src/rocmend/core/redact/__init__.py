"""Replacing what identifies a person or a machine, the same thing always by the same placeholder.

Versions, PCI slots and PCI ids stay: they are what a diagnosis needs. Placeholders keep the form of what they replace
(a MAC address becomes another MAC address), so that what parses still parses, and are themselves left alone.
"""

from collections.abc import Collection

from rocmend.core.redact.places import is_placeholder
from rocmend.core.redact.redactor import Redactor
from rocmend.core.redact.words import GENERIC_NAMES, KNOWN_GROUPS, REDACTED

__all__ = ["GENERIC_NAMES", "KNOWN_GROUPS", "REDACTED", "Redactor", "is_placeholder", "redactor_here"]


def redactor_here(*, kept: Collection[str] = (), hosts: Collection[str] = (), users: Collection[str] = ()) -> Redactor:
    """Return a redactor that knows the names of this machine and of its people.

    Args:
        hosts: Names of further machines.
        users: Names of further people.
        kept: As ``Redactor`` takes it.
    """
    from rocmend.core.redact import here

    return Redactor(hosts=here.hosts() | set(hosts), users=here.users() | set(users), kept=kept)
