"""What was found in a project as SARIF, with the places in its files and the rewrites as fixes."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from rocmend.cli.views.port import sentences
from rocmend.port.records import Analysis, Edit, FileReport, Issue, Outcome
from rocmend.port.rule import Rule, rules
from rocmend.report import sarif

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["render"]


def render(analysis: Analysis) -> str:
    """Return a SARIF log of an analysis."""
    met = {issue.rule for issue in analysis.issues}
    known = [rule for rule in rules() if rule.id in met]
    place = {rule.id: number for number, rule in enumerate(known)}
    results = [_result(file, issue, place[issue.rule]) for file in analysis.files for issue in file.issues]
    base = {"SRCROOT": {"description": {"text": "The project's folder."}}}
    return sarif.log([_rule(one) for one in known], results, columnKind="unicodeCodePoints", originalUriBaseIds=base)


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
    region = {
        "startLine": issue.line,
        "startColumn": issue.column,
        "byteOffset": issue.start,
        "byteLength": issue.end - issue.start,
        "snippet": {"text": issue.snippet},
    }
    artifact = {"uri": file.path, "uriBaseId": "SRCROOT"}
    result: dict[str, Any] = {
        "ruleId": issue.rule,
        "ruleIndex": number,
        "level": sarif.level(issue.severity),
        "message": {"text": sentences(issue)},
        "locations": [{"physicalLocation": {"artifactLocation": artifact, "region": region}}],
        "partialFingerprints": {"rocmend/v1": f"{issue.rule}:{file.path}:{' '.join(issue.snippet.split())}"},
        "properties": {"outcome": issue.outcome.value},
    }
    if issue.edits and issue.outcome in {Outcome.AUTO, Outcome.SUGGEST}:
        changes = [{"artifactLocation": artifact, "replacements": _replacements(issue.edits)}]
        result["fixes"] = [{"description": {"text": "The ROCm side."}, "artifactChanges": changes}]
    return result


def _replacements(edits: Sequence[Edit]) -> list[dict[str, Any]]:
    return [
        {
            "deletedRegion": {"byteOffset": edit.start, "byteLength": edit.end - edit.start},
            "insertedContent": _content(edit.text),
        }
        for edit in edits
    ]


def _content(data: bytes) -> dict[str, str]:
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"binary": base64.b64encode(data).decode()}
