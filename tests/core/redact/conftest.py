from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from rocmend.core.redact import Redactor

HERE = Path(__file__).parent
HOSTS = ("gpu-box.corp.example", "zephyr7")
USERS = ("anna", "jdoe", "First Last", "marek.nowak")


class Planted(NamedTuple):
    """A text with what must not be left of it."""

    kind: str
    text: str
    secrets: tuple[str, ...]


def planted() -> list[Planted]:
    """Return the table of planted strings."""
    kinds = tomllib.loads((HERE / "planted.toml").read_text(encoding="utf-8"))["kind"]
    return [
        Planted(kind["name"], re.sub("[⟦⟧]", "", marked), tuple(re.findall("⟦(.*?)⟧", marked, re.DOTALL)))
        for kind in kinds
        for marked in kind["planted"]
    ]


def kept() -> list[str]:
    """Return the table of what stays."""
    table: list[str] = tomllib.loads((HERE / "kept.toml").read_text(encoding="utf-8"))["kept"]
    return table


def contexts(text: str) -> dict[str, str]:
    """Return a text as it is met."""
    return {
        "plain": text,
        "log": f"[   12.345678] amdgpu 0000:c5:00.0: note {text}",
        "json": json.dumps({"line": text, "n": 1}),
        "json in json": json.dumps({"line": json.dumps({"inner": text})}),
        "yaml": f"run:\n  - note: x\n    line: {text}\n    gfx: gfx1151",
        "traceback": f'  File "/usr/lib/python3.12/x.py", line 3, in main\n    {text}\nRuntimeError: {text}',
        "repr": repr(text),
        "shell": f"+ echo {text}\n",
    }


def left(planted: Planted, text: str) -> list[str]:
    """Return what of a planted text is left."""
    return [secret for secret in planted.secrets if secret.casefold() in text.casefold()]


@pytest.fixture
def redactor() -> Redactor:
    return Redactor(hosts=HOSTS, users=USERS)
