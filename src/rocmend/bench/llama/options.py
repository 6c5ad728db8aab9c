"""llama-bench's command line, spelt as the build itself says."""

from __future__ import annotations

from pathlib import Path

import msgspec

from rocmend.bench.llama.backends import Backend
from rocmend.bench.llama.build import Build

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
        calibrated: The batch sizes are those that were found to be the fastest.
    """

    flash_attention: str = ""
    load: str = ""
    ubatch: int = 0
    threads: int = 0
    batch: int = 0
    calibrated: bool = False

    def label(self) -> str:
        """Return them in short: ``fa=on,ub=1024``."""
        parts = [f"fa={self.flash_attention}"] if self.flash_attention else []
        parts += [f"load={self.load}"] if self.load else []
        sizes = [f"ub={self.ubatch}"] if self.ubatch else []
        sizes += [f"b={self.batch}"] if self.batch else []
        parts += ["ub=auto"] if self.calibrated else sizes  # whatever is found: runs are compared by their settings
        parts += [f"t={self.threads}"] if self.threads else []
        return ",".join(parts)


def lacking(build: Build, chosen: Chosen, depth: int) -> str:
    """Say which option that is asked for the build does not have; empty where it has all."""
    has = build.help.has
    if depth and not has("-d", "--n-depth"):
        return "this build has no option for the depth (-d)"
    if chosen.flash_attention and not has("-fa", "--flash-attn"):
        return "this build has no option for flash attention (-fa)"
    if chosen.load and not has("-lm", "--load-mode", "-mmp", "--mmap"):
        return "this build has no option for mmap"
    if chosen.ubatch and not has("-ub", "--ubatch-size"):
        return "this build has no option for the physical batch size (-ub)"
    if chosen.batch and not has("-b", "--batch-size"):
        return "this build has no option for the logical batch size (-b)"
    return ""


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
    if chosen.ubatch:
        argv += [has("-ub", "--ubatch-size"), str(chosen.ubatch)]
    batch = chosen.batch or (chosen.ubatch if chosen.ubatch > default_batch(build) else 0)
    if batch and (name := has("-b", "--batch-size")):
        argv += [name, str(batch)]  # llama.cpp cuts the physical batch down to the logical one without a word
    if chosen.threads and (name := has("-t", "--threads")):
        argv += [name, str(chosen.threads)]
    return argv


def default_batch(build: Build) -> int:
    """Return the logical batch size that a build takes of itself."""
    return build.help.number("-b", "--batch-size") or _BATCH


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
