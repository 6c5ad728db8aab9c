"""One launch whose last programs finish, and two launches: the same results, and who gets which room."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from rocmend.kernels import allocate, argmax, attention_decode, quantized_attention, select
from rocmend.kernels import launch as launcher
from rocmend.kernels.common import semaphores

pytestmark = [pytest.mark.cpu, pytest.mark.filterwarnings("ignore::RuntimeWarning")]


def _cache() -> Any:
    words = torch.randint(-(1 << 31), 1 << 31, (1, 2, 130, 8), dtype=torch.int64).to(torch.int32)
    return words, torch.rand(1, 2, 130, 1).half(), torch.randn(1, 2, 130, 1).half()


def _calls() -> dict[str, Any]:
    torch.manual_seed(5)
    q, k, v = torch.randn(1, 4, 2, 16), torch.randn(1, 2, 300, 16), torch.randn(1, 2, 300, 16)
    x, row, codes = torch.randn(3, 500, 2), torch.randn(1, 12, 1, 64).half(), (_cache(), _cache())
    return {
        "attention": lambda: attention_decode(q, k, v, scale=0.25, mask="causal", sinks=torch.ones(4)),
        "quantized": lambda: quantized_attention(row, *codes, scale=0.1, bits=4),
        "argmax": lambda: argmax(x, 1),
    }


@pytest.mark.parametrize("name", ["attention", "quantized", "argmax"])
def test_one_launch_gives_what_two_give(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    call = _calls()[name]
    asked: list[Any] = []
    room = semaphores.workspace

    def seen(*args: Any) -> Any:
        asked.append(room(*args))
        return asked[-1]

    with select.prefer("triton"):
        monkeypatch.setattr(semaphores, "workspace", seen)
        once = call()
        assert len(asked) == 1  # the records of the CPU ask for it
        assert not asked[0].counters.any()  # set back for the next launch
        monkeypatch.setattr(semaphores, "workspace", lambda *_: None)
        twice = call()
    torch.testing.assert_close(once, twice, rtol=1e-5 if once.dtype == torch.float32 else 2e-3, atol=1e-6)


def test_large_launches_get_no_room() -> None:
    assert semaphores.fits(semaphores.MAX_COUNTERS, semaphores.MAX_BYTES)
    assert not semaphores.fits(semaphores.MAX_COUNTERS + 1, 8)
    assert not semaphores.fits(1, semaphores.MAX_BYTES + 1)


def test_each_stream_has_its_own_room_and_a_captured_launch_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    device: Any = SimpleNamespace(type="cuda", index=0)
    room: Any = semaphores.workspace
    stream, capturing = [7], [False]
    monkeypatch.setattr(semaphores, "_workspaces", {})
    monkeypatch.setattr(semaphores, "_arenas", {})
    monkeypatch.setattr(semaphores, "ONE_LAUNCH_IN_GRAPHS", True)
    monkeypatch.setattr(semaphores, "_stream_of", lambda _index: stream[0])
    monkeypatch.setattr(semaphores, "_capturing", lambda: capturing[0])
    monkeypatch.setattr(torch.cuda, "synchronize", lambda _device: None)
    monkeypatch.setattr(allocate, "current_device", lambda: 0)
    monkeypatch.setattr(torch, "zeros", lambda count, **_: list(range(count)))
    monkeypatch.setattr(torch, "empty", lambda count, **_: SimpleNamespace(numel=lambda: count))
    capturing[0] = True
    assert room(device, 3, 100) is None  # nothing was zeroed before
    capturing[0] = False
    first: Any = room(device, 3, 100)
    assert room(device, 5, 1 << 20) is first
    larger: Any = room(device, 5, (1 << 20) + 1)
    assert larger.scratch.numel() * 8 == 1 << 21
    assert larger.counters is first.counters
    assert room(device, 5, 100) is larger
    stream[0] = 8
    other: Any = room(device, 3, 100)
    assert other.counters is not larger.counters
    capturing[0] = True
    assert [room(device, 3, 100).counters for _ in range(2)] == [[0, 1, 2], [4, 5, 6]]  # at multiples of 16 bytes
    monkeypatch.setattr(semaphores._Arena, "SIZE", 8)
    assert room(device, 3, 100) is None  # too few are left
    capturing[0] = False
    again: Any = room(device, 3, 100)
    assert again.counters is not other.counters
    capturing[0] = True
    assert room(device, 3, 100).counters == [0, 1, 2]  # of another arena
    monkeypatch.setattr(allocate, "current_device", lambda: 1)
    assert room(device, 3, 100) is None


def test_outputs_take_torchs_short_way_on_the_current_device_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocate, "_quick_works", lambda: True)
    monkeypatch.setattr(allocate, "_quick", lambda *args: args)
    monkeypatch.setattr(allocate, "current_device", lambda: 1)
    monkeypatch.setattr(torch, "empty_strided", lambda *args, **kwargs: (args, kwargs["device"].index))
    here, there = (allocate.Output((2, 3), torch.float32, torch.device("cuda", index)) for index in (1, 0))
    assert here() == ((2, 3), (3, 1), torch.float32)
    assert there() == (((2, 3), (3, 1)), 0)
    launcher.forget()
