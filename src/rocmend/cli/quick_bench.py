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
_ON_CPU = ("gemm/float32/1024x1024x1024/*", "gemm/float32/1x14336x4096/*", "memory/host/copy/*")
"""The same of a processor."""
_COPIES = ("memory/device/copy/*", "memory/link/to-device/pinned/*")
_COPIED_BYTES = 256 << 20


def quick_bench(
    machine: Machine,
    store: Store | None,
    *,
    whole: bool,
    progress: Callable[[str, int, int], None],
    quick: bool = False,
    line: str = "",
    since: str = "",
) -> tuple[BenchRun, ...] | str:
    """Measure a little, or say why not.

    Args:
        machine: This machine.
        store: Where the results are kept; None keeps none.
        whole: All cases of the quick preset under all settings.
        progress: Told what is done now.
        quick: Fewer blocks for each figure.
        line: The command line, kept with the records; empty for that of the command that runs.
        since: Go on with runs that this command line began since this time, ``20260131-120000``; empty for new ones.
    """
    from rocmend.bench.calls import Torch
    from rocmend.bench.device import describe
    from rocmend.bench.lock import BusyError, measuring
    from rocmend.bench.measure import QUICK, Effort
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
            on_cpu = device.kind == "cpu"
            suites: list[Suite] = [
                Gemm(torch, preset_cases("quick", ["float32"] if on_cpu else [], cpu=on_cpu), device),
                Memory(torch, cases_of(device, (_COPIED_BYTES,), available_bytes()), device, []),
            ]
            if not whole:
                suites = [
                    made for suite in suites for made in _some(suite, _ON_CPU if on_cpu else (*_PRODUCTS, *_COPIES))
                ]
            begun = line or command_line()
            effort = Effort(block_s=0.05, least_blocks=6, most_blocks=6) if quick else QUICK
            return tuple(
                run_suite(
                    suite,
                    store=store,
                    machine=machine,
                    effort=effort,
                    on_start=progress,
                    command=begun,
                    resume=_begun(store, suite.name, begun, since),
                )
                for suite in suites
                if suite.cases()
            )
        except BusyError as error:
            return f"Not measured: {error.message} {error.next_step}"
        except RocmendError as error:
            return f"Not measured with {error.subject}: {error.message} {error.next_step}".strip()


def _begun(store: Store | None, suite: str, line: str, since: str) -> str | None:
    """Return the run of a suite that a check began and did not end; None where there is none."""
    from rocmend.bench.run import begun_with

    group = store.last_group(f"bench-{suite}-") if store is not None and since else None
    if store is None or group is None or group.removeprefix(f"bench-{suite}-") < since:
        return None
    return group if begun_with(store, group) == line else None


def _some(suite: Suite, globs: tuple[str, ...]) -> list[Suite]:
    """Return the cases that fit, under the first setting; nothing where memory has room for none of them."""
    from rocmend.bench.suite import Selected

    fitting = [case.id for case in suite.cases() if any(fnmatchcase(case.id, glob) for glob in globs)]
    return [Selected(suite, fitting, [suite.settings()[0].id])] if fitting else []
