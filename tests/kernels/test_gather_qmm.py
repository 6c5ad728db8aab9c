"""Gathered matrix products against real MLX and against torch, forward and backward."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")
pytest.importorskip("triton")

from rocmend.core.errors import UsageError
from rocmend.kernels import backends, dequantize, executor, gather_mm, gather_qmm, gather_qmm_swiglu, quantize, select
from rocmend.kernels.allocate import poisoned
from rocmend.kernels.ops.moe.gather_qmm import OP, Problem
from rocmend.kernels.target import by_name
from rocmend.kernels.tuning import Config
from rocmend.kernels.tuning.lookup import forced

pytestmark = [pytest.mark.cpu, pytest.mark.filterwarnings("ignore::RuntimeWarning")]
GOLDEN = {name: torch.tensor(np.asarray(value)) for name, value in np.load(
    Path(__file__).parent / "golden" / "quantized.npz"
).items() if name.startswith(("gather", "mm", "x", "experts", "turned", "lhs", "rhs", "ascending"))}  # fmt: skip
MODES = ("affine", "mxfp4", "mxfp8", "nvfp4")
TIERS = ("reference", "triton")
CLOSE = {"rtol": 2e-5, "atol": 2e-5}


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("mode", MODES)
def test_like_mlx(mode: str, tier: str) -> None:
    x, lhs, rhs, ascending = (GOLDEN[name] for name in ("x", "lhs", "rhs", "ascending"))
    parts = quantize(GOLDEN["experts"], mode=mode)
    turned = quantize(GOLDEN["turned"], mode=mode)
    with select.prefer(tier):
        given = gather_qmm(x, *parts, lhs, rhs, mode=mode)
        in_order = gather_qmm(x, *parts, rhs_indices=ascending, mode=mode, sorted_indices=True)
        default = gather_qmm(x[:, None], *parts, rhs_indices=rhs[:1], mode=mode)
        other = gather_qmm(x[..., :12], *turned, rhs_indices=ascending, mode=mode, transpose=False)
    torch.testing.assert_close(given, GOLDEN[f"gather-{mode}"], **CLOSE)
    torch.testing.assert_close(in_order, GOLDEN[f"gather-{mode}-sorted"], **CLOSE)
    torch.testing.assert_close(default, GOLDEN[f"gather-{mode}-default"], **CLOSE)
    torch.testing.assert_close(other, GOLDEN[f"gather-{mode}-turned"], **CLOSE)


@pytest.mark.parametrize("tier", TIERS)
def test_gather_mm_like_mlx(tier: str) -> None:
    with select.prefer(tier):
        out = gather_mm(GOLDEN["x"][..., :12].contiguous(), GOLDEN["turned"], GOLDEN["lhs"], GOLDEN["rhs"])
    torch.testing.assert_close(out, GOLDEN["mm"], **CLOSE)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("mode", ["affine", "mxfp4"])
def test_experts_of_many_tokens_in_half_types(mode: str, dtype: Any) -> None:
    """Expert-batched bf16, and mxfp4, have come out wrong elsewhere: each row must equal the plain product."""
    generator = torch.Generator().manual_seed(3)
    w = torch.randn(4, 24, 128, generator=generator).to(dtype)
    x = torch.randn(24, 1, 1, 128, generator=generator).to(dtype)
    chosen = torch.randint(4, (24, 2), generator=generator)
    parts = quantize(w, mode=mode)
    with select.prefer("triton"):
        out = gather_qmm(x, *parts, rhs_indices=chosen, mode=mode)
    plain = dequantize(*parts, mode=mode, dtype=dtype).double()
    wanted = torch.einsum("tk,tenk->ten", x[:, 0, 0].double(), plain[chosen])
    assert out.dtype == dtype
    torch.testing.assert_close(out[:, :, 0].double(), wanted, rtol=2e-2, atol=0.2)
    assert (out[:, :, 0].double() - wanted).abs().mean() < 0.08


def _experts(generator: Any, n: int, k: int, count: int = 4) -> Any:
    return quantize(torch.randn(count, n, k, generator=generator).half())


def _wanted(x: Any, parts: Any, chosen: Any) -> Any:
    weights = dequantize(parts[0], *(part.float() for part in parts[1:]))
    return torch.einsum("tk,tenk->ten", x.double(), weights.double()[chosen])


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.slow
def test_a_few_rows_in_a_half_type(bits: int) -> None:
    generator = torch.Generator().manual_seed(7)
    # 9 groups and 23 rows of weights: the last step of K, and the last program's outputs, are not full.
    parts = quantize(torch.randn(4, 23, 576, generator=generator).half(), bits=bits)
    x = torch.randn(2, 1, 1, 576, generator=generator).half()
    chosen = torch.tensor([[2, 0, 2], [2, 2, 3]])
    weights = dequantize(parts[0], *(part.float() for part in parts[1:]), bits=bits)
    wanted = torch.einsum("tk,tenk->ten", x[:, 0, 0].double(), weights.double()[chosen])
    with select.prefer("triton"):
        out = gather_qmm(x, *parts, rhs_indices=chosen, bits=bits)
        fused = gather_qmm_swiglu(x, parts, parts, rhs_indices=chosen, bits=bits)
    torch.testing.assert_close(out[:, :, 0].double(), wanted, rtol=2e-3, atol=2e-2)
    wanted = torch.nn.functional.silu(wanted) * wanted
    torch.testing.assert_close(fused[:, :, 0].double(), wanted, rtol=4e-3, atol=0.5)


@pytest.mark.parametrize("target", ["sm80", "sm90", "gfx1151", "gfx942"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("form", [("affine", 4, 64), ("affine", 8, 64), ("mxfp4", 4, 32)], ids=str)
def test_a_few_rows_on_any_gpu(
    form: tuple[str, int, int], dtype: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every format and type has a kernel that needs neither Gluon nor a vendor's instructions."""
    monkeypatch.setattr(backends, "MEASURED", False)
    mode, bits, group = form
    kind = getattr(torch, dtype)
    x = torch.empty(2, 1, 1, 512, dtype=kind, device="meta")
    w = torch.empty(8, 32, 512 * bits // 32, dtype=torch.int32, device="meta")
    scales = torch.empty(8, 32, 512 // group, dtype=kind if mode == "affine" else torch.uint8, device="meta")
    parts = (w, scales, scales if mode == "affine" else None)
    chosen = torch.empty(2, 4, dtype=torch.int32, device="meta")
    recorder = executor.Recorder(by_name(target))
    options = {"rhs_indices": chosen, "mode": mode, "bits": bits, "group_size": group}
    with executor.using(recorder), select.prefer("triton"):
        gather_qmm(x, *parts, **options)
        gather_qmm_swiglu(x, parts, parts, **options)
    kernel = "gemv_kernel" if mode == "affine" else "pairs_kernel"
    assert [launch.kernel.__name__ for launch in recorder.launches] == [kernel] * 2


@pytest.mark.slow
@pytest.mark.parametrize("chosen", ["one", "random", "last"])
@pytest.mark.parametrize("height", [16, 32])
def test_tiles_of_many_rows(chosen: str, height: int) -> None:
    """The table of tiles holds every row once, be the experts' shares even or not."""
    generator = torch.Generator().manual_seed(8)
    parts = _experts(generator, 24, 192)
    x = torch.randn(50, 1, 1, 192, generator=generator).half()
    index = torch.randint(4, (50, 2), generator=generator)
    index = {"one": index * 0 + 1, "last": index // 3 * 3, "random": index}[chosen]
    record = Config({"BM": height, "BN": 32, "BK": 256, "STAGES": 2, "HALVED": True, "num_warps": 4})
    with select.prefer("tiles"), forced("gather_qmm", "tiles", record):
        out = gather_qmm(x, *parts, rhs_indices=index)
    torch.testing.assert_close(out[:, :, 0].double(), _wanted(x[:, 0, 0], parts, index), rtol=2e-3, atol=2e-2)


@pytest.mark.parametrize(
    ("form", "dtype", "chosen"),
    [
        (("affine", 2, 128), torch.bfloat16, "random"),
        (("affine", 3, 32), torch.float16, "random"),
        (("affine", 4, 64), torch.bfloat16, "one"),
        (("affine", 4, 64), torch.float16, "last"),
        (("affine", 8, 64), torch.bfloat16, "random"),
        (("affine", 8, 32), torch.float16, "last"),
        (("mxfp4", 4, 32), torch.bfloat16, "random"),
    ],
    ids=str,
)
def test_rows_that_share_experts(form: tuple[str, int, int], chosen: str, dtype: Any) -> None:
    """Codes are exact in the type of x, whatever it is; experts may have no rows, all of them, or some."""
    mode, bits, group = form
    generator = torch.Generator().manual_seed(bits)
    parts = [quantize(torch.randn(4, 24, 256, generator=generator).to(dtype), group, bits, mode) for _ in range(2)]
    x = torch.randn(25, 1, 1, 256, generator=generator).to(dtype)
    index = torch.randint(4, (25, 3), generator=generator)
    index = {"one": index * 0 + 1, "last": index // 3 * 3, "random": index}[chosen]
    options: Any = {"rhs_indices": index, "group_size": group, "bits": bits, "mode": mode}
    problem = Problem(str(dtype)[6:], mode, bits, group, True, False, index.numel(), 1, 24, 256, 4)
    assert select.select(OP, problem, by_name("gfx1151"), "triton").implementation == "grouped"
    with select.prefer("grouped"):
        out, fused = gather_qmm(x, *parts[0], **options), gather_qmm_swiglu(x, *parts, **options)
    gate, up = (
        torch.einsum(
            "tk,tenk->ten",
            x[:, 0, 0].double(),
            dequantize(
                one[0],
                *(part.float() if part is not None and mode == "affine" else part for part in one[1:]),
                group_size=group,
                bits=bits,
                mode=mode,
            ).double()[index],
        )
        for one in parts
    )
    close = 2**-10 if dtype == torch.float16 else 2**-7
    torch.testing.assert_close(out[:, :, 0].double(), gate, rtol=close, atol=close)
    torch.testing.assert_close(fused[:, :, 0].double(), torch.nn.functional.silu(gate) * up, rtol=close, atol=close)


@pytest.mark.parametrize(("pairs", "target", "kernel"), [
    (64, "gfx1151", "gemv"), (128, "gfx1151", "grouped"), (4096, "gfx942", "grouped"),
    (128, "gfx1030", "gemv"), (4096, "gfx1030", "grouped"),
])  # fmt: skip
def test_rows_share_experts_from_as_many_on_as_there_are(pairs: int, target: str, kernel: str) -> None:
    """Fewer are computed by themselves, and so are they where a product on 16 rows costs 16 times that of one."""
    problem = Problem("bfloat16", "affine", 4, 64, True, True, pairs, 1, 768, 2048, 128)
    assert select.select(OP, problem, by_name(target), "triton").implementation == kernel


@pytest.mark.slow
@pytest.mark.parametrize("tokens", [2, 40])
def test_x_at_an_odd_address(tokens: int) -> None:
    generator = torch.Generator().manual_seed(9)
    parts = _experts(generator, 16, 64)
    x = torch.randn(tokens * 64 + 1, generator=generator).half()[1:].view(tokens, 1, 1, 64)
    chosen = torch.randint(4, (tokens, 2), generator=generator)
    assert x.data_ptr() % 4
    with select.prefer("triton"):
        for _ in range(2):  # planned, then remembered
            out = gather_qmm(x, *parts, rhs_indices=chosen)
            torch.testing.assert_close(out[:, :, 0].double(), _wanted(x[:, 0, 0], parts, chosen), rtol=2e-3, atol=2e-2)


@pytest.mark.slow
@pytest.mark.parametrize("tokens", [2, 40])
@pytest.mark.parametrize("lhs", [None, "given"])
def test_gradient(tokens: int, lhs: str | None) -> None:
    generator = torch.Generator().manual_seed(4)
    parts = quantize(torch.randn(3, 64, 128, generator=generator))
    x = torch.randn(tokens, 1, 1, 128, generator=generator, requires_grad=True)
    chosen = torch.randint(3, (tokens, 2), generator=generator)
    index = None if lhs is None else torch.randint(tokens, (tokens, 1), generator=generator)
    weight = torch.randn(tokens, 2, 1, 64, generator=generator)
    with select.prefer("triton"):
        (gather_qmm(x, *parts, index, chosen) * weight).sum().backward()
    grad, x.grad = x.grad, None
    rows = x if index is None else x[index[:, 0]]
    (torch.einsum("tabk,tenk->ten", rows, dequantize(*parts)[chosen])[:, :, None] * weight).sum().backward()
    torch.testing.assert_close(grad, x.grad, rtol=1e-4, atol=1e-4)


def test_gather_mm_gradient() -> None:
    generator = torch.Generator().manual_seed(5)
    b = torch.randn(3, 16, 8, generator=generator)
    a = torch.randn(5, 1, 2, 16, generator=generator, requires_grad=True)
    chosen = torch.randint(3, (5, 2), generator=generator)
    with select.prefer("triton"):
        gather_mm(a, b, rhs_indices=chosen).square().sum().backward()
    grad, a.grad = a.grad, None
    torch.einsum("tamk,tekn->temn", a, b[chosen]).square().sum().backward()
    torch.testing.assert_close(grad, a.grad, rtol=1e-4, atol=1e-4)


def test_swiglu_is_two_products_and_a_gate() -> None:
    generator = torch.Generator().manual_seed(6)
    gate, up = (quantize(torch.randn(3, 8, 64, generator=generator)) for _ in range(2))
    x = torch.randn(3, 1, 1, 64, generator=generator)
    chosen = torch.randint(3, (3, 2), generator=generator)
    with select.prefer("triton"):
        fused = gather_qmm_swiglu(x, gate, up, rhs_indices=chosen)
        apart = torch.nn.functional.silu(gather_qmm(x, *gate, rhs_indices=chosen))
        apart = apart * gather_qmm(x, *up, rhs_indices=chosen)
    torch.testing.assert_close(fused, apart, rtol=1e-5, atol=1e-5)


def test_types_are_promoted_as_in_mlx() -> None:
    parts = quantize(torch.randn(2, 8, 64).half())
    out = gather_qmm(torch.randn(1, 1, 64).bfloat16(), *parts, rhs_indices=torch.tensor([1]))
    assert out.dtype == torch.float32
    parts = quantize(torch.randn(2, 8, 64), mode="mxfp4")
    assert gather_qmm(torch.randn(1, 1, 64).half(), *parts, rhs_indices=torch.tensor([1]), mode="mxfp4").dtype == (
        torch.float16
    )


def test_says_what_is_wrong() -> None:
    parts = quantize(torch.randn(2, 8, 64))
    x, one = torch.randn(1, 1, 64), torch.tensor([1])
    with pytest.raises(UsageError, match="last axis of 64"):
        gather_qmm(torch.randn(1, 1, 32), *parts, rhs_indices=one)
    with pytest.raises(UsageError, match="integer indices"):
        gather_qmm(x, *parts, rhs_indices=torch.tensor([1.0]))
    with pytest.raises(UsageError, match="indices that broadcast"):
        gather_qmm(x.expand(3, 1, 64), *parts, rhs_indices=torch.tensor([1, 0]))
    with pytest.raises(UsageError, match="biases with mode affine"):
        gather_qmm(x, *parts[:2], rhs_indices=one)
    with pytest.raises(UsageError, match="without a gradient"):
        gather_qmm_swiglu(x.requires_grad_(), parts, parts, rhs_indices=one)
    with pytest.raises(UsageError, match="one floating type"):
        gather_mm(torch.randn(1, 2, 3), torch.randn(1, 3, 2).half())


@pytest.mark.parametrize("tier", TIERS)
def test_one_index_stretched_over_many_pairs(tier: str) -> None:
    a, b = torch.randn(3, 4, 8), torch.randn(2, 8, 6)
    lhs, rhs = torch.tensor([0, 2, 1]), torch.tensor([1])
    with select.prefer(tier):
        torch.testing.assert_close(gather_mm(a, b, lhs, rhs), a[lhs] @ b[1], **CLOSE)
    from rocmend.kernels.common.pairs import pairs_of

    pairs = pairs_of("gather_mm", (3,), (2,), lhs, rhs, lhs.device)
    assert pairs.rhs.stride() == (1,)  # the kernels read the indices one after another


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("index", ["int64", "int32", "uint32"])
@pytest.mark.slow
def test_rows_by_themselves_find_their_x_and_their_expert(index: str, bits: int) -> None:
    generator = torch.Generator().manual_seed(bits)
    parts = quantize(torch.randn(4, 19, 96, generator=generator), group_size=32, bits=bits)
    x = torch.randn(3, 1, 96, generator=generator)
    lhs, rhs = (torch.tensor(one, dtype=getattr(torch, index)) for one in ([2, 0, 1, 2], [1, 3, 0, 0]))
    plain = dequantize(*parts, group_size=32, bits=bits)[rhs.long()]
    wanted = torch.einsum("pk,pnk->pn", x[lhs.long(), 0], plain)
    with select.prefer("triton"):
        out = gather_qmm(x, *parts, lhs, rhs, group_size=32, bits=bits)
        fused = gather_qmm_swiglu(x, parts, parts, lhs, rhs, 32, bits)
    torch.testing.assert_close(out[:, 0], wanted, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(fused[:, 0], torch.nn.functional.silu(wanted) * wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("chosen", ["gemv", "pairs", "grouped", "columns"])
def test_x_is_broadcast_to_the_pairs(chosen: str, gated: bool) -> None:
    """Then lhs is not given and is made at each call: a plan of calls without it would read past x."""
    torch.manual_seed(0)
    depth, transpose = 64, chosen != "columns"
    if gated and not transpose:
        pytest.skip("a gated pair is transposed")
    weights = [quantize(torch.randn(2, *((48, depth) if transpose else (depth, 64)))) for _ in range(1 + gated)]
    dtype = torch.float16 if chosen == "grouped" else torch.float32
    weights = [(w, *(one.to(dtype) for one in rest)) for w, *rest in weights]
    rhs = torch.tensor([[0, 1, 1], [1, 0, 1]])
    for x in (torch.randn(3, 1, depth, dtype=dtype), torch.randn(1, 3, 1, depth, dtype=dtype)):
        named: dict[str, Any] = {"rhs_indices": rhs} if gated else {"rhs_indices": rhs, "transpose": transpose}
        found = []
        for tiers in ((chosen, "triton"), ("reference",)):
            with select.prefer(*tiers), poisoned():
                function = gather_qmm_swiglu if gated else gather_qmm
                given = weights if gated else weights[0]
                found.append([function(x, *given, **named) for _ in range(2)])  # the second one is planned
        truth = found[1][0]
        for one in found[0]:
            torch.testing.assert_close(one, truth, rtol=1e-3, atol=1e-3 * float(truth.abs().max()))


def test_the_offset_of_codes_comes_off_where_x_is_far_from_zero() -> None:
    """Its part of the fp32 sums is the largest in fp16 (1024 for each code), and with x of one sign."""
    torch.manual_seed(0)
    w, scales, biases = quantize(torch.randn(2, 32, 2048))
    x = (torch.randn(40, 1, 2048) + 3).half()
    parts = (w, scales.half(), biases.half())
    rhs = torch.arange(40) % 2
    with select.prefer("grouped", "triton"), poisoned():
        out = gather_qmm(x, *parts, rhs_indices=rhs)
    truth = gather_mm(x.double(), dequantize(w, *(one.double() for one in parts[1:])).mT.contiguous(), rhs_indices=rhs)
    assert float((out.double() - truth).abs().max()) <= 2.0**-10 * float(truth.abs().max())
