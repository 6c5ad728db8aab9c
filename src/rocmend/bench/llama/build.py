"""A build of llama.cpp: its programs, and the options that they say they have."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from rocmend.core.errors import UsageError
from rocmend.runner.events import Event, EventKind
from rocmend.runner.result import AttemptResult
from rocmend.runner.run import run_attempt
from rocmend.runner.spec import AttemptSpec, Command, Limits

PROGRAM = "llama-bench"
ASKING = Limits(total_s=120.0, silence_s=90.0)
"""Limits of a question such as --help: a driver that loads slowly, or hangs, while it is asked."""
_OPTION = re.compile(r"^\s{0,8}(-[\w-]+(?:,? {1,8}-[\w-]+|,\s*-[\w-]+)*)(?:\s+(<[^>]*>|\[[^\]]*\]))?")
_DEFAULT = re.compile(r"\(default: ([^)\s]{1,100})\)")
_CHOICE = re.compile(r"[\w+.-]+")
_DEVICE = re.compile(r"^\s{1,8}([A-Za-z]+\d+): (.{1,200}?)(?: \((\d+) MiB.*)?$")
_INIT_DEVICE = re.compile(r"^ *Device (\d+): (.{1,200}?), (?:gfx|compute|VMM)")
_INIT_VULKAN = re.compile(r"^ggml_vulkan: (\d+) = (.{1,200}?) \|")
_TARGET = re.compile(r"\bgfx[0-9a-f]{3,5}\b", re.IGNORECASE)

Environment = Mapping[str, str | None]


class Said(msgspec.Struct, frozen=True):
    """What a program printed, and how it ended.

    Attributes:
        result: How it ended.
        out: Lines of its standard output.
        err: Lines of its standard error.
    """

    result: AttemptResult
    out: tuple[str, ...]
    err: tuple[str, ...]

    @property
    def ran(self) -> bool:
        """It was started and ended by itself."""
        return self.result.exit_code is not None


def say(name: str, argv: Sequence[str], env: Environment, limits: Limits, stop: object = None) -> Said:
    """Run a program under supervision, and keep the lines of its two streams apart."""
    lines: dict[str, list[str]] = {"stdout": [], "stderr": []}

    def keep(event: Event) -> None:
        if event.kind is EventKind.OUTPUT and len(lines[event.stream]) < 100_000:
            lines[event.stream].append(event.text)

    silence = dict.fromkeys(_phases(), limits.silence_s)
    bounds = msgspec.structs.replace(limits, phase_silence=silence)
    spec = AttemptSpec(name, Command(tuple(argv)), env=dict(env), phases="llama.cpp", limits=bounds)
    result = run_attempt(spec, on_event=keep, stop=stop if callable(stop) else None)
    return Said(result, tuple(lines["stdout"]), tuple(lines["stderr"]))


def _phases() -> tuple[str, ...]:
    from rocmend.runner.phases import load_phases

    return ("start", *(phase.name for phase in load_phases("llama.cpp").phases))


class Help(msgspec.Struct, frozen=True):
    """Options that a program's --help names.

    Attributes:
        values: Each spelling to what it takes, as printed: ``<0|1>``; empty where nothing is printed.
        defaults: Each spelling to the default that is printed.
    """

    values: dict[str, str]
    defaults: dict[str, str] = {}

    def has(self, *spellings: str) -> str:
        """Return the first of these spellings that the program has; empty where it has none."""
        return next((name for name in spellings if name in self.values), "")

    def number(self, *spellings: str) -> int:
        """Return the default of an option, a number above 0; 0 where its help gives none."""
        text = self.defaults.get(self.has(*spellings), "")
        return int(text) if text.isdecimal() else 0

    def choices(self, spelling: str) -> tuple[str, ...]:
        """Return the words that an option takes, as its help lists them; empty where it lists none."""
        text = self.values.get(spelling, "")
        return tuple(_CHOICE.findall(text)) if "|" in text or "," in text else ()


def parse_help(lines: Sequence[str]) -> Help:
    """Read the options from what --help printed; lines that say DEPRECATED are left out."""
    values: dict[str, str] = {}
    defaults: dict[str, str] = {}
    for line in lines:
        match = _OPTION.match(line[:400])
        if match is None or "DEPRECATED" in line:
            continue
        for name in re.findall(r"(?<![\w-])-{1,2}[A-Za-z][\w-]*", match[1]):
            values.setdefault(name, match[2] or "")
            if default := _DEFAULT.search(line[:400]):
                defaults.setdefault(name, default[1])
    return Help(values, defaults)


class Device(msgspec.Struct, frozen=True):
    """A device that a build found.

    Attributes:
        id: As the build names it: ``ROCm0``, ``Vulkan0``.
        name: What it calls itself.
        gfx_target: Where the build prints it.
    """

    id: str
    name: str
    gfx_target: str = ""

    @property
    def kind(self) -> str:
        """The back end: ``rocm``, ``vulkan``, ``cuda``."""
        return re.sub(r"\d+$", "", self.id).lower()


class Build(msgspec.Struct, frozen=True):
    """A build of llama.cpp.

    Attributes:
        name: What it is called in results.
        path: Its llama-bench.
        help: Its options.
    """

    name: str
    path: Path
    help: Help

    def beside(self, *names: str) -> Path | None:
        """Return the first of these programs that lies beside llama-bench."""
        paths = (self.path.with_name(name) for name in names)
        return next((path for path in paths if path.is_file()), None)

    def devices(self, env: Environment) -> list[Device]:
        """Return the devices that the build finds in an environment, the processor not among them."""
        listing = self.help.has("--list-devices")
        said = say("devices", [str(self.path), listing or "--help"], env, ASKING)
        if listing:
            found = [Device(m[1], m[2]) for line in said.out if (m := _DEVICE.match(line[:400]))]
            return [device for device in found if device.kind not in {"cpu", "blas"}]
        return init_devices((*said.err, *said.out))


def init_devices(lines: Sequence[str]) -> list[Device]:
    """Return the devices that the back ends name when they start."""
    kind, found = "ROCm", []
    for line in lines:
        if line.startswith("ggml_cuda_init: found"):
            kind = "ROCm" if "ROCm" in line else "CUDA"
        if match := _INIT_DEVICE.match(line[:400]):
            found.append(Device(f"{kind}{match[1]}", match[2], target_in(line[:400])))
        elif match := _INIT_VULKAN.match(line[:400]):
            found.append(Device(f"Vulkan{match[1]}", match[2], target_in(match[2])))
    return found


def target_in(text: str) -> str:
    """Return the gfx target that a device's name or an initialization line holds."""
    match = _TARGET.search(text)
    return match[0].lower() if match else ""


def find_builds(named: Sequence[tuple[str, str]]) -> list[Build]:
    """Return the builds to measure, their options read.

    Args:
        named: Name and path of each: of llama-bench, or of a folder that holds it, or its ``bin``. None for the
            llama-bench on PATH.

    Raises:
        UsageError: There is none, or it does not answer --help.
    """
    if not named:
        found = shutil.which(PROGRAM)
        if found is None:
            raise UsageError(
                PROGRAM,
                "is not on PATH.",
                next_step="Name a build with --build NAME=PATH; `rocmend kb search llama.cpp packages` says where to "
                "get one.",
            )
        named = [("", found)]
    return [_build(name, Path(path).expanduser()) for name, path in named]


def _build(name: str, path: Path) -> Build:
    inside = (path, path / PROGRAM, path / "bin" / PROGRAM, path / "build" / "bin" / PROGRAM)
    program = next((place for place in inside if place.is_file()), None)
    if program is None:
        raise UsageError("--build", f"{path} is no {PROGRAM} and holds none.", next_step="Build or install it first.")
    return Build(name, program.absolute(), help_of(program))


def help_of(program: Path) -> Help:
    """Return the options that a program says it has.

    Raises:
        UsageError: It prints none.
    """
    said = say("help", [str(program.absolute()), "--help"], {}, ASKING)
    found = parse_help((*said.out, *said.err))
    if not found.has("-m", "--model"):
        last = next((line[:200] for line in reversed((*said.out, *said.err)) if line.strip()), "nothing")
        raise UsageError(
            str(program),
            f"does not answer --help with its options: {said.result.reason}. The last line that it printed: {last}",
            next_step="Run it by hand with --help; a shared library that is missing is a usual cause.",
        )
    return found
