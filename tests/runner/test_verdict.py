from __future__ import annotations

import pytest

from rocmend.core.evidence import Silence
from rocmend.core.verdict import Verdict
from rocmend.runner.events import Sample
from rocmend.runner.executor import Exit
from rocmend.runner.failures import FailureScanner
from rocmend.runner.result import PythonError
from rocmend.runner.verdict import Outcome, classify_silence, decide, signal_name


def seen(*lines: str) -> FailureScanner:
    scanner = FailureScanner()
    scanner.feed("".join(f"{line}\n" for line in lines).encode())
    return scanner


@pytest.mark.parametrize(
    ("cpu", "wait", "gpu", "expected"),
    [
        (0.0, 0.0, None, Silence.BLOCKED),
        (0.01, 0.0, 0.0, Silence.BLOCKED),
        (1.0, 0.0, None, Silence.SPINNING),
        (0.5, 0.5, None, Silence.SPINNING),
        (0.97, None, 20.0, Silence.SPINNING),
        (0.4, 0.0, None, Silence.WORKING),
        (7.5, 0.0, None, Silence.WORKING),
        (7.5, 0.0, 100.0, Silence.WORKING),
        (0.0, 0.0, 100.0, Silence.GPU_STALLED),
        (1.0, 0.0, 100.0, Silence.GPU_STALLED),
        (None, None, 100.0, Silence.UNKNOWN),
    ],
)
def test_silence(cpu: float | None, wait: float | None, gpu: float | None, expected: Silence) -> None:
    assert classify_silence(cpu, wait, gpu) is expected


CASES = [
    (Outcome(exit=Exit(code=0)), Verdict.PASS, "status 0"),
    (Outcome(exit=Exit(code=1)), Verdict.CRASH, "exit status 1"),
    (Outcome(exit=Exit(signal=11)), Verdict.CRASH, "SIGSEGV"),
    (Outcome(exit=Exit(code=139)), Verdict.CRASH, "SIGSEGV"),
    (Outcome(exit=Exit(signal=9)), Verdict.CRASH, "no sign of running out of memory"),
    (Outcome(exit=Exit(code=137), oom_killed=True), Verdict.OOM, "memory ran out"),
    (Outcome(exit=Exit(code=137, oom_killed=True)), Verdict.OOM, "memory ran out"),
    (Outcome(exit=Exit(code=127)), Verdict.INFRA, "127"),
    (Outcome(exit=Exit(infra="pod evicted")), Verdict.INFRA, "pod evicted"),
    (Outcome(exit=Exit(code=0), dmesg={"reset_mode2": 1}), Verdict.GPU_RESET, "reset_mode2"),
    (Outcome(exit=Exit(signal=6), dmesg={"reset_begin": 1}, ended_for="silence"), Verdict.GPU_RESET, "reset_begin"),
    (Outcome(exit=Exit(code=0), dmesg={"page_fault": 3}), Verdict.PASS, "status 0"),
    (
        Outcome(exit=Exit(signal=15), ended_for="silence", phase="load", silent_s=31, silence=Silence.SPINNING),
        Verdict.HANG,
        "silent after phase load for 31 s: spinning",
    ),
    (
        Outcome(
            ended_for="silence",
            silent_s=9,
            silence=Silence.BLOCKED,
            sample=Sample(state="D", wchan="amdgpu_fence_wait"),
        ),
        Verdict.HANG,
        "state D, amdgpu_fence_wait",
    ),
    (
        Outcome(
            exit=Exit(signal=9),
            ended_for="silence",
            silence=Silence.GPU_STALLED,
            sample=Sample(state="R", gpu_busy_percent=100, gpu_power_w=31.5),
        ),
        Verdict.HANG,
        "31.5 W",
    ),
    (Outcome(exit=Exit(signal=15), ended_for="total", limit_s=60, silent_s=1), Verdict.SLOW, "still printing"),
    (Outcome(exit=Exit(signal=15), ended_for="total", limit_s=60, silent_s=50), Verdict.HANG, "of the limit of 60 s"),
    (
        Outcome(
            exit=Exit(signal=15),
            ended_for="total",
            limit_s=60,
            silent_s=59,
            silence=Silence.WORKING,
            slow="torch.compile",
        ),
        Verdict.SLOW,
        "torch.compile",
    ),
    (Outcome(exit=Exit(signal=15), ended_for="stop"), Verdict.SKIPPED, "on request"),
    (Outcome(exit=Exit(code=0), python_call=True, returned=True), Verdict.PASS, "status 0"),
    (Outcome(exit=Exit(code=0), python_call=True), Verdict.CRASH, "before the function returned"),
    (
        Outcome(
            exit=Exit(code=1), python_error=PythonError("import", "ModuleNotFoundError", "x", bases=("ImportError",))
        ),
        Verdict.INFRA,
        "could not be imported",
    ),
    (
        Outcome(exit=Exit(code=1), python_error=PythonError("call", "OutOfMemoryError", "HIP out of memory")),
        Verdict.OOM,
        "HIP out of memory",
    ),
    (Outcome(), Verdict.HANG, "could not be killed"),
]


@pytest.mark.parametrize(("outcome", "verdict", "words"), CASES)
def test_verdict(outcome: Outcome, verdict: Verdict, words: str) -> None:
    found, reason = decide(outcome)
    assert found is verdict
    assert words in reason


@pytest.mark.parametrize(
    ("lines", "code", "expected"),
    [
        (("model x failed (exit 0)",), 0, Verdict.CRASH),
        (("model x failed (exit 137)",), 0, Verdict.OOM),
        (("Traceback (most recent call last):", "ValueError: handled"), 0, Verdict.PASS),
        (("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2 GiB",), 0, Verdict.PASS),
        (("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2 GiB",), 1, Verdict.OOM),
        (("what():  std::bad_alloc",), 134, Verdict.OOM),
        (("/src/ggml.c:9: GGML_ASSERT(ctx->mem_buffer != NULL) failed",), 134, Verdict.OOM),
        (("ggml_vulkan: Device memory allocation of size 99 failed.",), 1, Verdict.OOM),
        (("hipErrorNoBinaryForGpu: Unable to find code object",), 134, Verdict.UNSUPPORTED),
        (("HW Exception by GPU node-1 (Agent handle: 0x1) reason :GPU Hang",), 134, Verdict.GPU_RESET),
        (("sh: 1: nonesuch: not found",), 1, Verdict.INFRA),
        (("srv    load_model: failed to load model, 'x.gguf'",), 0, Verdict.CRASH),
        (("0 failed, 12 passed",), 0, Verdict.PASS),
        (("no errors were found", "error: 0"), 0, Verdict.PASS),
        (("Direct firmware load failed with error -2",), 0, Verdict.PASS),
    ],
)
def test_what_was_said_counts(lines: tuple[str, ...], code: int, expected: Verdict) -> None:
    assert decide(Outcome(exit=Exit(code=code), failures=seen(*lines).seen()))[0] is expected


def test_signals_without_a_name() -> None:
    assert signal_name(6) == "SIGABRT"
    assert signal_name(99) == "signal 99"
