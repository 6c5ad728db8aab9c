"""Filling ``{fact.key}`` into the texts of entries."""

from __future__ import annotations

import re
import shlex
from typing import Any

from rocmend.core.secrets import holds_token, is_secret_variable
from rocmend.core.units import size_text
from rocmend.kb.predicate import PredicateError, compile_name
from rocmend.kb.reading import UNKNOWN, Reading
from rocmend.machine.facts import Machine

PLACEHOLDER = re.compile(
    r"(?<![$\\])\{([a-z_][a-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)+(?:\[\"[^\"\]]*\"\])*"
    r"|[a-z_][a-z0-9_]*(?:\[\"[^\"\]]*\"\])+)\}"
)
"""A dotted fact key or a subscripted fact in braces; ``{gfx}``, ``${VAR}`` and code in braces are left alone."""

UNKNOWN_TEXT = "unknown"
OWN_PYTHON = "~/rocm-venv/bin/python"
"""Where commands go in place of a Python that belongs to the distribution."""
NULL_TEXT = "not set"


def placeholders(text: str) -> tuple[str, ...]:
    """Return the expressions that stand in braces, each once, in order."""
    return tuple(dict.fromkeys(match[1] for match in PLACEHOLDER.finditer(text)))


_UNSAFE = re.compile(r"[^\w.,:=+/@% -]", re.ASCII)
"""What a value must not bring into a shell line."""


def fill(text: str, machine: Machine, gpu: int | None = None, *, for_shell: bool = False) -> str:
    """Return a text with this machine's values in place of its placeholders.

    A size (``*_bytes``) is written in binary units, or in full where the word ``bytes`` follows. A fact that is not
    known is written ``unknown``; a null is ``not set``, except that a GPU without a marketing name is called by its
    gfx target.

    Args:
        text: With ``{kernel.release}``, ``{gpu.name}``, ``{packages["torch"]}`` …
        machine: Where the values come from.
        gpu: Index of the GPU that ``gpu`` stands for.
        for_shell: The text is for a shell: what could act there is replaced by ``_`` in values, and kept in a value
            that stands alone in single quotes, where it cannot act; the interpreter is quoted. What is not known is a
            word in capitals that a person replaces.
    """
    gpu = only_gpu(machine) if gpu is None else gpu

    def value_text(match: re.Match[str]) -> str:
        key = match[1]
        if for_shell and key == "python.executable":
            return _interpreter(machine)
        value = fact_value(key, machine, gpu)
        if key == "gpu.name" and (value is None or value is UNKNOWN):
            value = fact_value("gpu.gfx_target", machine, gpu)
        in_full = text[match.end() :].lstrip().startswith("bytes")
        if not for_shell:
            return render(key, value, in_full=in_full)
        told = str(value) if isinstance(value, int) and not isinstance(value, bool) else render(key, value)
        if value is None or value is UNKNOWN:
            return stand_in(key)
        before = text[: match.start()]
        opened = before.endswith("'") and before.count("'") % 2 == 1 and before.count('"') % 2 == 0
        quoted = opened and text[match.end() :].startswith("'")
        return _in_quotes(key, told) if quoted else _UNSAFE.sub("_", told)

    return PLACEHOLDER.sub(value_text, text) if "{" in text else text


def only_gpu(machine: Machine) -> int | None:
    """Return the GPU that a text means that names none: the first, where all are of one target."""
    gpus = machine.indices("gpu")
    return gpus[0] if len({machine.value(f"gpu.{gpu}.gfx_target") for gpu in gpus}) == 1 else None


def is_filled(text: str, machine: Machine, gpu: int | None = None) -> bool:
    """Whether every value that a command asks for is known on this machine."""
    gpu = only_gpu(machine) if gpu is None else gpu
    keys = [key for key in placeholders(text) if key != "python.executable"]
    return all(fact_value(key, machine, gpu) not in (None, UNKNOWN) for key in keys)


def _interpreter(machine: Machine) -> str:
    """Return how a shell starts the Python that a report is about; ``python3`` where that is not known."""
    if machine.value("python.externally_managed") is True:
        return OWN_PYTHON
    executable = machine.value("python.executable")
    usable = isinstance(executable, str) and executable and executable.isprintable() and "`" not in executable
    return shlex.quote(executable) if usable else "python3"


def _in_quotes(key: str, told: str) -> str:
    """Return a value between single quotes of a shell; for a secret, or what a line cannot hold, words that say so."""
    name = key.rpartition(".")[2]
    if "`" in told or not told.isprintable() or is_secret_variable(name) or holds_token(told):
        return stand_in(key)
    return told.replace("'", "'\\''")


def stand_in(key: str) -> str:
    """Return the word in capitals that a person replaces by a fact's value."""
    if key == "python.executable":
        return "python3"
    if key == "gpu.gfx_target":
        return "GFX_TARGET"
    if key.startswith("env."):
        return "OLD_VALUE"
    if key.startswith(("packages[", "rocm.packages[")):
        return "VERSION"
    if key == "kernel.unknown_params_given":
        return "THE_WORD"
    return "ROCM_FOLDER" if key == "rocm.path" else key.replace(".", "_").upper()


def fact_value(key: str, machine: Machine, gpu: int | None) -> Any:
    """Return the value that a placeholder names, or UNKNOWN."""
    try:
        return compile_name(key).evaluate(Reading(machine, gpu))
    except PredicateError:
        return UNKNOWN


def render(key: str, value: Any, *, in_full: bool = False) -> str:
    """Return a fact's value as a person reads it.

    Args:
        key: The fact's key; its ending tells the unit.
        value: A JSON value, or UNKNOWN.
        in_full: Write sizes as a number of bytes.
    """
    if value is None or isinstance(value, bool):
        return {None: NULL_TEXT, True: "yes", False: "no"}[value]
    if isinstance(value, int | float):
        if key.endswith("_bytes"):
            return f"{value:,}" if in_full else size_text(value)
        return str(value) if isinstance(value, int) else f"{value:.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(render(key, item) for item in value) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{name}={render(str(name), item)}" for name, item in value.items()) or "none"
    return UNKNOWN_TEXT if value is UNKNOWN else str(value)
