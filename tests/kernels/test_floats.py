"""What ops of floating types declare alike."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from rocmend.kernels.common import floats
from rocmend.kernels.target import by_name


class Problem(NamedTuple):
    """Rows of a type."""

    dtype: str = "bfloat16"
    columns: int = 64
    backward: bool = False


ANY = by_name("gfx1151")


def test_a_type_that_kernels_do_not_take_is_named() -> None:
    assert floats.rejects_dtype(Problem(), ANY) is None
    for rejects in (floats.rejects_dtype, floats.rejects_forward):
        assert rejects(Problem("float64"), ANY) == "the kernel takes float32, float16, bfloat16, not float64"
    assert "float64" in str(floats.rejects_backward(Problem("float64", backward=True), ANY))
    assert [floats.bytes_of(name) for name in ("float32", "float16", "bfloat16", "float64")] == [4, 2, 2, 8]


def test_gradients_have_kernels_and_references_of_their_own() -> None:
    forward, backward = floats.references("run", "run_backward")
    for problem, takes, rejects in (
        (Problem(), (forward.rejects, floats.rejects_forward), (backward.rejects, floats.rejects_backward)),
        (
            Problem(backward=True),
            (backward.rejects, floats.rejects_backward),
            (forward.rejects, floats.rejects_forward),
        ),
    ):
        assert [one(problem, ANY) for one in takes] == [None, None]
        assert all("gradients" in str(one(problem, ANY)) for one in rejects)
    assert (forward.name, backward.run) == ("torch", "reference:run_backward")


@pytest.mark.parametrize(("target", "most"), [("gfx1151", 16384), ("gfx942", 16384), ("gfx906", 8192)])
def test_gradients_of_rows_that_registers_do_not_hold_have_no_kernel(target: str, most: int) -> None:
    rows = Problem(columns=most, backward=True)
    assert floats.rejects_held_backward(rows, by_name(target)) is None
    assert "does not fit" in str(floats.rejects_held_backward(rows._replace(columns=most + 1), by_name(target)))
    assert "computes gradients" in str(floats.rejects_held_backward(Problem(columns=most + 1), by_name(target)))


def test_lengths_of_rows_have_names() -> None:
    lengths = (1, 512, 513, 4096, 4097, 16384, 16385)
    assert [floats.width_class(n) for n in lengths] == ["short"] * 2 + ["middle"] * 2 + ["long"] * 2 + ["split"]
    assert floats.width_class(16385, held=32768) == "long"
