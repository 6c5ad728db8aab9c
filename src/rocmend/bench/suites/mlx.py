"""Language models through ``rocmend.mlx``: prompt and generation, at depths of the cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from rocmend.bench.calls import CallSession, Torch
from rocmend.bench.case import DEFAULT, Case, Setting
from rocmend.bench.comparison import unusable
from rocmend.bench.conclusion import Conclusion
from rocmend.bench.records import Measured, subject_of
from rocmend.bench.session import Prepared, Stop, Subject
from rocmend.bench.suite import Bound, Suite
from rocmend.core.units import count_text, share_text

if TYPE_CHECKING:
    from rocmend.machine.facts import Machine

_VARIABLE = "ROCMEND_MLX_EXECUTOR"
COPY = "copy speed"
SETTINGS = (
    DEFAULT,
    Setting("executor=plan", {_VARIABLE: "plan"}, note="plans, no captured graphs"),
    Setting("executor=interpreter", {_VARIABLE: "interpreter"}, note="operation by operation"),
)


class Request(msgspec.Struct, frozen=True):
    """What is measured.

    Attributes:
        model: A folder or a name of the hub; empty for a shape.
        shape: One of ``rocmend.mlx.programs.SHAPES``; empty for a model.
        depths: Tokens in the cache before the prompt.
        prompt: Tokens of the prompt.
        generate: Steps of the generation.
        layers: Layers of a smaller model of the shape; 0 for all.
    """

    model: str = ""
    shape: str = ""
    depths: tuple[int, ...] = (0,)
    prompt: int = 512
    generate: int = 128
    layers: int = 0

    @property
    def name(self) -> str:
        """What the cases' ids call it: a model by its last two parts, as a folder's path is nobody else's."""
        model = self.shape or "/".join(self.model.rstrip("/").split("/")[-2:]).lstrip("./~") or "model"
        return f"{model}-{self.layers}-layers" if self.layers else model


def model_cases(request: Request) -> list[Case]:
    """Return a case of the prompt and one of the generation for each depth."""
    cases = []
    shared: dict[str, Any] = {
        name: value for name in ("model", "shape", "layers") if (value := getattr(request, name))
    } | {"prompt": request.prompt, "generate": request.generate}
    for depth in request.depths:
        at = f" at {depth:,}" if depth else ""
        for task, tokens, what in (
            ("prompt", request.prompt, f"prompt of {request.prompt:,}{at}"),
            ("generation", request.generate, f"generation after {depth + request.prompt:,}"),
        ):
            name = f"mlx/{request.name}/{'pp' if task == 'prompt' else 'tg'}{tokens}/d{depth}"
            parameters = {**shared, "task": task, "depth": depth}
            cases.append(Case(name, "mlx", parameters, "tok/s", float(tokens), f"{request.name} {what}"))
    return cases


class Models(Suite):
    """A model at several depths."""

    name = "mlx"
    title = "A language model through rocmend.mlx"

    def __init__(self, torch: Torch, request: Request, settings: Sequence[Setting] = (DEFAULT,)) -> None:
        self._torch, self._cases, self._settings = torch, model_cases(request), list(settings)
        self._read: dict[str, tuple[float, int]] = {}

    def cases(self) -> list[Case]:
        """Return prompt and generation for each depth."""
        return self._cases

    def settings(self) -> list[Setting]:
        """Return the settings."""
        return self._settings

    def more_settings(self) -> list[Setting]:
        """Return those that are measured only where they are named."""
        return [setting for setting in SETTINGS if setting not in self._settings]

    def open(self, setting: Setting, stop: Stop) -> CallSession:
        """Start a process; it holds the model for all cases."""
        return _ModelSession(setting, self._torch, stop, self._read)

    def bounds(self, case: Case, subject: Subject, machine: Machine | None) -> tuple[Bound, ...]:
        """Return how often a second what a token needs can be read, at the speed of a copy measured there."""
        del subject, machine
        if case.id not in self._read:
            return ()
        copy, size = self._read[case.id]
        return (
            Bound(copy * 1e9 / size, COPY, f"weights and cache, {size / 1e6:,.1f} MB a token, at {copy:,.1f} GB/s"),
        )

    def conclusions(self, results: Sequence[Measured]) -> list[Conclusion]:
        """Return the speeds, and how steps were computed."""
        return conclusions(results)


def conclusions(results: Sequence[Measured]) -> list[Conclusion]:
    """Return the speeds at the first depth, then how steps were computed under each setting."""
    timed = [one for one in results if not unusable(one)]
    said = []
    if timed:
        least = min(int(one.case.parameters["depth"]) for one in timed)
        first = [one for one in timed if one.case.parameters["depth"] == least]
        first = [one for one in first if one.setting.id == timed[0].setting.id]
        first.sort(key=lambda one: one.case.parameters["task"] != "prompt")
        text = ", ".join(f"{one.case.parameters['task']} {one.figure:,.1f} tok/s" for one in first)
        shares = [one.figure / one.bounds[0].figure for one in first if one.bounds and one.figure]
        of = f" ({share_text(shares[0])} of reading weights and cache at copy speed)" if shares else ""
        said.append(
            Conclusion(
                "best", f"{text[:1].upper()}{text[1:]}{of}.", tuple(subject_of(one.case, one.setting) for one in first)
            )
        )
    ran = [one for one in results if one.figure]  # also on a busy machine: how steps are computed is no figure
    by_setting = {one.setting.id: one for one in ran if one.case.parameters["task"] == "generation"}
    for setting, one in by_setting.items():
        if text := executed_text(one.prepared.detail):
            about = f"{setting}: " if len(by_setting) > 1 else ""
            said.append(Conclusion("use", f"{about}{text}", (subject_of(one.case, one.setting),)))
    return said


def executed_text(detail: dict[str, Any]) -> str:
    """Say how steps were computed, and why not faster; empty where it is not known."""
    how = detail.get("executed")
    if not how:
        return ""
    captured = f"{count_text(how['captures'], 'captured graph')} with {count_text(how['replays'], 'replay')}"
    why = f" ({'; '.join(how['why_not_captured'])})" if how["why_not_captured"] else ""
    recorded = "recorded in C" if how["accelerated"] else f"recorded in Python ({how['why_not_accelerated']})"
    text = (
        f"Executor {how['executor']}: {count_text(how['plans'], 'plan')}, {captured}{why}; operations are {recorded}."
    )
    if "record_ms" in detail:
        text += f" On the CPU a step takes {detail['record_ms']:.2f} ms to record, {detail['hand_over_ms']:.2f} ms to "
        text += "hand over."
    return text


class _ModelSession(CallSession):
    """Keeps what a generation must read, for the bound."""

    def __init__(self, setting: Setting, torch: Torch, stop: Stop, read: dict[str, tuple[float, int]]) -> None:
        without = {"TRITON_INTERPRET": None}  # it would be timed
        super().__init__("mlx", msgspec.structs.replace(setting, env={**without, **setting.env}), torch, stop)
        self._read = read

    def prepare(self, case: Case) -> Prepared:
        """Make a case ready."""
        found = super().prepare(case)
        detail = dict(found.detail)
        versions = {**found.subject.versions, **detail.pop("versions", {})}
        if (copy := detail.get("copy_gb_s")) and detail.get("weight_bytes") and "cache_bytes" in detail:
            self._read[case.id] = copy, detail["weight_bytes"] + detail["cache_bytes"]
        subject = msgspec.structs.replace(found.subject, versions=versions)
        return msgspec.structs.replace(found, detail=detail, subject=subject)
