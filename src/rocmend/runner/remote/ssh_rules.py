"""What an SSH connection is denied, whatever the user's configuration file says.

The file's ``ProxyCommand``, ``ProxyJump``, keys and aliases stay: they are how the user reaches the host.

Source: https://man.openbsd.org/ssh_config (the first value of an option counts; the command line comes first)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase

import msgspec

from rocmend.runner.executor import NotStartedError
from rocmend.runner.remote.confine import Effect, Rule
from rocmend.runner.spec import Ssh

CONNECTION = {
    "BatchMode": "yes",
    "ConnectTimeout": "10",
    "ServerAliveInterval": "10",
    "ServerAliveCountMax": "3",
    "LogLevel": "ERROR",
}
"""How the client behaves."""

NEEDED = frozenset({"HOME", "LOGNAME", "PATH", "SSH_AUTH_SOCK", "USER"})
"""Variables that the client keeps even where ``SendEnv`` names them."""


class Denial(msgspec.Struct, frozen=True):
    """An option that takes something away, and why."""

    value: str
    what: str
    reason: str


DENIED = {
    "ForwardAgent": Denial("no", "your agent", "the remote host could log in elsewhere with your keys"),
    "ForwardX11": Denial("no", "your display", "the remote host could read the screen and the keyboard"),
    "ForwardX11Trusted": Denial("no", "your display", "likewise"),
    "GSSAPIDelegateCredentials": Denial("no", "Kerberos tickets", "the remote host could act as you"),
    "ClearAllForwardings": Denial("yes", "ports", "forwarded ports connect this network with the remote one"),
    "Tunnel": Denial("no", "network tunnels", "likewise"),
    "PermitLocalCommand": Denial("no", "local commands", "LocalCommand would run on this machine at each attempt"),
    "RemoteCommand": Denial("none", "remote commands", "it would run instead of the attempt"),
    "ControlMaster": Denial("no", "shared connections", "others would use this connection, with its permissions"),
    "ControlPath": Denial("none", "shared connections", "an open one may have its own forwardings"),
    "UpdateHostKeys": Denial("no", "known_hosts", "the remote host would write to it"),
    "SetEnv": Denial("ROCMEND=1", "variables", "variables from the configuration would change the measurement"),
}
"""What is denied. An experiment's ``options`` are stronger, and shown."""

_UNCHECKED = (
    "the host's key is not checked ({}): an impostor would get the command, its input and its secrets, and could "
    "forge the results"
)

_HOST = re.compile(r"[A-Za-z0-9_\[][A-Za-z0-9._:%@/\[\]+-]*")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@\\+-]*\$?")
_OPTION = re.compile(r"[A-Za-z0-9]+")


def checked(where: Ssh) -> Ssh:
    """Return a place whose parts cannot be taken for options, nor for shell text by a ProxyCommand.

    Raises:
        NotStartedError: One of them could.
    """
    if not _HOST.fullmatch(where.host):
        raise NotStartedError(
            "ssh",
            f"expected a host's name, address or alias, got {where.host!r}.",
            why="ssh could interpret it as an option, or a ProxyCommand as shell text.",
            next_step="Give the host an alias in the client's configuration.",
        )
    if where.user and not _USER.fullmatch(where.user):
        raise NotStartedError("ssh", f"expected a login name, got {where.user!r}.", next_step="Use an alias with User.")
    for name, value in where.options.items():
        if not _OPTION.fullmatch(name) or not value.isprintable():
            raise NotStartedError("ssh", f"expected an option's name and value, got {name!r} = {value!r}.")
        if name.lower() in {"setenv", "sendenv"}:
            raise NotStartedError(
                "ssh",
                f"the option {name} is not supported.",
                why="Variables are part of the attempt's definition, and secrets must not be on a command line.",
                next_step="Put them into the attempt's env.",
            )
    return where


def ssh_rules(where: Ssh) -> tuple[Rule, ...]:
    """Return the rules for a connection.

    Raises:
        NotStartedError: Host, user or an option is not possible.
    """
    asked = {name.lower() for name in checked(where).options}
    rules = [
        Rule(Effect.DENIED, denial.what, denial.reason, ("-o", f"{name}={denial.value}"))
        for name, denial in DENIED.items()
        if name.lower() not in asked
    ]
    rules += [
        Rule(Effect.ASKED, name, _asked_reason(name), ("-o", f"{name}={value}"))
        for name, value in where.options.items()
    ]
    return tuple(rules)


def _asked_reason(name: str) -> str:
    denied = next((item for key, item in DENIED.items() if key.lower() == name.lower()), None)
    return f"requested by the experiment, although {denied.reason}" if denied else "requested by the experiment"


def option_arguments(where: Ssh) -> list[str]:
    """Return the ``-o`` options of the command line."""
    asked = {name.lower() for name in where.options}
    ours = [
        part for name, value in CONNECTION.items() if name.lower() not in asked for part in ("-o", f"{name}={value}")
    ]
    return [*ours, *(part for rule in ssh_rules(where) for part in rule.arguments)]


def effective(text: str) -> dict[str, list[str]]:
    """Return the options that ``ssh -G`` prints, by name in lower case."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        name, _, value = line.strip().partition(" ")
        if name:
            found.setdefault(name.lower(), []).append(value.strip())
    return found


def warnings_of(options: Mapping[str, list[str]]) -> list[str]:
    """Say what in the effective configuration makes the connection less trustworthy than it looks."""
    strict = options.get("stricthostkeychecking", ["ask"])[0]
    files = options.get("userknownhostsfile", [""])[0].split()
    if strict in {"no", "off", "false"}:
        why = f"StrictHostKeyChecking {strict}"
    elif strict == "accept-new" and files and all(name == "/dev/null" for name in files):
        why = "StrictHostKeyChecking accept-new without a known_hosts file"
    else:
        return []
    return [_UNCHECKED.format(why)]


def client_env(options: Mapping[str, list[str]], ours: Mapping[str, str]) -> dict[str, str]:
    """Return the client's environment: ours without what ``SendEnv`` would hand on to the far host.

    Args:
        options: As ``effective`` returns them.
        ours: This process's environment.
    """
    sent = [pattern for value in options.get("sendenv", []) for pattern in value.split()]
    return {
        name: value
        for name, value in ours.items()
        if name in NEEDED or not any(fnmatchcase(name, pattern) for pattern in sent)
    }
