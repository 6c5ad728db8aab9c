"""What the compatibility tables say: first what was true in February 2026, then what has changed."""

from __future__ import annotations

import pytest

from rocmend.core.gfx import generic_targets, targets
from rocmend.kb.load import Knowledge
from rocmend.kb.matrix import build_matrix

CELLS = [
    ("release", "ROCm 6.4.4", "gfx1151", "preview"),
    ("release", "ROCm 6.5.0rc (community)", "gfx1151", "experimental"),
    ("release", "ROCm 7.0.x", "gfx1151", "partial"),
    ("release", "ROCm 7.1.x", "gfx1151", "preview"),
    ("release", "ROCm 7.2.0", "gfx1151", "full"),
    ("release", "TheRock 7.11", "gfx1151", "preview"),
    ("release", "ROCm 7.14.0", "gfx1151", "full"),
    ("release", "ROCm 10.0", "gfx1151", "full"),
    ("release", "ROCm 6.2", "gfx1010", "none"),
    ("release", "TheRock (2026-08)", "gfx1010", "full"),
    ("release", "TheRock (2026-08)", "gfx1012", "experimental"),
    ("library", "rocBLAS", "gfx1151", "full"),
    ("library", "hipBLASLt", "gfx1151", "full"),
    ("library", "rocWMMA", "gfx1151", "full"),
    ("library", "AOTriton", "gfx1151", "experimental"),
    ("library", "MIOpen", "gfx1151", "partial"),
    ("library", "hipBLASLt", "gfx10-1-generic", "none"),
    ("library", "Triton 3.9.0", "gfx1010", "none"),
    ("library", "Triton 3.7.0", "gfx1010", "full"),
    ("pytorch-source", "pytorch.org rocm6.2", "gfx1151", "none"),
    ("pytorch-source", "pytorch.org rocm6.2, HSA_OVERRIDE_GFX_VERSION=11.0.0", "gfx1151", "override"),
    ("pytorch-source", "TheRock 7.11 (v2/gfx1151)", "gfx1151", "preview"),
    ("pytorch-source", "TheRock 7.11 (v2/gfx1151), hipBLASLt on", "gfx1151", "preview"),
    ("pytorch-source", "repo.radeon.com rocm-rel-7.1.1", "gfx1151", "partial"),
    ("pytorch-source", "TheRock multi-arch", "gfx1151", "full"),
    ("pytorch-source", "pytorch.org rocm7.1 and later", "gfx1151", "full"),
    ("pytorch-source", "pytorch.org rocm7.1 and later", "gfx1032", "none"),
]

NOTES = [
    ("pytorch-source", "TheRock 7.11 (v2/gfx1151)", "32.7 TFLOPS"),
    ("pytorch-source", "TheRock 7.11 (v2/gfx1151), hipBLASLt on", "27.2 TFLOPS"),
    ("pytorch-source", "pytorch.org rocm6.2", "invalid device function"),
    ("pytorch-source", "pytorch.org rocm6.2, HSA_OVERRIDE_GFX_VERSION=11.0.0", "25.6 TFLOPS"),
    ("release", "ROCm 7.1.x", "batch norm"),
    ("release", "ROCm 7.2.0", "counters"),
]


@pytest.mark.parametrize(("table", "row", "target", "state"), CELLS)
def test_cells(knowledge: Knowledge, table: str, row: str, target: str, state: str) -> None:
    cell = build_matrix(knowledge, table).cell(row, target)
    assert cell is not None
    assert cell.claims[0].state == state
    assert all(source.url or source.kind == "measurement" for source in cell.claims[0].sources)


@pytest.mark.parametrize(("table", "row", "words"), NOTES)
def test_notes_hold_the_figures_and_symptoms(knowledge: Knowledge, table: str, row: str, words: str) -> None:
    cell = build_matrix(knowledge, table).cell(row, "gfx1151")
    assert cell is not None
    assert words in cell.claims[0].note


def test_releases_stand_in_order_with_the_newest_last(knowledge: Knowledge) -> None:
    rows = [row for row in build_matrix(knowledge, "release").rows if row.startswith("ROCm")]
    assert rows.index("ROCm 6.4.4") < rows.index("ROCm 7.1.x") < rows.index("ROCm 7.14.0") < rows.index("ROCm 10.0")


@pytest.mark.parametrize("table", ["release", "library", "pytorch-source"])
def test_no_standing_claims_contradict_each_other_unseen(knowledge: Knowledge, table: str) -> None:
    """A cell on which two entries that stand disagree must be linked by them as a contradiction."""
    matrix = build_matrix(knowledge, table)
    for row, cells in matrix.cells.items():
        for target, cell in cells.items():
            if not cell.contradictory:
                continue
            ids = {claim.entry_id for claim in cell.claims if claim.stands}
            linked = {other for entry_id in ids for other in knowledge.entries[entry_id].links.contradicts}
            assert ids & linked, f"{row}, {target}"


def test_columns_are_targets(knowledge: Knowledge) -> None:
    known = {target.name for target in targets()} | set(generic_targets())
    for table in ("release", "library", "pytorch-source"):
        assert set(build_matrix(knowledge, table).targets) <= known
