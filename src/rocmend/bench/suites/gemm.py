"""Matrix products under the libraries' settings."""

from __future__ import annotations

from collections.abc import Sequence

from rocmend.bench.calls import CallSession, Torch
from rocmend.bench.case import Case, Setting
from rocmend.bench.session import Stop
from rocmend.bench.suite import Suite


def product(shape: tuple[int, int, int], dtype: str, *, layout: str = "nn", batch: int = 1) -> Case:
    """Return the case of a product of ``[m, k]`` and ``[k, n]``; shape is m, n, k."""
    m, n, k = shape
    text = f"{m}x{n}x{k}" if batch == 1 else f"{batch}x{m}x{n}x{k}"
    parameters = {"m": m, "n": n, "k": k, "batch": batch, "dtype": dtype, "layout": layout}
    return Case(f"gemm/{dtype}/{text}/{layout}", "gemm", parameters, "TFLOPS", 2.0 * batch * m * n * k)


class Gemm(Suite):
    """Products of given shapes and dtypes under given settings."""

    name = "gemm"
    title = "Matrix products"

    def __init__(self, torch: Torch, cases: Sequence[Case], settings: Sequence[Setting]) -> None:
        self._torch, self._cases, self._settings = torch, list(cases), list(settings)

    def cases(self) -> list[Case]:
        """Return the products."""
        return self._cases

    def settings(self) -> list[Setting]:
        """Return the settings."""
        return self._settings

    def open(self, setting: Setting, stop: Stop) -> CallSession:
        """Start a process with the setting's environment."""
        return CallSession(self.name, setting, self._torch, stop)
