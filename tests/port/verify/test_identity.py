"""Level 1: a port that is not the original without ROCm fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocmend.port.verify.ladder import verify
from rocmend.port.verify.records import Level, Outcome, Status

from .conftest import ORIGINAL, PORT, Ported


def identity(root: Path) -> Level:
    return verify(root, levels=["identity"]).levels[0]


def test_a_port_that_holds(total: Path) -> None:
    made = identity(total)
    assert made.status is Status.PASSED
    assert {one.subject: one.outcome for one in made.evidence} == {
        "src/total.cu": Outcome.HOLDS,
        "inverse.patch": Outcome.HOLDS,
    }


def test_a_port_that_changes_a_shared_line(ported: Ported) -> None:
    root = ported({"total.cu": ORIGINAL}, {"total.cu": PORT.replace(b"threadIdx.x == 0", b"threadIdx.x < 1")})
    made = identity(root)
    assert made.status is Status.FAILED
    (broken,) = made.broken
    assert broken.subject == "total.cu"
    assert "rocmend port undo" in broken.detail


def test_python_is_compared_as_a_tree(ported: Ported) -> None:
    before = b"import torch\n\nMODE = 'max-autotune'\n"
    good = b"import torch\n\nfrom pkg._rocm import is_rocm\n\nMODE = 'default' if is_rocm else 'max-autotune'\n"
    flag = b"is_rocm = False\n"
    root = ported({"pkg/__init__.py": b"", "pkg/m.py": before}, {"pkg/m.py": good, "pkg/_rocm.py": flag})
    made = identity(root)
    assert made.status is Status.PASSED, made.evidence
    assert next(one for one in made.evidence if one.subject == "pkg/_rocm.py").outcome is Outcome.NOTE
    (root / "pkg/m.py").write_bytes(good.replace(b"else 'max-autotune'", b"else 'reduce-overhead'"))
    (broken,) = identity(root).broken
    assert broken.detail.startswith("edited since the port")


def test_an_edit_after_the_port_is_told_and_the_patch_is_not_tried(total: Path) -> None:
    (total / "src/total.cu").write_bytes(PORT.replace(b"__shfl_down(value", b"__shfl_down( value"))
    made = identity(total)
    assert made.status is Status.PASSED
    assert any("edited since the port" in one.detail for one in made.evidence)
    assert any(one.subject == "inverse.patch" and one.outcome is Outcome.NOTE for one in made.evidence)


def test_a_file_that_is_gone(total: Path) -> None:
    (total / "src/total.cu").unlink()
    assert "missing now" in identity(total).broken[0].detail


@pytest.mark.parametrize("content", [b"garbage\n", b""])
def test_an_inverse_patch_that_is_not_the_way_back(content: bytes, total: Path) -> None:
    (total / ".rocmend/port/0001/inverse.patch").write_bytes(content)
    made = identity(total)
    assert made.status is Status.FAILED
    assert made.broken[0].subject in {"0001/inverse.patch", "src/total.cu"}


def test_line_ends_a_mark_and_no_last_line_end_come_back(ported: Ported) -> None:
    before = b"\xef\xbb\xbf" + ORIGINAL.replace(b"\n", b"\r\n") + b"// end"
    after = b"\xef\xbb\xbf" + PORT.replace(b"\n", b"\r\n") + b"// end"
    made = identity(ported({"a b/total.cu": before}, {"a b/total.cu": after}))
    assert made.status is Status.PASSED, made.evidence
