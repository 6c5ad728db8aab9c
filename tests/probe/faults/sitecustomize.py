"""Probes that go wrong in every way; Python imports this by itself in children whose PYTHONPATH names this folder."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from rocmend.probe.case import Case, Context
from rocmend.probe.registry import Family, registry

registry.load()
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


@family.probe("fault-exit", "it ends the process with status 0", FLOAT)
def leave(ctx: Context) -> Case:
    def call(_: Any) -> Any:
        os._exit(0)

    return Case(call, (ctx.randn(100),), reference=_doubled)


@family.probe("fault-counted", "it notes each start", FLOAT)
def counted(ctx: Context) -> Case:
    folder = os.environ.get("ROCMEND_TEST_COUNT")
    if folder:
        (Path(folder) / str(os.getpid())).touch()
    return Case(_doubled, (ctx.randn(100),))
