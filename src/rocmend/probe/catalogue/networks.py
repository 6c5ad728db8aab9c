"""Small whole networks, built from a configuration with random weights."""

from __future__ import annotations

from rocmend.probe.case import Case, Context
from rocmend.probe.registry import FLOATS, Family

family = Family("networks", tags=("resnet", "miopen"), allowance="library", slow="miopen-find")
transformers = Family("networks", tags=("attention",), allowance="library")


@family.probe("resnet", "a residual network of convolutions and batch norm, in inference", FLOATS)
def resnet(ctx: Context) -> Case:
    from rocmend.probe.catalogue._models import ResNet

    return Case(ResNet().to(ctx.dtype).eval(), (ctx.randn(2, 3, 32, 32),), loosen=2)


@family.probe(
    "resnet-backward", "gradients of a residual network in training", ("float32",), tags=("training", "batchnorm")
)
def resnet_backward(ctx: Context) -> Case:
    from rocmend.probe.catalogue._models import ResNet

    return Case(ResNet().to(ctx.dtype).train(), (ctx.randn(4, 3, 32, 32),), backward=True, loosen=5)


@transformers.probe("vit", "a vision transformer", FLOATS)
def vit(ctx: Context) -> Case:
    from rocmend.probe.catalogue._models import VisionTransformer

    return Case(VisionTransformer().to(ctx.dtype).eval(), (ctx.randn(2, 3, 32, 32),), loosen=2)


@transformers.probe("bert", "a bidirectional text encoder", FLOATS)
def bert(ctx: Context) -> Case:
    from rocmend.probe.catalogue._models import TextEncoder

    return Case(TextEncoder().to(ctx.dtype).eval(), (ctx.integers(0, 211, 2, 29),), loosen=2)


@transformers.probe("llm", "a language model with rotary positions and grouped heads", FLOATS)
def llm(ctx: Context) -> Case:
    from rocmend.probe.catalogue._models import LanguageModel

    return Case(LanguageModel().to(ctx.dtype).eval(), (ctx.integers(0, 211, 2, 31),), loosen=2)


@transformers.probe(
    "llm-generate", "the same token by token with a cache gives the same logits", FLOATS, tags=("decode",)
)
def llm_generate(ctx: Context) -> Case:
    from rocmend.probe.catalogue._models import Decoding, LanguageModel

    return Case(Decoding(LanguageModel().to(ctx.dtype).eval()), (ctx.integers(0, 211, 2, 13),), loosen=2)


@transformers.probe("llm-backward", "gradients of a language model's loss", ("float32",), tags=("training",))
def llm_backward(ctx: Context) -> Case:
    from rocmend.probe.catalogue._models import LanguageModel

    return Case(LanguageModel().to(ctx.dtype), (ctx.integers(0, 211, 2, 15),), backward=True, loosen=5)
