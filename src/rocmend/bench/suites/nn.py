"""Networks: inference and training steps, eager, compiled, in another memory layout."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rocmend.bench.calls import CallSession, Torch
from rocmend.bench.case import Case, Setting
from rocmend.bench.networks import CATALOGUE, INFERENCE, TRAINING, items_of, options_of
from rocmend.bench.session import Stop
from rocmend.bench.suite import Suite
from rocmend.runner.spec import Limits

EAGER = Setting("eager")
SETTINGS = {
    one.id: one
    for one in (
        EAGER,
        Setting("compile", options={"compile": True}, note="torch.compile, default mode"),
        Setting("channels-last", options={"channels_last": True}, note="images in the order height, width, channels"),
        Setting(
            "compile+channels-last", options={"compile": True, "channels_last": True}, note="torch.compile, that order"
        ),
    )
}
"""The settings by id."""

SEED = ("resnet-18", "resnet-50", "vit-b-16", "bert-base-128", "bert-base-512")
"""The networks that most tables of GPUs have, with a batch of 32 in float16."""
LIMITS = Limits(total_s=3600.0, silence_s=600.0)
"""A network's first run on a new GPU is a search for each convolution, or a compilation."""


SHORT = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}


class Preset(msgspec.Struct, frozen=True):
    """What is measured where nothing else is asked for.

    Attributes:
        networks: Their names.
        tasks: ``inference``, ``training``.
        batch: Samples of a run.
        dtypes: Their types.
        settings: Ids of ``SETTINGS``.
        tiny: Tiny versions, to try the command.
    """

    networks: tuple[str, ...]
    tasks: tuple[str, ...]
    batch: int
    dtypes: tuple[str, ...] = ("float16",)
    settings: tuple[str, ...] = ("eager",)
    tiny: bool = False


PRESETS = {
    "quick": Preset(("resnet-50", "bert-base-128"), (INFERENCE,), 4),
    "quick-cpu": Preset(("resnet-50", "bert-base-128"), (INFERENCE,), 1, ("float32",)),
    "seed": Preset(SEED, (INFERENCE,), 32),
    "full": Preset(tuple(CATALOGUE), (INFERENCE, TRAINING), 32, ("float16", "bfloat16"), tuple(SETTINGS)),
    "tiny": Preset(tuple(CATALOGUE), (INFERENCE, TRAINING), 4, ("float32",), tiny=True),
}
"""What is asked for by name; ``quick-cpu`` is ``quick`` where there is no GPU, whose 16-bit types are slow."""


def network_case(  # noqa: PLR0913  each of them is an option of the command
    name: str, task: str, dtype: str, batch: int, *, tiny: bool = False, definition: str = "auto"
) -> Case:
    """Return the case of a network.

    Args:
        name: One of ``CATALOGUE``.
        task: ``inference`` or ``training``.
        dtype: The weights' type in inference; autocast's in training.
        batch: Samples of a run.
        tiny: The tiny version.
        definition: ``auto`` takes a package's definition where it can be had, ``own`` always ours.
    """
    network = CATALOGUE[name]
    label = f"{name}-tiny" if tiny else name
    shape = {
        key: list(value) if isinstance(value, tuple) else value for key, value in options_of(name, tiny=tiny).items()
    }
    parameters = {"network": name, "task": task, "dtype": dtype, "batch": batch, **shape}
    parameters |= {"tiny": True} if tiny else {}
    parameters |= {"definition": definition} if definition != "auto" else {}
    work = batch * items_of(name, tiny=tiny)
    title = f"{'Tiny ' if tiny else ''}{network.title} {SHORT[dtype]} b{batch}{'' if task == INFERENCE else f' {task}'}"
    return Case(f"nn/{label}/{task}/{dtype}/b{batch}", "nn", parameters, network.unit, float(work), title)


def network_cases(  # noqa: PLR0913  each of them is an option of the command  # noqa: PLR0913  each of them is an option of the command
    networks: Sequence[str],
    tasks: Sequence[str],
    dtypes: Sequence[str],
    batch: int,
    *,
    own_batch: bool = False,
    tiny: bool = False,
    definition: str = "auto",
) -> list[Case]:
    """Return the cases of networks; a task that a network does not have is left out.

    Args:
        networks: Their names.
        tasks: The tasks.
        dtypes: The types.
        batch: Samples of a run.
        own_batch: A network that has a batch of its own (a language model's 1) keeps it.
        tiny: Their tiny versions.
        definition: See ``network_case``.
    """
    return [
        network_case(
            name, task, dtype, (own_batch and CATALOGUE[name].batch) or batch, tiny=tiny, definition=definition
        )
        for name in networks
        for task in tasks
        if task == INFERENCE or CATALOGUE[name].trains
        for dtype in dtypes
    ]


class Networks(Suite):
    """Given networks under given settings."""

    name = "nn"
    title = "Networks"

    def __init__(self, torch: Torch, cases: Sequence[Case], settings: Sequence[Setting] = (EAGER,)) -> None:
        self._torch, self._cases, self._settings = torch, list(cases), list(settings)

    def cases(self) -> list[Case]:
        """Return the networks."""
        return self._cases

    def settings(self) -> list[Setting]:
        """Return the settings."""
        return self._settings

    def more_settings(self) -> list[Setting]:
        """Return those that the preset does not have."""
        return [setting for setting in SETTINGS.values() if setting not in self._settings]

    def applies(self, case: Case, setting: Setting) -> str:
        """Say that a layout of images is nothing to a network without images."""
        if setting.options.get("channels_last") and not CATALOGUE[case.parameters["network"]].images:
            return "it has no images, whose layout this is"
        return ""

    def open(self, setting: Setting, stop: Stop) -> CallSession:
        """Start a process."""
        return CallSession(self.name, setting, self._torch, stop)
