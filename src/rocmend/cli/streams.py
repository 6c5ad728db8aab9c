"""Making stdout and stderr safe to write to, however the program was started."""

from __future__ import annotations

import codecs
import io
import os
import sys
from pathlib import Path

from rocmend.core.files import naming
from rocmend.core.visible import visible

STDOUT = Path("standard output")
"""What errors of writing to it are said to be about."""


def prepare_streams() -> None:
    """Open the streams that the caller closed, and print ASCII (``#`` for a bar) for what a terminal's encoding lacks.

    Without this a report with an arrow in it ends in a traceback under ``LC_ALL=C``, and any output does under ``>&-``.
    """
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  stays open until the program ends
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  stays open until the program ends
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors=_register())
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(errors=_register())


_ONE_FOR_ONE = ("█▒▓░━─│├└●•µ·→←", "#=+.=-||`o*u*><")
_ASCII = str.maketrans(*_ONE_FOR_ONE) | str.maketrans(
    {
        "…": "...",
        "\N{MULTIPLICATION SIGN}": "x",
        "\N{EN DASH}": "-",
        "\N{EM DASH}": "-",
        "\N{LEFT SINGLE QUOTATION MARK}": "'",
        "\N{RIGHT SINGLE QUOTATION MARK}": "'",
        "“": '"',
        "”": '"',
        "²": "^2",
        "³": "^3",
        "™": "",
        "®": "",
    }
)


def _register() -> str:
    """Return the name of the error handler that writes what stands nearest in ASCII, and ``?`` for the rest."""
    codecs.register_error("rocmend-ascii", _nearest)
    return "rocmend-ascii"


def _nearest(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    told = error.object[error.start : error.end].translate(_ASCII)
    return told.encode("ascii", "replace").decode("ascii"), error.end


def write_data(text: str) -> None:
    """Write JSON, Markdown or SARIF to stdout: in UTF-8 whatever the locale, as their readers expect."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    with naming(STDOUT):
        sys.stdout.write(text)


def write_text(text: str) -> None:
    """Write a script to stdout; on a terminal without what would steer it."""
    sys.stdout.write(visible(text) if sys.stdout.isatty() else text)


def write_bytes(data: bytes, *, raw: bool = False) -> None:
    """Write a patch or an artifact to stdout: the bytes that files have, or on a terminal text that does not steer it.

    Args:
        data: What to write.
        raw: As it is on a terminal too.
    """
    if sys.stdout.isatty() and not raw:
        sys.stdout.write(visible(data.decode("utf-8", "replace")))
        return
    binary = getattr(sys.stdout, "buffer", None)
    if binary is None:
        sys.stdout.write(data.decode("utf-8", "replace"))
        return
    with naming(STDOUT):
        sys.stdout.flush()
        binary.write(data)


def silence_stdout() -> None:
    """Keep the interpreter from complaining about a closed pipe or full disk when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
