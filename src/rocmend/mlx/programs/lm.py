"""A program of mlx_lm's, at a terminal.

    python -m rocmend.mlx -m rocmend.mlx.programs.lm [--memory-limit=BYTES] PROGRAM [ARGUMENT]...

The program is mlx_lm's own. Its usage names the command that was typed, and Ctrl-C, or the end of what is typed into a
conversation, ends it with a line instead of a traceback; so does a lack of memory, with the numbers.
"""

from __future__ import annotations

import importlib
import sys

from rocmend.core.units import size_text

__all__ = ["main"]

SHORT = ("out of memory", "can't allocate memory")
"""What torch's allocators say."""
COMMANDS = {"server": "serve"}
"""Commands of ``rocmend mlx`` that have another name than the program."""


def main() -> int:
    """Run the program; leave as it leaves.

    Returns:
        130 where it was interrupted, 1 where memory did not suffice, 0 at its end.
    """
    program, *arguments = sys.argv[1:]
    limit = 0
    if program.startswith("--memory-limit="):
        limit = int(program.partition("=")[2])
        program, *arguments = arguments
    sys.argv = [f"rocmend mlx {COMMANDS.get(program, program)}", *arguments]
    try:
        if limit:
            from rocmend.mlx import memory

            memory.cap(limit)
        importlib.import_module(f"mlx_lm.{program}").main()
    except KeyboardInterrupt:
        sys.stderr.write("\nInterrupted.\n")
        return 130
    except EOFError:
        if program != "chat":
            raise
        sys.stdout.write("\n")
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not any(text in str(error) for text in SHORT):
            raise
        sys.stderr.write(f"\n{_short_of_memory(error, limit)}\n")
        return 1
    return 0


def _short_of_memory(error: BaseException, limit: int) -> str:
    """Return what a person needs to know of an error of an allocator's."""
    from rocmend.mlx import memory

    said = str(error).split(" If reserved but unallocated")[0] or "memory could not be allocated."  # torch's advice
    numbers = f"{size_text(memory.active())} are in use, {size_text(memory.peak())} were at most"
    allowed = f"; --memory-limit allows {size_text(limit)}" if limit else ""
    return (
        f"rocmend mlx: the memory does not suffice: {said}\n"
        f"{numbers}{allowed}. Take a shorter context (--max-kv-size), a quantized cache (--kv-bits 8) or a model with "
        "fewer bits."
    )


if __name__ == "__main__":
    sys.exit(main())
