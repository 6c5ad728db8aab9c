"""The few figures that a check takes: products, memory, and the way to it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from rocmend.cli.resumable import command_line
from rocmend.core.errors import RocmendError
from rocmend.core.variables import MEASURING

if TYPE_CHECKING:
    from rocmend.bench.records import BenchRun
    from rocmend.bench.suite import Suite
    from rocmend.machine.facts import Machine
    from rocmend.store.store import Store

_PRODUCTS = ("gemm/bfloat16/4096x4096x4096/*", "gemm/bfloat16/1x14336x4096/*")
"""A large product, which arithmetic bounds, and one of a token, which memory bounds."""
_COPIES = ("memory/device/copy/*", "memory/link/to-device/pinned/*")
_COPIED_BYTES = 256 << 20


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
    from rocmend.bench.lock import BusyError, measuring
    from rocmend.bench.measure import QUICK
    from rocmend.bench.run import run_suite
    from rocmend.bench.suites.gemm import Gemm
    from rocmend.bench.suites.gemm_cases import preset_cases
    from rocmend.bench.suites.memory import Memory, cases_of
    from rocmend.core.host_memory import available_bytes
    from rocmend.runner.interpreter import importable, interpreter_of

    with contextlib.ExitStack() as stack:
        try:
            if not os.environ.get(MEASURING):
                stack.enter_context(measuring("check"))
            torch = Torch(stack.enter_context(importable()), interpreter_of(None, machine))
            progress("what to measure", 0, 0)
            device = describe(torch)
            suites: list[Suite] = [
                Gemm(torch, preset_cases("quick", [], cpu=device.kind == "cpu"), device),
                Memory(torch, cases_of(device, (_COPIED_BYTES,), available_bytes()), device, []),
            ]
            if not whole:
                suites = [made for suite in suites for made in _some(suite, (*_PRODUCTS, *_COPIES))]
            return tuple(
                run_suite(suite, store=store, machine=machine, effort=QUICK, on_start=progress, command=command_line())
                for suite in suites
                if suite.cases()
            )
        except BusyError as error:
            return f"Not measured: {error.message} {error.next_step}"
        except RocmendError as error:
            return f"Not measured with {error.subject}: {error.message} {error.next_step}".strip()


def _some(suite: Suite, globs: tuple[str, ...]) -> list[Suite]:
    """Return the cases that fit, under the first setting; nothing where memory has room for none of them."""
    from rocmend.bench.suite import Selected

    fitting = [case.id for case in suite.cases() if any(fnmatchcase(case.id, glob) for glob in globs)]
    return [Selected(suite, fitting, [suite.settings()[0].id])] if fitting else []
