"""Whether a model fits, before it is loaded: what it needs, in parts, and the memory that there is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rocmend.core.errors import UsageError
from rocmend.core.host_memory import available_bytes
from rocmend.core.units import size_text
from rocmend.mlx.footprint import Footprint

if TYPE_CHECKING:
    from rocmend.machine.facts import Machine

CONTEXT = 4096
"""Tokens for whose cache there must be room where nothing says how many there will be."""
STEP = 2048
"""Tokens of a prompt that mlx_lm takes at once."""
_PROMPT_BYTES = 3
"""Of a prompt, for each of its tokens: an estimate, on the careful side."""


@dataclass(frozen=True)
class Room:
    """Memory that a model may take.

    Attributes:
        size: bytes.
        where: whose it is.
    """

    size: int
    where: str


@dataclass(frozen=True)
class Wish:
    """What is asked of a program, as far as its memory depends on it.

    Attributes:
        context: tokens that the cache must hold.
        step: tokens of a prompt that are taken at once.
        kv_bits: of an element of the cache; 0: it is not quantized.
        kv_group: elements of it that share a scale.
        limit: bytes that must not be exceeded; 0: none was given.
    """

    context: int = CONTEXT
    step: int = STEP
    kv_bits: int = 0
    kv_group: int = 64
    limit: int = 0


def wish_of(program: str, arguments: Sequence[str], *, context: int = 0, limit: int = 0) -> Wish:
    """Return what a program of mlx_lm's is asked for.

    Args:
        program: its name.
        arguments: its options.
        context: tokens, where they were given; 0: by ``--max-kv-size``, or by the prompt and ``--max-tokens``.
        limit: bytes; 0: none.
    """
    if not context:
        context = _number(arguments, "--max-kv-size")
    if not context and program == "generate":
        prompt = _option(arguments, "--prompt", "-p")
        context = len(prompt.encode()) // _PROMPT_BYTES + (_number(arguments, "--max-tokens", "-m") or 100)
    return Wish(
        context or CONTEXT,
        _number(arguments, "--prefill-step-size") or STEP,
        _number(arguments, "--kv-bits"),
        _number(arguments, "--kv-group-size") or 64,
        limit,
    )


def _option(arguments: Sequence[str], *names: str) -> str:
    """Return an option's value, the last where it is given twice; empty where it is not."""
    found = ""
    for place, argument in enumerate(arguments):
        name, given, value = argument.partition("=")
        if name in names:
            found = value if given else next(iter(arguments[place + 1 : place + 2]), "")
    return found


def _number(arguments: Sequence[str], *names: str) -> int:
    text = _option(arguments, *names)
    return int(text) if text.isascii() and text.isdigit() else 0


def free_room(device: str) -> Room:
    """Return the memory that is free for a model."""
    free = available_bytes()
    if device != "cpu":
        import torch

        if torch.cuda.is_available():
            own, total = torch.cuda.mem_get_info()
            if not getattr(torch.cuda.get_device_properties(0), "is_integrated", False):
                return Room(own, "the GPU")
            from rocmend.machine.collect import open_machine, snapshot

            only = ("kfd", "drm", "memory", "amdgpu")
            return apu_room(snapshot(open_machine(None), name="this machine", only=only), own, total, free)
    return Room(free, "the machine")


def apu_room(machine: Machine, own: int, total: int, free: int) -> Room:
    """Return the memory that is free for a model on an APU.

    A HIP process gets the part of RAM that the firmware set aside for the GPU, or GTT, which is taken from the
    machine's own memory as it is used: only there the machine's free memory limits it too.

    Args:
        machine: facts about it.
        own: bytes that are free to the GPU, as the driver says.
        total: bytes that the GPU may use, as the driver says.
        free: bytes that are free to the machine.
    """
    for index in machine.indices("gpu"):
        if machine.value(f"gpu.{index}.is_apu") is not True:
            continue
        vram, gtt = (machine.value(f"gpu.{index}.{kind}_total_bytes") for kind in ("vram", "gtt"))
        if isinstance(vram, int) and isinstance(gtt, int) and abs(total - vram) < abs(total - gtt):
            return Room(own, f"the GPU, whose part of RAM the firmware set aside ({size_text(vram)})")
        if isinstance(gtt, int):
            where = f"the GPU, which shares the machine's (GTT, up to {size_text(gtt)})"
            return Room(min(own, free), where)
    return Room(min(own, free), "the GPU, which shares the machine's")


def check_fits(subject: str, model: Footprint, wish: Wish, room: Room) -> str:
    """Make sure that a model fits, and return a line about what it takes.

    Raises:
        UsageError: It does not.
    """
    parts = _parts(model, wish)
    needed = model.needed(wish.context, wish.step)
    limited = 0 < wish.limit < room.size
    size = wish.limit if limited else room.size
    if needed <= size:
        longest = model.longest(size, wish.step) if model.token else 0
        more = f"; up to {longest:,} tokens fit" if longest else ""
        return f"{parts} of {size_text(size)}{' (--memory-limit)' if limited else ''}{more}"
    there = (
        f"the limit is {size_text(size)}" if limited else f"{size_text(size)} of the memory of {room.where} are free"
    )
    longest = model.longest(size, wish.step) if model.token else 0
    steps = [] if not longest else [f"Take a context of at most {longest:,} tokens (--context, or --max-kv-size)."]
    steps.append(
        "Raise the limit, or take a model with fewer bits (`rocmend mlx run -m mlx_lm convert -q`)."
        if limited
        else "Free memory, or take a model with fewer bits (`rocmend mlx run -m mlx_lm convert -q`)."
    )
    raise UsageError(
        "--memory-limit" if limited else "--model",
        f"{subject} needs {size_text(needed)} ({parts}), and {there}.",
        next_step=" ".join(steps),
    )


def _parts(model: Footprint, wish: Wish) -> str:
    if model.token is None:
        return f"weights {size_text(model.weights)}, activations and a short cache {size_text(model.activations(0, 0))}"
    return (
        f"weights {size_text(model.weights)}, "
        f"cache for {wish.context:,} tokens {size_text(model.cache(wish.context))}, "
        f"activations {size_text(model.activations(wish.context, wish.step))}"
    )
