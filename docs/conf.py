"""Sphinx configuration; the reference pages are generated before each build."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from generate import generate  # type: ignore[import-not-found]  # stands beside this file

from rocmend import __version__

project = "rocmend"
author = "the rocmend authors"
copyright = "2026, the rocmend authors"
release = __version__
extensions = ["myst_parser"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"rocmend {__version__}"
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

generate(Path(__file__).parent / "reference" / "generated")
