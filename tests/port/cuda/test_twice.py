"""Porting twice: the second port changes nothing, whatever the source is made of."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocmend.port.analyse import analyse, read
from rocmend.port.apply import apply
from rocmend.port.baseline import read_baseline, without_known, write_baseline
from rocmend.port.cuda.identity import restored
from rocmend.port.records import Language
from rocmend.port.rewrite import Rewrite, Rewritten, rewrite, taken
from rocmend.port.rule import rules

SOURCES = sorted(
    {case.before for rule in rules(Language.CUDA) for case in rule.invalid}
    | {source for rule in rules(Language.CUDA) for source in rule.valid}
)
PIECES = [
    *("{", "}", "(", ")", '"', "'", "/*", "*/", "//", "\\\n", "\n", "\r\n", ";", ",", "<", ">", "#", "\t"),
    *("#if 0\n", "#endif\n", "#else\n", "#elif\n", "#ifdef USE_ROCM\n", "#ifndef USE_ROCM\n", "#ifdef __NVCC__\n"),
    *('R"(', ')"', "#define A(x) \\\n", "#include <cuda_runtime.h>\n", "__CUDA_ARCH__", "warpSize", "0xffffffff", "32"),
    *("__global__ void k() ", "if (x) ", "return ", 'asm("', "template<"),
]
MOVING = "__device__ int f(int v) {\n  if (v == 0) {#ifdef USE_ROCM\n\n    __syncwarp();\n    return 0;\n  }\n}\n"
"""A gate of a port within a line: no directive to a compiler, and none to a reader of lines."""


@st.composite
def malformed(draw: st.DrawFn) -> str:
    """Sources with pieces put in, taken out and said twice."""
    text = draw(st.sampled_from(SOURCES))
    for _ in range(draw(st.integers(1, 5))):
        at = draw(st.integers(0, len(text)))
        size = draw(st.sampled_from([1, 1, 2, 5, 20, 60]))
        match draw(st.sampled_from(["piece", "piece", "cut", "twice", "source"])):
            case "piece":
                text = text[:at] + draw(st.sampled_from(PIECES)) + text[at:]
            case "cut":
                text = text[:at] + text[at + size :]
            case "twice":
                to = draw(st.integers(0, len(text)))
                text = text[:to] + text[at : at + size] + text[to:]
            case _:
                text = text[:at] + draw(st.sampled_from(SOURCES)) + text[at:]
    return text


def ported(root: Path, source: bytes) -> Rewritten:
    """Port one file of a project."""
    (root / "a.cu").write_bytes(source)
    report = read("a.cu", source)
    issues = taken(report.issues, suggestions=False)
    task = Rewrite("a.cu", report.sha256, Language.CUDA, tuple(issues), "../include/cuda_to_hip.h")
    return rewrite(root, task, 1 << 20)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(source=malformed())
def test_a_malformed_source_is_ported_once_or_not_at_all(tmp_path: Path, source: str) -> None:
    data = source.encode()
    first = ported(tmp_path, data)
    if first.after is None:
        return
    assert restored(first.after) == restored(data)
    second = ported(tmp_path, first.after)
    assert (second.after, second.reason) == (None, "")


@pytest.mark.slow
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sources=st.lists(malformed(), min_size=2, max_size=6))
def test_a_project_of_malformed_sources_stays_as_its_port_is(
    tmp_path_factory: pytest.TempPathFactory, sources: list[str]
) -> None:
    root = tmp_path_factory.mktemp("project")
    for at, source in enumerate(sources):
        path = root / ("src/deep" if at % 2 else "src") / f"{at}.cu"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(source.encode())
    apply(analyse(root), allow_dirty=True)
    again = apply(analyse(root), allow_dirty=True)
    assert (again.changed, again.added) == ((), ())


def test_a_file_that_would_move_is_left_alone_and_told(tmp_path: Path) -> None:
    (tmp_path / "moving.cu").write_text(MOVING)
    (tmp_path / "good.cu").write_text("#include <cuda_runtime.h>\n")
    done = apply(analyse(tmp_path), allow_dirty=True)
    assert done.changed == ("good.cu",)
    ((path, reason),) = done.left_alone
    assert path == "moving.cu"
    assert "porting it again" in reason
    assert "CU01" in reason
    assert (tmp_path / "moving.cu").read_text() == MOVING


def test_a_port_with_chosen_rules_is_not_held_up_by_the_others(tmp_path: Path) -> None:
    source = "#include <cuda_runtime.h>\n__device__ int f(int v) { return __shfl_sync(0xffffffff, v, 0); }\n"
    (tmp_path / "a.cu").write_text(source)
    done = apply(analyse(tmp_path, select=("CU40",)), allow_dirty=True)
    assert (done.changed, done.left_alone) == (("a.cu",), ())
    again = apply(analyse(tmp_path, select=("CU40",)), allow_dirty=True)
    assert (again.changed, again.added) == ((), ())


def test_accepted_issues_do_not_hold_up_a_port(tmp_path: Path) -> None:
    old = "__device__ int f(int v) { return __shfl_sync(0xffffffff, v, 0); }\n"
    new = "__device__ int g(int v) { return __shfl_sync(0xffffffff, v, 1); }\n"
    (tmp_path / "a.cu").write_text("#include <cuda_runtime.h>\n" + old)
    known = tmp_path / "known.json"
    write_baseline(known, analyse(tmp_path))
    (tmp_path / "a.cu").write_text("#include <cuda_runtime.h>\n" + old + "\n\n\n\n" + new)
    done = apply(without_known(analyse(tmp_path), read_baseline(known)), allow_dirty=True)
    assert (done.changed, done.left_alone) == (("a.cu",), ())
    text = (tmp_path / "a.cu").read_text()
    assert text.count(old) == 1
    assert text.count(new) == 1
    assert "#ifdef USE_ROCM\n__device__ int g" in text
