"""What Linux says of itself: os-release, kernel releases and command lines, meminfo, cpuinfo, key-value files.

Sources: os-release(5); https://docs.kernel.org/admin-guide/kernel-parameters.html; lib/cmdline.c (next_arg) for quotes.
"""

from __future__ import annotations

import re
import shlex

import msgspec

MAX_CHARS = 1 << 22
"""Characters looked at; /proc/cpuinfo of 384 threads has 600,000."""

_RELEASE = re.compile(r"(\d{1,9}(?:\.\d{1,9}){0,5})((?:[-.]\d{1,12}(?=[-.+~]|\Z))*)[-.+~]?(.*)", re.DOTALL)
_MEMINFO = re.compile(r"^(\w[\w()]{0,60}):[ \t]+(\d{1,18})(?:[ \t]+(kB))?[ \t]*$", re.MULTILINE)


class Release(msgspec.Struct, frozen=True):
    """A kernel release taken apart.

    Attributes:
        version: Leading dotted numbers: ``6.17.0``.
        abi: The distribution's build number: 1018 of ``6.14.0-1018-oem``; None where there is none.
        flavour: The rest: ``oem``, ``generic``, ``arch1-1``, ``microsoft-standard-WSL2``.
    """

    version: str
    abi: int | None
    flavour: str


def parse_release(release: str) -> Release | None:
    """Take ``uname -r`` apart; None where it does not begin with a number."""
    match = _RELEASE.match(release.strip()[:300])
    if match is None:
        return None
    numbers = re.findall(r"\d+", match[2])
    return Release(match[1], int(numbers[0]) if numbers else None, match[3].strip("-.+~"))


def parse_cmdline(text: str) -> dict[str, str | None]:
    """Return the parameters of a kernel command line; a bare word has the value None, of several the last stands.

    Double quotes keep spaces together, around a value or a whole ``name=value``. After ``--`` come init's arguments.
    In a module's parameter (``amdgpu.cwsr-enable``) the kernel takes ``-`` for ``_``, and so do we.
    """
    params: dict[str, str | None] = {}
    for word in _words(text[:MAX_CHARS]):
        if word == "--":
            break
        body = word[1:-1] if len(word) > 1 and word.startswith('"') and word.endswith('"') else word.removeprefix('"')
        name, equals, value = body.partition("=")
        if len(value) > 1 and value.startswith('"') and value.endswith('"'):
            value = value[1:-1]
        if name:
            params[name.replace("-", "_") if "." in name else name] = value if equals else None
    return params


def _words(text: str) -> list[str]:
    """Split at white space outside double quotes; the quotes stay."""
    words: list[str] = []
    current: list[str] = []
    quoted = False
    for char in text:
        if char.isspace() and not quoted:
            if current:
                words.append("".join(current))
                current = []
            continue
        quoted ^= char == '"'
        current.append(char)
    if current:
        words.append("".join(current))
    return words


def parse_os_release(text: str) -> dict[str, str]:
    """Return the assignments of an os-release file; lines that are none are passed over."""
    found: dict[str, str] = {}
    for line in text[:MAX_CHARS].splitlines():
        name, equals, value = line.strip().partition("=")
        if not equals or not re.fullmatch(r"[A-Z][A-Z0-9_]{0,60}", name):
            continue
        try:
            found[name] = " ".join(shlex.split(value))
        except ValueError:  # an open quote
            found[name] = value.strip("\"'")
    return found


def parse_meminfo(text: str) -> dict[str, int]:
    """Return /proc/meminfo's sizes in bytes (counts as they stand)."""
    return {name: int(value) * (1024 if unit else 1) for name, value, unit in _MEMINFO.findall(text[:MAX_CHARS])}


class Cpu(msgspec.Struct, frozen=True):
    """What /proc/cpuinfo says.

    Attributes:
        model: Marketing name; empty where the architecture prints none.
        vendor: ``AuthenticAMD``, ``GenuineIntel`` …; empty likewise.
        count: Logical processors.
        hypervisor: The processor says that it is virtual.
    """

    model: str
    vendor: str
    count: int
    hypervisor: bool


def parse_cpuinfo(text: str) -> Cpu:
    """Read /proc/cpuinfo."""
    text = text[:MAX_CHARS]

    def first(name: str) -> str:
        match = re.search(rf"^{name}[ \t]*:[ \t]*(.{{0,300}})$", text, re.MULTILINE)
        return match[1].strip() if match else ""

    count = len(re.findall(r"^processor[ \t]*:", text, re.MULTILINE))
    hypervisor = re.search(r"^flags[ \t]*:[^\n]*\bhypervisor\b", text, re.MULTILINE) is not None
    return Cpu(first("model name"), first("vendor_id"), count, hypervisor)


def parse_int(text: str | None) -> int | None:
    """Return a decimal or 0x number of at most 20 digits, or None for anything else."""
    word = (text or "").strip()
    if re.fullmatch(r"-?\d{1,20}", word, re.ASCII):
        return int(word)
    return int(word, 16) if re.fullmatch(r"0[xX][0-9a-fA-F]{1,20}", word) else None


def parse_properties(text: str) -> dict[str, int]:
    """Return the lines ``name number`` of a KFD properties file; others are passed over."""
    found: dict[str, int] = {}
    for line in text[:MAX_CHARS].splitlines():
        name, _, value = line.strip().partition(" ")
        number = parse_int(value)
        if name and number is not None:
            found[name] = number
    return found


def parse_modprobe(text: str) -> tuple[dict[str, str], set[str]]:
    """Return the options (``module.parameter`` to value) and the blacklisted modules of a modprobe.d file.

    Source: modprobe.d(5).
    """
    options: dict[str, str] = {}
    blacklisted: set[str] = set()
    for line in text[:MAX_CHARS].replace("\\\n", " ").splitlines():
        words = _words(line.strip())
        if len(words) >= 2 and words[0] == "blacklist":
            blacklisted.add(words[1].replace("-", "_"))
        if len(words) < 3 or words[0] != "options":
            continue
        module = words[1].replace("-", "_")
        for word in words[2:]:
            name, equals, value = word.partition("=")
            options[f"{module}.{name.replace('-', '_')}"] = value.strip('"') if equals else ""
    return options, blacklisted
