"""An experiment as its TOML file states it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from rocmend.runner.secret import without_secret, without_secrets
from rocmend.runner.spec import Limits

UNSET = "unset"
"""Value of an ``env`` or ``kernel-parameter`` factor that is not to be set."""

BASELINE = "baseline"
"""Id of the trial in which every factor has its baseline value."""


class FactorKind(StrEnum):
    """What a factor is, and with that how its value takes effect."""

    IMAGE = "image"
    ENV = "env"
    KERNEL_PARAMETER = "kernel-parameter"
    FIRMWARE = "firmware"
    BUILD = "build"
    FLAG = "flag"
    WORKLOAD = "workload"

    @property
    def needs_boot(self) -> bool:
        """It takes effect at the next boot, by a person's hand."""
        return self in {FactorKind.KERNEL_PARAMETER, FactorKind.FIRMWARE}


class Factor(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Something that may make the difference.

    Attributes:
        name: Its placeholder, ``{name}``, in the command, the environment and the place.
        kind: How it takes effect: ``env`` sets a variable, ``kernel-parameter`` and ``firmware`` need a boot, the
            others fill their placeholder.
        values: All values that a strategy may give it. ``unset`` takes a variable or parameter away.
        baseline: Its value in the baseline.
        label: What to call it in a sentence; empty for the name.
        variable: Of ``env``: the variable; empty for the name.
        parameter: Of ``kernel-parameter``: the parameter, e.g. ``amdgpu.cwsr_enable``.
        file: Of ``firmware``: a file of the host that tells which firmware runs.
        pattern: Of ``firmware``: regular expression to be found in that file, with ``{value}`` in it.
    """

    name: str
    kind: FactorKind
    values: tuple[str, ...]
    baseline: str
    label: str = ""
    variable: str = ""
    parameter: str = ""
    file: str = ""
    pattern: str = ""

    @property
    def called(self) -> str:
        """What to call it in a sentence."""
        return self.label or (self.env_name if self.kind is FactorKind.ENV else self.name.replace("-", " "))

    @property
    def env_name(self) -> str:
        """The variable of an ``env`` factor."""
        return self.variable or self.name

    def setting(self, value: str) -> str:
        """Return a value of it in words: ``HSA_ENABLE_SDMA=0``, ``image rocm-7.1.1``."""
        if self.kind in {FactorKind.ENV, FactorKind.KERNEL_PARAMETER}:
            name = self.env_name if self.kind is FactorKind.ENV else self.parameter
            return f"{name} unset" if value == UNSET else f"{name}={value}"
        return f"{self.called} {value or '(none)'}"


class Strategy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A set of changes to the baseline, with what they are hoped to do.

    Attributes:
        id: Its name.
        hypothesis: What it is expected to change, and why.
        sets: Factor to value; other factors keep their baseline value.
    """

    id: str
    hypothesis: str
    sets: dict[str, str]


class OutputEquals(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="output-equals", tag_field="kind"):
    """Standard output is this text, white space at its ends aside.

    Attributes:
        text: The text.
        file: File with the text, beside the experiment; instead of ``text``.
    """

    text: str = ""
    file: str = ""


class OutputMatches(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="output-matches", tag_field="kind"):
    """A pattern is found in the output of both streams.

    Attributes:
        pattern: Regular expression, ``^`` and ``$`` at lines.
        absent: Regular expression that must not be found; empty for none.
    """

    pattern: str
    absent: str = ""


class NumberWithin(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="number-within", tag_field="kind"):
    """A number that the output states lies within bounds.

    Attributes:
        pattern: Regular expression with one group, the number; the last match counts.
        at_least: Lower bound.
        at_most: Upper bound.
    """

    pattern: str
    at_least: float | None = None
    at_most: float | None = None


class FileWithin(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="file-within", tag_field="kind"):
    """Numbers in a file that the run writes (logits, perplexities) are near those of a reference.

    Each number x with its reference r must satisfy |x - r| <= absolute + relative * |r|. Files hold a JSON list,
    numbers with white space between them, or, named ``.f32``, little-endian 32-bit floats.

    Attributes:
        file: What the run writes, normally in ``{out}``.
        reference: The reference, next to the experiment.
        absolute: Absolute tolerance.
        relative: Relative tolerance.
    """

    file: str
    reference: str
    absolute: float = 0.0
    relative: float = 0.0


class ExitAndPattern(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="exit-and-pattern", tag_field="kind"):
    """It exits with a status, and a pattern is found in its output.

    Attributes:
        code: The exit status.
        pattern: Regular expression; empty for none.
        absent: Regular expression that must not be found; empty for none.
    """

    code: int = 0
    pattern: str = ""
    absent: str = ""


Oracle = OutputEquals | OutputMatches | NumberWithin | FileWithin | ExitAndPattern


class Criterion(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One thing that success means. With none of the tests, it is left to a person.

    Attributes:
        text: What it is, in words.
        phase: A phase that must be reached; else the output is wrong.
        within_s: Wall seconds that the run may take; else it is slow.
        number: Regular expression with one group, a figure of speed; the last match counts.
        at_least: Lower bound of the figure; else it is slow.
        at_most: Upper bound.
    """

    text: str
    phase: str = ""
    within_s: float = 0.0
    number: str = ""
    at_least: float | None = None
    at_most: float | None = None

    @property
    def tested(self) -> bool:
        """A machine can decide it."""
        return bool(self.phase or self.within_s or self.number)


class Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is tried, and what is asked.

    Attributes:
        id: Name of the experiment in the store, kebab-case.
        title: One line.
        question: What the experiment is to answer.
        command: Program and arguments with placeholders ``{factor}``, ``{here}`` (the file's folder) and ``{out}`` (a
            fresh folder of each local trial). An argument that is nothing but a placeholder is split as a shell would.
        phases: Name of a phase set, or path of one next to the experiment.
        env: Variables of every trial.
        cwd: Working folder.
        repeats: Runs of each trial.
        one_at_a_time: Also try each other value of each factor alone, after the strategies.
        gfx: gfx target that it is about; knowledge entries of other targets predict nothing for it.
        workload: ``llama.cpp``, ``pytorch`` …: likewise.
        rocm: The ROCm release of the baseline's image or build: likewise.
        files: Files beside the experiment whose contents define it, e.g. the workload's script.
        sources: Where it comes from.
        background: What was known before, in Markdown.
    """

    id: str
    title: str
    question: str
    command: tuple[str, ...]
    phases: str = ""
    env: dict[str, str] = {}
    cwd: str = ""
    repeats: int = 1
    one_at_a_time: bool = False
    gfx: str = ""
    workload: str = ""
    rocm: str = ""
    files: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    background: str = ""


class Experiment(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A whole experiment.

    Attributes:
        experiment: What is tried, and what is asked.
        factor: What may make the difference.
        strategy: What is tried.
        oracle: Whether what came out is right.
        success: What success means.
        limits: When a trial is ended.
        where: Executor and its fields, as ``runner.spec`` has them, with placeholders.
        folder: Where its file lies; ``{here}``.
    """

    experiment: Head
    factor: tuple[Factor, ...]
    oracle: Oracle
    strategy: tuple[Strategy, ...] = ()
    success: tuple[Criterion, ...] = ()
    limits: Limits = Limits()
    where: dict[str, Any] = msgspec.field(default_factory=lambda: {"kind": "local"})
    folder: str = ""

    @property
    def id(self) -> str:
        """Its name."""
        return self.experiment.id

    @property
    def baseline(self) -> dict[str, str]:
        """Every factor's baseline value."""
        return {factor.name: factor.baseline for factor in self.factor}

    def kept(self) -> Experiment:
        """Return it as it is written down and shown: without the values of secrets."""
        head = self.experiment
        env = {name: value or "" for name, value in without_secrets(head.env).items()}
        command = tuple(map(without_secret, head.command))
        return msgspec.structs.replace(self, experiment=msgspec.structs.replace(head, env=env, command=command))

    def factor_named(self, name: str) -> Factor:
        """Return a factor that the file is known to have."""
        return next(factor for factor in self.factor if factor.name == name)

    def path(self, name: str) -> Path:
        """Return a file next to the experiment."""
        return Path(self.folder) / name

    def difference(self, settings: dict[str, str]) -> str:
        """Return in words where settings depart from the baseline."""
        parts = [item.setting(settings[item.name]) for item in self.factor if settings[item.name] != item.baseline]
        return ", ".join(parts) or "nothing changed"
