"""Prepared calls: what the public functions give, with the checks done before."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from rocmend import kernels
from rocmend.core.errors import UsageError
from rocmend.kernels import choose
from rocmend.kernels.prepare import prepare

pytestmark = [pytest.mark.cpu, pytest.mark.filterwarnings("ignore::RuntimeWarning")]


def _normal(*shape: int) -> Any:
    return torch.randn(shape)


def _quantized(*shape: int) -> Any:
    words = torch.randint(-(1 << 31), 1 << 31, (*shape[:-1], shape[-1] // 8), dtype=torch.int64).to(torch.int32)
    return words, torch.rand(*shape[:-1], shape[-1] // 32), _normal(*shape[:-1], shape[-1] // 32)


CALLS: dict[str, Any] = {
    "rms_norm": lambda: ((_normal(2, 8), _normal(8), 1e-5), {}),
    "add_rms_norm": lambda: ((_normal(2, 8), _normal(2, 8), _normal(8), 1e-5), {}),
    "layer_norm": lambda: ((_normal(2, 8), _normal(8), None, 1e-5), {}),
    "swiglu": lambda: ((_normal(3, 8), _normal(3, 8)), {}),
    "softmax": lambda: ((_normal(3, 8), -1), {}),
    "argmax": lambda: ((_normal(3, 8),), {"axis": -1, "keepdims": True}),
    "rope": lambda: ((_normal(1, 2, 3, 8), 8), {"offset": 2}),
    "rope_pair": lambda: ((_normal(1, 2, 3, 8), _normal(1, 1, 3, 8), 8), {"offset": 2}),
    "attention_decode": lambda: ((_normal(1, 2, 1, 16), _normal(1, 1, 9, 16), _normal(1, 1, 9, 16)), {"scale": 0.25}),
    "quantized_attention": lambda: (
        (_normal(1, 2, 1, 32), _quantized(1, 1, 9, 32), _quantized(1, 1, 9, 32)),
        {"scale": 0.25, "group_size": 32, "bits": 4},
    ),
    "scaled_dot_product_attention": lambda: (
        (_normal(1, 2, 3, 16), _normal(1, 1, 9, 16), _normal(1, 1, 9, 16)),
        {"scale": 0.25, "mask": "causal"},
    ),
    "sort": lambda: ((_normal(3, 8), -1), {}),  # has nothing to prepare
}


def _flat(result: Any) -> list[Any]:
    return [one for one in (result if isinstance(result, tuple) else (result,)) if one is not None]


@pytest.mark.parametrize("tier", ["triton", "reference"])
@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_prepared_call_gives_what_the_function_gives(name: str, tier: str) -> None:
    torch.manual_seed(3)
    function = getattr(kernels, name)
    args, kwargs = CALLS[name]()
    others, _ = CALLS[name]()
    with choose.prefer(tier):
        call = prepare(function, *args, **kwargs)
        got, wanted = _flat(call(*others, **kwargs)), _flat(function(*others, **kwargs))
    assert len(got) == len(wanted)
    assert all(torch.equal(one, other) for one, other in zip(got, wanted, strict=True))


def test_an_offset_may_change_from_call_to_call() -> None:
    x = _normal(1, 2, 3, 8)
    with choose.prefer("triton"):
        call = prepare(kernels.rope, x, 8, offset=0)
        for offset in (0, 1, 16):
            assert torch.equal(call(x, 8, offset=offset), kernels.rope(x, 8, offset=offset))


def test_arguments_are_checked_when_a_call_is_prepared() -> None:
    with pytest.raises(UsageError, match="rms_norm"):
        prepare(kernels.rms_norm, _normal(2, 8), _normal(7), 1e-5)


def test_nothing_is_launched_while_a_call_is_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    from rocmend.kernels import fast

    launched: list[int] = []
    monkeypatch.setattr(fast.Bound, "launched", lambda *_: launched.append(1))
    with choose.prefer("triton"):
        call = prepare(kernels.rms_norm, _normal(2, 8), None, 1e-5)
        assert not launched
        call(_normal(2, 8), None, 1e-5)
    assert launched
