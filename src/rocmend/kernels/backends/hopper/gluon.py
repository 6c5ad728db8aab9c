"""Where kernels in Gluon are taken: one rule for all of them."""

from __future__ import annotations

from rocmend.kernels import backends
from rocmend.kernels.op import first_reason
from rocmend.kernels.target import Target


def rejects_target(target: Target) -> str | None:
    """Say why a kernel in Gluon is not taken on a target.

    They are of the Triton release that they were measured with, for the multiprocessors they were measured on.
    """
    return first_reason(
        (target.vendor == "nvidia" and target.generation // 10 == 9, f"it is for Hopper (sm90), not {target.name}"),
        (backends.MEASURED, "it is written for Triton 3.6: Gluon changes from one release to the next"),
    )
