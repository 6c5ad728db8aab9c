"""The one vocabulary of outcomes for trials of every kind."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """What came out of a trial."""

    PASS = "pass"  # noqa: S105  a verdict, not a secret
    WRONG_OUTPUT = "wrong-output"
    SLOW = "slow"
    HANG = "hang"
    CRASH = "crash"
    GPU_RESET = "gpu-reset"
    OOM = "oom"
    SILENT_CPU_FALLBACK = "silent-cpu-fallback"
    UNSUPPORTED = "unsupported"
    INFRA = "infra"
    SKIPPED = "skipped"
