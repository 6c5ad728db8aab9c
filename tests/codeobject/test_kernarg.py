"""Filling a kernarg segment from a code object's metadata."""

from __future__ import annotations

import msgspec
import pytest

from rocmend.codeobject.kernarg import Argument, Kernarg, Launch, pack, read_kernarg, read_kernargs
from rocmend.core.errors import DataError, UsageError

LAUNCH = Launch((4, 2, 1), (64, 2, 1), 1024)
HIDDEN = (
    Argument(40, 4, "hidden_block_count_x"),
    Argument(44, 4, "hidden_block_count_y"),
    Argument(52, 2, "hidden_group_size_x"),
    Argument(54, 2, "hidden_group_size_y"),
    Argument(58, 2, "hidden_remainder_x"),
    Argument(64, 2, "hidden_grid_dims"),
    Argument(72, 8, "hidden_hostcall_buffer"),
    Argument(80, 4, "hidden_dynamic_lds_size"),
)
SEGMENT = Kernarg(
    "k",
    size=96,
    arguments=(Argument(0, 8, "global_buffer"), Argument(8, 4, "by_value"), Argument(16, 16, "by_value"), *HIDDEN),
)


def test_values_lie_where_the_metadata_says() -> None:
    made = pack(SEGMENT, [0x1122334455667788, -2, bytes(range(16))], LAUNCH)
    assert made[:8] == bytes.fromhex("8877665544332211")
    assert made[8:12] == b"\xfe\xff\xff\xff"
    assert made[16:32] == bytes(range(16))
    assert len(made) == 96


def test_hidden_arguments_describe_the_launch_and_lead_nowhere() -> None:
    made = pack(SEGMENT, [0, 0, bytes(16)], LAUNCH)

    def at(offset: int, size: int) -> int:
        return int.from_bytes(made[offset : offset + size], "little")

    assert [at(40, 4), at(44, 4), at(52, 2), at(54, 2), at(58, 2), at(64, 2)] == [4, 2, 64, 2, 0, 2]
    assert at(72, 8) == 0
    assert at(80, 4) == 1024


@pytest.mark.parametrize(
    "values", [[], [0, 0], [0, 1 << 32, bytes(16)], [0, 0, bytes(15)], [-(1 << 63) - 1, 0, bytes(16)]]
)
def test_values_that_are_not_the_kernels(values: list[int | bytes]) -> None:
    with pytest.raises(UsageError):
        pack(SEGMENT, values, LAUNCH)


@pytest.mark.parametrize(
    "argument",
    [Argument(92, 8, "global_buffer"), Argument(-8, 8, "global_buffer"), Argument(0, -1, "global_buffer"),
     Argument(0, 1 << 40, "hidden_none"), Argument(96, 1, "hidden_heap_v1")],
)  # fmt: skip
def test_metadata_that_places_an_argument_outside(argument: Argument) -> None:
    wrong = msgspec.structs.replace(SEGMENT, arguments=(argument,))
    with pytest.raises(DataError):
        pack(wrong, [] if argument.hidden else [0], LAUNCH)


def test_a_segment_that_no_driver_takes() -> None:
    with pytest.raises(DataError, match="states a kernarg segment"):
        pack(Kernarg("k", size=1 << 40), [], LAUNCH)


def test_what_is_no_code_object() -> None:
    with pytest.raises(DataError):
        read_kernargs(b"\x7fELF")
    with pytest.raises(DataError):
        read_kernarg(b"", "k")
