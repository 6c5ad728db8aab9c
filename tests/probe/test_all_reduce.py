from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.cpu, pytest.mark.slow]


def test_two_processes_hold_the_sum() -> None:
    from rocmend.probe.catalogue._all_reduce import reduced

    parts = torch.randn(2, 1001)
    held = reduced(parts)
    assert torch.equal(held[0], held[1])
    torch.testing.assert_close(held[0], parts.sum(0))
