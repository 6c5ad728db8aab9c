"""The JSON envelope around what a command computed; its fields are a contract."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rocmend.core.errors import RocmendError
from rocmend.core.records import SCHEMA_VERSION
from rocmend.core.visible import json_safe

if TYPE_CHECKING:
    from rocmend.core.redact import Redactor

CLEAN, FINDINGS, FAILED, INTERRUPTED = 0, 1, 2, 130
"""Exit codes: nothing found; findings or failed trials; usage or internal error; ended by Ctrl-C, as shells have it."""

_STATUS = {CLEAN: "clean", FINDINGS: "findings", FAILED: "error", INTERRUPTED: "interrupted"}


class ErrorRecord(msgspec.Struct, frozen=True):
    """An error in the envelope: its coded kind, what it is about, and its parts."""

    code: str
    subject: str
    message: str
    why: str = ""
    next_step: str = ""


class Outcome(msgspec.Struct, frozen=True):
    """What a command computed.

    Attributes:
        command: The command's name, e.g. ``wheel inspect``.
        data: A record or JSON value.
        exit_code: 0 clean, 1 findings or failed trials, 2 usage or internal error, 130 interrupted.
        errors: What went wrong, if anything did.
        judged: Something was judged; where nothing was, exit code 0 is not called clean.
    """

    command: str
    data: Any = None
    exit_code: int = CLEAN
    errors: tuple[ErrorRecord, ...] = ()
    judged: bool = True


def error_outcome(command: str, error: RocmendError, data: Any = None) -> Outcome:
    """Return the outcome of a command that ended in an error, with what it computed before."""
    record = ErrorRecord(error.code, error.subject, error.message, error.why, error.next_step)
    return Outcome(command, data, FAILED, (record,))


def to_json(outcome: Outcome, *, redactor: Redactor | None = None, indent: int = 2) -> str:
    """Return the envelope as JSON text with a final newline.

    Args:
        outcome: What was computed.
        redactor: Replaces what identifies; None leaves everything as it is, and the envelope says so.
        indent: Spaces a level.
    """
    envelope = {
        "schema_version": SCHEMA_VERSION,
        "command": outcome.command,
        "status": _STATUS[outcome.exit_code] if outcome.judged or outcome.exit_code else "not-judged",
        "exit_code": outcome.exit_code,
        "redacted": redactor is not None,
        "data": outcome.data,
        "errors": outcome.errors,
    }
    if redactor is not None:
        for part in ("data", "errors"):
            envelope[part] = redactor.json(msgspec.to_builtins(envelope[part], enc_hook=_encode_other))
        if redactor.learned:  # names that stand before the text which tells what they are
            envelope |= {part: redactor.json(envelope[part]) for part in ("data", "errors")}
    try:
        encoded = msgspec.json.encode(envelope, enc_hook=_encode_other)
    except UnicodeEncodeError:  # a file name that is not UTF-8
        encoded = msgspec.json.encode(_readable(msgspec.to_builtins(envelope, enc_hook=_encode_other)))
    return json_safe(msgspec.json.format(encoded, indent=indent).decode()) + "\n"


def _encode_other(value: object) -> object:
    """Encode what msgspec does not know by itself: paths as text."""
    from pathlib import PurePath

    if isinstance(value, PurePath):
        return str(value)
    raise NotImplementedError(f"a {type(value).__name__} can't be written as JSON")


def _readable(value: Any) -> Any:
    r"""Write the bytes of a name that are not UTF-8 as ``\udcff``: JSON has no way to hold them."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {_readable(key): _readable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_readable(item) for item in value]
    return value
