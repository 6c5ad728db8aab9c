"""Tuning records as text of a ``tuning.toml``, to give to others or to put into an op's own file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from rocmend.kernels.tuning import user
from rocmend.kernels.tuning.config import Value
from rocmend.kernels.tuning.propose import Proposals
from rocmend.kernels.tuning.user import release

Row = tuple[str, str, str, str, str, Mapping[str, Value], str]
"""Op, kernel, class, target, versions of Triton, parameters and source."""


def measured() -> list[Row]:
    """Return the records that were measured on this machine."""
    rows = user.read(user.path())[0]["records"]
    return [
        (
            row["op"],
            row["kernel"],
            row["class"],
            row["target"],
            _versions(row["triton"]),
            row["config"],
            user.source(row),
        )
        for row in rows
    ]


def proposed(found: Iterable[Proposals]) -> list[Row]:
    """Return the records that the model proposes."""
    return [
        (op.op, result.kernel, result.shape_class, op.target, _versions(op.triton), result.after, source(op))
        for op in found
        for result in op.results
        if result.proposed
    ]


def source(found: Proposals) -> str:
    """Return the source of a proposed record."""
    return f"model {found.model} ({found.target}), figures of {found.product}, Triton {found.triton}"


def _versions(triton: str) -> str:
    major, _, minor = release(triton).partition(".")
    return f">={major}.{minor},<{major}.{int(minor or 0) + 1}"


def toml(rows: Iterable[Row]) -> str:
    """Return records as TOML, by op."""
    parts: list[str] = []
    last = ""
    for row in sorted(rows, key=lambda row: row[:4]):
        if row[0] != last:
            parts.append(f"# ops/{row[0]}/tuning.toml")
            last = row[0]
        parts.append("\n".join(["[[record]]", *_lines(row)]))
    return "\n\n".join(parts) + "\n" if parts else ""


def _lines(row: Row) -> Iterable[str]:
    _, kernel, kind, target, versions, config, origin = row
    about = {"kernel": kernel, "class": kind, "target": target, "triton": versions, "source": origin}
    yield from (f"{name} = {_text(value)}" for name, value in about.items())
    yield f"config = {{ {', '.join(f'{name} = {_text(value)}' for name, value in config.items())} }}"


def _text(value: Any) -> str:
    # JSON's strings, numbers and booleans are TOML's, too
    return json.dumps(value, ensure_ascii=False)
