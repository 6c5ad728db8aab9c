"""Whatever a run leaves behind comes back as it was."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rocmend.core.evidence import Evidence, PhaseSpan, Silence
from rocmend.core.records import Fact, Gap
from rocmend.core.verdict import Verdict
from rocmend.machine.facts import Machine
from rocmend.store.encoding import decode_evidence, decode_machine, encode_evidence, encode_machine, machine_hash
from rocmend.store.store import Store

TEXT = st.text(max_size=20)
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=20)  # lone surrogates too
TIME = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=10,
)
EVIDENCE = st.builds(
    Evidence,
    kind=TEXT,
    subject=TEXT,
    identity=TEXT,
    verdict=st.sampled_from(Verdict),
    reason=TEXT,
    started_at=st.datetimes().map(lambda time: time.isoformat() + "Z"),
    time_ms=TIME,
    gfx_target=TEXT,
    machine=st.just(""),
    versions=st.dictionaries(TEXT, TEXT, max_size=3),
    settings=st.dictionaries(TEXT, JSON, max_size=3),
    timeline=st.lists(st.builds(PhaseSpan, TEXT, TIME, TIME, TEXT, st.booleans()), max_size=3).map(tuple),
    last_phase=TEXT,
    silence=st.none() | st.sampled_from(Silence),
    detail=st.dictionaries(TEXT, JSON, max_size=3),
    artifacts=st.just(()),
    group=TEXT,
    schema_version=st.just(1),
)
CONTENTS = st.binary(max_size=100) | st.binary(min_size=1, max_size=10).map(lambda piece: piece * 10_000)


def same(one: Any, other: Any) -> bool:
    """Compare JSON values: NaN is NaN, an integer is no float."""
    if isinstance(one, float) and math.isnan(one):
        return isinstance(other, float) and math.isnan(other)
    if isinstance(one, dict):
        return isinstance(other, dict) and list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


def same_record(one: Evidence, other: Evidence) -> bool:
    fields = [name for name in Evidence.__struct_fields__ if name not in {"detail", "settings"}]
    plain = all(getattr(one, name) == getattr(other, name) for name in fields)
    return plain and same(one.detail, other.detail) and same(one.settings, other.settings)


@given(EVIDENCE)
def test_a_record_survives_its_text(evidence: Evidence) -> None:
    assert same_record(decode_evidence(encode_evidence(evidence), "id"), evidence)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(tmp_path_factory.mktemp("store") / "evidence.sqlite") as store:
        yield store


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(EVIDENCE, st.dictionaries(st.from_regex(r"\A[a-zA-Z0-9_ é-]{1,20}\Z"), CONTENTS, max_size=3), st.booleans())
def test_a_record_and_its_artifacts_survive_the_store(
    kept: Store, tmp_path: Path, evidence: Evidence, artifacts: dict[str, bytes], from_files: bool
) -> None:
    given_artifacts: dict[str, bytes | Path] = {}
    for number, (name, data) in enumerate(artifacts.items()):
        path = tmp_path / str(number)
        path.write_bytes(data)
        given_artifacts[name] = path if from_files else data
    found = kept.get(kept.add(evidence, artifacts=given_artifacts)).evidence
    assert same_record(found, Evidence(**{**fields(evidence), "artifacts": found.artifacts}))
    assert {item.name: kept.artifact(item.sha256) for item in found.artifacts} == artifacts
    assert all(item.size_bytes == len(artifacts[item.name]) for item in found.artifacts)
    assert any(item.evidence.subject == evidence.subject for item in kept.query(subject=evidence.subject))


def fields(evidence: Evidence) -> dict[str, Any]:
    return {name: getattr(evidence, name) for name in Evidence.__struct_fields__}


@given(st.dictionaries(ANY_TEXT, ANY_TEXT, min_size=1, max_size=3), ANY_TEXT)
@example({"\udcff": "\ud800"}, "\udc80")
def test_bytes_that_are_no_text_are_kept_readable(detail: dict[str, str], reason: str) -> None:
    evidence = Evidence("probe", "x", "1", Verdict.PASS, reason, "2026-01-01T00:00:00Z", 1.0, detail=dict(detail))
    found = decode_evidence(encode_evidence(evidence), "id")
    assert found.reason == reason.encode(errors="backslashreplace").decode()
    replaced = {item.encode(errors="backslashreplace").decode() for item in detail.values()}
    assert set(found.detail.values()) <= replaced


@given(st.dictionaries(ANY_TEXT, ANY_TEXT | st.integers(), max_size=5), ANY_TEXT)
def test_a_machine_survives(values: dict[str, Any], reason: str) -> None:
    facts = {key: Fact(key, value, "source") for key, value in values.items()}
    machine = Machine("m", "2026-01-01T00:00:00Z", facts, {"gone": Gap("gone", reason)})
    content_hash = machine_hash(machine)
    found = decode_machine(encode_machine(machine), content_hash)
    assert machine_hash(found) == content_hash
    assert len(found.facts) == len(facts)


@given(st.binary(max_size=200))
def test_a_damaged_snapshot_is_an_error_of_ours(data: bytes) -> None:
    from rocmend.core.errors import DataError

    with pytest.raises(DataError):
        decode_machine(data, "hash")


@given(st.text(max_size=200))
def test_a_damaged_record_is_an_error_of_ours(text: str) -> None:
    from rocmend.core.errors import DataError

    with pytest.raises(DataError):
        decode_evidence(text, "id")
