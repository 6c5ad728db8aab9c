"""``python -m rocmend.mlx [-m MODULE | -c CODE | SCRIPT] ARGUMENTS…``: run a program on rocmend's ``mlx.core``."""

from __future__ import annotations

import os
import sys

from rocmend.mlx import launch

USAGE = """\
usage: python -m rocmend.mlx [--device cpu|gpu] [-m MODULE | -c CODE | SCRIPT] [ARGUMENT]...

Run a Python program with mlx.core replaced by rocmend's, for example:
  python -m rocmend.mlx -m mlx_lm generate --model FOLDER --prompt Hello
  python -m rocmend.mlx train.py --epochs 3
Python processes that the program starts have it too.
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the program; leave as it leaves.

    Returns:
        2 where the program could not be started, 0 at its end (a program that calls ``sys.exit`` leaves by itself).
    """
    rest = list(sys.argv[1:] if arguments is None else arguments)
    while rest and rest[0].startswith("--device"):
        option, given, device = rest.pop(0).partition("=")
        if not given:
            device = rest.pop(0) if rest else ""
        if option != "--device" or device not in ("cpu", "gpu"):
            sys.stderr.write(f"{USAGE}\npython -m rocmend.mlx: --device takes cpu or gpu, not {device!r}\n")
            return 2
        os.environ["ROCMEND_MLX_DEVICE"] = device
    if not rest or rest[0] in ("-h", "--help"):
        (sys.stdout if rest else sys.stderr).write(USAGE)
        return 0 if rest else 2
    first = rest.pop(0)
    kind, value = first[:2], first[2:]
    if kind in ("-m", "-c"):
        if not value:
            if not rest:
                sys.stderr.write(f"{USAGE}\npython -m rocmend.mlx: {kind} needs an argument\n")
                return 2
            value = rest.pop(0)
    elif first.startswith("-"):
        sys.stderr.write(f"{USAGE}\npython -m rocmend.mlx: there is no option {first}\n")
        return 2
    try:
        launch.prepare()
        if kind == "-m":
            launch.module(value, rest)
        elif kind == "-c":
            launch.code(value, rest)
        else:
            launch.script(first, rest)
    except launch.LaunchError as error:
        sys.stderr.write(f"python -m rocmend.mlx: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
