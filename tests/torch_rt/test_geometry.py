from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")

from rocmend.torch.geometry import ConvolutionError, blocks, make_geometry

pytestmark = pytest.mark.cpu


@given(st.lists(st.integers(0, 7), min_size=1, max_size=4), st.integers(1, 60))
def test_blocks_cover_every_position_once_and_stay_within_the_limit(shape: list[int], limit: int) -> None:
    seen: dict[tuple[int, ...], int] = {}
    for block in blocks(shape, limit):
        positions = [()]
        for box in block:
            positions = [(*head, at) for head in positions for at in range(box.start, box.stop)]  # type: ignore[misc]
        assert len(positions) <= limit
        for position in positions:
            seen[position] = seen.get(position, 0) + 1
    assert len(seen) == math.prod(shape)
    assert set(seen.values()) <= {1}


@pytest.mark.parametrize(
    ("stride", "padding", "groups"), [([0], [0], 1), ([1, 1, 1], [0], 1), ([1], [-1], 1), ([1], [0], 0)]
)
def test_parameters_out_of_range_are_refused(stride: list[int], padding: list[int], groups: int) -> None:
    with pytest.raises(ConvolutionError, match="convolution"):
        make_geometry(2, stride, padding, [1], [0], transposed=False, groups=groups)


def test_one_number_stands_for_all_axes() -> None:
    geometry = make_geometry(3, [2], [1], [1], [0], transposed=False, groups=1)
    assert geometry.stride == (2, 2, 2)
    assert geometry.output_size((8, 9, 10), (3, 3, 3)) == (4, 5, 5)
