"""The program: ``rocmend``, and ``python -m rocmend``. It imports little before Ctrl-C can end it in one word."""

import os
import sys


def main() -> None:
    """Run the program and exit."""
    try:
        from rocmend.cli.main import main as run

        run()
    except KeyboardInterrupt:  # in an import, before the program takes care of it itself
        os.write(2, b"Interrupted.\n")
        sys.exit(130)


if __name__ == "__main__":
    # -m puts the working folder first, which may be somebody's project with a click.py of its own in it
    _own = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # noqa: PTH120  pathlib takes its time to be imported
    if not sys.flags.safe_path and sys.path and os.path.realpath(sys.path[0] or ".") != _own:
        del sys.path[0]

    main()
