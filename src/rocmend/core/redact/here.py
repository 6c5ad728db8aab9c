"""The names of this machine and of the people who use it."""

from __future__ import annotations

import os
import socket
from contextlib import suppress

FIRST_PERSON_ID = 1000
"""User and group ids from here on belong to people. Source: login.defs(5)"""

_MOST_PEOPLE = 50


def hosts() -> set[str]:
    """Return the names of this machine."""
    return {socket.gethostname(), os.uname().nodename, os.environ.get("HOSTNAME", "")} - {""}


def users() -> set[str]:
    """Return the names of people and their accounts: the current user, whoever called sudo, and those of this machine.

    A person's name is taken whole: the words it is made of are words of the language too. Where a directory service
    lists thousands of accounts, only those with a home here are taken: the others' short names are words, too.
    """
    import pwd

    people = [entry for entry in pwd.getpwall() if FIRST_PERSON_ID <= entry.pw_uid < 65534]
    if len(people) > _MOST_PEOPLE:
        # Their folders are not looked at: that would mount each of them.
        here = set(os.listdir("/home")) if os.path.isdir("/home") else set()  # noqa: PTH112, PTH208
        people = [entry for entry in people if entry.pw_name in here][:_MOST_PEOPLE]
    with suppress(KeyError):  # a container runs under any id
        people.append(pwd.getpwuid(os.geteuid()))
    names = {entry.pw_name for entry in people}
    names |= {full for entry in people if " " in (full := entry.pw_gecos.partition(",")[0].strip())}
    names |= {os.environ.get(variable, "") for variable in ("USER", "LOGNAME", "SUDO_USER", "USERNAME")}
    return names - {"", "root", "nobody"}
