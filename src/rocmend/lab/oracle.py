"""Whether what a run produced is right, and then whether it was fast enough."""

from __future__ import annotations

import array
import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from rocmend.core.documents import MALFORMED, read_document
from rocmend.core.errors import DataError
from rocmend.core.patterns import compile_pattern
from rocmend.core.verdict import Verdict
from rocmend.lab.experiment import (
    Criterion,
    ExitAndPattern,
    Experiment,
    FileWithin,
    NumberWithin,
    OutputEquals,
    OutputMatches,
)
from rocmend.runner.result import AttemptResult

MAX_OUTPUT_BYTES = 64 << 20
MAX_NUMBERS_BYTES = 1 << 30
_LOG_LINE = re.compile(r"\[ *\d+\.\d{3} ([oe])\] ?(.*)", re.DOTALL)


class Output(msgspec.Struct, frozen=True):
    """What a run printed, as far as it was kept.

    Attributes:
        stdout: Its standard output.
        both: Both streams in order of arrival.
        dropped_bytes: What was not kept.
    """

    stdout: str = ""
    both: str = ""
    dropped_bytes: int = 0


class Judgement(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the oracle and the criteria say of a run.

    Attributes:
        verdict: The run's verdict.
        reason: Why, in a sentence.
        figures: Numbers that were read, by what reads them.
        met: Criteria that a machine can decide, by their text: whether they were met. Empty where the oracle failed.
    """

    verdict: Verdict
    reason: str
    figures: dict[str, float] = {}
    met: dict[str, bool] = {}


def read_output(result: AttemptResult) -> Output:
    """Return what a run printed: from its log, or else the head and tail that its result holds."""
    summary = result.output
    log = Path(summary.log) if summary.log else None
    if log is None or not log.is_file():
        text = summary.head + ("\n" + summary.tail if summary.tail else "")
        return Output(text, text, summary.dropped_bytes)
    out: list[str] = []
    both: list[str] = []
    with log.open("rb") as file:
        for line in file.read(MAX_OUTPUT_BYTES).decode(errors="replace").splitlines():
            found = _LOG_LINE.fullmatch(line)
            if found is None:
                continue
            both.append(found.group(2))
            if found.group(1) == "o":
                out.append(found.group(2))
    return Output("\n".join(out), "\n".join(both), summary.dropped_bytes)


def judge(experiment: Experiment, result: AttemptResult, output: Output, out_folder: Path) -> Judgement:
    """Say what came of a run: the runner's verdict, then the oracle's, and only then whether it was fast.

    Args:
        experiment: Its oracle and criteria.
        result: What the runner says.
        output: What it printed.
        out_folder: Its ``{out}``.
    """
    oracle = experiment.oracle
    verdict, reason = result.verdict, result.reason
    if isinstance(oracle, ExitAndPattern) and _wanted_exit(oracle, result):
        verdict, reason = Verdict.PASS, f"it exited with the expected status {oracle.code}"
    if verdict is not Verdict.PASS:
        return Judgement(verdict, reason)
    figures: dict[str, float] = {}
    wrong = _wrong(experiment, result, output, out_folder, figures)
    if wrong:
        return Judgement(Verdict.WRONG_OUTPUT, wrong, figures)
    met: dict[str, bool] = {}
    problems: list[tuple[Verdict, str]] = []
    for criterion in experiment.success:
        if criterion.tested:
            found = _criterion(criterion, result, output, figures)
            met[criterion.text] = not found
            problems += found
    problems.sort(key=lambda item: item[0] is Verdict.SLOW)  # what is wrong comes before what is slow
    if problems:
        return Judgement(problems[0][0], "; ".join(text for _, text in problems), figures, met)
    return Judgement(
        Verdict.PASS, "the output is correct" + (" and every criterion is met" if met else ""), figures, met
    )


def _wanted_exit(oracle: ExitAndPattern, result: AttemptResult) -> bool:
    """Whether it ended by itself with a status other than 0 that the oracle asks for."""
    own_end = result.verdict is Verdict.CRASH and result.signal is None and not result.quarantine
    return bool(oracle.code) and own_end and result.exit_code == oracle.code


def _wrong(  # noqa: PLR0911  one return a kind of oracle
    experiment: Experiment, result: AttemptResult, output: Output, out_folder: Path, figures: dict[str, float]
) -> str:
    """Say what is wrong with the output; empty where nothing is."""
    oracle = experiment.oracle
    if isinstance(oracle, OutputEquals):
        if output.dropped_bytes:
            return f"it printed too much to compare: {output.dropped_bytes} bytes were dropped"
        wanted = _reference(experiment.path(oracle.file)) if oracle.file else oracle.text
        return _difference(output.stdout.strip(), wanted.strip())
    if isinstance(oracle, OutputMatches):
        return _pattern(output.both, oracle.pattern, oracle.absent)
    if isinstance(oracle, ExitAndPattern):
        if result.exit_code != oracle.code:
            return f"it exited with status {result.exit_code}, not {oracle.code}"
        return _pattern(output.both, oracle.pattern, oracle.absent)
    if isinstance(oracle, NumberWithin):
        value = _number(output.both, oracle.pattern)
        if value is None:
            return f"no number was found for {oracle.pattern!r}"
        figures["oracle"] = value
        return _outside(value, oracle.at_least, oracle.at_most)
    file = Path(oracle.file.replace("{out}", str(out_folder)).replace("{here}", experiment.folder))
    return _compare_files(oracle, file, experiment.path(oracle.reference), figures)


def _difference(found: str, wanted: str) -> str:
    if found == wanted:
        return ""
    pairs = list(zip(found.splitlines(), wanted.splitlines(), strict=False))
    at = next((index for index, (one, other) in enumerate(pairs) if one != other), len(pairs))
    lines, expected = found.splitlines(), wanted.splitlines()
    one = lines[at][:80] if at < len(lines) else "its end"
    other = expected[at][:80] if at < len(expected) else "its end"
    return f"the output differs in line {at + 1}: expected {other!r}, got {one!r}"


def _pattern(text: str, pattern: str, absent: str) -> str:
    if pattern and not compile_pattern(pattern, lines=True).search(text):
        return f"the output does not match {pattern!r}"
    unwanted = compile_pattern(absent, lines=True).search(text) if absent else None
    return f"the output contains {(unwanted.group() or '')[:80]!r}, which is not allowed" if unwanted else ""


def _number(text: str, pattern: str) -> float | None:
    """Return the number in the last match."""
    value = None
    for found in compile_pattern(pattern, lines=True).finditer(text):
        try:
            value = float(found.group(1) or "")
        except ValueError:
            continue
    return value


def _outside(value: float, at_least: float | None, at_most: float | None) -> str:
    if math.isnan(value):
        return "the number is NaN"
    if at_least is not None and value < at_least:
        return f"{value:g} is below {at_least:g}"
    if at_most is not None and value > at_most:
        return f"{value:g} is above {at_most:g}"
    return ""


def _criterion(
    criterion: Criterion, result: AttemptResult, output: Output, figures: dict[str, float]
) -> list[tuple[Verdict, str]]:
    """Return what keeps a criterion from being met."""
    problems = []
    if criterion.phase and criterion.phase not in {span.name for span in result.timeline}:
        problems.append((Verdict.WRONG_OUTPUT, f"it exited without reaching {criterion.phase}"))
    if criterion.within_s and result.time_ms > criterion.within_s * 1000:
        problems.append((Verdict.SLOW, f"it took {result.time_ms / 1000:.3g} s, more than {criterion.within_s:g} s"))
    if criterion.number:
        value = _number(output.both, criterion.number)
        if value is None:
            problems.append((Verdict.WRONG_OUTPUT, f"no figure was found for {criterion.text!r}"))
        else:
            figures[criterion.text] = value
            outside = _outside(value, criterion.at_least, criterion.at_most)
            if outside:
                problems.append((Verdict.SLOW, f"{criterion.text}: {outside}"))
    return problems


def _compare_files(oracle: FileWithin, file: Path, reference: Path, figures: dict[str, float]) -> str:
    try:
        found, wanted = read_numbers(file), read_numbers(reference)
    except OSError as error:
        return f"{error.filename} cannot be read: {error.strerror}"
    except ValueError as error:
        return str(error)
    if len(found) != len(wanted):
        return f"{file.name} contains {len(found)} numbers, the reference {len(wanted)}"
    worst, at = -math.inf, -1
    largest = 0.0
    for index, (one, other) in enumerate(zip(found, wanted, strict=True)):
        off = abs(one - other) if one != other else 0.0
        largest = math.nan if math.isnan(off) else max(largest, off)
        excess = off - (oracle.absolute + oracle.relative * abs(other))
        if not excess <= 0 and (math.isnan(excess) or excess > worst):
            worst, at = excess, index
            if math.isnan(excess):
                break
    figures["largest error"] = largest
    if at >= 0:
        return f"number {at + 1} of {len(wanted)} is {found[at]:g}, the reference has {wanted[at]:g}"
    return ""


def read_numbers(path: Path) -> Sequence[float]:
    """Return the numbers in a file: ``.f32`` little-endian floats, a JSON list, or text with white space between.

    Raises:
        OSError: It cannot be read.
        ValueError: It holds something else.
    """
    try:
        data = read_document(path, max_bytes=MAX_NUMBERS_BYTES, subject=path.name)
    except DataError as error:
        raise ValueError(f"{path.name} {error.message.removesuffix('.')}") from error
    if path.suffix == ".f32":
        if len(data) % 4:
            raise ValueError(f"{path.name} does not contain whole 32-bit floats: it is {len(data)} bytes long")
        values = array.array("f", data)
        if sys.byteorder == "big":
            values.byteswap()
        return values
    try:
        if data.lstrip()[:1] == b"[":
            return msgspec.json.decode(data, type=list[float])
        return [float(word) for word in data.split()]
    except MALFORMED as error:
        raise ValueError(f"{path.name} does not contain a list of numbers: {error}") from error


def _reference(path: Path) -> str:
    try:
        return read_document(path, max_bytes=MAX_OUTPUT_BYTES).decode()
    except (FileNotFoundError, UnicodeDecodeError) as error:
        raise DataError(str(path), f"cannot be compared with: {error}.") from error


def tail_of(output: Output, characters: int = 2000) -> str:
    """Return the end of what was printed."""
    return output.both[-characters:]


def detail_of(judgement: Judgement) -> dict[str, Any]:
    """Return what is worth keeping of a judgement, as JSON."""
    return {"figures": judgement.figures, "criteria": judgement.met}
