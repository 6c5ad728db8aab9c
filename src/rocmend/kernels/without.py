"""Switch kernels off by name: to find the kernel that is at fault, or to see what a kernel is worth.

``ROCMEND_KERNELS_WITHOUT=gather_qmm.moe_gemv`` leaves a kernel out, with commas between several, and
``ROCMEND_KERNELS_WITHOUT=nvidia`` all those that only NVIDIA GPUs run: a model then takes what it takes on an AMD GPU.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator

from rocmend.kernels import backends, caches
from rocmend.kernels.op import Implementation

VARIABLE = "ROCMEND_KERNELS_WITHOUT"
log = logging.getLogger("rocmend.kernels")


def _names_in(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(",") if name.strip())


_names = _names_in(os.environ.get(VARIABLE, ""))
_unchecked = bool(_names)


def kernels(vendor: str | None = None) -> tuple[str, ...]:
    """List the kernels, as ``op.kernel``; of those that only GPUs of one vendor run, if a vendor is given."""
    from rocmend.kernels import registry

    return tuple(
        f"{op.name}.{kernel.name}"
        for op in registry.ops()
        for kernel in backends.known(op)
        if kernel.tier == "triton" and vendor in {None, kernel.vendor}
    )


def _check(names: frozenset[str]) -> None:
    """Report the names of no kernel, as nothing is switched off by them."""
    known = ("nvidia", *kernels()) if names else ()
    for name in sorted(names.difference(known)):
        log.warning("%s: no kernel is called %r; there are %s", VARIABLE, name, ", ".join(known))


def is_switched_off(op: str, kernel: Implementation) -> bool:
    """Return whether a kernel of an op is switched off."""
    global _unchecked  # noqa: PLW0603  names of the environment are checked once, when all ops can be loaded
    if _unchecked:
        _unchecked = False
        _check(_names)
    return kernel.tier == "triton" and not _names.isdisjoint((f"{op}.{kernel.name}", kernel.vendor))


@contextlib.contextmanager
def switched_off(*names: str) -> Iterator[None]:
    """Switch kernels off for a time, beside those that are switched off already."""
    global _names  # noqa: PLW0603  one setting for the process: implementations are selected deep inside ops
    _check(frozenset(names))
    before, _names = _names, _names.union(names)
    caches.forget()
    try:
        yield
    finally:
        _names = before
        caches.forget()
