"""``python -m rocmend.mlx -m rocmend.mlx.programs.lm PROGRAM [ARGUMENT]...``: a program of mlx_lm's, at a terminal.

The program is mlx_lm's own. Its usage names the command that was typed, and Ctrl-C, or the end of what is typed into a
conversation, ends it with a line instead of a traceback.
"""

from __future__ import annotations

import importlib
import sys

__all__ = ["main"]

COMMANDS = {"server": "serve"}
"""Commands of ``rocmend mlx`` that have another name than the program."""


def main() -> int:
    """Run the program; leave as it leaves.

    Returns:
        130 where it was interrupted, 0 at its end.
    """
    program, *arguments = sys.argv[1:]
    sys.argv = [f"rocmend mlx {COMMANDS.get(program, program)}", *arguments]
    try:
        importlib.import_module(f"mlx_lm.{program}").main()
    except KeyboardInterrupt:
        sys.stderr.write("\nInterrupted.\n")
        return 130
    except EOFError:
        if program != "chat":
            raise
        sys.stdout.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
