"""Render findings as SARIF 2.1.0, the format of code-scanning services.

Source: OASIS SARIF 2.1.0, https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from rocmend import __version__
from rocmend.core.records import Finding, Remedy, Severity

_LEVEL = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.ADVICE: "note",
    Severity.INFO: "note",
}


def render(findings: Sequence[Finding], *, machine: str) -> str:
    """Return a SARIF log with one run; each finding's knowledge entry is a rule.

    Args:
        findings: What was found.
        machine: The machine's name, used as the logical location's root.
    """
    first = {finding.entry_id: finding for finding in reversed(findings)}
    rules = [_rule(first[entry_id]) for entry_id in sorted(first)]
    return log(rules, [_result(finding, sorted(first), machine) for finding in findings])


def log(rules: Sequence[dict[str, Any]], results: Sequence[dict[str, Any]], **run: Any) -> str:
    """Return a SARIF log with one run.

    Args:
        rules: What results refer to by their place, as ``reportingDescriptor`` objects.
        results: ``result`` objects.
        run: Further properties of the run, such as ``columnKind``.
    """
    driver = {"name": "rocmend", "semanticVersion": __version__, "rules": rules}
    document = {
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, **run, "results": results}],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def joined(*logs: str) -> str:
    """Return one log with the runs of several, each told from the others by its ``automationDetails``."""
    documents = [msgspec.json.decode(log) for log in logs]
    runs = [run for document in documents for run in document["runs"]]
    for number, run in enumerate(runs):
        run["automationDetails"] = {"id": f"rocmend/{number}"}
    return msgspec.json.format(msgspec.json.encode({**documents[0], "runs": runs}), indent=2).decode() + "\n"


def level(severity: Severity) -> str:
    """Return what SARIF calls a severity."""
    return _LEVEL[severity]


def _rule(finding: Finding) -> dict[str, Any]:
    rule: dict[str, Any] = {
        "id": finding.entry_id,
        "shortDescription": {"text": finding.title},
        "defaultConfiguration": {"level": _LEVEL[finding.severity]},
    }
    if finding.explanation:
        rule["fullDescription"] = {"text": finding.explanation}
    web = [source.url for source in finding.sources if source.url]
    if web:
        rule["helpUri"] = web[0]
    if finding.remedies:
        rule["help"] = {"text": "\n".join(map(_help, finding.remedies))}
    return rule


def _result(finding: Finding, rule_ids: list[str], machine: str) -> dict[str, Any]:
    evidence = "; ".join(f"{fact.key} = {fact.value!r} ({fact.source})" for fact in finding.evidence)
    name = f"{machine}/{finding.subject}" if finding.subject else machine
    return {
        "ruleId": finding.entry_id,
        "ruleIndex": rule_ids.index(finding.entry_id),
        "level": _LEVEL[finding.severity],
        "message": {"text": finding.title + (f" Evidence: {evidence}" if evidence else "")},
        "locations": [{"logicalLocations": [{"fullyQualifiedName": name, "kind": "resource"}]}],
        "partialFingerprints": {"rocmend/v1": f"{finding.entry_id}:{finding.subject}"},
    }


def _help(remedy: Remedy) -> str:
    alternative = remedy.until or remedy.instead_of
    return f"{remedy.relation}: {remedy.text}" if alternative else remedy.text
