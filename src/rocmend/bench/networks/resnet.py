"""ResNet (He et al., https://arxiv.org/abs/1512.03385), in the form that torchvision gave it: stride in the 3x3."""

from __future__ import annotations

import importlib
import re
from typing import Any

import torch
from torch import nn

from rocmend.bench.networks import options_of


def _normed(into: int, out: int, kernel: int, stride: int = 1) -> nn.Sequential:
    convolution = nn.Conv2d(into, out, kernel, stride, kernel // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(out))


class _Block(nn.Module):
    """Two 3x3 convolutions, or 1x1, 3x3 and 1x1, beside a shortcut."""

    def __init__(self, into: int, width: int, stride: int, *, bottleneck: bool) -> None:
        super().__init__()
        out = width * 4 if bottleneck else width
        shapes = [(into, width, 1, 1), (width, width, 3, stride), (width, out, 1, 1)]
        if not bottleneck:
            shapes = [(into, width, 3, stride), (width, out, 3, 1)]
        self.convolutions = nn.ModuleList(_normed(*shape) for shape in shapes)
        self.shortcut = _normed(into, out, 1, stride) if stride != 1 or into != out else nn.Identity()
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x
        for convolution in self.convolutions[:-1]:
            y = self.relu(convolution(y))
        y = self.convolutions[-1](y)
        y += self.shortcut(x)
        out: torch.Tensor = self.relu(y)
        return out


class ResNet(nn.Module):
    """Stem, four stages, mean, classes."""

    def __init__(self, blocks: tuple[int, ...], width: int, classes: int, *, bottleneck: bool) -> None:
        super().__init__()
        pool = nn.MaxPool2d(3, 2, 1)
        self.stem = nn.Sequential(nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(True), pool)
        stages: list[nn.Module] = []
        into = width
        for stage, count in enumerate(blocks):
            for number in range(count):
                stride = 2 if stage and not number else 1
                stages.append(_Block(into, width << stage, stride, bottleneck=bottleneck))
                into = (width << stage) * (4 if bottleneck else 1)
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(into, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits of images ``[b, 3, h, w]``."""
        x = self.stages(self.stem(x)).mean((2, 3))
        logits: torch.Tensor = self.head(x)
        return logits


def own(*, blocks: tuple[int, ...], width: int, classes: int, bottleneck: bool, **_: Any) -> nn.Module:
    """Make the network."""
    return ResNet(tuple(blocks), width, classes, bottleneck=bottleneck)


def library(*, bottleneck: bool, width: int, **_: Any) -> tuple[nn.Module, str]:
    """Make torchvision's or timm's."""
    if width != options_of("resnet-50", tiny=False)["width"]:
        raise ImportError("no package has the tiny version")
    name = "resnet50" if bottleneck else "resnet18"
    return packaged(name, name)


def packaged(torchvision: str, timm: str) -> tuple[nn.Module, str]:
    """Make a network of torchvision, or of timm, by the names that they give it.

    Raises:
        ImportError: Neither is there.
    """
    try:
        package: Any = importlib.import_module("torchvision")
    except ImportError:
        package = importlib.import_module("timm")
        return package.create_model(timm, pretrained=False), f"timm {package.__version__}"
    return getattr(package.models, torchvision)(weights=None), f"torchvision {package.__version__}"


def inputs(batch: int, generator: torch.Generator, *, image: int, **_: Any) -> tuple[torch.Tensor, ...]:
    """Draw images: noise over coarse patterns, so that they differ in more than noise."""
    coarse = torch.randn(batch, 3, 4, 4, generator=generator)
    wide = nn.functional.interpolate(coarse, size=(image, image), mode="bilinear")
    return (wide + 0.5 * torch.randn(batch, 3, image, image, generator=generator),)


def targets(batch: int, generator: torch.Generator, *, classes: int, **_: Any) -> torch.Tensor:
    """Draw classes."""
    return torch.randint(classes, (batch,), generator=generator)


def loss(logits: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
    """Return the cross entropy."""
    return nn.functional.cross_entropy(logits, classes)


_LAST = re.compile(r"(convolutions\.(?P<own>\d)\.1|bn(?P<theirs>\d))\.weight$")
_BRANCH = 0.2


@torch.no_grad()
def settle(network: nn.Module, *, bottleneck: bool, **_: Any) -> None:
    """Scale what each block adds, as trained networks do.

    With all norms at 1 the gradients of a fresh network grow from block to block, and rounding with them: no step could
    be compared.
    """
    last = 3 if bottleneck else 2
    for name, parameter in network.named_parameters():
        found = _LAST.search(name)
        if found and "." in name and (int(found["own"]) + 1 if found["own"] else int(found["theirs"])) == last:
            parameter.mul_(_BRANCH)
