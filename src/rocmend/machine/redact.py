"""Replacing what identifies a person or a machine, the same thing always by the same placeholder.

Versions, PCI slots and PCI ids stay: they are what a diagnosis needs. Placeholders keep the form of what they replace
(a MAC address becomes another MAC address), so that what parses still parses, and are themselves left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

GENERIC_NAMES = frozenset(
    {
        *("localhost", "linux", "gpu", "amd", "amdgpu", "rocm", "kernel", "vm", "host", "server", "desktop", "laptop"),
        *("workstation", "pc", "home", "root", "user", "users", "admin", "test", "node", "none", "unknown", "docker"),
        *(
            "ubuntu",
            "debian",
            "fedora",
            "arch",
            "archlinux",
            "nixos",
            "gentoo",
            "manjaro",
            "cachyos",
            "opensuse",
            "suse",
        ),
        *("mint", "pop-os", "rhel", "centos", "rocky", "alma", "proxmox", "pve", "steamdeck", "deck", "wsl", "python"),
        *("torch", "ollama", "llama", "vulkan", "system", "default", "local", "build", "runner", "render", "video"),
        *("daemon", "nobody", "strix", "halo", "framework", "main", "dev", "name", "version", "ok", "absent", "error"),
    }
)
"""Names that identify nobody and occur in facts; they are replaced only where they stand as a host or a home."""

KNOWN_GROUPS = frozenset(
    {
        *(
            "root",
            "render",
            "video",
            "wheel",
            "sudo",
            "adm",
            "docker",
            "users",
            "audio",
            "plugdev",
            "netdev",
            "dialout",
        ),
        *("cdrom", "dip", "floppy", "tape", "input", "kvm", "libvirt", "lp", "lpadmin", "games", "staff", "nogroup"),
        *(
            "disk",
            "tty",
            "sys",
            "systemd-journal",
            "podman",
            "lxd",
            "incus",
            "bluetooth",
            "scanner",
            "sambashare",
            "uucp",
        ),
        *("storage", "optical", "network", "power", "rfkill", "log", "users", "nobody", "ollama", "daemon", "bin"),
    }
)
"""Groups that systems create themselves; another one's name can be an organisation's."""

_STAMP = r"(?:\d{4}-\d\d-\d\dT[\d:.,+Z-]+|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?|\[[ \d.]+\])"
_LOG_HOST = re.compile(rf"^((?:<\d+>)?{_STAMP}[ \t]+)([A-Za-z0-9][\w.-]{{0,252}})(?=[ \t]+kernel:)", re.MULTILINE)
_HOME = re.compile(r"((?:/var)?/home/|/mnt/[a-z]/Users/|/Users/|\\Users\\)([^/\\\s:\"'<>|,;]{1,255})")
_CREDENTIALS = re.compile(r"(?<=://)[^/\s@\"']{1,200}@")
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}([A-Za-z]{2,24})(?![\w-])")
_UNIT_SUFFIXES = {
    "service",
    "socket",
    "timer",
    "slice",
    "scope",
    "mount",
    "target",
    "device",
    "path",
    "conf",
    "invalid",
}
_UUID = re.compile(r"(?<![0-9A-Fa-f-])[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?![0-9A-Fa-f-])")
_MACHINE_ID = re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{32}(?![0-9A-Za-z])")
_MAC = re.compile(
    r"(?<![0-9A-Fa-f:.-])[0-9A-Fa-f]{2}(?:([:-])[0-9A-Fa-f]{2})(?:\1[0-9A-Fa-f]{2}){4,18}(?![0-9A-Fa-f:.-])"
)
_H16 = "[0-9A-Fa-f]{1,4}"
_IPV6 = re.compile(
    rf"(?<![\w:.])(?:(?:{_H16}:){{7}}{_H16}"
    rf"|(?:[23][0-9A-Fa-f]{{3}}|fe80|f[cd][0-9A-Fa-f]{{2}})(?::{_H16}){{0,6}}::(?:{_H16}(?::{_H16}){{0,6}})?)(?![\w:])",
    re.IGNORECASE,
)
_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_IPV4 = re.compile(
    rf"(?<![\w.+-])(?:(?P<private>192\.168|172\.(?:1[6-9]|2\d|3[01]))\.{_OCTET}\.{_OCTET}|{_OCTET}(?:\.{_OCTET}){{3}})"
    r"(?!\.?\d)"
)
_IP_BEFORE = re.compile(
    r"(?:\b(?:ip|addr|address|host|hostname|server|inet|gateway|gw|dns|nfs|nfsroot|proxy|peer)"
    r"[\"']?[ \t]{0,3}[:=]?[ \t]{0,3}[\"']?|//|@)$",
    re.IGNORECASE,
)
_IP_AFTER = re.compile(r"^(?::\d{2,5}\b|/\d{1,2}\b)")
_SERIAL = re.compile(
    r"""((?:(?:\b|_)(?:serial(?:[ _]?(?:number|no|num))?|fru_?id)["']?[ \t]{0,8}[:=]"""
    r"""|\bunique[ _]?id["']?[ \t]{0,8}[:= \t])[ \t]{0,20}["']?)"""
    r"""((?:0x)?[A-Za-z0-9][A-Za-z0-9._-]{2,80})""",
    re.IGNORECASE,
)
_DEVICE_UUID = re.compile(r"\b(GPU|CPU|AIE)-([0-9A-Fa-f]{8,32})\b")
_TOKEN = re.compile(r"\b(?:hf|ghp|gho|ghs|github_pat|glpat|sk|xox[abp])[_-][A-Za-z0-9_-]{16,255}")
_CMDLINE = re.compile(
    r"(?<!\S)((?:root|resume|rd\.[\w.]+|cryptdevice|luks[\w.]*|nfsroot|ip|systemd\.machine_id|"
    r"\w*(?:passw|token|secret|key|auth)\w*)=)(\"[^\"]*\"|\S+)",
    re.IGNORECASE,
)
REDACTED = "redacted"

_MAX_ROUNDS = 5  # one replaces, one finds nothing more; text glued together by chance takes a third


class Redactor:
    """Replaces identifying text; remembers what it replaced, so that one thing keeps one placeholder.

    Args:
        hosts: The machine's names; a fully qualified one also stands for its first part.
        users: Names of people's accounts.

    Attributes:
        replaced: How many different things of each kind were replaced.
    """

    def __init__(self, *, hosts: Iterable[str] = (), users: Iterable[str] = ()) -> None:
        self._known: dict[str, dict[str, str]] = {}
        names = {part for host in hosts for part in (host, host.partition(".")[0]) if part}
        words = dict.fromkeys(names, "host") | {name: "user" for name in users if name}
        self._kinds = {
            name: kind for name, kind in words.items() if name.lower() not in GENERIC_NAMES and len(name) > 2
        }
        alternatives = "|".join(re.escape(name) for name in sorted(self._kinds, key=len, reverse=True))
        self._words = re.compile(rf"(?<![\w-])(?:{alternatives})(?![\w-])") if alternatives else None

    @property
    def replaced(self) -> dict[str, int]:
        """Number of different things replaced, by kind."""
        return {kind: len(known) for kind, known in sorted(self._known.items())}

    def _place(self, kind: str, found: str, form: str) -> str:
        """Return the placeholder of ``found``; one that is a placeholder already stays."""
        known = self._known.setdefault(kind, {})
        if found in known.values():
            return found
        return known.setdefault(found, form.format(number=len(known) + 1))

    def host(self, name: str) -> str:
        """Replace a host name."""
        short = name.partition(".")[0]
        return name if re.fullmatch(r"host\d+", short) else self._place("host", short, "host{number}")

    def user(self, name: str) -> str:
        """Replace an account's name; root stays."""
        if name in {"", "root", "nobody"} or re.fullmatch(r"user\d+", name):
            return name
        return self._place("user", name, "user{number}")

    def group(self, name: str) -> str:
        """Replace a group's name, unless systems have such a group of themselves or it is a number."""
        if (
            not name
            or name in KNOWN_GROUPS | GENERIC_NAMES
            or name.isdigit()
            or re.fullmatch(r"(?:group|user)\d+", name)
        ):
            return name
        return self.user(name) if self._kinds.get(name) == "user" else self._place("group", name, "group{number}")

    def text(self, text: str) -> str:
        """Replace everything that identifies, until nothing changes any more: a result is stable."""
        for _ in range(_MAX_ROUNDS):
            before, text = text, self._once(text)
            if text == before:
                break
        return text

    def _once(self, text: str) -> str:
        text = _CREDENTIALS.sub(f"{REDACTED}@", text)
        text = _TOKEN.sub(REDACTED, text)
        text = _CMDLINE.sub(lambda match: match[1] + REDACTED, text)
        text = _LOG_HOST.sub(lambda match: match[1] + self.host(match[2]), text)
        text = _HOME.sub(lambda match: match[1] + self._home(match[2]), text)
        text = _EMAIL.sub(self._email, text)
        text = _UUID.sub(lambda match: self._numbered("uuid", match[0], "00000000-0000-0000-0000-{:012d}"), text)
        text = _SERIAL.sub(self._serial, text)
        text = _MACHINE_ID.sub(lambda match: self._numbered("machine id", match[0], "{:032d}"), text)
        text = _DEVICE_UUID.sub(lambda match: f"{match[1]}-{self._numbered('device id', match[2], '{:016d}')}", text)
        text = _MAC.sub(self._mac, text)
        text = _IPV6.sub(self._ipv6, text)
        text = _IPV4.sub(self._ipv4, text)
        if self._words is not None:
            text = self._words.sub(self._word, text)
        return text

    def path(self, path: str) -> str:
        """Replace what identifies in a path of the machine."""
        return self.text(path)

    def variable(self, name: str, value: str) -> str:
        """Replace what identifies in an environment variable's value."""
        if _IPV4.fullmatch(value.partition(":")[0]) and "VERSION" not in name:
            address, colon, port = value.partition(":")
            return self._address(address) + colon + port
        return self.text(value)

    def data(self, data: bytes) -> bytes:
        """Replace what identifies in a file's contents."""
        return self.text(data.decode(errors="surrogateescape")).encode(errors="surrogateescape")

    def json(self, value: Any) -> Any:
        """Replace what identifies in every text of a JSON value, keys included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.json(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.json(item) for item in value]
        return value

    # -- one replacement each ------------------------------------------------------------------------------------------

    def _numbered(self, kind: str, found: str, form: str) -> str:
        """Return a placeholder of digits in the form of ``found``; zeros, and placeholders, stay."""
        digits = re.sub(r"[^0-9A-Fa-f]", "", found)
        if re.fullmatch(r"0+\d{0,4}", digits):
            return found
        known = self._known.setdefault(kind, {})
        key = found.lower()
        if key not in known:
            known[key] = form.format(len(known) + 1)
        return known[key]

    def _home(self, name: str) -> str:
        return name if name in {"Public", "Shared", "linuxbrew", "."} else self.user(name)

    def _word(self, match: re.Match[str]) -> str:
        return self.host(match[0]) if self._kinds[match[0]] == "host" else self.user(match[0])

    def _email(self, match: re.Match[str]) -> str:
        if match[1].lower() in _UNIT_SUFFIXES or match[0].startswith(f"{REDACTED}@"):
            return match[0]
        return self._place("email", match[0].lower(), "person{number}@example.invalid")

    def _serial(self, match: re.Match[str]) -> str:
        value = match[2]
        if re.fullmatch(r"(?i)n/?a|none|null|x+|serial-\d+|redacted", value):
            return match[0]
        number = re.fullmatch(r"(0[xX])?0*([0-9A-Fa-f]*)", value)
        if number is None:
            return match[1] + self._place("serial number", value, "serial-{number}")
        if re.fullmatch(r"\d{0,4}", number[2]):  # zero, or a placeholder
            return match[0]
        known = self._known.setdefault("serial number", {})
        placeholder = known.setdefault(value.lower(), str(len(known) + 1))
        prefix = number[1] or ""
        return match[1] + prefix + (placeholder.rjust(len(value) - 2, "0") if prefix else placeholder)

    def _mac(self, match: re.Match[str]) -> str:
        joint = match[1]
        count = match[0].count(joint) + 1
        if match[0].startswith(joint.join(["02", "00", "00", "00"])):
            return match[0]
        known = self._known.setdefault("mac address", {})
        number = known.setdefault(match[0].lower(), str(len(known) + 1))
        low, high = int(number) % 256, int(number) // 256 % 256
        return joint.join(["02", *["00"] * (count - 3), f"{high:02x}", f"{low:02x}"])

    def _ipv6(self, match: re.Match[str]) -> str:
        text = match[0]
        if text.lower().startswith("2001:db8:") or re.fullmatch(r"02(?::00){5}(?::[0-9a-f]{2}){2}", text):
            return text  # a placeholder, of an address or of an eight-byte MAC
        return self._place("ip address", text.lower(), "2001:db8::{number}")

    def _ipv4(self, match: re.Match[str]) -> str:
        before, after = match.string[max(0, match.start() - 40) : match.start()], match.string[match.end() :][:8]
        known = _IP_BEFORE.search(before) or _IP_AFTER.match(after)
        if not match["private"] and (not known or re.match(r"[\w+-]", after)):
            return match[0]  # a version
        return self._address(match[0])

    def _address(self, address: str) -> str:
        if address.startswith(("127.", "0.", "192.0.2.", "255.")):
            return address
        known = self._known.setdefault("ip address", {})
        number = known.setdefault(address, str(len(known) + 1))
        return f"192.0.2.{int(number) % 255}"
