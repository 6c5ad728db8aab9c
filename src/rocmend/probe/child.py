"""What runs inside a probe's child process: build, run, repeat, compare, and say what came out."""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rocmend.probe import state
from rocmend.probe.case import SEED, Case, Context, SkipProbe, missing
from rocmend.probe.execute import (
    Memory,
    Subject,
    Watch,
    fallback_warnings,
    identical,
    poison,
    timed,
    traced,
)
from rocmend.probe.oracle import Comparison, compare, tolerance_of
from rocmend.probe.registry import Probe, registry
from rocmend.runner.torch_device import UnsupportedError, begun, device_of, make_current, outcome_of, synchronize

if TYPE_CHECKING:
    import torch

Phase = Callable[[str], None]

REPEATS = 3
"""Runs after the first one whose results are compared, and timed."""


def run(probe: str, dtype: str, device: str = "auto", seed: int = SEED, *, stays: bool = False) -> dict[str, Any]:
    """Run one probe in one dtype and return what came out as a JSON value.

    Args:
        probe: The probe's id.
        dtype: torch's name of the dtype.
        device: ``auto``, ``cpu``, ``cuda`` or a device such as ``cuda:1``.
        seed: Seed of the inputs.
        stays: The process is to run others after it.

    Returns:
        ``outcome`` (pass, wrong-output, unsupported, silent-cpu-fallback, skipped, oom, error or infra), ``reason``,
        and the figures; ``changed`` where it changed something in a process that stays.
    """
    from rocmend.runner.child import phase as tell

    found = begun(device)
    if found["error"]:
        outcome_of_start = {"outcome": "infra", "reason": found.pop("error")}
        return outcome_of_start | found
    tell("setup")
    chosen = registry.get(probe)
    where = device_of(device)

    def phase(name: str) -> None:
        tell(name, slow=chosen.slow if name in {"compile", "first-run"} else "")

    state.seed_all(seed)
    before = state.snapshot() if stays else {}
    figures: dict[str, Any] = {name: value for name, value in found.items() if name != "error"}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figures |= outcome(chosen, dtype, where, seed, phase)
    texts = fallback_warnings([str(item.message) for item in caught])
    if texts and where.type != "cpu" and figures["outcome"] == "pass":
        figures |= {"outcome": "silent-cpu-fallback", "reason": texts[0]}
    if stays and figures["outcome"] in CLEAN:
        tell("tidying")
        figures["changed"] = [text for text in (*state.changed(before), state.tidied(where)) if text]
    return figures


CLEAN = frozenset({"pass", "skipped", "wrong-output", "unsupported"})
"""Outcomes after which a process may run another probe, where nothing in it was changed."""


def outcome(
    probe: Probe, dtype: str, device: torch.device, seed: int = SEED, phase: Phase = lambda _: None
) -> dict[str, Any]:
    """Run a probe in this process and return its outcome and figures; exceptions become outcomes.

    Args:
        probe: The probe.
        dtype: torch's name of the dtype.
        device: Where to run it.
        seed: Seed of the inputs.
        phase: Told which phase begins.
    """
    absent = missing(probe.needs, device)
    if absent:
        return {"outcome": "skipped", "reason": absent}
    try:
        make_current(device)
        # building counts too: a probe of memory asks the device while it is built
        return _measure(probe.build(Context.make(str(device), dtype, seed)), dtype, device, phase)
    except SkipProbe as skip:
        return {"outcome": "skipped", "reason": str(skip)}
    except UnsupportedError as error:
        return {"outcome": "unsupported", "reason": str(error)}
    except Exception as error:  # noqa: BLE001  whatever an operation raises is its outcome
        return outcome_of(error)


def _measure(case: Case, dtype: str, device: torch.device, phase: Phase) -> dict[str, Any]:
    import torch

    expected = None if case.check else Subject(case, torch.device("cpu"), wide=True).run()
    memory = Memory(device)
    subject = Subject(case, device)
    poison(device)
    memory.begin()
    figures: dict[str, Any] = {}
    if case.compile is not None:
        phase("compile")
        subject.call = case.compile(subject.call)
        _, figures["compile_ms"] = timed(subject.run, device)
    phase("first-run")
    first, figures["first_ms"] = timed(subject.run, device)
    phase("steady")
    repeats, times = [], []
    for _ in range(REPEATS):
        results, time_ms = timed(subject.run, device)
        repeats.append(results)
        times.append(time_ms)
    figures["steady_ms"] = statistics.median(times)
    figures |= memory.peak()
    phase("compare")
    figures["output_devices"] = sorted({str(tensor.device) for tensor in first})
    figures["repeat_identical"] = all(identical(first, other) for other in repeats)
    watch = Watch() if _untraceable(case, device) else traced(subject.run, device)
    figures["cpu_operators"] = watch.operators
    synchronize(device)
    if case.check:
        wrong = next((text for text in map(case.check, [first, *repeats]) if text), "")
        return figures | _verdict(case, device, figures, watch, wrong)
    tolerance = tolerance_of(dtype, exact=case.exact, loosen=case.loosen)
    comparison = _worst([first, *repeats], expected or [], tolerance)
    figures |= {"comparison": asdict(comparison)}
    return figures | _verdict(case, device, figures, watch, comparison.reason)


def _untraceable(case: Case, device: torch.device) -> bool:
    """Compiled code and captured graphs cannot be looked into; on the CPU there is nothing to fall back from."""
    return device.type == "cpu" or case.host or case.compile is not None or case.fresh


def _worst(runs: list[list[torch.Tensor]], expected: list[torch.Tensor], tolerance: float) -> Comparison:
    """Compare every run's results with the reference, and return the comparison that matters most."""
    found: list[Comparison] = []
    for number, results in enumerate(runs):
        if len(results) != len(expected):
            text = f"it returned {len(results)} results, the reference {len(expected)}"
            return Comparison(ok=False, reason=text)
        for place, (actual, wanted) in enumerate(zip(results, expected, strict=True)):
            result = compare(actual, wanted, _tolerance_for(actual, tolerance), place)
            if not result.ok and number:
                result = _in_repeat(result, number, passed_first=all(one.ok for one in found[: len(expected)]))
            found.append(result)
    wrong = [one for one in found if not one.ok]
    if wrong:
        return max(wrong, key=lambda one: (one.nan > 0, one.max_rel_error))
    return max(found, key=lambda one: one.max_rel_error, default=Comparison(ok=False, reason="it returned nothing"))


def _in_repeat(result: Comparison, number: int, *, passed_first: bool) -> Comparison:
    from dataclasses import replace

    if not passed_first:
        return result
    return replace(result, reason=f"the first run was right, repeat {number} was not: {result.reason}")


def _tolerance_for(actual: torch.Tensor, tolerance: float) -> float:
    """Whole numbers and truth values among the results are compared exactly."""
    return tolerance if actual.is_floating_point() or actual.is_complex() else 0.0


def _verdict(case: Case, device: torch.device, figures: dict[str, Any], watch: Watch, wrong: str) -> dict[str, Any]:
    elsewhere = [name for name in figures["output_devices"] if not name.startswith(device.type)]
    if not case.host and device.type != "cpu" and elsewhere:
        return {"outcome": "silent-cpu-fallback", "reason": f"its result is on {elsewhere[0]}, not on {device}"}
    if wrong:
        return {"outcome": "wrong-output", "reason": wrong}
    if watch.operators or watch.warnings:
        text = watch.warnings[0] if watch.warnings else f"{', '.join(watch.operators[:5])} computed on the CPU"
        return {"outcome": "silent-cpu-fallback", "reason": text}
    if case.must_repeat and not figures["repeat_identical"]:
        return {"outcome": "wrong-output", "reason": "the same inputs gave different results in another run"}
    if not figures["repeat_identical"] and not case.check:
        return {"outcome": "pass", "reason": "right each time, but not the same bits each time"}
    return {"outcome": "pass", "reason": ""}
