"""Everything up to the run of level 4: recorded launches, code objects, kernarg segments, and the comparison."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import pytest

from rocmend.codeobject.kernarg import Kernarg
from rocmend.core.beneath import Beneath
from rocmend.core.errors import DataError, UsageError
from rocmend.port.verify import cases
from rocmend.port.verify.cases import Buffer, Case, Value, compare, read, read_all, write
from rocmend.port.verify.emulated import Prepared, kernel_named, prepared
from rocmend.port.verify.job import Job
from rocmend.port.verify.ladder import verify
from rocmend.port.verify.records import Evidence, Outcome, Status

VALUES = struct.pack("<32f", *range(32))
CASE = Case(
    kernel="total",
    unit="src/total.cu",
    grid=(1, 1, 1),
    block=(32, 1, 1),
    parameters=(Buffer("in.bin", kind="f32"), Buffer("out.before", "out.after", kind="f32")),
    recorded_on="a test",
)
BUFFERS = {"in.bin": VALUES, "out.before": bytes(4), "out.after": struct.pack("<f", 496.0)}


@pytest.fixture
def recorded(total: Path) -> Path:
    write(Beneath(total), f"{cases.FOLDER}/total-1", CASE, BUFFERS)
    return total


def test_a_case_comes_back_as_it_was_written(recorded: Path) -> None:
    ((name, folder, case),) = read_all(Beneath(recorded))
    assert (name, case) == ("total-1", CASE)
    assert cases.buffer(Beneath(recorded), folder, "in.bin") == VALUES


@pytest.mark.slow
@pytest.mark.usefixtures("pip_compiler")
def test_a_recorded_launch_is_made_ready_for_both_wave_sizes(recorded: Path) -> None:
    with Job(recorded) as job:
        made = list(prepared(job))
    assert all(isinstance(one, Prepared) for one in made)
    ready = [one for one in made if isinstance(one, Prepared)]
    assert [one.target for one in ready] == ["gfx1100", "gfx1201", "gfx942"]
    for one in ready:
        assert one.code[:4] == b"\x7fELF"
        assert [argument.kind for argument in one.kernarg.explicit] == ["global_buffer", "global_buffer"]
        segment = one.segment({"in.bin": 0x1000, "out.before": 0x2000})
        assert segment[:16] == struct.pack("<QQ", 0x1000, 0x2000)
        assert len(segment) == one.kernarg.size


@pytest.mark.slow
@pytest.mark.usefixtures("pip_compiler")
@pytest.mark.parametrize("expected", [496.0, 992.0])
def test_the_machine_code_is_executed_and_its_results_are_judged(total: Path, expected: float) -> None:
    pytest.importorskip("rocm", reason="rocm-llvm-python is not installed")
    write(Beneath(total), f"{cases.FOLDER}/total-1", CASE, BUFFERS | {"out.after": struct.pack("<f", expected)})
    (level,) = verify(total, levels=["emulated"]).levels
    right = expected == 496.0
    assert level.status is (Status.PASSED if right else Status.FAILED)
    assert sorted(one.target for one in level.evidence) == ["gfx1100", "gfx1201", "gfx942"]
    assert {one.outcome for one in level.evidence} == {Outcome.HOLDS if right else Outcome.BROKEN}
    assert right or "992.0 expected, got 496.0" in level.evidence[0].detail


def test_nothing_is_executed_without_recorded_launches(total: Path) -> None:
    (level,) = verify(total, levels=["emulated"]).levels
    assert (level.status, level.why) == (Status.NOT_RUN, f"no launches are recorded in {cases.FOLDER}")


def test_a_case_of_a_unit_that_is_not_there(total: Path) -> None:
    import msgspec

    write(Beneath(total), f"{cases.FOLDER}/gone", msgspec.structs.replace(CASE, unit="gone.cu"), BUFFERS)
    with Job(total) as job:
        made = list(prepared(job))
    assert all(isinstance(one, Evidence) and one.outcome is Outcome.BROKEN for one in made)


def test_kernels_are_found_by_the_name_that_the_source_has() -> None:
    kernels = tuple(
        Kernarg(name)
        for name in ("_Z5totalPKf", "_ZN3lib5scaleIfEEvPT_", "_ZN3lib5scaleIdEEvPT_", "_ZL4tinyv", "plain")
    )
    assert kernel_named("total", kernels).kernel == "_Z5totalPKf"
    assert kernel_named("tiny", kernels).kernel == "_ZL4tinyv"
    assert kernel_named("plain", kernels).kernel == "plain"
    assert kernel_named("_ZN3lib5scaleIdEEvPT_", kernels).kernel == "_ZN3lib5scaleIdEEvPT_"
    with pytest.raises(DataError, match="matches 2 kernels"):
        kernel_named("lib::scale", kernels)
    with pytest.raises(DataError, match="has no kernel 'otal'"):
        kernel_named("otal", kernels)


def test_a_case_with_other_arguments_than_the_kernels() -> None:
    one = Prepared("n", Beneath(Path()), "", CASE, "gfx942", b"", Kernarg("k", size=0))
    with pytest.raises(UsageError, match="takes 0 arguments, got 2"):
        one.segment({"in.bin": 1, "out.before": 2})


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b'{"kernel":"k","unit":"u","grid":[1,1],"block":[1,1,1],"parameters":[]}',
        b'{"kernel":"k","unit":"u","grid":[0,1,1],"block":[1,1,1],"parameters":[]}',
        b'{"kernel":"k","unit":"u","grid":[1,1,1],"block":[1024,2,1],"parameters":[]}',
        b'{"kernel":"k","unit":"u","grid":[1,1,1],"block":[1,1,1],"parameters":[],"dynamic_lds_bytes":-1}',
        b'{"kernel":"k","unit":"u","grid":[1,1,1],"block":[1,1,1],"parameters":[],"schema_version":9}',
        b'{"kernel":"k","unit":"u","grid":[1,1,1],"block":[1,1,1],"parameters":[{"type":"thing"}]}',
    ],
)
def test_what_is_no_case(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "case.json").write_bytes(text)
    with pytest.raises(DataError):
        read(Beneath(tmp_path), "")


def test_a_buffer_outside_of_its_case(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"x")
    for name in ("../secret", "/etc/hostname", "none"):
        with pytest.raises(DataError):
            cases.buffer(Beneath(tmp_path), "case", name)
    case = Case("k", "u", (1, 1, 1), (1, 1, 1), (Buffer("../secret"), Value(b"\1")))
    with pytest.raises(DataError, match="outside"):
        write(Beneath(tmp_path), "case", case, {"../secret": b""})
    with pytest.raises(DataError, match="no bytes were given"):
        write(Beneath(tmp_path), "case", case, {})


def floats(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


@pytest.mark.parametrize(
    ("expected", "got", "kind", "differs"),
    [
        (floats(1.0), floats(1.00005), "f32", False),
        (floats(1.0), floats(1.001), "f32", True),
        (floats(math.nan, math.inf), floats(-math.nan, math.inf), "f32", False),
        (floats(math.inf), floats(-math.inf), "f32", True),
        (floats(1.0), floats(math.nan), "f32", True),
        (b"\x80\x3f", b"\x81\x3f", "bf16", False),
        (b"\x80\x3f", b"\x90\x3f", "bf16", True),
        (struct.pack("<e", 1.0), struct.pack("<e", 1.01), "f16", False),
        (b"\1\0\0\0", b"\2\0\0\0", "i32", True),
        (b"abc", b"abc", "bytes", False),
        (b"abc", b"abd", "bytes", True),
        (b"abc", b"ab", "bytes", True),
    ],
)
def test_how_buffers_are_compared(expected: bytes, got: bytes, kind: str, differs: bool) -> None:
    assert (compare(expected, got, kind) is not None) is differs


def test_a_case_may_say_how_near_is_near_enough() -> None:
    assert compare(floats(1.0), floats(1.001), "f32", 0.01) is None
    assert compare(floats(1.0), floats(1.00001), "f32", 0.0) is not None
