"""Tune an op on this machine: check and time configurations, each in a supervised child, and keep the best."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rocmend.core.documents import read_json
from rocmend.core.errors import DataError, RocmendError
from rocmend.core.files import write_atomic
from rocmend.kernels.model.hardware import hardware, hardware_name
from rocmend.kernels.model.rank import Wanted, rank
from rocmend.kernels.suite.supervise import NoDeviceError, events, run_child, stalled
from rocmend.kernels.target import by_name
from rocmend.kernels.tuning import user
from rocmend.kernels.tuning.config import Value
from rocmend.kernels.tuning.propose import MODULE, plan, spread, toolchain_for
from rocmend.kernels.tuning.record import triton_version
from rocmend.kernels.tuning.space import look, option_candidates, space_for

BATCH = 6
LEAST_GAIN = 0.02
"""A configuration that is not faster by this much, and by more than its spread, is not worth a record."""
MODEL_PART = 0.25
"""Of the time for a kernel that estimating its candidates may take."""
_START_S = 90.0
_MAX_TRIALS_BYTES = 64 << 20


class TrialResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """Result of a trial of a configuration or an implementation.

    Attributes:
        verdict: ``pass``, or what it came to instead.
        reason: Why.
        times_us: Microseconds by case.
        spread: 10th to 90th percentile over the median, of the case that spread most.
    """

    verdict: str
    reason: str = ""
    times_us: dict[str, float] = {}
    spread: float = 0.0


class Tuned(msgspec.Struct, frozen=True):
    """What tuning a kernel for a class of shapes came to.

    Attributes:
        kernel: The kernel; empty for the choice among implementations.
        shape_class: The class.
        tried: Configurations that were tried, earlier runs included.
        of: Configurations that there are.
        dropped: Why configurations were dropped, by how they look.
        before: What was in use.
        after: What is, now.
        gain: Time before over time after, the geometric mean over the cases.
        times_us: Of what is in use now, by case.
        kept: A record was written.
    """

    kernel: str
    shape_class: str
    tried: int
    of: int
    dropped: dict[str, str]
    before: str
    after: str
    gain: float
    times_us: dict[str, float]
    kept: bool


class Tuning(msgspec.Struct, frozen=True):
    """What tuning an op came to.

    Attributes:
        op: The op.
        device_name: The GPU.
        target: Its target.
        results: By kernel and class, then the choices.
        finished: All there was to try was tried.
        file: Where records are kept.
    """

    op: str
    device_name: str
    target: str
    results: tuple[Tuned, ...]
    finished: bool
    file: str


Told = Callable[[str], None]


def trials_path() -> Path:
    """Return the file that keeps what was tried, so that tuning can go on where it was ended."""
    return user.path().with_name("kernel-tuning-trials.json")


class _Trials:
    """What was tried, in this run and earlier ones."""

    def __init__(self, *, fresh: bool) -> None:
        self.path = trials_path()
        self.known: dict[str, TrialResult] = {}
        if not fresh:
            with contextlib.suppress(OSError, DataError):  # it only saves time
                self.known = read_json(self.path, dict[str, TrialResult], max_bytes=_MAX_TRIALS_BYTES)

    def keep(self) -> None:
        write_atomic(self.path, msgspec.json.encode(self.known), private=True)


class _Found:
    """What came of a kernel's candidates: those tried, how many there are, and what was refused before compiling."""

    def __init__(self) -> None:
        self.tried: list[tuple[dict[str, Value], TrialResult]] = []
        self.wanted = 0
        self.refused: dict[str, str] = {}

    def best(self) -> tuple[dict[str, Value], TrialResult] | None:
        passed = [trial for trial in self.tried if trial[1].verdict == "pass"]
        return min(passed, key=lambda trial: _score(trial[1]), default=None)

    def result_of(self, config: dict[str, Value]) -> TrialResult | None:
        return next((result for tried, result in self.tried if tried == config), None)


class Tuner:
    """Tunes an op.

    Args:
        op: Its name.
        device: The GPU.
        budget_s: Seconds for the op; what is not tried by then is left for the next time.
        trial_s: Seconds for one configuration, compiling it included.
        fresh: Repeat earlier trials.
        tell: Told what is going on.
        model: On an AMD GPU, try first what the cost model finds promising.
    """

    def __init__(  # noqa: PLR0913  each is an option of the command
        self, op: str, device: str, *, budget_s: float, trial_s: float, fresh: bool, tell: Told, model: bool = True
    ) -> None:
        self.op, self.device, self.trial_s, self.tell = op, device, trial_s, tell
        self.deadline = time.monotonic() + budget_s
        self.trials = _Trials(fresh=fresh)
        self.about: dict[str, Any] = {}
        self.finished = True
        self.model = model

    def run(self, fields: Sequence[str]) -> Tuning:
        """Tune.

        Raises:
            NoDeviceError: There is no GPU, or it cannot be planned for.
        """
        planned = plan(self.op, fields, self.device)
        self.about = next(event for event in planned if event["event"] == "device")
        groups = [event for event in planned if event["event"] == "group"]
        results = []
        for number, group in enumerate(groups):
            now = time.monotonic()
            share = (self.deadline - now) / (len(groups) - number)
            results.append(self._group(group, now + share))
        if time.monotonic() < self.deadline:
            results += [self._choice(event) for event in planned if event["event"] == "class"]
        else:
            self.finished = False
        return Tuning(
            self.op, self.about["name"], self.about["target"], tuple(results), self.finished, str(user.path())
        )

    def _group(self, group: dict[str, Any], until: float) -> Tuned:
        """Try the parameters of a kernel, then the compiler's settings with the best of them, up to a time."""
        first: dict[str, Value] = group["candidates"][0]
        found = _Found()
        now = time.monotonic()
        self._round(group, group["candidates"], found, now + (until - now) * 2 / 3)
        found.refused.update(group.get("dropped", {}))
        target = by_name(self.about["target"])
        space = space_for(self.op, group["kernel"], group["shape_class"], target)
        best = found.best()
        if space is not None and best is not None:
            more = option_candidates(space, best[0], target, triton_version())
            self._round(group, more.configs[1:], found, until)
            found.refused.update(more.dropped)
            best = found.best()
        current = found.result_of(first)
        after, gain, times, kept = first, 1.0, current.times_us if current else {}, False
        if best is not None:
            gain = _gain(current, best[1])
            kept = best[0] != first and gain > 1 + max(LEAST_GAIN, best[1].spread)
            if kept:
                after, times = best[0], best[1].times_us
                self._keep(group, after, best[1], current, gain)
        dropped = {
            look(config): f"{result.verdict}: {result.reason}"
            for config, result in found.tried
            if result.verdict != "pass"
        }
        return Tuned(
            group["kernel"],
            group["shape_class"],
            len(found.tried),
            found.wanted,
            dropped | found.refused,
            look(group["current"]),
            look(after),
            gain if kept else 1.0,
            times,
            kept,
        )

    def _round(self, group: dict[str, Any], configs: Sequence[dict[str, Value]], found: _Found, until: float) -> None:
        common = {"kernel": group["kernel"], "timed": group["timed"], "gates": group["gates"]}
        configs = self._promising(group, configs, until)
        wanted = [{**common, "config": config} for config in configs]
        results = self._try(wanted, f"{self.op} {group['kernel']} {group['shape_class']}", until)
        found.wanted += len(wanted)
        found.tried += [(configs[at], result) for at, result in results.items()]

    def _promising(
        self, group: dict[str, Any], configs: Sequence[dict[str, Value]], until: float
    ) -> Sequence[dict[str, Value]]:
        """Return candidates with those first that the model finds promising, the configuration in use before them."""
        target, now = self.about["target"], time.monotonic()
        common = {"kernel": group["kernel"], "timed": group["timed"], "gates": group["gates"]}
        configs = spread(configs)
        if all(self._key({**common, "config": config}) in self.trials.known for config in configs):
            return configs
        if not self.model or not target.startswith("gfx") or now >= until:
            return configs
        try:
            product = hardware(target, hardware_name(target, self.about["name"])).product
            wanted = Wanted(self.op, group["kernel"], group["shape_class"], tuple(group["timed"][:1]), target, product)
            limit = now + (until - now) * MODEL_PART
            found = rank(wanted, configs, toolchain_for(target), until=limit, tell=self.tell)
        except RocmendError as error:
            self.tell(f"{self.op}: not ordered by the cost model ({error.message})")
            return configs
        first = [config for config in configs if config == group["candidates"][0]]
        ordered = [ranked.config for ranked in found if ranked.config not in first]
        return [*first, *ordered, *(config for config in configs if config not in first and config not in ordered)]

    def _keep(
        self,
        group: dict[str, Any],
        config: dict[str, Value],
        best: TrialResult,
        current: TrialResult | None,
        gain: float,
    ) -> None:
        user.keep_record(
            self.op,
            group["kernel"],
            group["shape_class"],
            self.about["target"],
            config,
            device=self.about["name"],
            times_us=best.times_us,
            before_us=current.times_us if current else {},
            spread=best.spread,
            gain=gain,
        )

    def _choice(self, group: dict[str, Any]) -> Tuned:
        common = {"timed": group["timed"], "gates": group["gates"]}
        names: list[str] = group["implementations"]
        wanted = [{**common, "implementation": name, "records": _stamp(self.op)} for name in names]
        results = self._try(wanted, f"{self.op} implementations {group['shape_class']}")
        passed = {names[at]: result for at, result in results.items() if result.verdict == "pass"}
        dropped = {names[at]: f"{r.verdict}: {r.reason}" for at, r in results.items() if r.verdict != "pass"}
        best = min(passed, key=lambda name: _score(passed[name]), default="")
        first = next((name for name in names if name in passed), "")
        whole = len(results) == len(wanted)
        if best and whole:
            user.keep_choice(
                self.op,
                group["shape_class"],
                self.about["target"],
                best,
                device=self.about["name"],
                times_us={name: result.times_us for name, result in passed.items()},
            )
        gain = _gain(passed.get(first), passed[best]) if best else 1.0
        times = passed[best].times_us if best else {}
        kept = bool(best) and whole
        return Tuned("", group["shape_class"], len(results), len(wanted), dropped, first, best, gain, times, kept)

    def _try(self, wanted: list[dict[str, Any]], label: str, until: float | None = None) -> dict[int, TrialResult]:
        """Try what was not tried before, a batch a child, and return the results by number."""
        until = self.deadline if until is None else until
        keys = [self._key(trial) for trial in wanted]
        waiting = [at for at, key in enumerate(keys) if key not in self.trials.known]
        while waiting and time.monotonic() < until:
            self.tell(f"{label}: {len(wanted) - len(waiting)} of {len(wanted)} tried")
            batch = waiting[:BATCH]
            request = {
                "do": "try",
                "op": self.op,
                "device": self.device,
                "trial_s": self.trial_s,
                "trials": [{**wanted[at], "id": at} for at in batch],
            }
            done = run_child(MODULE, request, _START_S + self.trial_s * len(batch), self.device)
            self.deadline += done.stalled_s
            until += done.stalled_s
            open_trial, seen = None, False
            for event in events(done.stdout):
                seen = True
                if event["event"] == "begin":
                    open_trial = event["id"]
                elif event["event"] == "trial":
                    open_trial = None
                    self.trials.known[keys[event["id"]]] = msgspec.convert(
                        {name: value for name, value in event.items() if name not in {"event", "id"}}, TrialResult
                    )
            if open_trial is not None and "Timeout (" in done.stderr and stalled(done, self.trial_s):
                pass  # it is tried again
            elif open_trial is not None:
                hung = "Timeout (" in done.stderr or done.ending.value == "timeout"
                why = (
                    f"no end within {self.trial_s:.0f} s"
                    if hung
                    else f"{done.ending.value}: {done.stderr.strip()[-200:]}"
                )
                self.trials.known[keys[open_trial]] = TrialResult("hang" if hung else "crash", why)
            elif not seen:
                raise NoDeviceError("kernels tune", f"a child ended at its start: {done.stderr.strip()[-400:]}")
            self.trials.keep()
            waiting = [at for at in waiting if keys[at] not in self.trials.known]
        self.finished = self.finished and not waiting
        return {at: self.trials.known[key] for at, key in enumerate(keys) if key in self.trials.known}

    def _key(self, trial: dict[str, Any]) -> str:
        about = [self.op, self.about["name"], self.about["target"], triton_version(), user.torch_version(), trial]
        return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:32]


def _stamp(op: str) -> str:
    """Hash the user's records of an op: implementations are timed again after they changed."""
    rows = [row for row in user.read(user.path())[0]["records"] if row["op"] == op]
    return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()[:16]


def _score(result: TrialResult) -> float:
    return sum(math.log(max(value, 1e-9)) for value in result.times_us.values())


def _gain(before: TrialResult | None, after: TrialResult) -> float:
    if before is None or not before.times_us or not after.times_us:
        return 1.0
    return math.exp((_score(before) - _score(after)) / len(after.times_us))
