"""Run a script or module with convolutions and attention routed: ``python -m rocmend.fallbacks script.py [args…]``."""

from __future__ import annotations

import argparse
import runpy
import sys
from contextlib import ExitStack
from pathlib import Path

from rocmend.core.errors import RocmendError
from rocmend.fallbacks import attend, conv, explain, safe_attention, safe_conv


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m rocmend.fallbacks",
        description="Run a Python program with convolutions (and attention) routed through paths that work here.",
    )
    parser.add_argument("--conv", choices=(*conv.MODES, "off"), default="auto", help="path of convolutions")
    parser.add_argument("--attention", choices=(*attend.MODES, "off"), default="off", help="tier of attention")
    parser.add_argument("--device", choices=("cuda", "cpu"), help="device type to route; the GPU where there is one")
    parser.add_argument("--explain", action="store_true", help="at the end, print to stderr what was chosen and why")
    parser.add_argument("-m", dest="module", action="store_true", help="the program is a module, not a file")
    parser.add_argument("program", help="script file or module name")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the program's own arguments")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run the program; leave as it leaves."""
    options = _parser().parse_args(arguments)
    if not options.module and not Path(options.program).exists():
        sys.stderr.write(f"python -m rocmend.fallbacks: there is no file {options.program}\n")
        return 2
    with ExitStack() as stack:
        try:
            if options.conv != "off":
                stack.enter_context(safe_conv(options.conv, device=options.device))
            if options.attention != "off":
                stack.enter_context(safe_attention(options.attention, device=options.device))
        except RocmendError as error:
            sys.stderr.write(f"{error}\n")
            return 2
        sys.argv = [options.program, *options.arguments]
        try:
            if options.module:
                runpy.run_module(options.program, run_name="__main__", alter_sys=True)
            else:
                sys.path[0] = str(Path(options.program).resolve().parent)
                runpy.run_path(options.program, run_name="__main__")
        finally:
            if options.explain:
                sys.stderr.write(explain() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
