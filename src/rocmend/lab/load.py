"""Reading an experiment's file, and refusing one that could not be run or would say nothing."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args

import msgspec

from rocmend.core.documents import parse_toml, read_document
from rocmend.core.errors import DataError, UsageError
from rocmend.core.patterns import PatternError, compile_pattern
from rocmend.lab.experiment import (
    BASELINE,
    UNSET,
    Criterion,
    ExitAndPattern,
    Experiment,
    Factor,
    FactorKind,
    FileWithin,
    NumberWithin,
    Oracle,
    OutputEquals,
    OutputMatches,
)
from rocmend.lab.filling import HERE, OUT, fill, placeholders
from rocmend.runner.executor import NotStartedError
from rocmend.runner.phases import load_phases
from rocmend.runner.remote.confine import rules_of
from rocmend.runner.secret import is_hidden, without_secret
from rocmend.runner.spec import Where

MAX_FILE_BYTES = 512 << 10
MAX_REPEATS = 1000
KINDS: dict[str, tuple[str, ...]] = {
    "factor": tuple(FactorKind),
    "oracle": tuple(str(kind.__struct_config__.tag) for kind in get_args(Oracle)),
}
_ID = re.compile(r"[a-z0-9]+(?:[.-][a-z0-9]+)*\Z")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*\Z")
_NOT_KEPT = "Secret values are not stored, so trials that differ only in one could not be distinguished."
_FROM_ENVIRONMENT = 'Write NAME = "***" into [experiment.env] and set NAME in the environment of rocmend.'
_STEP = re.compile(r"\.?([A-Za-z_][\w-]*)|\[(\d+|\.\.\.)\]")


class Problem(NamedTuple):
    """What is wrong in an experiment's file.

    Attributes:
        path: Where, as ``$.factor[1].values``.
        message: What is wrong.
        why: Why that matters.
        next_step: What to write instead.
    """

    path: str
    message: str
    why: str = ""
    next_step: str = ""


def load_experiment(path: Path) -> Experiment:
    """Read an experiment.

    Args:
        path: Its TOML file.

    Raises:
        UsageError: It is not there.
        DataError: It is not TOML, or not an experiment that could be run; line and field are named.
    """
    try:
        data = read_document(path, max_bytes=MAX_FILE_BYTES)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UsageError("lab", f"{path} cannot be read: {error.strerror}.") from error
    return parse_experiment(data, path)


def parse_experiment(data: bytes, path: Path) -> Experiment:
    """Return the experiment in a file's contents.

    Raises:
        DataError: See ``load_experiment``.
    """
    document = parse_toml(data, str(path))
    text = data.decode()
    try:
        found = msgspec.convert(document, Experiment, strict=True)
    except msgspec.ValidationError as error:
        message, _, where = str(error).partition(" - at `")
        where = where.rstrip("`") or "$"
        unknown = re.search(r"unknown field `(.+)`", message)
        if unknown:
            raise _error(path, text, Problem(f"{where}.{unknown.group(1)}", "unknown field.")) from error
        raise _error(path, text, _wrong_value(where, message)) from error
    except UsageError as error:  # limits check themselves
        raise _error(path, text, Problem("$.limits", error.message)) from error
    experiment = msgspec.structs.replace(found, folder=str(path.resolve().parent))
    for check in CHECKS:
        for problem in check(experiment):
            raise _error(path, text, problem)
    return experiment


def _wrong_value(where: str, message: str) -> Problem:
    """Return what is wrong with a value; for a kind that there is none of, the kinds that there are."""
    invalid = re.search(r"^Invalid (?:enum )?value ('.*')$", message, re.DOTALL)
    of = next((kinds for field, kinds in KINDS.items() if where.startswith(f"$.{field}")), None)
    if invalid and of and where.endswith(".kind"):
        return Problem(where, f"there is no kind {invalid[1]}.", "", f"Known: {_list(of)}.")
    return Problem(where, f"{message}.")


def _error(path: Path, text: str, problem: Problem) -> DataError:
    line = line_of(text, problem.path)
    place = f"line {line}, " if line else ""
    field = problem.path.removeprefix("$").removeprefix(".") or "the file"
    return DataError(str(path), f"{place}{field}: {problem.message}", why=problem.why, next_step=problem.next_step)


def line_of(text: str, path: str) -> int:
    """Return the line on which a field stands, or its table begins; 0 where it cannot be found.

    Args:
        text: The TOML text.
        path: The field, as ``$.factor[1].values``.
    """
    steps = _STEP.findall(path.removeprefix("$"))
    if not steps:
        return 0
    table = steps[0][0]
    wanted = int(steps[1][1]) if len(steps) > 1 and steps[1][1].isdecimal() else 0
    keys = [name for name, _ in steps[1:] if name]
    seen, at = -1, 0
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[\[?\s*([\w-]+)([\w.-]*)\s*\]", line)
        if header:
            if header.group(1) == table and not header.group(2):
                seen += 1
            inside = header.group(1) == table and seen == wanted
            if inside and (not at or (header.group(2) and header.group(2)[1:] in keys)):
                at = number
            continue
        if seen == wanted and at and keys and re.match(rf"\s*\"?{re.escape(keys[0])}\"?\s*[.=]", line):
            return number
        if seen > wanted:
            break
    return at


def _check_head(experiment: Experiment) -> Iterator[Problem]:
    head = experiment.experiment
    if not _ID.match(head.id):
        yield Problem(
            "$.experiment.id",
            f"{head.id!r} is not a valid id.",
            "It names the experiment in the store and its folder.",
            "Use lower-case letters and digits joined by hyphens.",
        )
    for name in ("title", "question"):
        if not getattr(head, name).strip():
            yield Problem(f"$.experiment.{name}", "is empty.", "It is the report's title.")
    if not head.command or not head.command[0].strip():
        yield Problem("$.experiment.command", "is empty.", "", 'Pass program and arguments: ["llama-cli", "-m", …].')
    if not 1 <= head.repeats <= MAX_REPEATS:
        yield Problem("$.experiment.repeats", f"expected 1 to {MAX_REPEATS}, got {head.repeats}.")
    if head.phases:
        beside = experiment.path(head.phases)
        try:
            load_phases(str(beside) if beside.is_file() else head.phases)
        except (UsageError, DataError) as error:
            yield Problem("$.experiment.phases", error.message, "", error.next_step)
    for name in head.files:
        if Path(name).is_absolute():
            yield Problem(
                "$.experiment.files",
                f"{name!r} is an absolute path.",
                "On another machine it would be another file.",
                "Put the file next to the experiment and use a relative path.",
            )
        elif not experiment.path(name).is_file():
            yield Problem("$.experiment.files", f"there is no file {name!r} next to the experiment.")


def _check_factors(experiment: Experiment) -> Iterator[Problem]:
    names = [factor.name for factor in experiment.factor]
    if not names:
        yield Problem("$.factor", "there is none.", "Without a factor there is nothing to compare.")
    for index, factor in enumerate(experiment.factor):
        at = f"$.factor[{index}]"
        if not _NAME.match(factor.name) or factor.name in {HERE, OUT}:
            yield Problem(
                f"{at}.name",
                f"{factor.name!r} is not a valid factor name.",
                "It is also a placeholder.",
                "Use letters, digits, hyphens and underscores, starting with a letter.",
            )
        if names.index(factor.name) != index:
            yield Problem(f"{at}.name", f"{factor.name!r} is defined twice.")
        if len(factor.values) < 2 or len(set(factor.values)) < len(factor.values):
            yield Problem(
                f"{at}.values",
                "expected two different values or more.",
                "A factor with one value makes no difference.",
                "Write a fixed setting into the command or into [experiment.env].",
            )
        if factor.baseline not in factor.values:
            known = ", ".join(map(repr, factor.values))
            yield Problem(
                f"{at}.baseline", f"{factor.baseline!r} is not one of its values.", "", f"Use one of {known}."
            )
        yield from _check_kind(experiment, factor, at)


def _check_kind(experiment: Experiment, factor: Factor, at: str) -> Iterator[Problem]:
    """Check that a factor can take effect as its kind says, and has no field of another kind."""
    own = {
        FactorKind.ENV: {"variable"},
        FactorKind.KERNEL_PARAMETER: {"parameter"},
        FactorKind.FIRMWARE: {"file", "pattern"},
    }.get(factor.kind, set())
    for field in ("variable", "parameter", "file", "pattern"):
        if getattr(factor, field) and field not in own:
            yield Problem(f"{at}.{field}", f"does not apply to the kind {factor.kind}.")
    check = _KIND_CHECKS.get(factor.kind, _check_placed)
    yield from check(experiment, factor, at)


def _check_env(experiment: Experiment, factor: Factor, at: str) -> Iterator[Problem]:
    del experiment
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", factor.env_name):
        yield Problem(f"{at}.variable", f"{factor.env_name!r} is not a valid variable name.")
    if any(value != UNSET and is_hidden(factor.env_name, value) for value in factor.values):
        yield Problem(f"{at}.values", f"{factor.env_name} holds a secret.", _NOT_KEPT, _FROM_ENVIRONMENT)


def _check_parameter(experiment: Experiment, factor: Factor, at: str) -> Iterator[Problem]:
    del experiment
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", factor.parameter):
        yield Problem(
            f"{at}.parameter",
            f"{factor.parameter!r} is not a valid kernel parameter.",
            "The boot is checked for it.",
            'Write e.g. parameter = "amdgpu.cwsr_enable".',
        )
    bad = [value for value in factor.values if not re.fullmatch(r"[^\s\"']+", value)]
    if bad:
        yield Problem(f"{at}.values", f"{bad[0]!r} is not allowed on a kernel command line.", "", f"Or is it {UNSET}?")


def _check_firmware(experiment: Experiment, factor: Factor, at: str) -> Iterator[Problem]:
    del experiment
    if factor.file.startswith("/") and "{value}" in factor.pattern:
        yield from _bad_pattern(f"{at}.pattern", factor.pattern.replace("{value}", "x"))
        return
    yield Problem(
        f"{at}.{'pattern' if factor.file.startswith('/') else 'file'}",
        "a firmware factor needs a file that shows the running version, and a pattern with {value}.",
        "Otherwise a trial might claim firmware that was not loaded.",
        'E.g. file = "/sys/kernel/debug/dri/0/amdgpu_firmware_info", pattern = "MES .*version: {value}".',
    )


def _check_placed(experiment: Experiment, factor: Factor, at: str) -> Iterator[Problem]:
    """Check a factor that takes effect through its placeholder."""
    if factor.name not in _used(experiment):
        yield Problem(
            f"{at}.name",
            f"nothing reads {{{factor.name}}}.",
            "Trials that set it would all be the same run.",
            f"Put {{{factor.name}}} into the command, [experiment.env] or [where].",
        )
    if f"{{{factor.name}}}" not in experiment.experiment.command:
        return
    for value in factor.values:
        try:
            shlex.split(value)
        except ValueError as error:
            yield Problem(f"{at}.values", f"{value!r} cannot be split into arguments: {error}.")


_KIND_CHECKS = {
    FactorKind.ENV: _check_env,
    FactorKind.KERNEL_PARAMETER: _check_parameter,
    FactorKind.FIRMWARE: _check_firmware,
}


def _used(experiment: Experiment) -> set[str]:
    head = experiment.experiment
    return set(placeholders([*head.command, head.env, head.cwd, experiment.where]))


def _check_secrets(experiment: Experiment) -> Iterator[Problem]:
    """Refuse secrets where they would be kept, or stand on a command line that every user of the machine can read."""
    names = {factor.name for factor in experiment.factor}
    for name, value in experiment.experiment.env.items():
        if is_hidden(name, "a value") and names & set(placeholders(value)):
            yield Problem(
                "$.experiment.env", f"{name} is a secret and takes a factor's value.", _NOT_KEPT, _FROM_ENVIRONMENT
            )
    extra = experiment.where.get("extra_args")
    for argument in extra if isinstance(extra, list) else ():
        if isinstance(argument, str) and without_secret(argument) != argument:
            why = "Every user of the machine can read it on the command line."
            yield Problem("$.where.extra_args", "hold a secret.", why, _FROM_ENVIRONMENT)


def _check_placeholders(experiment: Experiment) -> Iterator[Problem]:
    known = {HERE, OUT, *(factor.name for factor in experiment.factor)}
    head = experiment.experiment
    for at, value in (
        ("$.experiment.command", head.command),
        ("$.experiment.env", head.env),
        ("$.experiment.cwd", head.cwd),
        ("$.where", experiment.where),
    ):
        for name in placeholders(value):
            if name not in known:
                yield Problem(
                    at, f"{{{name}}} is not a factor.", "It would be passed on literally.", f"Known: {_list(known)}."
                )


def _check_strategies(experiment: Experiment) -> Iterator[Problem]:
    factors = {factor.name: factor for factor in experiment.factor}
    ids = [strategy.id for strategy in experiment.strategy]
    seen: dict[str, str] = {}
    for index, strategy in enumerate(experiment.strategy):
        at = f"$.strategy[{index}]"
        if not _ID.match(strategy.id) or strategy.id == BASELINE:
            yield Problem(f"{at}.id", f"{strategy.id!r} is not a valid strategy id.", "", "Use e.g. sdma-off.")
        if ids.index(strategy.id) != index:
            yield Problem(f"{at}.id", f"{strategy.id!r} is defined twice.")
        if not strategy.hypothesis.strip():
            yield Problem(f"{at}.hypothesis", "is empty.", "The report says what was expected.")
        for name, value in strategy.sets.items():
            if name not in factors:
                yield Problem(f"{at}.sets", f"{name!r} is not a factor.", "", f"Known: {_list(factors)}.")
            elif value not in factors[name].values:
                known = ", ".join(map(repr, factors[name].values))
                yield Problem(f"{at}.sets", f"{value!r} is not a value of {name}.", "", f"Use one of {known}.")
        if all(name in factors and factors[name].baseline == value for name, value in strategy.sets.items()):
            yield Problem(f"{at}.sets", "changes nothing.", "It would be the baseline again.")
        key = repr(sorted((experiment.baseline | strategy.sets).items()))
        if key in seen:
            yield Problem(f"{at}.sets", f"is the same trial as {seen[key]!r}.", "", "Remove one of the two.")
        seen[key] = strategy.id


def _check_oracle(experiment: Experiment) -> Iterator[Problem]:
    oracle = experiment.oracle
    if isinstance(oracle, OutputEquals):
        if bool(oracle.text.strip()) == bool(oracle.file):
            yield Problem("$.oracle.text", "expected either text or file.")
        elif oracle.file and not experiment.path(oracle.file).is_file():
            yield Problem("$.oracle.file", f"there is no file {oracle.file!r} next to the experiment.")
    elif isinstance(oracle, FileWithin):
        if not experiment.path(oracle.reference).is_file():
            yield Problem("$.oracle.reference", f"there is no file {oracle.reference!r} next to the experiment.")
        if min(oracle.absolute, oracle.relative) < 0:
            yield Problem("$.oracle", "a tolerance cannot be negative.")
        if experiment.where.get("kind") != "local":
            yield Problem("$.oracle", "files can be compared only of local trials.", "", "Print a figure instead.")
    elif isinstance(oracle, NumberWithin):
        yield from _check_number("$.oracle", oracle)
    elif isinstance(oracle, (OutputMatches, ExitAndPattern)):
        if isinstance(oracle, OutputMatches) and not oracle.pattern:
            yield Problem("$.oracle.pattern", "is empty.", "It would be found in any output.")
        yield from _bad_pattern("$.oracle.pattern", oracle.pattern)
        yield from _bad_pattern("$.oracle.absent", oracle.absent)


def _check_success(experiment: Experiment) -> Iterator[Problem]:
    for index, criterion in enumerate(experiment.success):
        at = f"$.success[{index}]"
        if criterion.within_s < 0:
            yield Problem(f"{at}.within_s", "cannot be negative.")
        if criterion.number:
            yield from _check_number(at, criterion)
        if criterion.phase and not experiment.experiment.phases:
            yield Problem(f"{at}.phase", "the experiment names no phase set.", "", "Set phases in [experiment].")
        elif criterion.phase:
            beside = experiment.path(experiment.experiment.phases)
            known = load_phases(str(beside) if beside.is_file() else experiment.experiment.phases)
            names = [phase.name for phase in known.phases]
            if criterion.phase not in names:
                yield Problem(f"{at}.phase", f"unknown phase {criterion.phase!r}.", "", f"Known: {', '.join(names)}.")


def _check_number(at: str, number: NumberWithin | Criterion) -> Iterator[Problem]:
    field, pattern = ("pattern", number.pattern) if isinstance(number, NumberWithin) else ("number", number.number)
    bad = list(_bad_pattern(f"{at}.{field}", pattern))
    yield from bad
    if not bad and compile_pattern(pattern, lines=True).groups != 1:
        yield Problem(
            f"{at}.{field}", "expected one group that matches the number.", "", r"E.g. 'eval rate: ([0-9.]+)'."
        )
    if number.at_least is None and number.at_most is None:
        yield Problem(f"{at}.at_least", "no bound is given.", "Any number would pass.", "Set at_least or at_most.")


def _check_where(experiment: Experiment) -> Iterator[Problem]:
    kinds = {item.__struct_config__.tag: item for item in get_args(Where)}
    kind = experiment.where.get("kind")
    if kind not in kinds:
        yield Problem("$.where.kind", f"{kind!r} is not a place to run.", "", f"Use one of {_list(map(str, kinds))}.")
        return
    fields = {"kind", *kinds[kind].__struct_fields__}
    for name in experiment.where:
        if name not in fields:
            yield Problem(f"$.where.{name}", f"{kind} has no such field.", "", f"Known: {_list(fields)}.")
    try:
        rules_of(msgspec.convert(fill(experiment.where, experiment.baseline), Where))
    except msgspec.ValidationError as error:
        yield Problem("$.where", f"{error}.")
    except NotStartedError as error:
        yield Problem("$.where", error.message, error.why, error.next_step)
    uses_out = OUT in _used(experiment)
    if uses_out and kind != "local":
        yield Problem("$.where.kind", "{out} is a folder on this machine.", "Only local trials can write to it.")


def _bad_pattern(at: str, pattern: str) -> Iterator[Problem]:
    try:
        compile_pattern(pattern, lines=True)
    except PatternError as error:
        yield Problem(at, f"is not a regular expression: {error.reason}.", "", error.next_step)


def _list(names: Any) -> str:
    return ", ".join(sorted(names))


CHECKS: tuple[Callable[[Experiment], Iterator[Problem]], ...] = (
    _check_head,
    _check_factors,
    _check_placeholders,
    _check_strategies,
    _check_oracle,
    _check_where,
    _check_secrets,
    _check_success,
)
