"""Compile the kernels that a model needs on this GPU, so that no prompt waits for them.

    python -m rocmend.mlx -m rocmend.mlx.programs.warm --model FOLDER

Which kernels those are follows from the shapes: one token, few, and many at a time, in numbers that 16 divides or not,
behind short and long caches. The model is therefore run on prompts of such lengths. What is compiled stays in Triton's
cache, for other processes too.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Sequence
from typing import Any

__all__ = ["Compiled", "main", "warm"]

LENGTHS = (1, 7, 16, 33, 64, 129, 256, 500, 1024, 2047, 2300, 3000)
GENERATED = 6  # tokens behind each prompt: the first steps are planned, later ones captured


class Compiled:
    """Counts the kernels that Triton compiles. It is Triton's ``knobs.compilation.listener``.

    Attributes:
        count: kernels compiled so far.
    """

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, *, cache_hit: bool, **_: Any) -> None:
        """Note one kernel, compiled or found in the cache."""
        self.count += not cache_hit

    def install(self) -> Compiled:
        """Have Triton call this, if it can."""
        from triton import knobs

        if hasattr(knobs, "compilation") and hasattr(knobs.compilation, "listener"):
            knobs.compilation.listener = self
        return self


def warm(model: Any, vocabulary: int, lengths: Sequence[int], compiled: Compiled) -> tuple[float, float, int]:
    """Run a model on prompts of some lengths, twice, and say how far that is.

    Args:
        model: mlx_lm's.
        vocabulary: number of its tokens.
        lengths: of the prompts.
        compiled: counts kernels.

    Returns:
        Seconds of the first time and of the second, and how many kernels were compiled in the second.
    """
    mx: Any = importlib.import_module("mlx.core")
    generating: Any = importlib.import_module("mlx_lm.generate")
    seconds = []
    before = 0
    for turn in range(2):
        begin, before = time.perf_counter(), compiled.count
        for number, length in enumerate(lengths, 1):
            start, known = time.perf_counter(), compiled.count
            prompt = mx.array([place % vocabulary for place in range(length)])
            for token, _ in generating.generate_step(prompt, model, max_tokens=GENERATED):
                int(token)
            if not turn:
                sys.stderr.write(
                    f"{number} of {len(lengths)}: a prompt of {length} {'token' if length == 1 else 'tokens'}, "
                    f"{compiled.count - known} kernels compiled, {time.perf_counter() - start:.1f} s\n"
                )
                sys.stderr.flush()
        seconds.append(time.perf_counter() - begin)
    return seconds[0], seconds[1], compiled.count - before


def main() -> int:
    """Load a model, run it, and say what that took."""
    made = argparse.ArgumentParser(prog="rocmend mlx warm", description="Compile what a model needs.")
    made.add_argument("--model", required=True)
    made.add_argument("--longest", type=int, default=max(LENGTHS))
    asked = made.parse_args()
    from rocmend.mlx.programs.speed import load

    lengths = [length for length in LENGTHS if length <= asked.longest] or [max(1, asked.longest)]
    compiled = Compiled().install()
    try:
        model, config = load(asked.model)
        vocabulary = config.get("vocab_size")
        first, second, late = warm(model, vocabulary if isinstance(vocabulary, int) else 256, lengths, compiled)
    except KeyboardInterrupt:
        sys.stderr.write("\nInterrupted. What was compiled until now stays in the cache.\n")
        return 130
    sys.stdout.write(
        f"{compiled.count} kernels compiled. All {len(lengths)} prompts took {first:.1f} s, and {second:.1f} s the "
        f"second time{f', in which {late} more were compiled' if late else ''}.\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
