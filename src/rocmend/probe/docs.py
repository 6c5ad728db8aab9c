"""The catalogue as rows, for the generated reference page and ``rocmend probe list``."""

from __future__ import annotations

import msgspec

from rocmend.probe.oracle import tolerance_of
from rocmend.probe.registry import probes


class ProbeRow(msgspec.Struct, frozen=True):
    """A probe as it is listed.

    Attributes:
        id: Its id.
        family: Its family.
        title: What it does.
        dtypes: Dtypes that it runs in.
        needs: What has to be there.
        tags: What it exercises.
        smoke: It belongs to the quick selection.
        tolerance: By dtype, before a probe's own factor; 0 is exact.
    """

    id: str
    family: str
    title: str
    dtypes: tuple[str, ...]
    needs: tuple[str, ...]
    tags: tuple[str, ...]
    smoke: bool
    tolerance: dict[str, float]


def probe_rows() -> list[ProbeRow]:
    """Return every probe of the catalogue, by family and id; torch is not needed for it."""
    return [
        ProbeRow(
            probe.id,
            probe.family,
            probe.title,
            probe.dtypes,
            probe.needs,
            probe.tags,
            probe.smoke,
            {dtype: tolerance_of(dtype) for dtype in probe.dtypes},
        )
        for probe in probes()
    ]
