"""torch, imported when it is first used: the catalogue is listed without it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch as torch  # noqa: PLC0414  re-exported for the catalogue
else:

    class _Torch:
        """Stands for the torch module until one of its attributes is asked for."""

        def __getattr__(self, name: str) -> Any:
            import torch as real

            return getattr(real, name)

    torch = _Torch()

__all__ = ["torch"]
