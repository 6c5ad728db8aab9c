"""The few figures that a check takes: how fast products are here, and memory where that is measured."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from rocmend.core.errors import RocmendError

if TYPE_CHECKING:
    from rocmend.bench.records import BenchRun
    from rocmend.bench.suite import Suite
    from rocmend.machine.facts import Machine
    from rocmend.store.store import Store

_CASES = ("gemm/bfloat16/4096x4096x4096/*", "gemm/bfloat16/1x14336x4096/*")
"""A large product, which arithmetic bounds, and one of a token, which memory bounds."""


def quick_bench(
    machine: Machine,
    store: Store | None,
    *,
    whole: bool,
    progress: Callable[[str, int, int], None],
) -> tuple[BenchRun, ...] | str:
    """Measure a little, or say why not.

    Args:
        machine: This machine.
        store: Where the results are kept; None keeps none.
        whole: All cases of the quick preset under all settings, on a CPU too.
        progress: Told what is done now.
    """
    from rocmend.bench.calls import Torch
    from rocmend.bench.device import describe
    from rocmend.bench.measure import QUICK
    from rocmend.bench.run import run_suite
    from rocmend.bench.suite import Selected
    from rocmend.bench.suites.gemm import Gemm
    from rocmend.bench.suites.gemm_cases import preset_cases
    from rocmend.runner.interpreter import importable, interpreter_of

    with contextlib.ExitStack() as stack:
        try:
            torch = Torch(stack.enter_context(importable()), interpreter_of(None, machine))
            progress("what to measure", 0, 0)
            device = describe(torch)
        except RocmendError as error:
            return f"Not measured with {error.subject}: {error.message} {error.next_step}".strip()
        suite: Suite = Gemm(torch, preset_cases("quick", [], cpu=device.kind == "cpu"), device)
        if not whole:
            suite = Selected(suite, _CASES, ("default",))
        return (run_suite(suite, store=store, machine=machine, effort=QUICK, on_start=progress),)
