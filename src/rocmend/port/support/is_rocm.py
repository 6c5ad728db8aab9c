"""Whether the installed PyTorch is built for ROCm.

PyTorch is asked where it is imported already, and read without being imported where it is not, so that this module can
be imported before the environment that PyTorch reads is set, and where there is no PyTorch.
"""

import importlib.util
import pathlib
import re
import sys


def _is_rocm() -> bool:
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "version"):
        return getattr(torch.version, "hip", None) is not None
    try:
        found = importlib.util.find_spec("torch")
        if found is None or found.origin is None:
            return False
        text = pathlib.Path(found.origin).with_name("version.py").read_text(encoding="utf-8")
    except (ImportError, OSError, ValueError):
        return False
    return re.search(r"^hip\b[^=\n]*=[ \t]*[\"']", text, re.MULTILINE) is not None


is_rocm = _is_rocm()
