"""Run the suites of ops as AMD machine code on the CPU, for targets that are not there, in supervised workers."""

from __future__ import annotations

import contextlib
import datetime as dt
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from rocmend.core.errors import UnitError, UsageError
from rocmend.core.verdict import Verdict
from rocmend.emulate.build import engine
from rocmend.emulate.generation import generation_of
from rocmend.kernels import registry
from rocmend.kernels.compiled.pool import Pool
from rocmend.kernels.compiled.toolchain import Toolchain
from rocmend.kernels.compiled.toolchains import choose_toolchain, serves
from rocmend.kernels.suite.supervise import CaseOutcome, OpRun, summed

if TYPE_CHECKING:
    from rocmend.kernels.op import Op
    from rocmend.kernels.suite.case import Case

__all__ = ["DEVICE_NAME", "Selection", "check_emulated", "emulate_case", "spread"]

DEVICE_NAME = "rocmend.emulate on the CPU"
_START_S = 120.0
"""What a worker may take to import torch and Triton, and to compile the emulator, before its first case."""


class Selection(NamedTuple):
    """What to run.

    Args:
        ops: Names.
        targets: gfx targets.
        toolchains: The Tritons at hand.
        sizes: ``tiny``, ``small``.
        most: Cases of each op; None for all.
        case_s: Seconds for a case.
        total_s: Seconds after which no further case is begun; None for no limit.
        jobs: Workers at once.
    """

    ops: tuple[str, ...]
    targets: tuple[str, ...]
    toolchains: tuple[Toolchain, ...]
    sizes: tuple[str, ...] = ("tiny", "small")
    most: int | None = None
    case_s: float = 180.0
    total_s: float | None = None
    jobs: int = 1


class Emulated(msgspec.Struct, frozen=True):
    """What came out of a case.

    Attributes:
        outcome: As of a case on a GPU.
        launches: Kernels that were executed.
        wave_instructions: Instructions that waves executed in them.
        versions: Of torch and Triton.
    """

    outcome: CaseOutcome
    launches: int = 0
    wave_instructions: int = 0
    versions: dict[str, str] = {}


class _Key(NamedTuple):
    op: str
    case: str
    target: str


class _OutOfTimeError(Exception):
    """The time for all is over."""


def spread(cases: Iterable[Case]) -> list[Case]:
    """Order cases such that the first few differ most: one of each function and implementation, then the next of each.

    Smaller sizes come first. Cases without elements launch nothing, and come last.
    """
    sizes = ("tiny", "small", "large")
    listed = sorted(cases, key=lambda case: ("empty" in case.edges, sizes.index(case.size)))
    seen: Counter[tuple[str | None, str]] = Counter()
    ranked = []
    for case in listed:
        kind = (case.function, case.implementation)
        ranked.append((seen[kind], case))
        seen[kind] += 1
    return [case for _, case in sorted(ranked, key=lambda one: one[0])]


def check_emulated(
    selection: Selection, told: Callable[[str, CaseOutcome, int, int], None], done: dict[tuple[str, str], OpRun]
) -> None:
    """Run suites as AMD machine code.

    Args:
        selection: What to run.
        told: Called after each case: what was run where, what came out, how many are done, and of how many.
        done: Gets what came out, by op and target, as it comes: it holds what was run if this is interrupted.

    Raises:
        UsageError: Code for a target is not executed, no Triton at hand compiles for it, or there is no C compiler.
    """
    for target in selection.targets:
        generation_of(target, 64)
    engine()  # compiled once, before the workers ask for it
    begun, started = time.monotonic(), dt.datetime.now(dt.UTC)
    toolchains = {name: _toolchain(name, selection.toolchains) for name in selection.targets}
    outcomes: dict[tuple[str, str], dict[str, Emulated]] = {}
    known: dict[str, int] = {}
    tasks: list[tuple[int, _Key, Toolchain, dict[str, Any]]] = []
    for name in selection.ops:
        cases = [case.name for case in spread(_by_name(name, selection.sizes).values())]
        known[name] = len(cases)
        for rank, case in enumerate(cases[: selection.most]):
            for target, toolchain in toolchains.items():
                request = {"do": "emulate", "op": name, "case": case, "target": target, "sizes": selection.sizes}
                tasks.append((rank, _Key(name, case, target), toolchain, request))
    tasks.sort(key=lambda task: task[0])  # all ops and targets get their turn before one gets its second
    count = 0

    def answered(key: _Key, answer: dict[str, Any]) -> None:
        nonlocal count
        count += 1
        found = msgspec.convert(answer["ok"], Emulated) if "ok" in answer else Emulated(_failed(key, answer))
        own = outcomes.setdefault((key.op, key.target), {})
        own[key.case] = found
        done[key.op, key.target] = _run(key, own, selection, known[key.op], started)
        told(f"{key.op}/{key.case} on {key.target}", found.outcome, count, len(tasks))
        if selection.total_s is not None and time.monotonic() - begun > selection.total_s:
            raise _OutOfTimeError

    pool = Pool[_Key](selection.jobs, selection.case_s, start_s=_START_S, own_cache=False)
    with contextlib.suppress(_OutOfTimeError):
        pool.map([(key, toolchain, request) for _, key, toolchain, request in tasks], answered)


def _toolchain(target: str, toolchains: Sequence[Toolchain]) -> Toolchain:
    found = choose_toolchain(target, toolchains)
    if found is None:
        lacking = serves(target)
        raise UsageError(
            "kernels check",
            f"no installed Triton compiles for {target}: it needs triton {lacking.versions} ({lacking.why}).",
            next_step="rocmend kernels compile --fetch-triton VERSION installs another one alongside.",
        )
    return found


@cache
def _by_name(op: str, sizes: tuple[str, ...]) -> dict[str, Case]:
    from rocmend.kernels.suite.run import cases_of

    return {case.name: case for case in cases_of(registry.get(op), sizes)}


def _failed(key: _Key, answer: dict[str, Any]) -> CaseOutcome:
    """Return what a case came to whose worker did not answer: it was ended, or crashed."""
    text = str(answer["error"])
    verdict = Verdict.HANG if text.startswith("no end after") else Verdict.CRASH
    return CaseOutcome(key.case, verdict, text[:800])


def _run(key: _Key, own: dict[str, Emulated], selection: Selection, known: int, started: dt.datetime) -> OpRun:
    about = {
        "vendor": "emulated",
        "target": key.target,
        "name": DEVICE_NAME,
        "versions": next((one.versions for one in own.values() if one.versions), {}),
    }
    time_ms = sum(one.outcome.time_ms for one in own.values())
    # A case that launches nothing says nothing about machine code.
    counted = {name: one.outcome for name, one in own.items() if one.outcome.verdict is not Verdict.SKIPPED}
    run = summed(key.op, counted, about, selection.sizes, started, time_ms)
    return msgspec.structs.replace(run, known=known)


def emulate_case(request: dict[str, Any]) -> Emulated:
    """Run one case in this process: what a worker does.

    Args:
        request: The op, the case, the target, and of which sizes the case is.
    """
    import warnings

    import torch
    import triton

    from rocmend import __version__
    from rocmend.kernels import target as targets

    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", category=RuntimeWarning)  # of the infinities and NaN that are meant
    op = registry.get(request["op"])
    case = _by_name(op.name, tuple(request["sizes"]))[request["case"]]
    begin = time.perf_counter()
    outcome, launches, instructions = _outcome(op, case, targets.by_name(request["target"]))
    time_ms = (time.perf_counter() - begin) * 1e3
    versions = {"torch": str(torch.__version__), "triton": triton.__version__, "rocmend": __version__}
    return Emulated(msgspec.structs.replace(outcome, time_ms=time_ms), launches, instructions, versions)


def _outcome(op: Op, case: Case, target: Any) -> tuple[CaseOutcome, int, int]:
    import torch

    from rocmend.emulate.decode.operands import UnmodelledError
    from rocmend.emulate.device import FaultError
    from rocmend.kernels import executor
    from rocmend.kernels.emulated import Emulator
    from rocmend.kernels.select import UnsupportedError
    from rocmend.kernels.suite.run import run_case

    emulator = Emulator(target)
    verdict, detail, worst, by = Verdict.PASS, "", 0.0, case.implementation
    try:
        with executor.using(emulator):
            # the second run, which must agree bit by bit, has its waves in the other order
            result = run_case(op, case, torch.device("cpu"), again=emulator.reverse)
        detail, worst, by = result.detail, min(result.worst, 1e300), result.implementation
        verdict = Verdict.PASS if result.ok else Verdict.WRONG_OUTPUT
    except UnsupportedError as error:
        verdict, detail = Verdict.UNSUPPORTED, str(error)[:500]
    except FaultError as error:
        verdict, detail = Verdict.CRASH, str(error)[:1500]
    except UnmodelledError as error:
        verdict, detail = Verdict.INFRA, str(error)[:500]
    except UnitError:
        raise
    except Exception as error:  # noqa: BLE001  whatever a kernel or its compiler raises is what the case came to
        verdict, detail = Verdict.CRASH, f"{type(error).__name__}: {error}"[:800]
    if verdict is Verdict.PASS and not emulator.runs:
        verdict, detail = Verdict.SKIPPED, "no kernel was launched"
    instructions = sum(run.wave_instructions for run in emulator.runs)
    return CaseOutcome(case.name, verdict, detail, worst, 0.0, by), len(emulator.runs), instructions
