"""One case under several settings: made ready in each, then timed in turn until the answer is sure enough."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from rocmend.bench.case import Case
from rocmend.bench.records import Measured
from rocmend.bench.session import Block, NotStartedError, Prepared, Session
from rocmend.bench.stats import half_width, ratio_interval, summarize
from rocmend.bench.telemetry import Reading, Telemetry, summarized
from rocmend.core.verdict import Verdict


class Effort(msgspec.Struct, frozen=True):
    """How much is done for a figure.

    Attributes:
        block_s: Seconds of a block.
        least_blocks: Blocks of each setting at least.
        most_blocks: And at most.
        sure: Half the width of the 95 % intervals, over the median, from which on no more blocks are asked for. It says
            nothing about where the intervals lie, so stopping there makes no difference out of none.
        least_runs: Runs of a block at least.
    """

    block_s: float = 0.2
    least_blocks: int = 8
    most_blocks: int = 20
    sure: float = 0.01
    least_runs: int = 3


QUICK = Effort(block_s=0.1, least_blocks=6, most_blocks=10, sure=0.03)
STANDARD = Effort()

OnStep = Callable[[str, str], None]
"""Told what is done now: the setting's id, and a word: ``preparing``, ``timing``."""


def measure(
    case: Case,
    sessions: Mapping[str, Session],
    effort: Effort = STANDARD,
    on_step: OnStep = lambda _setting, _step: None,
    watch: Telemetry | None = None,
) -> dict[str, Measured]:
    """Measure a case under each setting.

    Blocks are taken in turn, forwards or backwards by the Thue-Morse sequence (ABC CBA CBA ABC …), so that drift of
    clocks and temperature meets all settings alike, even where it is not even.

    Args:
        case: The case.
        sessions: By the setting's id, in order.
        effort: How much is done.
        on_step: Told of each step.
        watch: Reads sensors meanwhile.

    Returns:
        What came out, by setting. One that failed has its verdict and no figure. Where the GPU was reset, nothing more
        is started: figures are of the rounds before, and a setting without any is ``skipped``.

    Raises:
        NotStartedError: Nothing can be measured in any of the sessions.
    """
    started, begin = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds"), time.monotonic()
    blocks: dict[str, list[tuple[float, ...]]] = {name: [] for name in sessions}
    readings: dict[str, list[list[Reading]]] = {name: [] for name in sessions}
    waited: dict[str, list[float]] = {name: [] for name in sessions}
    prepared = _made_ready(case, sessions, on_step)
    running = [name for name, found in prepared.items() if found.verdict is Verdict.PASS]
    for number in range(effort.most_blocks):
        if not running or _quarantine(prepared):
            break
        taken: dict[str, tuple[Block, float, float]] = {}
        for name in running if number.bit_count() % 2 == 0 else running[::-1]:
            on_step(name, "timing")
            since = time.monotonic()
            block = sessions[name].block(case, effort.block_s, effort.least_runs)
            taken[name] = block, since, time.monotonic()
            prepared[name] = _after(prepared[name], block)
            if block.quarantine:
                break
        if _quarantine(prepared):
            break  # nothing of this round is taken: settings before the reset may have met its beginning
        running = [name for name in running if prepared[name].verdict is Verdict.PASS]
        for name in running:
            block, since, until = taken[name]
            blocks[name].append(block.seconds)
            waited[name].append(block.waited)
            if watch is not None:
                readings[name].append(watch.between(since, until))
        if _sure(running, blocks, number + 1, effort):
            break
    time_ms = (time.monotonic() - begin) * 1e3
    reset = _quarantine(prepared)
    return {
        name: _measured(
            case, _or_skipped(found, blocks[name], reset), blocks[name], readings[name], waited[name], started, time_ms
        )
        for name, found in prepared.items()
    }


def _made_ready(case: Case, sessions: Mapping[str, Session], on_step: OnStep) -> dict[str, Prepared]:
    """Make a case ready in each session, up to one in which the GPU was reset."""
    prepared: dict[str, Prepared] = {}
    not_started: list[NotStartedError] = []
    for name, session in sessions.items():
        on_step(name, "preparing")
        try:
            prepared[name] = session.prepare(case)
        except NotStartedError as error:
            not_started.append(error)
            prepared[name] = Prepared(Verdict.INFRA, error.message)
        if prepared[name].quarantine:
            break
    if not_started and len(not_started) == len(sessions):
        raise not_started[0]
    return prepared


def _or_skipped(prepared: Prepared, blocks: Sequence[object], reset: str) -> Prepared:
    """Return how a setting ended; one that was ready when the GPU was reset, and has no block, was skipped."""
    if blocks or prepared.verdict is not Verdict.PASS:
        return prepared
    return msgspec.structs.replace(prepared, verdict=Verdict.SKIPPED, reason=reset)


def _quarantine(prepared: Mapping[str, Prepared]) -> str:
    """Return why nothing more may be started on this host; empty where nothing is known against it."""
    return next((found.quarantine for found in prepared.values() if found.quarantine), "")


def _after(prepared: Prepared, block: Block) -> Prepared:
    """Return what is known of a setting after a block of it."""
    if block.verdict is Verdict.PASS and (block.seconds or block.quarantine):
        return msgspec.structs.replace(prepared, quarantine=block.quarantine)
    return msgspec.structs.replace(
        prepared,
        verdict=Verdict.INFRA if block.verdict is Verdict.PASS else block.verdict,
        reason=block.reason or "it gave no times",
        quarantine=block.quarantine,
        log=block.log,
    )


def _sure(names: Sequence[str], blocks: Mapping[str, list[tuple[float, ...]]], done: int, effort: Effort) -> bool:
    """Return whether the intervals of figures, and of ratios to the first one, are narrow enough."""
    if done < effort.least_blocks or not all(half_width(blocks[name]) <= effort.sure for name in names):
        return False
    return all(ratio_interval(blocks[names[0]], blocks[name]).half_width <= effort.sure for name in names[1:])


def _measured(  # noqa: PLR0913, PLR0917  it is made in one place
    case: Case,
    prepared: Prepared,
    blocks: list[tuple[float, ...]],
    readings: list[list[Reading]],
    waited: list[float],
    started: str,
    time_ms: float,
) -> Measured:
    passed = prepared.verdict is Verdict.PASS
    gpu = prepared.subject.gfx_target != "cpu"
    return Measured(
        case=case,
        verdict=prepared.verdict,
        reason=prepared.reason,
        prepared=prepared,
        blocks=tuple(blocks),
        summary=summarize(blocks) if passed else None,
        started_at=started,
        time_ms=time_ms,
        telemetry=summarized(readings, gpu=gpu, waited=() if gpu else waited),
        waited=tuple(waited) if not gpu and any(waited) else (),
    )
