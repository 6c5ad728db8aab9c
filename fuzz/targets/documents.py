"""Documents of strangers: what a project, an experiment, an attempt or a knowledge entry says of itself.

The first byte of an input says which kind it is. A document is read or refused, within the target's time and memory.
"""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from fuzz.target import BrokenPromiseError, Target, choice
from rocmend.core.documents import check_toml, decode_json, parse_toml
from rocmend.core.errors import RocmendError
from rocmend.kb.load import load_entries
from rocmend.lab.load import parse_experiment
from rocmend.port.build import asked
from rocmend.port.settings import settings
from rocmend.runner.phases import load_phases


def toml(data: bytes) -> None:
    """TOML, which is read as tomllib reads it, or refused before."""
    text = data.decode(errors="replace")
    check_toml(text, "fuzz")
    try:
        wanted = tomllib.loads(text)
    except (ValueError, RecursionError):
        wanted = None
    try:
        found = parse_toml(text, "fuzz")
    except RocmendError:
        found = None
    if repr(found) != repr(wanted):  # not ==: NaN is a value of TOML
        raise BrokenPromiseError(f"{found!r} for {wanted!r}")


def json(data: bytes) -> None:
    """JSON of any shape."""
    decode_json(data, object, subject="fuzz")


def project(data: bytes) -> None:
    """A project's own settings and what it asks for."""
    with tempfile.TemporaryDirectory(prefix="rocmend-fuzz-") as folder:
        (Path(folder) / "pyproject.toml").write_bytes(data)
        with suppress(RocmendError):
            settings(Path(folder))
        with suppress(RocmendError):
            asked.project(Path(folder))


def requirements(data: bytes) -> None:
    """A project's requirements."""
    with tempfile.TemporaryDirectory(prefix="rocmend-fuzz-") as folder:
        (Path(folder) / "requirements.txt").write_bytes(data)
        asked.project(Path(folder))


def experiment(data: bytes) -> None:
    """An experiment of the lab."""
    parse_experiment(data, Path("fuzz.toml"))


def phases(data: bytes) -> None:
    """A set of phases."""
    with tempfile.TemporaryDirectory(prefix="rocmend-fuzz-") as folder:
        path = Path(folder) / "set.toml"
        path.write_bytes(data)
        load_phases(str(path))


def knowledge(data: bytes) -> None:
    """An entry of a knowledge folder."""
    with tempfile.TemporaryDirectory(prefix="rocmend-fuzz-") as folder:
        path = Path(folder) / "topic" / "an-entry.md"
        path.parent.mkdir()
        path.write_bytes(data)
        load_entries(Path(folder), builtin=False)


KINDS = (toml, json, project, requirements, experiment, phases, knowledge)


def seeds() -> Iterator[bytes]:
    """Yield documents of each kind."""
    root = Path(__file__).parents[2]
    yield b'\x00a.b = 1\n[c]\nd = [1, "x", {e = 2}]\nf = 1979-05-27T07:32:00Z\ng = """\nx\\\n"""\nh = 0xff\ni = nan\n'
    yield b"\x00" + b"a." * 40 + b"a = 1\n" + b"b = " + b"[" * 40 + b"]" * 40
    yield b'\x01{"a": [1, 2.5e3, null, true, "\\u00e9"]}'
    yield b"\x01" + b"[" * 200
    yield b'\x02[project]\ndependencies = ["torch>=2; python_version>\'3\'"]\n[tool.rocmend.port]\nexclude = ["*.cu"]\n'
    yield b'\x02[tool.uv.workspace]\nmembers = ["../*", "/*", ""]\n[tool.uv.sources]\ntorch = [{index = "x"}]\n'
    yield b"\x03torch==2.1.0+cu121 --hash=sha256:00\n-r ../other.txt\n-e git+https://example.invalid/x#egg=x\n"
    yield b"\x04" + (root / "src" / "rocmend" / "examples" / "experiments" / "strix-halo-load-hang.toml").read_bytes()
    yield b"\x05[set]\ntitle = 'x'\n[[phases]]\nname = 'a'\nwords = ['a']\npattern = '(a|b)+'\n"
    entry = next(iter(sorted((root / "src" / "rocmend" / "kb" / "entries").rglob("*.md"))))
    yield b"\x06" + entry.read_bytes()


_kinds = choice(KINDS)


def read(data: bytes) -> None:
    """Read it as the kind that its first byte names."""
    with suppress(RocmendError):
        _kinds(data)


TARGET = Target(read, seeds, max_bytes=8192)
