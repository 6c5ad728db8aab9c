"""The ladder as a whole: what is printed is what ran."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from rocmend.core.errors import UsageError
from rocmend.port.verify import cases, ladder
from rocmend.port.verify.ladder import LEVELS, up_to, verify
from rocmend.port.verify.records import Evidence, Level, Outcome, Proof, Status
from rocmend.port.verify.result import MAX_EVIDENCE, concluded

NAMES = [rung.name for rung in LEVELS]


def test_levels_up_to_one() -> None:
    assert up_to("compile") == ("identity", "static", "compile")
    assert up_to("amd") == tuple(NAMES)
    with pytest.raises(UsageError, match="no level 'linked'"):
        up_to("linked")


def test_every_level_has_a_file() -> None:
    from importlib.util import find_spec

    for rung in LEVELS:
        assert find_spec(f"rocmend.port.verify.{rung.module}") is not None, rung


def test_only_what_was_asked_for_is_in_the_proof(total: Path) -> None:
    proof = verify(total, levels=["amd", "identity"])
    assert [level.name for level in proof.levels] == ["identity", "amd"]
    assert [level.number for level in proof.levels] == [1, 7]
    assert proof.generation == "0001"


def test_a_level_that_did_not_run_has_a_reason_and_nothing_else(total: Path) -> None:
    (level,) = verify(total, levels=["emulated"]).levels
    assert (level.status, level.why) == (Status.NOT_RUN, f"no launches are recorded in {cases.FOLDER}")
    assert not level.summary
    assert not level.evidence


def test_a_project_without_a_port(tmp_path: Path) -> None:
    (level,) = verify(tmp_path, levels=["identity"]).levels
    assert level.status is Status.NOT_RUN
    assert "no port was applied" in level.why


def test_a_damaged_record_stops_its_level_alone(total: Path) -> None:
    for original in (total / ".rocmend/port/0001/originals").iterdir():
        original.write_bytes(b"garbage")
    identity, emulated = verify(total, levels=["identity", "emulated"]).levels
    assert identity.status is Status.NOT_RUN
    assert "cannot be read" in identity.why
    assert emulated.why == f"no launches are recorded in {cases.FOLDER}"


def test_what_it_cannot_work_with(tmp_path: Path) -> None:
    for wrong in ({"levels": ["none"]}, {"targets": ["gfx0"]}):
        with pytest.raises(UsageError):
            verify(tmp_path, **wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="is not a folder"):
        verify(tmp_path / "none")


def test_the_proof_is_a_record(total: Path) -> None:
    proof = verify(total, levels=["identity"], targets=["GFX942", "gfx942"])
    assert proof.targets == ("gfx942",)
    assert msgspec.json.decode(msgspec.json.encode(proof), type=Proof) == proof


def level(number: int, status: Status) -> Level:
    return Level(number, NAMES[number - 1], "", status)


def test_how_far_a_proof_reaches_ends_at_the_first_gap() -> None:
    passed, skipped = Status.PASSED, Status.NOT_RUN
    whole = Proof("", (), (level(1, passed), level(2, passed), level(3, skipped), level(4, passed)))
    assert whole.reached is not None
    assert whole.reached.name == "static"
    assert Proof("", (), (level(2, passed),)).reached is None
    assert not whole.failed
    assert Proof("", (), (level(1, passed), level(2, Status.FAILED))).failed


def test_a_level_is_no_better_than_its_evidence() -> None:
    def status(*outcomes: Outcome) -> Status:
        return concluded([Evidence("a", one) for one in outcomes], "").status

    assert status(Outcome.HOLDS, Outcome.NOTE) is Status.PASSED
    assert status(Outcome.HOLDS, Outcome.UNKNOWN) is Status.INCOMPLETE
    assert status(Outcome.HOLDS, Outcome.UNKNOWN, Outcome.BROKEN) is Status.FAILED


def test_what_does_not_hold_is_never_cut() -> None:
    evidence = [Evidence("a", Outcome.HOLDS)] * (2 * MAX_EVIDENCE) + [Evidence("b", Outcome.BROKEN)] * (
        2 * MAX_EVIDENCE
    )
    made = concluded(evidence, "")
    assert len(made.broken) == 2 * MAX_EVIDENCE
    assert len(made.evidence) == 3 * MAX_EVIDENCE
    assert made.counts == {"holds": 2 * MAX_EVIDENCE, "broken": 2 * MAX_EVIDENCE}


def test_progress_is_told(total: Path) -> None:
    told: list[tuple[str, int, int]] = []
    ladder.verify(total, levels=["identity"], progress=lambda *at: told.append(at))
    assert told[-1] == ("identity", 1, 1)
