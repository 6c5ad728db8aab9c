"""llama-bench's command line, spelt as the build itself says."""

from __future__ import annotations

from pathlib import Path

import msgspec

from rocmend.bench.llama.backends import Backend
from rocmend.bench.llama.build import Build, Help

ALL_LAYERS = "99"
_BATCH = 2048
"""llama-bench's logical batch size where its help gives none."""


class Chosen(msgspec.Struct, frozen=True, omit_defaults=True):
    """Options that settings differ in; empty leaves the build's default.

    Attributes:
        flash_attention: ``on``, ``off``.
        load: ``mmap``, ``none``.
        ubatch: Physical batch size; 0 for the build's default.
        threads: Processor threads; 0 for the build's default.
        batch: Logical batch size; 0 for the build's default.
        split_mode: How a model is spread over several GPUs: ``none``, ``layer``, ``row``.
        tensor_split: Share of each GPU: ``3/1``.
        main_gpu: Number of the GPU that has all without a split; counted among the devices that are used.
        calibrated: The batch sizes are those that were found to be the fastest.
    """

    flash_attention: str = ""
    load: str = ""
    ubatch: int = 0
    threads: int = 0
    batch: int = 0
    split_mode: str = ""
    tensor_split: str = ""
    main_gpu: str = ""
    calibrated: bool = False

    def label(self) -> str:
        """Return them in short: ``fa=on,ub=1024``."""
        parts = [f"fa={self.flash_attention}"] if self.flash_attention else []
        parts += [f"load={self.load}"] if self.load else []
        sizes = [f"ub={self.ubatch}"] if self.ubatch else []
        sizes += [f"b={self.batch}"] if self.batch else []
        parts += ["ub=auto"] if self.calibrated else sizes  # whatever is found: runs are compared by their settings
        split = (("sm", self.split_mode), ("ts", self.tensor_split), ("mg", self.main_gpu))
        parts += [f"{name}={value}" for name, value in split if value]
        parts += [f"t={self.threads}"] if self.threads else []
        return ",".join(parts)


def lacking(build: Build, chosen: Chosen, depth: int) -> str:
    """Say which option that is asked for the build does not have; empty where it has all."""
    has = build.help.has
    wanted = (
        (depth, ("-d", "--n-depth"), "the depth (-d)"),
        (chosen.flash_attention, ("-fa", "--flash-attn"), "flash attention (-fa)"),
        (chosen.load, ("-lm", "--load-mode", "-mmp", "--mmap"), "mmap"),
        (chosen.ubatch, ("-ub", "--ubatch-size"), "the physical batch size (-ub)"),
        (chosen.batch, ("-b", "--batch-size"), "the logical batch size (-b)"),
        *((value, names, what) for (names, what), value in _splits(chosen)),
    )
    for value, names, what in wanted:
        if value and not has(*names):
            return f"this build has no option for {what}"
    modes = build.help.choices(has("-sm", "--split-mode"))
    if chosen.split_mode and modes and chosen.split_mode not in modes:
        return f"this build has no split mode {chosen.split_mode}: it has {', '.join(modes)}"
    return ""


def _splits(chosen: Chosen) -> tuple[tuple[tuple[tuple[str, str], str], str], ...]:
    """Return the options that spread a model over several GPUs, with what is chosen."""
    return (
        ((("-sm", "--split-mode"), "spreading a model over GPUs (-sm)"), chosen.split_mode),
        ((("-ts", "--tensor-split"), "the share of each GPU (-ts)"), chosen.tensor_split),
        ((("-mg", "--main-gpu"), "the main GPU (-mg)"), chosen.main_gpu),
    )


def split_arguments(options: Help, chosen: Chosen, between: str = "/") -> list[str]:
    """Return the options that spread a model over several GPUs.

    Args:
        options: Those that the program has.
        chosen: What is chosen.
        between: What stands between shares of GPUs.
    """
    argv: list[str] = []
    for (names, _), value in _splits(chosen):
        if value and (name := options.has(*names)):
            argv += [name, value.replace("/", between)]
    return argv


def one_device(chosen: Chosen) -> Chosen:
    """Return options without those that spread a model over several GPUs."""
    return msgspec.structs.replace(chosen, split_mode="", tensor_split="", main_gpu="")


def output_format(build: Build) -> str:
    """Return the best format that the build can print its results in; empty where it lists none that can be read."""
    choices = build.help.choices("-o") or build.help.choices("--output")
    return next((name for name in ("jsonl", "json", "csv") if name in choices), "")


def arguments(build: Build, model: Path, backend: Backend, chosen: Chosen) -> list[str]:
    """Return the command without the test: program, model, device and options."""
    has = build.help.has
    argv = [str(build.path), has("-m", "--model"), str(model), "-o", output_format(build)]
    layers = has("-ngl", "--n-gpu-layers")
    if layers:
        argv += [layers, "0" if backend.on_cpu else ALL_LAYERS]
    if device := has("-dev", "--device"):
        argv += [device, backend.device]
    if name := has("-fa", "--flash-attn"):
        argv += [name, _flag(build, name, on=chosen.flash_attention == "on")] if chosen.flash_attention else []
    argv += _load(build, chosen.load)
    argv += batch_arguments(build.help, chosen)
    argv += split_arguments(build.help, chosen)
    if chosen.threads and (name := has("-t", "--threads")):
        argv += [name, str(chosen.threads)]
    return argv


def batch_arguments(options: Help, chosen: Chosen) -> list[str]:
    """Return the batch sizes that are chosen, as far as the program has options for them."""
    argv: list[str] = []
    if chosen.ubatch and (name := options.has("-ub", "--ubatch-size")):
        argv += [name, str(chosen.ubatch)]
    batch = chosen.batch or (chosen.ubatch if chosen.ubatch > default_batch(options) else 0)
    if batch and (name := options.has("-b", "--batch-size")):
        argv += [name, str(batch)]  # llama.cpp cuts the physical batch down to the logical one without a word
    return argv


def default_batch(options: Help) -> int:
    """Return the logical batch size that a program takes of itself."""
    return options.number("-b", "--batch-size") or _BATCH


def _flag(build: Build, name: str, *, on: bool) -> str:
    return ("on" if on else "off") if "on" in build.help.choices(name) else str(int(on))


def _load(build: Build, load: str) -> list[str]:
    if not load:
        return []
    if name := build.help.has("-lm", "--load-mode"):
        return [name, load]
    return [build.help.has("-mmp", "--mmap"), str(int(load == "mmap"))]


def test_arguments(build: Build, prompt: int, generate: int, depth: int) -> list[str]:
    """Return the options of one test."""
    has = build.help.has
    argv = [has("-p", "--n-prompt"), str(prompt), has("-n", "--n-gen"), str(generate)]
    return [*argv, has("-d", "--n-depth"), str(depth)] if depth else argv
