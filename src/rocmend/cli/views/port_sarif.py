"""What was found in a project as SARIF, with the places in its files."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from rocmend.cli.views.port_groups import sentences
from rocmend.port.records import Analysis, Edit, FileReport, Issue, Outcome
from rocmend.port.rule import Rule, rules
from rocmend.report import sarif

__all__ = ["about_the_run", "notification", "render"]


def render(analysis: Analysis) -> str:
    """Return a SARIF log of an analysis."""
    met = {issue.rule for issue in analysis.issues}
    known = [rule for rule in rules() if rule.id in met]
    place = {rule.id: number for number, rule in enumerate(known)}
    results = [_result(file, issue, place[issue.rule]) for file in analysis.files for issue in file.issues]
    unread = [notification(file.path, file.skipped) for file in analysis.files if file.skipped]
    return sarif.log([_rule(one) for one in known], results, columnKind="unicodeCodePoints", **about_the_run(unread))


def about_the_run(unread: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the properties of a run over a project in which some files were not read."""
    return {
        "originalUriBaseIds": {"SRCROOT": {"description": {"text": "The project's folder."}}},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": list(unread)}],
    }


def _rule(rule: Rule) -> dict[str, Any]:
    page = rule.page.strip()
    web = [source for source in rule.sources if source.startswith("http")]
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": page.split("\n", 1)[0] or rule.title},
        "help": {"text": page, "markdown": page},
        "defaultConfiguration": {"level": sarif.level(rule.severity)},
        **({"helpUri": web[0]} if web else {}),
    }


def _result(file: FileReport, issue: Issue, number: int) -> dict[str, Any]:
    """Return one issue.

    A rewrite is no SARIF ``fix``: what applies fixes would put the ROCm side in the original's place, without the gate
    that keeps the original for NVIDIA. It stands among the properties, for programs that show it.
    """
    region = {
        "startLine": issue.line,
        "startColumn": issue.column,
        "endLine": issue.end_line,
        "byteOffset": issue.start,
        "byteLength": issue.end - issue.start,
    }
    place: dict[str, Any] = {"artifactLocation": _artifact(file.path), "region": region}
    if issue.end_line == issue.line:
        place["contextRegion"] = {"startLine": issue.line, "snippet": {"text": issue.snippet}}
    properties: dict[str, Any] = {"outcome": issue.outcome.value}
    if issue.edits and issue.outcome in {Outcome.AUTO, Outcome.SUGGEST}:
        properties["rocmSide"] = [_edit(edit) for edit in issue.edits]
    return {
        "ruleId": issue.rule,
        "ruleIndex": number,
        "level": sarif.level(issue.severity),
        "message": {"text": sentences(issue)},
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {"rocmend/v1": f"{issue.rule}:{file.path}:{' '.join(issue.snippet.split())}"},
        "properties": properties,
    }


def _artifact(path: str) -> dict[str, str]:
    """Return where a file is: a path is a URI only where its spaces, percent signs and other letters are escaped."""
    return {"uri": quote(path, errors="replace"), "uriBaseId": "SRCROOT"}


def _edit(edit: Edit) -> dict[str, Any]:
    place: dict[str, Any] = {"byteOffset": edit.start, "byteLength": edit.end - edit.start}
    try:
        return place | {"text": edit.text.decode()}
    except UnicodeDecodeError:
        return place | {"binary": base64.b64encode(edit.text).decode()}


def notification(path: str, why: str) -> dict[str, Any]:
    """Return a file that was not read: what is not found in it is not known not to be there."""
    return {
        "level": "warning",
        "message": {"text": f"Not read: {why}"},
        "locations": [{"physicalLocation": {"artifactLocation": _artifact(path)}}],
    }
