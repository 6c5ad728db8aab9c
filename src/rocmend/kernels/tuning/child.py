"""Plans and carries out tuning in a process of its own, on the GPU: one JSON line an event.

python -m rocmend.kernels.tuning.child '{"do": "plan", "op": "rms_norm", "device": "cuda", "fields": {}}'
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import math
import sys
from collections.abc import Iterable
from typing import Any

import torch
import triton

from rocmend.kernels import executor, registry, select
from rocmend.kernels.executor import Recorder
from rocmend.kernels.model.hardware import hardware
from rocmend.kernels.op import Op, resolve
from rocmend.kernels.problems import given
from rocmend.kernels.suite.case import Case, Maker
from rocmend.kernels.suite.child import say
from rocmend.kernels.suite.run import run_case, seed_of
from rocmend.kernels.target import Target, by_name
from rocmend.kernels.timing import set_count, timed
from rocmend.kernels.tuning.config import Config
from rocmend.kernels.tuning.lookup import Asked, forced, observed
from rocmend.kernels.tuning.space import candidates, space_for

META = torch.device("meta")
MOST_TIMED = 3
MOST_GATES = 4
LARGEST_BYTES = 4e9
"""Cases that move more are left to the suite: several sets of them would not fit."""


def main(text: str) -> None:
    """Do what a request asks for."""
    request = json.loads(text)
    if request["do"] == "plan" and request.get("target"):
        gpu = hardware(request["target"], request.get("product"))
        target = by_name(request["target"], compute_units=gpu.compute_units)
        _plan(registry.get(request["op"]), target, gpu.product, request["fields"])
        say("end")
        return
    if request["device"].startswith("cuda") and not torch.cuda.is_available():
        say("infra", reason="torch finds no GPU: interpreter times are meaningless")
        return
    device = torch.device(request["device"])
    op = registry.get(request["op"])
    if request["do"] == "plan":
        target = executor.target_for(device)
        name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
        _plan(op, target, name, request["fields"])
    else:
        cases = {case.name: case for case in resolve(op.cases)()}
        for trial in request["trials"]:
            say("begin", id=trial["id"])
            faulthandler.dump_traceback_later(request["trial_s"], exit=True)
            say("trial", id=trial["id"], **_trial(op, trial, cases, device))
            faulthandler.cancel_dump_traceback_later()
    say("end")


def _plan(op: Op, target: Target, name: str, words: list[str]) -> None:
    """Tell which kernels and classes there are, with the cases that reach them, and what may be tried for each.

    Args:
        op: The op.
        target: What it is tuned for.
        name: The GPU's name.
        words: Fields of the problems to tune for.
    """
    versions = {"torch": torch.__version__, "triton": triton.__version__}
    say("device", target=target.name, name=name, versions=versions)
    wanted = given(op, words)
    groups: dict[tuple[str, str], _Group] = {}
    classes: dict[str, dict[tuple[str, ...], _Group]] = {}
    for case in resolve(op.cases)():
        try:
            problem, asked = _dry(op, case, target)
        except Exception as error:  # noqa: BLE001  a case that cannot be recorded is not tuned with
            say("skipped", case=case.name, reason=f"{type(error).__name__}: {error}"[:200])
            continue
        if problem is None or any(getattr(problem, field) != value for field, value in wanted.items()):
            continue
        cost = op.cost(problem)
        real = (case.compiled or case.size == "large") and not case.edges and 0 < cost.bytes <= LARGEST_BYTES
        supporting = [
            considered for considered in select.consider(op, problem, target, here=False) if considered.supports
        ]
        fit = tuple(
            considered.implementation.name for considered in supporting if considered.implementation.tier != "reference"
        )
        alike = classes.setdefault(op.shape_class(problem), {}).setdefault(fit, _Group(Config({})))
        alike.cases.append((cost.bytes, case, real))
        for look_up in asked:
            group = groups.setdefault((look_up.kernel, look_up.shape_class), _Group(look_up.config))
            group.cases.append((cost.bytes, case, real))
    for (kernel, kind), group in groups.items():
        space = space_for(op.name, kernel, kind, target)
        timed_cases = group.timed()
        if space is None or not timed_cases:
            continue
        current = group.current.items()
        tried = candidates(space, current, target, triton.__version__)
        say(
            "group",
            kernel=kernel,
            shape_class=kind,
            timed=timed_cases,
            gates=group.gates(),
            current=current,
            candidates=tried.configs,
            dropped=tried.dropped,
        )
    for kind, found in classes.items():
        contested = [(fit, group) for fit, group in found.items() if len(fit) > 1 and group.timed()]
        if len(contested) != 1:  # one record a class: where problems of a class differ in who is fit, the rules decide
            continue
        ((fit, group),) = contested
        say("class", shape_class=kind, timed=group.timed(), gates=group.gates(), implementations=fit)


class _Group:
    """Cases that reach a kernel with a class, and the record in use there."""

    def __init__(self, current: Config) -> None:
        self.current = current
        self.cases: list[tuple[float, Case, bool]] = []

    def timed(self) -> list[str]:
        """Return the cases that are timed: the largest two and the smallest of those of real shapes."""
        real = sorted({(size, case.name) for size, case, real in self.cases if real}, reverse=True)
        names = [name for _, name in real]
        return names if len(names) <= MOST_TIMED else [*names[: MOST_TIMED - 1], names[-1]]

    def gates(self) -> list[str]:
        """Return the small cases that a candidate must pass, besides those that are timed."""
        small = sorted((size, case.name) for size, case, _ in self.cases if case.size != "large")
        step = max(1, math.ceil(len(small) / MOST_GATES))
        return [name for _, name in small[::step]]


def _dry(op: Op, case: Case, target: Target) -> tuple[Any, list[Asked]]:
    """Return a case's problem and the records it looks up, without running it."""
    call = case.make(Maker(META, 0))
    function = resolve(op.functions[case.function] if case.function else next(iter(op.functions.values())))
    with (
        executor.using(Recorder(target)),
        select.prefer(*case.preferences),
        select.observed() as problems,
        observed() as asked,
    ):
        function(*call.args, **call.kwargs)
    mine = [problem for name, problem, _ in problems if name == op.name]
    return (mine[0] if mine else None), [look_up for look_up in asked if look_up.op == op.name]


def _trial(op: Op, trial: dict[str, Any], cases: dict[str, Case], device: torch.device) -> dict[str, Any]:
    """Check, then time, one configuration or one implementation."""
    tier = trial.get("implementation") or ""
    with contextlib.ExitStack() as stack:
        if trial.get("kernel"):
            stack.enter_context(forced(op.name, trial["kernel"], Config(trial["config"], "tried")))
        try:
            for name in dict.fromkeys([*trial["gates"], *trial["timed"]]):
                result = run_case(op, cases[name], device, tier=tier)
                if not result.ok:
                    return {"verdict": "wrong-output", "reason": f"{name}: {result.detail}"[:400]}
            times, spreads = _times(op, [cases[name] for name in trial["timed"]], device, tier)
        except select.UnsupportedError as error:
            return {"verdict": "unsupported", "reason": str(error)[:400]}
        except torch.OutOfMemoryError as error:
            torch.cuda.empty_cache()
            return {"verdict": "oom", "reason": str(error)[:200]}
        except Exception as error:  # noqa: BLE001  whatever a compiler or launch raises drops the candidate
            return {"verdict": "crash", "reason": f"{type(error).__name__}: {error}"[:400]}
    return {"verdict": "pass", "reason": "", "times_us": times, "spread": max(spreads)}


def _times(op: Op, cases: Iterable[Case], device: torch.device, tier: str) -> tuple[dict[str, float], list[float]]:
    times, spreads = {}, []
    for case in cases:
        function = resolve(op.functions[case.function] if case.function else next(iter(op.functions.values())))
        call = case.make(Maker(device, seed_of(op.name, case.name)))
        size = sum(tensor.nbytes for tensor in [*call.args, *call.kwargs.values()] if isinstance(tensor, torch.Tensor))
        count = set_count(device, size)
        calls = [call, *(case.make(Maker(device, seed_of(op.name, case.name, salt))) for salt in range(1, count))]
        with select.prefer(*((tier,) if tier else case.preferences)):
            timing = timed(
                [lambda call=call, function=function: function(*call.args, **call.kwargs) for call in calls],  # type: ignore[misc]
                device,
                budget_s=0.3,
            )
        times[case.name], spread = timing.us, timing.spread
        spreads.append(spread)
    return times, spreads


if __name__ == "__main__":
    main(sys.argv[1])
