"""The plain read that stands beside kernels: it reads all that experts have, each once."""

from __future__ import annotations

from functools import reduce
from operator import xor
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from benchmarks.kernels import reading

from rocmend.kernels import executor
from rocmend.kernels.suite import Call
from rocmend.kernels.target import by_name

pytestmark = pytest.mark.cpu


def _all(*tensors: Any) -> int:
    return reduce(xor, (value for one in tensors for value in one.flatten().tolist()), 0)


@pytest.mark.parametrize(
    ("sizes", "gated", "resident"),
    [((4096, 256, 256), False, 8), ((4196, 300), True, 8), ((5000, 128, 128), True, 1), ((6000, 200), False, 1)],
)
def test_every_word_of_the_chosen_experts_is_read_once(
    sizes: tuple[int, ...], gated: bool, resident: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "RESIDENT", resident)
    monkeypatch.setattr(executor, "target_for", lambda _: by_name("gfx942", compute_units=2))
    generator = torch.Generator().manual_seed(0)

    def matrices() -> tuple[Any, ...]:
        return tuple(torch.randint(-(2**31), 2**31, (3, size), generator=generator).int() for size in sizes)

    first, second = matrices(), matrices() if gated else ()
    rhs = torch.tensor([[2, 0, 1], [0, 1, 1]], dtype=torch.int32)
    read = reading.read(first, second, rhs, kept=True)
    assert _all(read) == _all(*(one[expert] for expert in rhs.flatten().tolist() for one in (*first, *second)))


def test_arguments_are_those_of_a_gathered_product() -> None:
    w, scales = torch.zeros(3, 8, 16, dtype=torch.int32), torch.zeros(3, 8, 2, dtype=torch.bfloat16)
    given = {"rhs_indices": torch.zeros(1, 2), "mode": "affine"}
    plain = reading.arguments(Call((None, w, scales, scales), given))
    assert [tuple(one.shape) for one in plain.args[0]] == [(3, 128), (3, 8), (3, 8)]
    assert plain.args[1] == ()
    gated = reading.arguments(Call((None, (w, scales, None), (w, scales, None)), given))
    assert [len(one) for one in gated.args[:2]] == [2, 2]
