"""What the benchmark commands share: their options, the run, and how it ends."""

from __future__ import annotations

import contextlib
import functools
import re
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec
from click.core import ParameterSource

from rocmend.cli.fleet import hosts_options
from rocmend.cli.measuring import measure_alone
from rocmend.cli.output import finish, output_options, tell
from rocmend.cli.progress import Progress
from rocmend.cli.quantities import Duration
from rocmend.cli.resumable import Resumable, ResumeOption, command_line
from rocmend.cli.source import python_option, take_snapshot
from rocmend.cli.stored import store_option
from rocmend.core.errors import UsageError
from rocmend.report.envelope import CLEAN, FINDINGS, Outcome

if TYPE_CHECKING:
    from rocmend.bench.calls import Torch
    from rocmend.bench.measure import Effort
    from rocmend.bench.records import BenchRun
    from rocmend.bench.suite import Suite
    from rocmend.machine.facts import Machine
    from rocmend.machine.root import ChosenPython
    from rocmend.store.store import Store

__all__ = ["Bench", "BenchOptions", "bench_options", "run_bench", "run_options"]

F = TypeVar("F", bound=Callable[..., Any])

_NAMING = {
    "settings",
    "select",
    "shapes",
    "dtypes",
    "dtype",
    "layouts",
    "models",
    "task",
    "tasks",
    "backends",
    "depth",
    "depths",
}
"""Parameters of commands that name what is to be measured."""
_MOST_PREPARING_S = 8.0
"""Seconds that a case is about to take before it is timed, for the estimate."""


class BenchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options that every benchmark has.

    Attributes:
        device: ``auto``, ``cpu``, ``cuda`` or e.g. ``cuda:1``.
        python: The environment whose torch is measured.
        quick: Less time, wider intervals.
        time_s: Seconds of timing for each figure, in place of as many as it needs.
        settings: Which settings; none for all.
        select: Which cases; none for all.
        list_only: Show what would be measured.
        store_path: The store that keeps the results.
        no_store: Keep none.
        resume: The run to go on with.
        output_format: What the result is printed as.
    """

    device: str = "auto"
    python: ChosenPython | None = None
    quick: bool
    time_s: float | None
    settings: tuple[str, ...]
    select: tuple[str, ...]
    list_only: bool
    store_path: Path | None
    no_store: bool
    resume: str | None
    output_format: str

    def effort(self, efforts: tuple[Effort, Effort] | None = None) -> Effort:
        """Return how much is done for a figure.

        Args:
            efforts: The suite's own, for ``--quick`` and otherwise.
        """
        from rocmend.bench.measure import QUICK, STANDARD

        quick, standard = efforts or (QUICK, STANDARD)
        chosen = quick if self.quick else standard
        if self.time_s is None:
            return chosen
        blocks = chosen.most_blocks
        return msgspec.structs.replace(chosen, block_s=self.time_s / blocks, least_blocks=blocks)


def _known_device(_ctx: click.Context, _parameter: click.Parameter, text: str) -> str:
    if text == "gpu":  # as MLX calls it
        return "cuda"
    if not re.fullmatch(r"auto|cpu|cuda(:\d{1,3})?", text):
        raise UsageError(
            "--device",
            f"{text[:40]!r} is no device.",
            next_step="Write auto, cpu, cuda or e.g. cuda:1; torch for ROCm calls its GPUs cuda, too.",
        )
    return text


def bench_options(function: F) -> F:
    """Add the options that a benchmark in torch has; they are passed as ``common``, a ``BenchOptions``."""
    device = click.option(
        "--device",
        metavar="DEVICE",
        default="auto",
        show_default=True,
        callback=_known_device,
        help="auto, cpu, cuda, or e.g. cuda:1.",
    )
    return device(python_option(run_options(function)))


def run_options(function: F) -> F:
    """Add the options that every benchmark has; they are passed as ``common``, a ``BenchOptions``."""

    @functools.wraps(function)
    def packed(**values: Any) -> Any:
        own = {name: values.pop(name) for name in BenchOptions.__struct_fields__ if name in values}
        return function(common=BenchOptions(**own), **values)

    options: tuple[Callable[[Any], Any], ...] = (
        click.option("--setting", "settings", metavar="ID", multiple=True, help=_SETTING),
        click.option("--select", metavar="GLOB", multiple=True, help="Only the cases whose id fits. Repeatable."),
        click.option("--quick", is_flag=True, help="Less time for each figure; the intervals are wider."),
        click.option("--time", "time_s", type=Duration(0.001), default=None, metavar="TIME", help=_TIME),
        click.option("--list", "list_only", is_flag=True, help="List cases and settings, and measure nothing."),
        store_option,
        click.option("--no-store", is_flag=True, help="Do not keep the results."),
        click.option("--resume", cls=ResumeOption, find=_begun, metavar="RUN", default=None, help=_RESUME),
        hosts_options,
        output_options("jsonl"),
    )
    made: Any = packed
    for option in reversed(options):
        made = option(made)
    return made  # type: ignore[no-any-return]  # the decorators of click give back what they got


def _begun(store: Store, suite: str, name: str) -> tuple[str, str]:
    """Return the id of a run of a suite, and the command line that it was begun with."""
    from rocmend.bench.run import begun_with, find_run

    group = find_run(store, suite, name)
    return group, begun_with(store, group)


_RESUME = "Go on with a run that was cut short, with the options that it was begun with: its id, or `last`."
_SETTING = "Only this setting; others are compared with the first one named. An id or a glob. Repeatable."
_TIME = "Time this long for each figure, e.g. 10s. Otherwise until its interval is narrow enough."


class Bench:
    """What a suite is made with.

    Attributes:
        machine: The facts of this machine.
        common: The options.
    """

    def __init__(self, common: BenchOptions, machine: Machine, stack: contextlib.ExitStack) -> None:
        self.common, self.machine, self._stack = common, machine, stack

    @functools.cached_property
    def torch(self) -> Torch:
        """The torch that is measured."""
        from rocmend.bench.calls import Torch
        from rocmend.runner.interpreter import importable, interpreter_of

        asked = str(self.machine.value("python.executable", "")) if self.common.python is not None else None
        python = interpreter_of(asked, self.machine)
        return Torch(self._stack.enter_context(importable()), python, self.common.device)


def run_bench(
    command: str,
    common: BenchOptions,
    make: Callable[[Bench], Suite],
    efforts: tuple[Effort, Effort] | None = None,
    *,
    all_gpus: bool = False,
) -> None:
    """Make a suite, run it, print what came out and leave.

    Args:
        command: The command's path: ``bench gemm``.
        common: The options.
        make: Makes the suite.
        efforts: How much is done for a figure with ``--quick`` and otherwise, where it is not what others do.
        all_gpus: It uses other GPUs than the one that ``--device`` names.
    """
    if common.no_store and (common.resume or common.store_path):
        raise UsageError("--no-store", "it cannot be given together with --store or --resume.")
    with contextlib.ExitStack() as stack:
        resumable = stack.enter_context(Resumable(kept=not common.no_store, group=common.resume or ""))
        progress = stack.enter_context(Progress(f"rocmend {command}", "reading the machine"))
        from rocmend.bench.conditions import conditions
        from rocmend.bench.run import run_suite
        from rocmend.bench.suite import Selected
        from rocmend.bench.telemetry import telemetry
        from rocmend.store.store import Store

        machine = take_snapshot(None, python=common.python)
        suite = Selected(make(Bench(common, machine, stack)), common.select, common.settings)
        run: BenchRun | None = None
        stop = threading.Event()
        if not common.list_only:
            store = None if common.no_store else stack.enter_context(Store.open(common.store_path))
            if measure_alone(command, "cpu" if all_gpus else common.device, progress, stack):
                # what is measured follows from what was free, and another one used it
                suite = Selected(make(Bench(common, machine, stack)), common.select, common.settings)
            gpu = common.device != "cpu"
            notes = conditions(gpu=gpu)
            watch = stack.enter_context(telemetry(gpu=gpu))
            effort = common.effort(efforts)
            progress.expect(_estimate(suite, effort)["whole_s"])
            # what was measured until then is printed, as by a batch system that ends a job
            stack.callback(signal.signal, signal.SIGTERM, signal.signal(signal.SIGTERM, lambda *_: stop.set()))
            run = run_suite(
                suite,
                store=store,
                machine=machine,
                effort=effort,
                resume=common.resume,
                on_start=progress,
                on_result=lambda _result, group, done, total: resumable.note(group, done, total),
                on_kept=resumable.note_found,
                stop=stop.is_set,
                watch=watch,
                notes=notes,
                command=command_line(),
                named=_is_named(),
            )
    if run is not None and stop.is_set():
        resumable.say_how()
    if run is None:
        _list(command, suite, common.effort(efforts), common.output_format)
    else:
        if run.resumed and run.resumed == len(run.results) and not run.not_run:
            tell(f"{run.group} was complete: nothing was left to measure.")
        _print(command, run, common.output_format)


def _is_named() -> bool:
    """Return whether the command line names cases or settings, in place of a benchmark's own choice."""
    ctx = click.get_current_context()
    return any(ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in ctx.params if name in _NAMING)


def _estimate(suite: Suite, effort: Effort) -> dict[str, Any]:
    """Return how many seconds timing takes at least and at most, with all else about, and how much memory it takes."""
    figures = sum(not suite.applies(case, setting) for case in suite.cases() for setting in suite.settings())
    ends = [figures * blocks * effort.block_s for blocks in (effort.least_blocks, effort.most_blocks)]
    return {"timing_s": ends, "whole_s": ends[1] + figures * _MOST_PREPARING_S, "memory_bytes": suite.memory_bytes()}


def _list(command: str, suite: Suite, effort: Effort, output_format: str) -> None:
    from rocmend.cli.output import json_lines
    from rocmend.cli.views.bench import list_document

    cases, settings, more = suite.cases(), suite.settings(), suite.more_settings()
    estimate = _estimate(suite, effort)
    data = {"cases": cases, "settings": settings, "more_settings": more, "estimate": estimate}
    outcome = Outcome(command, data)
    finish(
        outcome,
        output_format,
        lambda: list_document(suite.title, cases, settings, more, **estimate),
        others={"jsonl": lambda: json_lines(cases)},
    )


def _print(command: str, run: BenchRun, output_format: str) -> None:
    from rocmend.bench.compare import run_data
    from rocmend.bench.records import row_of
    from rocmend.cli.output import json_lines
    from rocmend.cli.views.bench import run_document

    outcome = Outcome(command, run_data(run), CLEAN if run.clean else FINDINGS)
    others = {"jsonl": lambda: json_lines({"group": run.group, **row_of(item)} for item in run.results)}
    finish(outcome, output_format, lambda: run_document(run), others=others)
