"""``python -m rocmend`` is ``rocmend``."""

from rocmend.cli.main import main

if __name__ == "__main__":
    main()
