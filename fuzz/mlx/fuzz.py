"""Random programs on rocmend's ``mlx.core`` and on real MLX, in two processes, and what differs.

    python fuzz/mlx/fuzz.py --oracle /path/to/python-with-mlx --programs 20000 --state fuzz-state.json
    python fuzz/mlx/fuzz.py --oracle /path/to/python-with-mlx --seed 17 --programs 1 --show

Each program is run by both, everything computed at the end. Where the results differ, each statement is run alone on
the reference's own values, so that a difference is the statement's; and once more eagerly by ours, so that one between
evaluating at once and at the end is seen. What is left of it is rounding that added up, where a statement rounds. Differences that are
known, each for a reason, stand in ``explained.py``: they are counted, and are no findings.
A program that differs is shortened and kept, with its seed, in the state file, which a later call goes on from.
Exit code 1: there are differences.
"""

from __future__ import annotations

import argparse
import collections
import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from compare import EPSILON, all_exact, difference, values_differ
from explained import unexplained
from generate import Maker
from language import Program, array_of
from parts import alone, changed, needed, nudged, unbounded, without
from workers import Worker

from rocmend.mlx import activate

BATCH = 40


@dataclass
class Finding:
    """A program that the two do not agree on."""

    seed: int
    kind: str  # "statement", "executor", "aliasing", "crash"
    what: str  # name of the statement and types of its operands
    text: str
    program: Program


Judgement = tuple[list[Finding], set[str]]


@dataclass
class State:
    """Where a run stands."""

    next_seed: int = 0
    programs: int = 0
    rounding: int = 0
    oracle_crashes: int = 0
    explained: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


class Fuzzer:
    """Runs programs and judges them."""

    def __init__(self, oracle: str, mx: Any, length: int) -> None:
        self.theirs = Worker(oracle, "theirs")
        self.ours = Worker(sys.executable, "ours")
        self.mx = mx
        self.length = length

    def batch(self, seeds: list[int], state: State) -> None:
        """Run the programs of some seeds."""
        programs = [Maker(self.mx, seed).make(self.length) for seed in seeds]
        theirs, ours = self.theirs.run(programs), self.ours.run(programs)
        for seed, program, a, b in zip(seeds, programs, theirs, ours, strict=True):
            state.programs += 1
            if a is None:
                state.oracle_crashes += 1
            elif b is None:
                state.findings.append(self.shortened(Finding(seed, "crash", "", "the process ended", program)))
            elif any(map(_differ, program, a, b)):
                found, reasons = self.judge(seed, program, a, b)
                state.findings += found
                state.rounding += not found and not reasons
                for reason in reasons:
                    state.explained[reason] = state.explained.get(reason, 0) + 1

    def judge(self, seed: int, program: Program, theirs: list[Any], ours: list[Any]) -> Judgement:
        """Return what is behind a difference, and which explanations hold of it; nothing of either: rounding."""
        written = changed(program)
        asked: list[Program] = []
        for at in range(len(program)):
            # what a variable that is written to was then is not what it is at the end
            before = self.theirs.run([program[:at]])[0] if needed(program, at) & written else theirs
            one = None if before is None else alone(program, at, before)
            if one is not None:
                asked.append(one)
        a, b = self.theirs.run(asked), self.ours.run(asked)
        found: list[Finding] = []
        reasons: set[str] = set()
        for one, left, right in zip(asked, a, b, strict=True):
            if left is None:
                continue
            name = one[-1]["do"]
            text = "the process ended" if right is None else difference(name, left[-1], right[-1])
            if text and right is not None:
                remains, reason = unexplained(one, left[-1], right[-1], self.spread)
                reasons |= {reason} - {""}
                text = text if remains else ""
            if text:
                kinds = [statement["args"][0] for statement in one[:-1]]
                found.append(Finding(seed, "statement", f"{name} {' '.join(kinds)}", text, one))
        if found or reasons:
            return found, reasons
        eager = self.ours.run([program], eager=True)[0]
        if eager is None:
            return [Finding(seed, "crash", "eager", "the process ended when evaluated at once", program)], reasons
        for at, statement in enumerate(program):
            text = _apart(ours[at], eager[at])
            if text:
                finding = Finding(seed, "executor", statement["do"], f"{text}, when evaluated at once", program)
                return [self.shortened(finding)], reasons
        if all_exact(program):
            at = next(at for at, s in enumerate(program) if difference(s["do"], theirs[at], ours[at]))
            text = difference(program[at]["do"], theirs[at], ours[at])
            return [self.shortened(Finding(seed, "aliasing", program[at]["do"], text, program))], reasons
        return [], reasons

    def spread(self, program: Program, outcome: Any) -> Any:
        """Return how far each element of a chain's outcome moves where one of its steps is a little off.

        Infinity: a little off, it becomes NaN or infinite, or stops being so.
        """
        moved = np.zeros(outcome[1])
        unlimited, *others = self.ours.run([unbounded(program), *nudged(program)])
        with np.errstate(all="ignore"):
            for other in others:
                if other is not None and other[-1][:2] == outcome[:2]:
                    a, b = array_of(other[-1]), array_of(outcome)
                    moved = np.where(np.isfinite(a) == np.isfinite(b), np.fmax(moved, np.abs(a - b)), np.inf)
            if unlimited is not None and unlimited[-1][:2] == outcome[:2]:
                moved = np.fmax(moved, EPSILON[outcome[0]] * 6 * np.abs(array_of(unlimited[-1])))
        return moved

    def shortened(self, finding: Finding) -> Finding:
        """Leave out every statement that a difference does not need."""
        program = finding.program
        for at in reversed(range(len(finding.program))):
            shorter = without(program, at)
            if shorter is None:
                continue
            ours = self.ours.run([shorter])[0]
            if finding.kind == "executor":
                eager = self.ours.run([shorter], eager=True)[0]
                still = ours is not None and eager is not None and any(map(_apart, ours, eager))
            else:
                theirs = self.theirs.run([shorter])[0]
                still = theirs is not None and (ours is None or any(map(_differ, shorter, theirs, ours)))
            if still:
                program = shorter
        finding.program = program
        return finding


def _differ(statement: Any, theirs: Any, ours: Any) -> str:
    return difference(statement["do"], theirs, ours)


def _apart(lazy: Any, eager: Any) -> str:
    """Return how two runs of ours differ; sums may be taken in another order, so not by the last places."""
    if eager[0] == "skipped":
        return ""  # it needs what raised as it was computed, which the lazy run may not even compute
    if lazy[0] in ("error", "skipped") or eager[0] == "error":
        return "" if lazy[0] == eager[0] else f"{lazy[:2]}, but {eager[:2]}"
    if lazy[:2] != eager[:2]:
        return f"{lazy[:2]}, but {eager[:2]}"
    return values_differ("", eager, lazy, slack=64.0)


def _load(path: Path | None) -> State:
    if path is None or not path.exists():
        return State()
    kept = json.loads(path.read_text(encoding="utf-8"))
    kept["findings"] = [Finding(**item) for item in kept["findings"]]
    return State(**kept)


def _keep(path: Path | None, state: State) -> None:
    if path is not None:
        text = json.dumps(state, default=vars, indent=1)
        beside = path.with_suffix(".new")
        beside.write_text(text + "\n", encoding="utf-8")
        beside.replace(path)


def summary(state: State, *, show: bool) -> str:
    """Return what was found, alike findings together."""
    groups: dict[tuple[str, str, str], list[Finding]] = collections.defaultdict(list)
    for finding in state.findings:
        groups[finding.kind, finding.what, finding.text.partition(" ")[0]].append(finding)
    rows = [
        (
            f"{state.programs} programs, {len(state.findings)} differences of {len(groups)} kinds, {state.rounding} "
            f"programs that rounding explains, {state.oracle_crashes} that the reference did not survive"
        )
    ]
    for (kind, what, _), members in sorted(groups.items(), key=lambda item: -len(item[1])):
        first = members[0]
        rows.append(f"{len(members):5} {kind}: {what}: {first.text.splitlines()[0]} (seed {first.seed})")
        if show:
            rows += [f"        {json.dumps(statement)[:400]}" for statement in first.program]
    rows += [f"{count:5} explained: {reason}" for reason, count in sorted(state.explained.items())]
    return "\n".join(rows)


def main() -> int:
    """Run programs until there were as many as asked for."""
    parser = argparse.ArgumentParser(description="Compare rocmend.mlx with real MLX on random programs.")
    parser.add_argument("--oracle", required=True, help="a Python that has mlx with a back end")
    parser.add_argument("--programs", type=int, default=1000, help="how many in all, those of the state file included")
    parser.add_argument("--length", type=int, default=14, help="statements of a program")
    parser.add_argument("--seed", type=int, help="the first seed")
    parser.add_argument("--state", type=Path, help="a file to keep findings in, and to go on from")
    parser.add_argument("--show", action="store_true", help="print a program of each kind of difference")
    options = parser.parse_args()
    torch.set_num_threads(1)
    activate()
    import mlx.core as mx

    state = _load(options.state)
    if options.seed is not None:
        state.next_seed = options.seed
    fuzzer = Fuzzer(options.oracle, mx, options.length)
    begin, before = time.monotonic(), state.programs
    try:
        while state.programs < options.programs:
            count = min(BATCH, options.programs - state.programs)
            seeds = list(range(state.next_seed, state.next_seed + count))
            fuzzer.batch(seeds, state)
            state.next_seed += count
            _keep(options.state, state)
            if sys.stderr.isatty():
                rate = (state.programs - before) / (time.monotonic() - begin) * 60
                sys.stderr.write(
                    f"\r{state.programs} programs, {len(state.findings)} differences, {rate:.0f} a minute "
                )
    except KeyboardInterrupt:
        sys.stderr.write("\nstopped; the state file goes on from here\n")
    finally:
        fuzzer.theirs.close()
        fuzzer.ours.close()
    sys.stdout.write(summary(state, show=options.show) + "\n")
    return 1 if state.findings else 0


if __name__ == "__main__":
    sys.exit(main())
