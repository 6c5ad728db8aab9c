"""Finds the batch sizes that read a prompt fastest: little time for many of them first, then more for the best.

Half of the sizes are left out after each round (successive halving [1]); the build's default stays in to the end. What
is said at the end rests on blocks of the last round alone: those of earlier rounds have chosen who is in it, and would
flatter whoever had luck. The default is left only for a size that the interval shows to be faster, and a smaller size
only for a larger one that is shown to be faster than it.

Source: [1] Jamieson, Talwalkar, Non-stochastic best arm identification and hyperparameter optimization, AISTATS 2016.
"""

from __future__ import annotations

import datetime as dt
import itertools
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from rocmend.bench.calibration import Beginning, Calibration, Tried
from rocmend.bench.case import Case
from rocmend.bench.comparison import compared, together
from rocmend.bench.llama.build import Build
from rocmend.bench.llama.options import default_batch
from rocmend.bench.measure import Effort, measure
from rocmend.bench.records import Measured
from rocmend.bench.session import Prepared, Session
from rocmend.bench.stats import Comparison, Difference
from rocmend.core.units import figure_text
from rocmend.core.verdict import Verdict

SIZES = (64, 128, 256, 512, 1024, 2048)
"""Physical batch sizes that are tried."""
PROMPT = 2048
"""Tokens of the prompt at least: llama.cpp never makes a batch larger than the prompt."""
FINALISTS = 2
"""Sizes besides the default that are in the last round."""
_RUNS = 2
"""Repetitions of a start in the rounds before the last one: a start that loads the model is what takes time."""

Options = dict[str, int]
Open = Callable[[Options, bool], Session]
"""Open a session with options; whether it finds out first which device computes."""


class _Size(msgspec.Struct, frozen=True):
    name: str
    options: Options

    @property
    def order(self) -> tuple[int, int]:
        """Smaller ones first."""
        return self.options.get("ubatch", 0), self.options.get("batch", 0)


class Calibrator:
    """Finds the batch sizes of a setting.

    Args:
        setting: Its id.
        case: What is measured.
        build: The build, for the options that it has.
        sizes: Which to try.
        opened: Opens a session.
        beginning: Effort, and whom to tell.
    """

    def __init__(  # noqa: PLR0913, PLR0917  it is made in one place
        self, setting: str, case: Case, build: Build, sizes: Sequence[int], opened: Open, beginning: Beginning
    ) -> None:
        self.setting, self.case, self.build, self.begin = setting, case, build, beginning
        self.opened, self.asked = opened, tuple(sizes)
        most = int(case.parameters["prompt"])
        self.option, self.default, self.sizes = _sizes(build, [size for size in sizes if size <= most])
        self.above = [size for size in sizes if size > most] if self.sizes else []
        self.sessions: dict[str, Session] = {}
        self.last: dict[str, Measured] = {}
        self.rounds: dict[str, int] = {}
        self.started = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
        self.since = time.monotonic()
        self.left: list[str] = []

    def find(self) -> Calibration | None:
        """Return what was found; None where it was stopped. The rounds of one that is interrupted are kept."""
        found = None
        try:
            found = self._find()
        finally:
            if found is None and self.left:
                self.begin.keep(self._interrupted())
        return found

    def _interrupted(self) -> Calibration:
        """Return what is known until now, to go on with."""
        found = self._found({}, f"interrupted: {len(self.left)} sizes are left")
        measured = {name: msgspec.to_builtins(item) for name, item in self.last.items()}
        return msgspec.structs.replace(found, verdict=Verdict.SKIPPED, left=tuple(self.left), measured=measured)

    def _go_on(self) -> list[str]:
        """Take over the rounds of an interrupted search; return the names that are left, all where there is none."""
        before = self.begin.begun_before(self.setting, self.case.id, self.asked)
        if before is None or not self.sizes.keys() >= set(before.left):
            return list(self.sizes)
        known = {one.name: one for one in before.tried if one.name in self.sizes}
        self.last = {name: msgspec.convert(item, Measured) for name, item in before.measured.items() if name in known}
        self.rounds = {name: known[name].rounds for name in self.last}
        self.left = list(before.left)
        return list(before.left)

    def _find(self) -> Calibration | None:
        if not self.sizes:
            return self._found({}, "this build has no option for the batch size (-ub, -b)")
        proof = self._session(self.sizes[self.default], proves=True).prepare(self.case)
        if proof.verdict is not Verdict.PASS:
            return None if self._stopped(proof) else self._found({}, f"{proof.verdict.value}: {proof.reason}", proof)
        names = self._go_on()
        blocks: int = 2 ** max(self.rounds.values(), default=0)
        # where a logical batch as small is to be tried, a first round has to find out of which size
        while (len(names) > FINALISTS + 1 or self._looks_first()) and not self._over(proof):
            few = msgspec.structs.replace(self.begin.effort, least_blocks=blocks, most_blocks=blocks, least_runs=_RUNS)
            names = self._better(self._round(names, few, f"round {blocks.bit_length()}"))
            self.left = list(names)
            blocks *= 2
        if not self._over(proof) and (best := self._same_batch(names)):
            self.sizes[best.name] = best
            names.append(best.name)
        final = {} if self._over(proof) else self._round(names, _longer(self.begin.effort), "last round")
        if self.begin.stop() or any(self._stopped(item.prepared) for item in final.values()):
            return None
        return self._judged({name: item for name, item in final.items() if item.summary}, proof)

    def _session(self, size: _Size, *, proves: bool = False) -> Session:
        if size.name not in self.sessions:
            self.sessions[size.name] = self.opened(size.options, proves)
        return self.sessions[size.name]

    def _round(self, names: Sequence[str], effort: Effort, what: str) -> dict[str, Measured]:
        """Measure sizes in turn, the default first."""
        ordered = sorted(names, key=lambda name: (name != self.default, self.sizes[name].order))
        sessions = {name: self._session(self.sizes[name]) for name in ordered}

        def step(name: str, _what: str) -> None:
            self.begin.step(f"{self.setting}: looks for the fastest batch size: {name} ({what})")

        found = measure(self.case, sessions, effort, step)
        for name, item in found.items():
            self.last[name] = item
            self.rounds[name] = self.rounds.get(name, 0) + 1
        return found

    def _over(self, proof: Prepared) -> bool:
        return self.begin.stop() or bool(self._quarantine(proof))

    def _quarantine(self, proof: Prepared | None) -> str:
        reasons = [proof.quarantine if proof else "", *(item.prepared.quarantine for item in self.last.values())]
        return next(filter(None, reasons), "")

    def _stopped(self, prepared: Prepared) -> bool:
        return prepared.verdict is Verdict.SKIPPED and self.begin.stop()

    def _better(self, found: Mapping[str, Measured]) -> list[str]:
        """Return the faster half, with the default."""
        order = _fastest_first(found)
        others = [name for name in order if name != self.default]
        kept = others[: max(FINALISTS, (len(others) + 1) // 2)]
        return [name for name in order if name in kept or name == self.default]

    def _looks_first(self) -> bool:
        return not self.last and self.option == "ubatch" and bool(self.build.help.has("-b", "--batch-size"))

    def _same_batch(self, names: Sequence[str]) -> _Size | None:
        """Return the size that is the fastest until now with a logical batch as small, where that is something else."""
        known = {name: self.last[name] for name in names if name in self.last}
        fastest = next(iter(_fastest_first(known)), "")
        size = self.sizes[fastest].options.get("ubatch", 0) if fastest else 0
        if not size or not self.build.help.has("-b", "--batch-size") or size >= default_batch(self.build.help):
            return None
        return _Size(f"{size} (b={size})", {"ubatch": size, "batch": size})

    def _judged(self, final: Mapping[str, Measured], proof: Prepared) -> Calibration:
        """Choose among those that came to the end."""
        ordered = sorted(final, key=lambda name: self.sizes[name].order)
        quarantine = self._quarantine(proof)
        if quarantine or not ordered:
            return self._found({}, f"stopped: {quarantine}" if quarantine else "no size gave a figure", proof)
        base = self.default if self.default in final else ordered[0]
        others = [name for name in ordered if name != base]
        made = together([compared(final[base], final[name]) for name in others])
        against = dict(zip(others, made, strict=True))
        faster = [name for name in others if against[name].difference is Difference.FASTER]
        pairs = list(itertools.combinations(faster, 2))
        larger = dict(zip(pairs, together([compared(final[one], final[other]) for one, other in pairs]), strict=True))
        chosen = faster[0] if faster else base
        for name in faster[1:]:
            if larger[chosen, name].difference is Difference.FASTER:
                chosen = name
        figure = f"{self.option} {base}: {figure_text(final[base].figure)} {self.case.unit} ({self.case.title})"
        told_of = [f"{name} {_change(one)}" for name, one in against.items()]
        failed = [name for name, item in self.last.items() if item.verdict is not Verdict.PASS]
        told_of += [f"{name} {self.last[name].verdict.value}" for name in failed]
        told_of += [f"{size} left out, the context has no room for it" for size in self.above]
        if chosen != base:
            told = f"{chosen} is taken"
        elif base == self.default:
            told = f"{base} stays, the build's default: no other is shown to be faster"
        else:
            told = f"{base} is taken: the build's default, {self.default}, does not run"
        return self._found(self.sizes[chosen].options, f"{'; '.join([figure, *told_of])}. {told}", proof, base, against)

    def _found(
        self,
        chosen: Options,
        text: str,
        proof: Prepared | None = None,
        base: str = "",
        against: Mapping[str, Comparison] | None = None,
    ) -> Calibration:
        ordered = sorted(self.last, key=lambda name: self.sizes[name].order)
        ends = {*(against or {}), base}
        return Calibration(
            setting=self.setting,
            option=self.option,
            case=self.case.id,
            test=self.case.title,
            unit=self.case.unit,
            chosen=chosen,
            compared_with=base,
            text=text,
            tried=(
                *(self._tried(name, (against or {}).get(name), last=name in ends) for name in ordered),
                *(
                    Tried(str(size), {self.option: size}, Verdict.UNSUPPORTED, self._no_room(), rounds=0)
                    for size in self.above
                ),
            ),
            subject=proof.subject if proof else Prepared(Verdict.PASS).subject,
            started_at=self.started,
            time_ms=round((time.monotonic() - self.since) * 1e3),
            quarantine=self._quarantine(proof),
            sizes=self.asked,
            verdict=Verdict.PASS if base else self._why_none(proof),
        )

    def _why_none(self, proof: Prepared | None) -> Verdict:
        """Return how it failed, where no size is taken: as all did, where they did alike."""
        if proof is None:
            return Verdict.UNSUPPORTED
        if proof.verdict is not Verdict.PASS:
            return proof.verdict
        failed = {item.verdict for item in self.last.values()} - {Verdict.PASS, Verdict.SKIPPED}
        return failed.pop() if len(failed) == 1 else Verdict.INFRA

    def _no_room(self) -> str:
        return (
            f"no batch is larger than the prompt, and the context has room for {self.case.parameters['prompt']} tokens"
        )

    def _tried(self, name: str, comparison: Comparison | None, *, last: bool) -> Tried:
        item = self.last[name]
        low, high = item.interval if last and item.interval else (None, None)
        options = self.sizes[name].options
        return Tried(
            name, options, item.verdict, item.reason, item.figure, low, high, self.rounds[name], comparison=comparison
        )


def _sizes(build: Build, sizes: Sequence[int]) -> tuple[str, str, dict[str, _Size]]:
    """Return the option, the name of the size that the build takes of itself, and all sizes by name."""
    for option, spellings in (("ubatch", ("-ub", "--ubatch-size")), ("batch", ("-b", "--batch-size"))):
        if build.help.has(*spellings):
            known = build.help.number(*spellings)
            found = [_Size(str(size), {option: size}) for size in sorted({*sizes, known} - {0})]
            default = str(known) if known else "default"
            first = [] if known else [_Size(default, {})]
            return option, default, {size.name: size for size in (*first, *found)}
    return "ubatch", "", {}


def _longer(effort: Effort) -> Effort:
    """Return an effort that may take more blocks, where more are taken until intervals are narrow: it decides for all.

    It ends by the width of intervals alone, never by what they show, so that no difference is looked for until found.
    """
    adaptive = effort.most_blocks > effort.least_blocks
    return msgspec.structs.replace(effort, most_blocks=2 * effort.most_blocks) if adaptive else effort


def _fastest_first(found: Mapping[str, Measured]) -> list[str]:
    timed = {name: item.summary.median for name, item in found.items() if item.summary is not None}
    return sorted(timed, key=lambda name: timed[name])


def _change(one: Comparison) -> str:
    if one.ratio is None:
        return one.reason
    if one.low is None or one.high is None:
        return _percent(one.ratio)
    return f"{_percent(one.ratio)} ({_percent(one.low)} to {_percent(one.high)})"


def _percent(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+.{1 if ratio < 2 else 0}f} %"
