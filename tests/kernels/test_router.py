"""The router: equal values and NaN come as from the separate operations."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from rocmend.core.errors import UsageError
from rocmend.kernels import router
from rocmend.kernels.select import prefer

pytestmark = [pytest.mark.cpu]

ROWS = [
    [0.0] * 8,
    [1.0, 2.0, 2.0, 1.0, 2.0, 0.0, 2.0, 0.0],
    [0.0, float("nan"), 3.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    [-300.0, 0.0, -300.0, -200.0, -300.0, 1.0, -300.0, -300.0],
]


@pytest.mark.parametrize("k", [1, 3, 8])
@pytest.mark.parametrize("normalise", [False, True])
def test_ties_and_nan_stand_as_at_the_end_of_a_stable_sort(k: int, normalise: bool) -> None:
    x = torch.tensor(ROWS, dtype=torch.bfloat16)
    values = torch.softmax(x.float(), -1).to(x.dtype)
    places = torch.sort(values, dim=-1, stable=True).indices[:, -k:]
    scores = values.gather(-1, places)
    if normalise:
        scores = scores / scores.sum(-1, keepdim=True)
    with prefer("triton"):
        found = router(x, k, normalise=normalise)
    assert torch.equal(found.places.long(), places)
    torch.testing.assert_close(found.scores, scores, equal_nan=True)


def test_says_what_does_not_fit() -> None:
    with pytest.raises(UsageError, match="1 <= k <= 4, got 5"):
        router(torch.zeros(2, 4), 5)
    with pytest.raises(UsageError, match="expected x of"):
        router(torch.zeros(2, 4, dtype=torch.int32), 1)
