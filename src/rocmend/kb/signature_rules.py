"""What is checked of an entry's signatures; see RULES in rocmend.kb.rules for the codes."""

from __future__ import annotations

from collections import Counter

from rocmend.core.patterns import PatternError, compile_pattern
from rocmend.core.signatures import Known, Log, Signature, SignatureIndex, expanded
from rocmend.kb.entry import Entry
from rocmend.kb.load import Knowledge
from rocmend.kb.rules import Context, Findings

_NOTHING = "a b"
"""A line that has the words of no pattern."""


def index_of(knowledge: Knowledge) -> SignatureIndex:
    """Return the index of all signatures that can be compiled."""
    return SignatureIndex(
        Known(entry.id, signature)
        for entry in knowledge.entries.values()
        for signature in entry.signature
        if not _malformed(signature)
    )


def _malformed(signature: Signature) -> str:
    try:
        for pattern in filter(None, (signature.pattern, signature.unless, signature.ended_by_text)):
            compile_pattern(expanded(pattern))
    except PatternError as error:
        return error.message
    return ""


def check_patterns(entry: Entry, context: Context) -> Findings:
    """Yield patterns that cannot be compiled, that have no words, or that do not match their own lines."""
    del context
    for number, signature in enumerate(entry.signature, 1):
        where = f"signature {number}"
        if problem := _malformed(signature):
            yield "KB034", f"{where}: {problem}"
            continue
        own = SignatureIndex([Known(entry.id, signature)])
        if own.may_match(_NOTHING):
            yield "KB034", f"{where}: the pattern has no word that each line must hold, so that every line is tried"
        if not signature.lines:
            yield "KB035", f"{where}: no line as it is printed"
        for line in signature.lines:
            if not own.of(line.text):
                yield "KB035", f"{where}: the pattern does not match its own line {line.text[:60]!r}"
            if "\n" in line.text:
                yield "KB035", f"{where}: {line.text[:60]!r} is more than one line"
            if not line.source.startswith(("https://", "http://")):
                yield "KB035", f"{where}: the line's source {line.source!r} is not a web address"


def check_ranks(entry: Entry, context: Context) -> Findings:
    """Yield lines that another entry's signature takes first."""
    index = context.signatures
    for number, signature in enumerate(entry.signature if index is not None else (), 1):
        for line in signature.lines:
            first = next(iter(index.of(line.text)), None) if index is not None else None
            if first is not None and first.entry_id != entry.id and not _by_rule(entry, first, context):
                yield (
                    "KB036",
                    f"signature {number}: {first.entry_id} takes the line {line.text[:60]!r}: see their ranks",
                )


def _by_rule(entry: Entry, first: Known, context: Context) -> bool:
    """Whether both entries have the same pattern and rules of their own, so that the machine decides."""
    other = context.knowledge.entries[first.entry_id]
    same = any(one.pattern == first.signature.pattern for one in entry.signature)
    return same and bool(entry.when.strip()) and bool(other.when.strip())


def check_kinds(entry: Entry, context: Context) -> Findings:
    """Yield kinds that are taken, and those that programs cannot use."""
    kinds = Counter(one.kind for other in context.knowledge.entries.values() for one in other.signature)
    for number, signature in enumerate(entry.signature, 1):
        where = f"signature {number}"
        if signature.kind and kinds[signature.kind] > 1:
            yield "KB037", f"{where}: the kind {signature.kind!r} is taken by another signature"
        if signature.kind and not signature.meaning:
            yield "KB037", f"{where}: the kind {signature.kind!r} has no meaning"
        if signature.verdict is not None and not signature.kind:
            yield "KB037", f"{where}: it judges runs, but has no kind"
        for kind in signature.ended_by:
            if not kinds[kind]:
                yield "KB037", f"{where}: ended_by names the kind {kind!r}, which no signature has"
        if signature.log is Log.KERNEL and signature.verdict is not None:
            yield "KB037", f"{where}: a kernel line judges no run"


SIGNATURE_CHECKS = (check_patterns, check_ranks, check_kinds)
