"""What is checked of a knowledge entry, one function a concern; see RULES for the codes."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator

import msgspec

from rocmend.core.errors import DataError
from rocmend.core.records import Remedy, Severity
from rocmend.core.signatures import SignatureIndex
from rocmend.kb.cases import case_outcome
from rocmend.kb.entry import Entry, Status
from rocmend.kb.load import Knowledge
from rocmend.kb.match import Match
from rocmend.kb.predicate import Predicate, PredicateError, compile_name, compile_predicate, pattern_key
from rocmend.kb.template import placeholders
from rocmend.kb.versions import parse_range
from rocmend.kb.vocabulary import CELL_STATES, TABLES, TOPICS, WORKLOADS
from rocmend.machine.facts import KeyPatterns

RULES = {
    "KB001": "The file loads as an entry, and its id is unique.",
    "KB002": "There is at least one source.",
    "KB003": "Every source has a URL, unless it is our own measurement.",
    "KB004": "The review is not overdue: review_by is not before today (a warning), nor before reviewed.",
    "KB005": "Every linked id exists, and is not the entry itself.",
    "KB006": "If an entry contradicts another, both say so.",
    "KB007": "A superseded entry names the entry that supersedes it.",
    "KB008": "A refuted entry names the entry that refutes it.",
    "KB009": "An entry with the status fixed-in names the version with the fix.",
    "KB010": "An entry with a predicate has a case to which it applies.",
    "KB011": "An entry with a predicate has a case to which it does not apply.",
    "KB012": "Every case evaluates to its expected result.",
    "KB013": "Every predicate is well formed, and that of a way to install is given in words too.",
    "KB014": "Predicates and cases name only facts that a collector or derivation declares.",
    "KB015": "gfx targets and generic classes exist.",
    "KB016": "Version ranges can be read.",
    "KB017": "Every workload is in the list of workloads.",
    "KB018": "The id is kebab-case and equal to the file's name.",
    "KB019": "Placeholders in titles, remedies and settings name declared facts.",
    "KB020": "A finding has a severity, a subject and a remedy; an entry with a severity has a predicate.",
    "KB021": "The entry has an explanation after the front matter.",
    "KB022": "A figure has a unit.",
    "KB023": "The topic is in the list of topics.",
    "KB024": "Cells name a known table and state.",
    "KB025": "Dates of claims and sources can be read.",
    "KB026": "A remedy with commands names an action, is an alternative to one, or has the phase investigate.",
    "KB027": "Every action that a remedy names exists, and has an argument if and only if it takes one.",
    "KB028": "The order of actions has no cycle, within an entry or between two of the same severity.",
    "KB029": "Two entries that can apply together do not set the same setting to different values.",
    "KB030": "A remedy that changes something says how to check that it worked and how to undo it.",
    "KB031": "A setting of an entry whose scope limits versions checks those versions in its own when.",
    "KB032": "A setting for one family of GPUs is limited to that family by scope.gfx or its own when.",
    "KB033": "The workloads of a setting are within the entry's scope.",
    "KB034": "The pattern of a signature compiles and has a word that every matching line holds.",
    "KB035": "A signature has lines as they are printed, each with its source, and matches them.",
    "KB036": "No signature of another entry ranks before it on its own lines.",
    "KB037": "The kind of a signature is unique and has a meaning; one that judges runs has a kind.",
    "KB038": "Every row of the table of indexes has sources, known targets, and a successor where it has ended.",
    "KB039": "Every row of the table of indexes was read in the last 45 days (a warning).",
    "KB040": "A way to install comes from an index that is still fed, or pins its version.",
    "KB041": "An active entry has something to do, a rule or a table cell; one that has none is archived.",
    "KB042": "An active entry has a source besides the documents that the knowledge began with.",
    "KB043": "A review after 29 November 2026 is recorded: a source was read that day, and said something.",
}
"""Code to what it demands."""

_ID = re.compile(r"[a-z0-9]+(?:[.-][a-z0-9]+)*\Z")
_DATE = re.compile(r"\d{4}(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?)?\Z")

Findings = Iterator[tuple[str, str]]


class Context(msgspec.Struct, frozen=True):
    """What the checks need beyond the entry.

    Attributes:
        knowledge: Every entry.
        today: The day on which a review is or is not overdue.
        declared: The fact keys that collectors and derivations declare.
        targets: Every gfx target and generic class.
        actions: Ids of the actions that files and remedies declare.
        signatures: The index of all signatures; None where they are not compared.
    """

    knowledge: Knowledge
    today: dt.date
    declared: KeyPatterns
    targets: frozenset[str]
    actions: frozenset[str] = frozenset()
    signatures: SignatureIndex | None = None

    def is_declared(self, parts: tuple[str, ...]) -> bool:
        """Whether a name, or a fact that it looks into, is declared."""
        key = pattern_key(parts).replace(".*.", ".0.").split(".")
        return any(".".join(key[:end]) in self.declared for end in range(len(key), 0, -1))


def check_sources(entry: Entry, context: Context) -> Findings:
    """Yield missing sources, URLs and unreadable dates."""
    del context
    if not entry.source:
        yield "KB002", "no source"
    for source in entry.source:
        if not source.url and source.kind != "measurement":
            yield "KB003", f"the source {source.title!r} has no url"
        if source.url and not source.url.startswith(("https://", "http://")):
            yield "KB003", f"{source.url!r} is not a web address"
        if source.date and not _DATE.match(source.date):
            yield "KB025", f"the date {source.date!r} of {source.title!r} is not YYYY-MM-DD, YYYY-MM or YYYY"
    if entry.claimed and not _DATE.match(entry.claimed):
        yield "KB025", f"claimed = {entry.claimed!r} is not YYYY-MM-DD, YYYY-MM or YYYY"


def check_review(entry: Entry, context: Context) -> Findings:
    """Yield overdue and impossible reviews."""
    if entry.review_by < context.today and entry.status is not Status.ARCHIVED:
        yield "KB004", f"review was due by {entry.review_by}; today is {context.today}"
    if entry.review_by < entry.reviewed:
        yield "KB004", f"review_by {entry.review_by} is before reviewed {entry.reviewed}"
    if entry.reviewed > context.today:
        yield "KB004", f"reviewed {entry.reviewed} is after today, {context.today}"


RECORDED_AFTER = dt.date(2026, 11, 29)
"""Reviews up to this day left no record of what was read, and none is made up for them."""


def check_record(entry: Entry, context: Context) -> Findings:
    """Yield reviews without a record, and records that are impossible or half."""
    for source in entry.source:
        if (source.read is None) != (not source.said.strip()):
            yield "KB043", f"{source.title!r}: read and said belong together"
        elif source.read is not None and source.read > entry.reviewed:
            yield "KB043", f"{source.title!r} was read on {source.read}, after reviewed {entry.reviewed}"
    recorded = any(source.read == entry.reviewed for source in entry.source)
    if RECORDED_AFTER < entry.reviewed <= context.today and not recorded:
        yield "KB043", f"no source has read = {entry.reviewed} and what it said"


def check_links(entry: Entry, context: Context) -> Findings:
    """Yield dangling and one-sided links, and those that a status demands."""
    entries = context.knowledge.entries
    for field in entry.links.__struct_fields__:
        for target in getattr(entry.links, field):
            if target == entry.id:
                yield "KB005", f"{field} names the entry itself"
            elif target not in entries:
                yield "KB005", f"{field} names {target!r}, which does not exist"
            elif field == "contradicts" and entry.id not in entries[target].links.contradicts:
                yield "KB006", f"contradicts {target!r}, which does not list this entry under contradicts"
    if entry.status is Status.SUPERSEDED and not entry.links.superseded_by:
        yield "KB007", "superseded, but links.superseded_by is empty"
    if entry.status is Status.REFUTED and not entry.links.refuted_by:
        yield "KB008", "refuted, but links.refuted_by is empty"
    if entry.status is Status.FIXED_IN and not entry.fixed_in:
        yield "KB009", "status fixed-in, but fixed_in is empty"


def check_cases(entry: Entry, context: Context) -> Findings:
    """Yield missing cases and those whose outcome is not what they say."""
    del context
    predicate, _ = _compiled(entry.when)
    if predicate is not None:
        if not any(case.applies is True for case in entry.case):
            yield "KB010", "no case with applies = true"
        if not any(case.applies is False for case in entry.case):
            yield "KB011", "no case with applies = false"
    if entry.when.strip() and predicate is None:
        return
    for number, case in enumerate(entry.case, 1):
        if not isinstance(case.applies, bool) and case.applies != "unknown":
            yield "KB012", f"case {number}: applies is {case.applies!r}, not true, false or 'unknown'"
            continue
        wanted = case.applies if isinstance(case.applies, bool) else None
        outcome, matches = case_outcome(entry, case)
        if outcome is not wanted:
            words = {True: "true", False: "false", None: "unknown"}
            note = f" ({case.note})" if case.note else ""
            why = _reasons(matches)
            yield "KB012", f"case {number}{note}: expected {words[wanted]}, got {words[outcome]}{why}"


def _reasons(matches: list[Match]) -> str:
    if not matches:
        return "; the case has no GPU"
    missing = [f"{gap.key} {gap.reason}" for match in matches for gap in match.missing]
    notes = [note for match in matches for note in match.notes]
    read = [f"{fact.key} = {fact.value!r:.60}" for match in matches for fact in match.evidence]
    parts = dict.fromkeys([*missing, *notes]) or dict.fromkeys(read)
    return "; " + ", ".join(parts) if parts else ""


def check_predicates(entry: Entry, context: Context) -> Findings:
    """Yield malformed predicates and facts that nothing declares."""
    predicates = [("when", entry.when)]
    predicates += [(f"setting {item.name}: when", item.when) for item in entry.setting]
    predicates += [(f"install {item.package}: when", item.when) for item in entry.install]
    predicates += [(f"remedy {number}: when", remedy.when) for number, remedy in enumerate(entry.remedy, 1)]
    predicates += [
        (f"install {item.package}: caution: when", caution.when) for item in entry.install for caution in item.caution
    ]
    for item in entry.install:
        if item.when and not item.needs:
            yield "KB013", f"install {item.package}: when {item.when!r} is not said in words (needs)"
    for place, text in predicates:
        predicate, problem = _compiled(text)
        if problem is not None:
            yield "KB013", f"{place}: {problem.message} {problem.next_step}".rstrip()
        for parts in predicate.names if predicate is not None else ():
            if not context.is_declared(parts):
                yield "KB014", f"{place}: unknown fact {'.'.join(parts)}"
    for number, case in enumerate(entry.case, 1):
        for key in (*case.facts, *case.unset):
            parts = tuple(part for part in key.split(".") if not part.isdigit())
            if not context.is_declared(parts):
                hint = "; write the whole key in quotes" if "." not in key else ""
                yield "KB014", f"case {number}: unknown fact {key}{hint}"


def _compiled(text: str) -> tuple[Predicate | None, PredicateError | None]:
    if not text.strip():
        return None, None
    try:
        return compile_predicate(text), None
    except PredicateError as error:
        return None, error


def check_placeholders(entry: Entry, context: Context) -> Findings:
    """Yield placeholders that can never be filled in."""
    if entry.headline and placeholders(entry.headline):
        yield "KB019", "headline: it has a placeholder, but is shown where there is no machine to fill it in"
    texts = [("title", entry.title)]
    texts += [("remedy", text) for remedy in entry.remedy for text in _texts(remedy)]
    texts += [("setting", item.value) for item in entry.setting]
    for place, text in texts:
        for name in placeholders(text):
            try:
                parts = compile_name(name).parts
            except PredicateError as error:
                yield "KB019", f"{place}: {error.message}"
                continue
            if not context.is_declared(parts):
                yield "KB019", f"{place}: unknown fact {name}"


def _texts(remedy: Remedy) -> tuple[str, ...]:
    return (
        remedy.text,
        remedy.title,
        remedy.action,
        remedy.risk_note,
        remedy.check,
        remedy.expect,
        remedy.undo,
        *remedy.commands,
    )


def check_scope(entry: Entry, context: Context) -> Findings:
    """Yield unknown targets and workloads, unreadable ranges, and cells of unknown tables."""
    named = [("scope", name) for name in entry.scope.gfx]
    named += [(f"install {item.package}", name) for item in entry.install for name in item.gfx]
    named += [
        (f"install {item.package}: caution", name)
        for item in entry.install
        for caution in item.caution
        for name in caution.gfx
    ]
    named += [("cell", item.target) for item in entry.cell]
    for place, name in named:
        if name not in context.targets:
            yield "KB015", f"{place}: {name!r} is not a gfx target or generic class"
    ranges = [("rocm", entry.scope.rocm), ("kernel", entry.scope.kernel), *entry.scope.package.items()]
    for place, text in ranges:
        try:
            parse_range(text)
        except DataError as error:
            yield "KB016", f"scope {place}: {error.message}"
    words = list(entry.scope.workload)
    words += [word for item in entry.setting for word in item.workload]
    words += [word for item in entry.install for word in item.workload]
    for word in dict.fromkeys(words):
        if word not in WORKLOADS:
            yield "KB017", f"{word!r} is not a workload; known: {', '.join(sorted(WORKLOADS))}"
    for cell in entry.cell:
        if cell.table not in TABLES:
            yield "KB024", f"cell: {cell.table!r} is not a table; known: {', '.join(sorted(TABLES))}"
        if cell.state not in CELL_STATES:
            yield "KB024", f"cell: {cell.state!r} is not a state; known: {', '.join(sorted(CELL_STATES))}"


def check_identity(entry: Entry, context: Context) -> Findings:
    """Yield wrong ids, topics and empty explanations."""
    path = context.knowledge.paths.get(entry.id, "")
    stem = path.rpartition("/")[2].removesuffix(".md")
    if path and stem != entry.id:
        yield "KB018", f"the id differs from the file name {stem}.md"
    if not _ID.match(entry.id):
        yield "KB018", f"{entry.id!r} is not kebab-case"
    if entry.topic not in TOPICS:
        yield "KB023", f"{entry.topic!r} is not a topic; known: {', '.join(TOPICS)}"
    if not entry.body.strip():
        yield "KB021", "nothing follows the front matter"
    for effect in entry.effect:
        if effect.value is not None and not effect.unit:
            yield "KB022", f"{effect.what!r}: {effect.value} has no unit"


def check_finding(entry: Entry, context: Context) -> Findings:
    """Yield findings that leave a person without what to do, and severities that never come to bear."""
    del context
    has_when = bool(entry.when.strip())
    if entry.severity is not None and not has_when:
        yield "KB020", f"severity {entry.severity.value}, but no predicate (when)"
    if not has_when:
        return
    if entry.severity is None:
        if not (entry.setting or entry.install):
            yield "KB020", "a predicate, but no severity"
        return
    if not entry.subject:
        yield "KB020", "a finding needs a subject"
    if not entry.remedy and entry.severity is not Severity.INFO:
        yield "KB020", f"a finding of severity {entry.severity.value} needs a remedy"


BEGINNINGS = (
    "https://github.com/whylucian/softab/blob/main/docs/rocm-support.md",
    "https://github.com/themicknugget/eh-ops-private/blob/4bd92b1311bc9a6cea1ab84cbbb58496563d1c62/kubernetes/infrastructure/llama-cpp-rocm-test/ROCM_INVESTIGATION.md",
    "https://github.com/ml-explore/mlx/pull/2300",
    "https://github.com/hkevin01/rocm-patch/blob/main/docs/archive/README_OLD_BACKUP.md",
    "https://github.com/Arist12/AMD-Skills/blob/main/amd-rocm-porting/SKILL.md",
)
"""The five documents that the knowledge began with: each is one person's, of one time."""


def check_use(entry: Entry, context: Context) -> Findings:
    """Yield active entries that a person can do nothing with, or that rest on one of the first documents alone."""
    del context
    if entry.status is not Status.ACTIVE:
        return
    used = (entry.remedy, entry.setting, entry.install, entry.signature, entry.expect, entry.cell, entry.when.strip())
    if not any(used):
        yield "KB041", "nothing to do: give it a remedy, a setting or a signature, or the status archived"
    if entry.source and all(source.url in BEGINNINGS for source in entry.source):
        yield "KB042", "no source besides the documents that the knowledge began with"


CHECKS: tuple[Callable[[Entry, Context], Findings], ...] = (
    check_sources,
    check_review,
    check_record,
    check_links,
    check_cases,
    check_predicates,
    check_placeholders,
    check_scope,
    check_identity,
    check_finding,
    check_use,
)
