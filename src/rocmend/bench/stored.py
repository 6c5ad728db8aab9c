"""Runs as the store has them."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from rocmend.bench.calibration import calibrations_of
from rocmend.bench.conclusion import Conclusion
from rocmend.bench.conditions import machine_facts
from rocmend.bench.records import IMPORTED, KIND, BenchRun, Measured, measured_of, on_machine
from rocmend.bench.suites.gemm_cases import DTYPES
from rocmend.core.errors import UsageError
from rocmend.store.runs import LISTED, find_run

if TYPE_CHECKING:
    from rocmend.store.store import Store

TITLES = {
    "gemm": "Matrix products",
    "memory": "Memory",
    "nn": "Networks",
    "llama": "llama.cpp",
    "mlx": "MLX",
    "kernels": "Kernels",
    "serve": "Servers under load",
}
"""What the suites measure, in the order of a report."""

_PARAMETERS: dict[str, dict[str, type]] = {
    "gemm": {"m": int, "n": int, "k": int, "batch": int, "dtype": str},
    "memory": {"test": str, "where": str, "bytes": int},
    "llama": {"model": str},
}
"""What reports read of a case: an archive of others may hold anything."""

_MOST_DIGITS = 6

_SAY = {"gemm", "memory", "mlx"}
"""Suites that draw conclusions of their own."""


def results_of(store: Store, group: str) -> tuple[tuple[Measured, ...], dict[str, str]]:
    """Return the results of a run, in the order of their start, and what is known about its machine.

    Of repeats of a case the newest counts. Results of others are taken where their import is named.
    """
    found: dict[str, Measured] = {}
    machine = ""
    rows = list(store.query(kind=KIND, group=group)) or list(store.query(kind=IMPORTED, group=group))
    for row in reversed(rows):  # the oldest first: settings keep the order in which they were measured
        try:
            found[row.evidence.subject] = measured_of(row.evidence)
        except msgspec.ValidationError:
            continue  # an older kind of record, of which only the store's own commands know
        machine = machine or row.evidence.machine
    facts = machine_facts(store.machine(machine)) if machine else {}
    return on_machine(sorted(found.values(), key=lambda item: item.started_at), facts), facts


def _is_readable(result: Measured) -> bool:
    """Return whether a report can read a result's case."""
    suite, parameters = result.case.suite, result.case.parameters
    if suite == "gemm" and parameters.get("dtype") not in DTYPES.values():
        return False
    return all(isinstance(parameters.get(name), kind) for name, kind in _PARAMETERS.get(suite, {}).items())


def run_named(store: Store, name: str, subject: str) -> str:
    """Return the id of a run.

    Args:
        store: Where it is.
        name: Its id or a beginning of it; ``gemm`` for the newest run of a benchmark, ``gemm~1`` for the one before;
            ``last`` and ``last~1`` for those of the benchmark that was run last.
        subject: What an error is about.

    Raises:
        UsageError: There is no such run.
    """
    asked, tilde, count = name.partition("~")
    if asked != "last" and asked not in TITLES:
        kinds = [f"{KIND}-", f"{IMPORTED}-", "shared-"]
        return find_run(store, name, kinds=kinds, subject=subject, what="run of a benchmark")
    if tilde and not (count.isdecimal() and len(count) < _MOST_DIGITS):
        raise UsageError(subject, f"{name[:80]!r} is no run.", next_step=f"Write {asked}~1 for the one before.")
    own = sorted(
        store.group_names(f"{KIND}-"), key=lambda group: group.split("-", 2)[-1], reverse=True
    )  # by the time of their start
    if asked == "last" and not own:
        raise UsageError(subject, "the store has no run of a benchmark.", next_step="`rocmend bench gemm` makes one.")
    suite = own[0].split("-")[1] if asked == "last" else asked
    runs = [group for group in own if group.startswith(f"{KIND}-{suite}-")]
    back = int(count or 0)
    if back >= len(runs):
        has = f"{len(runs)} run{'s' if len(runs) > 1 else ''}" if runs else "no run"
        raise UsageError(
            subject,
            f"there is no {name}: the store has {has} of `rocmend bench {suite}`.",
            next_step=f"`{LISTED}` lists the runs of all benchmarks.",
        )
    return runs[back]


def stored_run(store: Store, group: str) -> BenchRun:
    """Return a run.

    Raises:
        UsageError: There is no such run.
    """
    kept, facts = results_of(store, group)
    results = tuple(filter(_is_readable, kept))
    if not results:
        raise UsageError(
            "report", f"{group} holds no results that can be read.", next_step=f"`{LISTED}` lists what there is."
        )
    settings = {item.setting.id: item.setting for item in results}
    suite = results[0].case.suite
    said = tuple(_conclusions(suite, results))
    return BenchRun(
        group,
        suite,
        TITLES.get(suite, suite),
        tuple(settings.values()),
        results,
        conclusions=said,
        machine=facts,
        calibrations=calibrations_of(store, group),
    )


def _conclusions(suite: str, results: Sequence[Measured]) -> list[Conclusion]:
    """Return what a suite says of its results; what follows for language models takes several runs."""
    if suite not in _SAY:
        return []
    module = importlib.import_module(f"rocmend.bench.suites.{suite}")
    found: list[Conclusion] = module.conclusions(results)
    return found


def chosen_runs(store: Store, selection: tuple[str, ...]) -> tuple[list[BenchRun], list[str]]:
    """Return the runs that a report is of, in its order, and the benchmarks that were named and have none.

    Args:
        store: Where they are.
        selection: Benchmarks and runs; none for the newest run of each benchmark.

    Raises:
        UsageError: There is no such run.
    """
    groups: list[str] = []
    missing: list[str] = []
    for name in selection or tuple(TITLES):
        if name in TITLES and store.last_group(f"{KIND}-{name}-") is None:
            missing.append(name)
        else:
            groups.append(run_named(store, name, "report"))
    runs = [stored_run(store, group) for group in dict.fromkeys(groups)]
    order = list(TITLES)
    runs.sort(key=lambda run: order.index(run.suite) if run.suite in order else len(order))
    return runs, missing if selection else []
