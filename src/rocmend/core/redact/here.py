"""The names of this machine and of the people who use it."""

from __future__ import annotations

import os
import socket
from contextlib import suppress

FIRST_PERSON_ID = 1000
"""User and group ids from here on belong to people. Source: login.defs(5)"""

_NO_PERSON_ID = 65534
"""The id of nobody; from here on no people follow. Source: systemd's UIDS-GIDS"""

_MOST_PEOPLE = 50
"""People whose names are taken: each of them is looked for in every line."""
_ACCOUNTS_BYTES = 1 << 20

NAMING_VARIABLES = ("USER", "LOGNAME", "SUDO_USER", "USERNAME")
"""Variables that hold an account's name."""

_ACCOUNTS = "/etc/passwd"
_HOMES = "/home"


def hosts() -> set[str]:
    """Return the names of this machine."""
    return {socket.gethostname(), os.uname().nodename, os.environ.get("HOSTNAME", "")} - {""}


def users() -> set[str]:
    """Return the names of people and their accounts: the current user, whoever called sudo, and those of this machine.

    A person's name is taken whole: the words it is made of are words of the language too. A directory service is never
    asked for all its accounts, which can be many thousands: only for the current user's and those with a home here.
    """
    names = {os.environ.get(variable, "") for variable in NAMING_VARIABLES}
    for account, full in (_accounts() | _at_home() | _asked({os.geteuid()})).items():
        names |= {account, full if " " in full else ""}
    return names - {"", "root", "nobody"}


def _accounts() -> dict[str, str]:
    """Return account and full name of the people in this machine's own list."""
    with suppress(OSError), open(_ACCOUNTS, encoding="utf-8", errors="replace") as file:  # noqa: PTH123  pathlib is slow to load
        return listed(file.read(_ACCOUNTS_BYTES))
    return {}


def listed(accounts: str) -> dict[str, str]:
    """Return account and full name of the people in the text of a passwd(5) file."""
    people: dict[str, str] = {}
    for line in accounts.splitlines():
        account, _, uid, _, comment, *_ = [*line.split(":"), "", "", "", "", ""]
        if uid.isdecimal() and FIRST_PERSON_ID <= int(uid) < _NO_PERSON_ID and len(people) < _MOST_PEOPLE:
            people[account] = _full_name(comment)
    return people


def _at_home() -> dict[str, str]:
    """Return account and full name of the owners of homes. ``lstat`` mounts none of them."""
    owners: set[int] = set()
    with suppress(OSError), os.scandir(_HOMES) as homes:
        for home in homes:
            with suppress(OSError):
                owners.add(home.stat(follow_symlinks=False).st_uid)
            if len(owners) >= _MOST_PEOPLE:
                break
    return _asked({uid for uid in owners if FIRST_PERSON_ID <= uid < _NO_PERSON_ID})


def _asked(uids: set[int]) -> dict[str, str]:
    import pwd

    people: dict[str, str] = {}
    for uid in uids:
        with suppress(KeyError):  # a container runs under any id
            entry = pwd.getpwuid(uid)
            people[entry.pw_name] = _full_name(entry.pw_gecos)
    return people


def _full_name(comment: str) -> str:
    return comment.partition(",")[0].strip()
