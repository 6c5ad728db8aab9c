"""Found before the compiled ``mlx.core`` by Python processes that a program under ``rocmend.mlx`` starts.

The folder two levels up stands on their ``PYTHONPATH``; ``mlx`` is a namespace package, so that ``mlx.nn`` and the rest
are found where they are installed. A Python that has no rocmend gets the ``mlx.core`` it has installed.
"""

import importlib
import sys
from pathlib import Path

try:
    from rocmend.mlx import activation
except ModuleNotFoundError as _error:
    if _error.name not in ("rocmend", "rocmend.mlx"):
        raise
    _root = Path(__file__).resolve().parents[2]
    sys.path[:] = [entry for entry in sys.path if not entry or Path(entry).resolve() != _root]
    importlib.invalidate_caches()
else:
    activation.install()
del sys.modules[__name__]
# The import system takes what stands in sys.modules at the end of this.
sys.modules[__name__] = importlib.import_module(__name__)
