"""The networks that are measured: what there is, and what each is made from.

``CATALOGUE`` needs no torch. A network's module has ``own(**options)``, which makes it in plain torch, ``inputs(batch,
generator, **options)``, and ``library(**options)`` where a package has the same network. Weights are random: nothing is
downloaded. All of it runs in the child: standard library and torch, and a package that is there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

INFERENCE, TRAINING = "inference", "training"


class Network(NamedTuple):
    """A network.

    Attributes:
        title: What it is, in a table.
        module: Module of this package.
        unit: Of its speed: ``img/s``, ``seq/s``, ``tok/s``.
        depth: Matrix products and convolutions one after another; rounding adds up over them.
        options: What the module makes it from.
        tiny: Options of a version that runs in a moment, to try a command.
        items: Option that holds how many items of ``unit`` a sample has; empty for one.
        images: Its inputs are images: their memory layout can be chosen, and convolutions are searched for at first.
        kinks: Its gradient jumps: it has ReLUs.
        trains: It has a training step.
        batch: Samples of a run where nothing else is asked for; 0 for the preset's.
    """

    title: str
    module: str
    unit: str
    depth: int
    options: dict[str, Any]
    tiny: dict[str, Any]
    items: str = ""
    images: bool = False
    kinks: bool = False
    trains: bool = True
    batch: int = 0


_RESNET = {"image": 224, "width": 64, "classes": 1000}
_TINY_RESNET = {"image": 64, "width": 8, "classes": 10, "blocks": (1, 1, 1, 1)}
_BERT = {"vocabulary": 30522, "hidden": 768, "layers": 12, "heads": 12, "feedforward": 3072, "positions": 512}
_TINY_BERT = {"vocabulary": 100, "hidden": 32, "layers": 2, "heads": 2, "feedforward": 64, "sequence": 16}
_LLM = {
    "vocabulary": 151936, "hidden": 1024, "layers": 28, "heads": 16, "key_heads": 8, "head_dim": 128,
    "feedforward": 3072,
}  # fmt: skip
_TINY_LLM = {
    "vocabulary": 100, "hidden": 32, "layers": 2, "heads": 4, "key_heads": 2, "head_dim": 16, "feedforward": 64,
}  # fmt: skip

CATALOGUE = {
    "resnet-18": Network(
        "ResNet-18", "resnet", "img/s", 18, _RESNET | {"blocks": (2, 2, 2, 2), "bottleneck": False},
        _TINY_RESNET, images=True, kinks=True,
    ),
    "resnet-50": Network(
        "ResNet-50", "resnet", "img/s", 50, _RESNET | {"blocks": (3, 4, 6, 3), "bottleneck": True},
        _TINY_RESNET, images=True, kinks=True,
    ),
    "vit-b-16": Network(
        "ViT-B/16", "vit", "img/s", 74,
        {"image": 224, "patch": 16, "hidden": 768, "layers": 12, "heads": 12, "feedforward": 3072, "classes": 1000},
        {"image": 32, "patch": 8, "hidden": 32, "layers": 2, "heads": 2, "feedforward": 64, "classes": 10}, images=True,
    ),
    "bert-base-128": Network("BERT-base 128", "bert", "seq/s", 73, _BERT | {"sequence": 128}, _TINY_BERT),
    "bert-base-512": Network("BERT-base 512", "bert", "seq/s", 73, _BERT | {"sequence": 512}, _TINY_BERT),
    "unet-block": Network(
        "UNet block", "unet", "img/s", 32,
        {"size": 64, "channels": 320, "heads": 8, "context": 768, "tokens": 77, "time": 1280, "groups": 32},
        {"size": 8, "channels": 32, "heads": 2, "context": 16, "tokens": 5, "time": 32, "groups": 8}, images=True,
    ),
    "llm-prompt": Network(
        "LLM prompt", "llm", "tok/s", 197, _LLM | {"tokens": 512, "past": 0}, _TINY_LLM | {"tokens": 8},
        items="tokens", batch=1,
    ),
    "llm-decode": Network(
        "LLM decode", "llm", "tok/s", 197, _LLM | {"tokens": 1, "past": 512}, _TINY_LLM | {"past": 8},
        items="tokens", trains=False, batch=1,
    ),
}  # fmt: skip
"""The networks by name."""


def options_of(name: str, *, tiny: bool) -> dict[str, Any]:
    """Return what a network's module makes it from."""
    network = CATALOGUE[name]
    return {**network.options, **(network.tiny if tiny else {})}


def items_of(name: str, *, tiny: bool = False) -> int:
    """Return how many items of its unit a sample of a network has."""
    network = CATALOGUE[name]
    return int(options_of(name, tiny=tiny)[network.items]) if network.items else 1
