"""What tuning records are called, and which of them serve a look-up. Needs neither torch nor triton."""

from __future__ import annotations

from packaging.specifiers import SpecifierSet

from rocmend.kernels.target import Target
from rocmend.kernels.tuning import Asked, records
from rocmend.kernels.tuning.record import Record


def name_of(op: str, found: Record) -> str:
    """Return ``op/kernel/class@target`` of a record, with the versions of Triton that it is for."""
    return f"{op}/{found.kernel}/{found.shape_class}@{found.target}" + (f" {found.triton}" if found.triton else "")


def record_name(asked: Asked) -> str:
    """Return the name of the record that a look-up found."""
    for found in records(asked.op):
        if found.config is asked.config:
            return name_of(asked.op, found)
    return f"{asked.op}/{asked.kernel}/{asked.shape_class}"


def hidden_records(asked: Asked, target: Target, triton: str) -> list[Record]:
    """Return the records that would serve a look-up on a target if a more specific record did not hide them.

    Args:
        asked: The look-up.
        target: The target.
        triton: Version of Triton.
    """
    return [
        found
        for found in records(asked.op)
        if found.kernel == asked.kernel
        and found.config is not asked.config
        and found.shape_class in {asked.shape_class, "*"}
        and found.target in target.lookup
        and (not found.triton or SpecifierSet(found.triton).contains(triton, prereleases=True))
    ]
