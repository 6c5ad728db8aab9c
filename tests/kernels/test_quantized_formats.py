"""The quantized formats against real MLX, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")
pytest.importorskip("triton")

from rocmend.core.errors import UsageError
from rocmend.kernels import dequantize, quantize, select
from rocmend.kernels.common import formats

pytestmark = [pytest.mark.cpu, pytest.mark.filterwarnings("ignore::RuntimeWarning")]
GOLDEN = np.load(Path(__file__).parent / "golden" / "quantized.npz")
NAMES = sorted(name.removesuffix("-words") for name in GOLDEN.files if name.count("-") == 4 and name.endswith("-words"))
WIDTHS = (1, 2, 3, 4, 5, 6, 8)


def _signed(words: Any) -> Any:
    return words.view(torch.int32)


@pytest.mark.parametrize("tier", ["reference", "triton"])
@pytest.mark.parametrize("name", NAMES)
def test_like_mlx(name: str, tier: str) -> None:
    mode, bits, group, dtype_name = name.split("-")
    dtype = getattr(torch, dtype_name)
    with select.prefer(tier):
        words, scales, biases = quantize(torch.tensor(GOLDEN["w"]).to(dtype), int(group), int(bits), mode)
        values = dequantize(words, scales, biases, int(group), int(bits), mode, dtype=dtype)
    assert words.dtype == torch.uint32
    assert torch.equal(_signed(words), torch.tensor(GOLDEN[f"{name}-words"].view(np.int32)))
    assert torch.equal(scales.float(), torch.tensor(GOLDEN[f"{name}-scales"]).float())
    if mode == "affine":
        assert biases is not None
        assert torch.equal(biases.float(), torch.tensor(GOLDEN[f"{name}-biases"]).float())
    assert torch.equal(values[4:, :48].float(), torch.tensor(GOLDEN[f"{name}-values"]).float())


@pytest.mark.parametrize("tier", ["reference", "triton"])
def test_global_scale_like_mlx(tier: str) -> None:
    whole = torch.tensor(3.7)
    with select.prefer(tier):
        words, scales, _ = quantize(torch.tensor(GOLDEN["w"]), mode="nvfp4", global_scale=whole)
        values = dequantize(words, scales, mode="nvfp4", global_scale=whole, dtype=torch.float32)
    assert torch.equal(_signed(words), torch.tensor(GOLDEN["global-words"].view(np.int32)))
    assert torch.equal(scales, torch.tensor(GOLDEN["global-scales"]))
    assert torch.equal(values[4:, :48], torch.tensor(GOLDEN["global-values"]))


@pytest.mark.parametrize("bits", WIDTHS)
def test_pack_is_a_string_of_bits(bits: int) -> None:
    codes = torch.randint(1 << bits, (3, 96), generator=torch.Generator().manual_seed(0))
    words = formats.pack(codes, bits)
    assert torch.equal(formats.unpack(words, bits), codes.to(torch.int32))
    assert torch.equal(formats.unpack(words.view(torch.int32), bits), codes.to(torch.int32))
    whole = sum(int(code) << (bits * place) for place, code in enumerate(codes[0].tolist()))
    expected = [whole >> (32 * word) & 0xFFFFFFFF for word in range(3 * bits)]
    assert words.numpy()[0].tolist() == expected


@pytest.mark.parametrize("tier", ["reference", "triton"])
@pytest.mark.parametrize("mode", ["mxfp4", "mxfp8"])
def test_odd_groups_of_mx(mode: str, tier: str) -> None:
    w = torch.ones(5, 32)
    w[0], w[1, 3], w[2, 3], w[3] = 0.0, torch.inf, torch.nan, 1e-39
    with select.prefer(tier):
        _, scales, _ = quantize(w, mode=mode)
    assert scales[:4, 0].tolist() == [127, 255, 255, 0]


@pytest.mark.parametrize("tier", ["reference", "triton"])
def test_odd_groups_of_affine(tier: str) -> None:
    w = torch.ones(3, 64)
    w[0], w[1, 3], w[2, 5] = 0.0, torch.nan, -3.0
    with select.prefer(tier):
        words, scales, biases = quantize(w)
        values = dequantize(words, scales, biases)
    assert values[0].tolist() == [0.0] * 64
    assert values[1, 0] == 1.0
    assert values[2, 5] == -3.0


def test_int32_words_are_taken() -> None:
    words, scales, biases = quantize(torch.randn(2, 64))
    assert torch.equal(dequantize(words, scales, biases), dequantize(words.view(torch.int32), scales, biases))


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"bits": 7}, "affine bits"),
        ({"group_size": 16}, "group_size"),
        ({"mode": "int4"}, "a mode of"),
        ({"mode": "mxfp4", "bits": 8}, "bits=4"),
        ({"group_size": 128}, "multiple of group_size=128"),
        ({"global_scale": torch.tensor(1.0)}, "only with nvfp4"),
    ],
)
def test_quantize_says_what_is_wrong(kwargs: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        quantize(torch.randn(2, 64), **kwargs)


def test_dequantize_says_what_is_wrong() -> None:
    words, scales, biases = quantize(torch.randn(2, 64))
    with pytest.raises(UsageError, match="biases with mode affine"):
        dequantize(words, scales)
    with pytest.raises(UsageError, match="codes of 8 bits"):
        dequantize(words, scales, biases, bits=8)
    with pytest.raises(UsageError, match="uint32 or int32"):
        dequantize(words.view(torch.int32).float(), scales, biases)
    with pytest.raises(UsageError, match="at least 2 axes"):
        quantize(torch.randn(64))


@pytest.mark.parametrize("shape", [(7, 256), (2, 3, 256), (1, 256)])
@pytest.mark.parametrize("mode", ["affine", "mxfp4", "nvfp4"])
def test_blocks_of_rows_are_quantized_like_the_whole(
    mode: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    from rocmend.kernels.ops.matmul.dequantize import reference as back
    from rocmend.kernels.ops.matmul.quantize import reference as there

    w = torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)
    whole = there.quantize(w, mode=mode)
    values = back.dequantize(*whole, mode=mode)
    monkeypatch.setattr(there, "CACHED", 512)
    monkeypatch.setattr(back, "CACHED", 100)
    parts = there.quantize(w, mode=mode)
    assert [None if one is None else one.shape for one in parts] == [
        None if one is None else one.shape for one in whole
    ]
    assert torch.equal(_signed(parts[0]), _signed(whole[0]))
    assert all(one is other or torch.equal(one, other) for one, other in zip(parts[1:], whole[1:], strict=True))
    assert torch.equal(back.dequantize(*parts, mode=mode), values)
