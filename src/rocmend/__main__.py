"""``python -m rocmend`` is ``rocmend``."""

import sys
from pathlib import Path

if __name__ == "__main__":
    # -m puts the working folder first, which may be somebody's project with a click.py of its own in it
    if (
        not sys.flags.safe_path
        and sys.path
        and Path(sys.path[0] or ".").resolve() != Path(__file__).resolve().parents[1]
    ):
        del sys.path[0]

    from rocmend.cli.main import main

    main()
