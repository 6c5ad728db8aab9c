"""A trial: settings of all factors, what is run for them, and what identifies that."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec

from rocmend.core.evidence import identity_of
from rocmend.lab.experiment import BASELINE, UNSET, ExitAndPattern, Experiment, FactorKind, FileWithin, OutputEquals
from rocmend.lab.filling import HERE, OUT, fill, fill_arguments
from rocmend.runner.phases import FOLDER, load_phases
from rocmend.runner.spec import AttemptSpec, Command, Container, Kubernetes, Where


class Trial(msgspec.Struct, frozen=True):
    """Something to try.

    Attributes:
        id: A strategy's id, ``baseline``, or one made up for a trial that the results called for.
        settings: Every factor's value.
        definition: Hash of everything that defines it, as far as the file says it: an image counts by its name.
        hypothesis: What is expected of it.
    """

    id: str
    settings: dict[str, str]
    definition: str
    hypothesis: str = ""


def make_trial(experiment: Experiment, trial_id: str, settings: dict[str, str], hypothesis: str = "") -> Trial:
    """Return the trial of these settings; one that a strategy or the baseline has goes by that one's id."""
    for known, values in {BASELINE: {}, **{item.id: item.sets for item in experiment.strategy}}.items():
        if experiment.baseline | values == settings:
            trial_id = known
            hypothesis = next((item.hypothesis for item in experiment.strategy if item.id == known), hypothesis)
    return Trial(trial_id, settings, definition_of(experiment, settings), hypothesis)


def spec_of(experiment: Experiment, settings: dict[str, str], *, name: str, here: str, out: str) -> AttemptSpec:
    """Return what to run for settings.

    Args:
        experiment: The experiment.
        settings: Every factor's value.
        name: The attempt's name.
        here: What to put for ``{here}``.
        out: What to put for ``{out}``.
    """
    head = experiment.experiment
    names = {**settings, HERE: here, OUT: out}
    env: dict[str, str | None] = dict(fill(head.env, names))
    for factor in experiment.factor:
        if factor.kind is FactorKind.ENV:
            value = settings[factor.name]
            env[factor.env_name] = None if value == UNSET else value
    phases = head.phases
    if phases and not (FOLDER / f"{phases}.toml").is_file():
        phases = f"{here}/{phases}"
    where = msgspec.convert(fill(experiment.where, names), Where)
    if isinstance(where, (Container, Kubernetes)):  # their environment is the image's: there is nothing to take away
        env = {key: value for key, value in env.items() if value is not None}
    command = Command(fill_arguments(head.command, names), fill(head.cwd, names))
    return AttemptSpec(name, command, where, env, phases, experiment.limits)


def definition_of(experiment: Experiment, settings: dict[str, str]) -> str:
    """Return the hash of all that defines a trial; the folder that the experiment lies in is no part of it."""
    spec = spec_of(experiment, settings, name="", here="{here}", out="{out}")
    value: dict[str, Any] = spec.definition()
    value["phases"] = _phase_marks(experiment)
    value["boot"] = {
        factor.name: factor.setting(settings[factor.name]) for factor in experiment.factor if factor.kind.needs_boot
    }
    value["oracle"] = msgspec.to_builtins(experiment.oracle)
    value["success"] = msgspec.to_builtins([item for item in experiment.success if item.tested])
    value["files"] = {name: _file_hash(experiment.path(name)) for name in _defining_files(experiment)}
    return identity_of(value)


def _phase_marks(experiment: Experiment) -> Any:
    name = experiment.experiment.phases
    beside = experiment.path(name) if name else Path()
    return msgspec.to_builtins(load_phases(str(beside) if name and beside.is_file() else name).phases)


def _defining_files(experiment: Experiment) -> list[str]:
    names = list(experiment.experiment.files)
    if isinstance(experiment.oracle, FileWithin):
        names.append(experiment.oracle.reference)
    if isinstance(experiment.oracle, OutputEquals) and experiment.oracle.file:
        names.append(experiment.oracle.file)
    return sorted(set(names))


def _file_hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def identity(trial: Trial, spec: AttemptSpec) -> str:
    """Return the identity of a run: its definition with the image pinned to its digest.

    Args:
        trial: The trial.
        spec: Its spec as the executor resolved it.
    """
    image = spec.where.image if isinstance(spec.where, (Container, Kubernetes)) else ""
    return identity_of({"definition": trial.definition, "image": image})


def expects_exit(experiment: Experiment) -> int:
    """Return the exit status that the oracle wants."""
    return experiment.oracle.code if isinstance(experiment.oracle, ExitAndPattern) else 0
