"""Render trials as JUnit XML, the form in which CI systems show test results."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rocmend.core.verdict import Verdict

_ELEMENT = {
    Verdict.PASS: "",
    Verdict.WRONG_OUTPUT: "failure",
    Verdict.SLOW: "failure",
    Verdict.HANG: "failure",
    Verdict.CRASH: "failure",
    Verdict.GPU_RESET: "failure",
    Verdict.OOM: "failure",
    Verdict.SILENT_CPU_FALLBACK: "failure",
    Verdict.UNSUPPORTED: "skipped",
    Verdict.INFRA: "error",
    Verdict.SKIPPED: "skipped",
}
"""What a verdict becomes: ``failure`` says something about what was tried, ``error`` that it could not be tried."""

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML 1.0 document may hold, escaped or not. Source: https://www.w3.org/TR/xml/#charsets"""

_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
)


class Case(NamedTuple):
    """One trial.

    Attributes:
        name: What was tried, e.g. ``conv2d-float16``.
        classname: The group that it belongs to; CI systems show it as a folder at each dot.
        time_s: Wall time in seconds; left out where it is no finite number.
        verdict: What came out.
        message: Why, in a sentence; further lines are for those who ask more.
        output: What it printed, shown where it did not pass.
    """

    name: str
    classname: str
    time_s: float
    verdict: Verdict
    message: str = ""
    output: str = ""


class Suite(NamedTuple):
    """What becomes one document.

    Attributes:
        cases: The trials, in order.
        name: E.g. ``rocmend probe``.
        started_at: ISO time of its start.
    """

    cases: tuple[Case, ...]
    name: str
    started_at: str = ""


def render(
    cases: Iterable[Case], *, name: str, started_at: str = "", properties: Mapping[str, str] | None = None
) -> str:
    r"""Return a JUnit XML document with one test suite.

    Args:
        cases: The trials, in order.
        name: The suite's name, e.g. ``rocmend probe``.
        started_at: ISO time of its start.
        properties: What else there is to say about the suite, by name.

    Returns:
        XML with a final newline. Characters that XML cannot hold are written as ``\x1b``.

    Source: https://github.com/testmoapp/junitxml, a description of the common form
    """
    rows = [Case(*case) for case in cases]
    elements = [_ELEMENT[row.verdict] for row in rows]
    counts: dict[str, str] = {"tests": str(len(rows))}
    counts |= {
        attribute: str(elements.count(element))
        for attribute, element in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))
    }
    counts |= _time(sum(row.time_s for row in rows if _is_time(row.time_s)))
    suite = {"name": name, **counts} | ({"timestamp": started_at} if started_at else {})
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites{_attributes({'name': name, **counts})}>",
        f"  <testsuite{_attributes(suite)}>",
        *_properties(properties or {}),
        *(_case(row, element) for row, element in zip(rows, elements, strict=True)),
        "  </testsuite>",
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _properties(values: Mapping[str, str]) -> list[str]:
    rows = [f"      <property{_attributes({'name': name, 'value': value})}/>" for name, value in values.items()]
    return ["    <properties>", *rows, "    </properties>"] if rows else []


def _case(row: Case, element: str) -> str:
    head = f"    <testcase{_attributes({'name': row.name, 'classname': row.classname, **_time(row.time_s)})}"
    if not element:
        return f"{head}/>"
    first, _, rest = row.message.partition("\n")
    attributes = {"message": first or row.verdict.value, "type": row.verdict.value}
    if element == "skipped":  # the common form gives it a message alone
        attributes = {"message": f"{row.verdict.value}: {first}" if first else row.verdict.value}
    parts = [f"{head}>", f"      <{element}{_attributes(attributes)}>{_text(rest)}</{element}>"]
    if row.output:
        parts.append(f"      <system-out>{_text(row.output)}</system-out>")
    return "\n".join([*parts, "    </testcase>"])


def _is_time(time_s: float) -> bool:
    return math.isfinite(time_s) and time_s >= 0


def _time(time_s: float) -> dict[str, str]:
    return {"time": f"{time_s:.3f}"} if _is_time(time_s) else {}


def _attributes(values: dict[str, str]) -> str:
    return "".join(f' {name}="{_plain(value).translate(_ESCAPES)}"' for name, value in values.items())


def _text(text: str) -> str:
    escaped = _plain(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped.replace("\r", "&#13;")  # a bare one would be read back as a line feed


def _plain(text: str) -> str:
    return _NOT_IN_XML.sub(lambda found: _written(ord(found[0])), text)


def _written(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
