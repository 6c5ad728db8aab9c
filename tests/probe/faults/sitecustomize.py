"""Probes that go wrong in every way; Python imports this by itself in children whose PYTHONPATH names this folder."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from rocmend.probe.case import Case, Context
from rocmend.probe.registry import Family, registry
from rocmend.runner import torch_device

registry.load()
_start = Path(os.environ.get("ROCMEND_TEST_COUNT", "/nowhere")) / "device-hangs"
_device = torch_device.device_of


def _used(asked: str) -> Any:
    """Hang where the device is used for the first time, once a file says so."""
    if _start.exists():
        time.sleep(600)
    return _device(asked)


if __name__ == "sitecustomize":  # in children alone
    torch_device.device_of = _used
family = Family("faults", tags=("batchnorm",))
FLOAT = ("float32",)


def _doubled(x: Any) -> Any:
    return x * 2


@family.probe("fault-none", "nothing goes wrong", FLOAT)
def none(ctx: Context) -> Case:
    return Case(_doubled, (ctx.randn(100),))


@family.probe("fault-wrong", "one element is wrong", FLOAT)
def wrong(ctx: Context) -> Case:
    def call(x: Any) -> Any:
        result = x * 2
        result[37] += 1
        return result

    return Case(call, (ctx.randn(100),), reference=_doubled)


@family.probe("fault-hang", "it waits for ever in its first run", FLOAT)
def hang(ctx: Context) -> Case:
    def call(x: Any) -> Any:
        time.sleep(600)
        return x * 2

    return Case(call, (ctx.randn(100),), reference=_doubled)


@family.probe("fault-segfault", "it touches memory that is not mapped", FLOAT)
def segfault(ctx: Context) -> Case:
    def call(x: Any) -> Any:
        os.kill(os.getpid(), signal.SIGSEGV)
        return x

    return Case(call, (ctx.randn(100),), reference=_doubled)


@family.probe("fault-memory", "it asks for more memory than there is", FLOAT)
def memory(ctx: Context) -> Case:
    def call(x: Any) -> Any:
        import torch

        return x + torch.empty(1 << 50)[:100]

    return Case(call, (ctx.randn(100),), reference=_doubled)


def _changing(change: Any) -> Case:
    """Return a case that is right, and leaves its process changed."""

    def call(x: Any) -> Any:
        change()
        return x * 2

    return Case(call, reference=_doubled)


@family.probe("state-a-settings", "it leaves another default dtype, a variable and another number of threads", FLOAT)
def settings(ctx: Context) -> Case:
    import torch

    def change() -> None:
        torch.set_default_dtype(torch.float64)
        os.environ["ROCMEND_TEST_LEFT"] = "1"
        torch.set_num_threads(torch.get_num_threads() + 1)

    case = _changing(change)
    case.inputs = (ctx.randn(100),)
    return case


@family.probe("state-b-seed", "it leaves its seeds used up", FLOAT)
def seed(ctx: Context) -> Case:
    import random

    import torch

    case = _changing(lambda: (random.random(), torch.randn(7)))  # noqa: S311  not for secrets
    case.inputs = (ctx.randn(100),)
    return case


@family.probe("state-c-fresh", "it fails where something is left of the others", FLOAT)
def fresh(ctx: Context) -> Case:
    import random

    import torch

    def call(x: Any) -> Any:
        left = os.environ.get("ROCMEND_TEST_LEFT"), torch.get_default_dtype(), torch.initial_seed()
        if left != (None, torch.float32, 20_260_101):
            raise ValueError(left)
        return x * 2

    if random.random() != random.Random(20_260_101).random():  # noqa: S311  not for secrets
        raise ValueError("the seed is another")
    return Case(call, (ctx.randn(100),), reference=_doubled)


@family.probe("order-a", "it leaves a change that nobody looks for", FLOAT)
def order_a(ctx: Context) -> Case:
    import torch

    case = _changing(lambda: setattr(torch, "rocmend_test_order", 1))
    case.inputs = (ctx.randn(100),)
    return case


@family.probe("order-b", "it fails after the other", FLOAT)
def order_b(ctx: Context) -> Case:
    def call(x: Any) -> Any:
        import torch

        return x * (3 if hasattr(torch, "rocmend_test_order") else 2)

    return Case(call, (ctx.randn(100),), reference=_doubled)


@family.probe("memory-large", "it needs 64 MiB", FLOAT)
def large(ctx: Context) -> Case:
    def call(x: Any) -> Any:
        import torch

        return x + torch.ones(16 << 20).sum() / (16 << 20)

    return Case(call, (ctx.randn(100),), reference=lambda x: x + 1)


@family.probe("memory-small", "it needs next to nothing", FLOAT)
def small(ctx: Context) -> Case:
    return Case(_doubled, (ctx.randn(100),))


@family.probe("fault-counted", "it notes each start", FLOAT)
def counted(ctx: Context) -> Case:
    folder = os.environ.get("ROCMEND_TEST_COUNT")
    if folder:
        (Path(folder) / str(os.getpid())).touch()
    return Case(_doubled, (ctx.randn(100),))


@family.probe("test-wait", "it says that it is there, and waits", FLOAT)
def wait(ctx: Context) -> Case:
    def call(x: Any) -> Any:
        (Path(os.environ["ROCMEND_TEST_COUNT"]) / f"waits-{os.getpid()}").touch()
        time.sleep(600)
        return x

    return Case(call, (ctx.randn(100),), reference=_doubled)


@family.probe("start-a", "it passes, changes a setting, and the device hangs from then on", FLOAT)
def start_a(ctx: Context) -> Case:
    import torch

    def change() -> None:
        _start.touch()
        torch.set_num_threads(torch.get_num_threads() + 1)

    case = _changing(change)
    case.inputs = (ctx.randn(100),)
    return case


@family.probe("start-b", "nothing goes wrong in it", FLOAT)
def start_b(ctx: Context) -> Case:
    return Case(_doubled, (ctx.randn(100),))
