"""The kernel whose left operand comes from registers: its PTX, the order of x, where it is taken, and its launches.

Gluon has no interpreter: on a GPU the suite has cases that take the kernel.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import numpy as np

from rocmend.kernels import backends, caches, executor, select
from rocmend.kernels.backends.hopper.quantized_matmul import gemm_w4a16_wgmma, host
from rocmend.kernels.backends.hopper.quantized_matmul.kernels import terms
from rocmend.kernels.common.formats import Format
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.matmul.quantized_matmul import OP, Problem
from rocmend.kernels.target import Target, by_name
from rocmend.kernels.tuning import Config, config_for

pytestmark = pytest.mark.cpu

H200 = by_name("sm90", compute_units=132)
TORCH = {"bf16": torch.bfloat16, "f16": torch.float16}


def _halves(word: int, kind: str) -> Any:
    """Return the two numbers of a word, the low one first."""
    return torch.tensor([word & 0xFFFF, word >> 16], dtype=torch.uint16).view(TORCH[kind]).double()


def _word(halves: Any, kind: str) -> int:
    low, high = halves.to(TORCH[kind]).view(torch.uint16).tolist()
    return int(low | high << 16)


def _run(block: str, held: dict[str, int], kind: str, results: int) -> list[int]:
    """Return the results of a block for one lane."""
    for statement in re.split(r";\s*", block.strip().strip("{}").strip()):
        if not statement or statement.startswith(".reg"):
            continue
        name, rest = statement.split(None, 1)
        to, *of = re.split(r",\s*", rest)
        one, *more = (held[source] if source in held else int(re.sub("^0f", "0x", source), 0) for source in of)
        if name == "mov.b32":
            held[to] = one
        elif name == "shr.u32":
            held[to] = one >> more[0]
        elif name == "prmt.b32":
            both = (one | more[0] << 32).to_bytes(8, "little")
            held[to] = int.from_bytes(bytes(both[more[1] >> 4 * at & 7] for at in range(4)), "little")
        elif name == "add.f32":
            total = np.uint32(one).view(np.float32) + np.uint32(more[0]).view(np.float32)
            held[to] = int(np.float32(total).view(np.uint32))
        elif name == "lop3.b32":
            assert more[2] == 0xEA
            held[to] = (one & more[0]) | more[1]
        elif name == f"add.rn.{kind}x2":
            held[to] = _word(_halves(one, kind) + _halves(more[0], kind), kind)
        elif name == f"fma.rn.{kind}x2":
            held[to] = _word(_halves(one, kind) * _halves(more[0], kind) + _halves(more[1], kind), kind)
        else:
            raise AssertionError(name)
    return [held[f"${at}"] for at in range(results)]


@pytest.mark.parametrize("kind", ["bf16", "f16"])
@pytest.mark.parametrize("bits", [4, 8])
def test_a_words_codes_are_weights_rounded_once(kind: str, bits: int) -> None:
    count = 32 // bits
    drawn = np.random.default_rng(3)
    for _ in range(20):
        codes = drawn.integers(0, 2**bits, count)
        word = sum(int(code) << bits * place for place, code in enumerate(codes))
        scale, bias = torch.from_numpy(drawn.standard_normal(2)).to(TORCH[kind]).double()
        operands = [word, _word(scale.repeat(2), kind), _word(bias.repeat(2), kind)]
        held = {f"${count // 2 + count * at + copy}": one for at, one in enumerate(operands) for copy in range(count)}
        pairs = torch.stack([_halves(one, kind) for one in _run(terms.unpacked(kind, bits), held, kind, count // 2)])
        wanted = (torch.from_numpy(codes).double() * scale + bias).to(TORCH[kind]).double()
        assert torch.equal(pairs, wanted.view(2, 4).T if bits == 4 else wanted.view(2, 2))


def _code_of(term: int, bits: int) -> int:
    instruction, place = divmod(term, 16)
    pair, number = divmod(place, 8)
    quarter, second = divmod(number, 2)
    if bits == 8:
        return 16 * quarter + 4 * instruction + 2 * pair + second
    word, two = divmod(instruction, 2)
    return 32 * quarter + 8 * word + 2 * two + pair + 4 * second


@pytest.mark.parametrize(("rows", "block", "width", "bits"), [(33, 32, 128, 4), (33, 32, 64, 4), (16, 16, 64, 8)])
def test_x_is_in_the_order_of_the_terms(rows: int, block: int, width: int, bits: int) -> None:
    chunks, size = 3, 512 // bits
    x = torch.randn(rows, chunks * size + 8)[:, : chunks * size].half()
    tiles = -(-rows // block)
    out = torch.full((tiles, chunks, size // width, block, width), float("nan"), dtype=torch.float16)
    grid = (tiles * block // 16, chunks)
    constants = {"BITS": bits, "BLOCK_M": block, "LINES": 16, "WIDTH": width, "PDL": False}
    launch(terms.ordered_kernel, grid, (x, out, rows, x.stride(0), chunks), constants, Config({"num_warps": 4}))
    ordered = out.permute(0, 3, 1, 2, 4).reshape(tiles * block, chunks, size)
    assert not ordered.isnan().any()
    for term in range(size):
        assert torch.equal(ordered[:rows, :, term], x.reshape(rows, chunks, size)[:, :, _code_of(term, bits)])


def _problem(**change: Any) -> Problem:
    plain = Problem("bfloat16", "affine", 4, 64, transpose=True, batch=1, rows=32, columns=14336, depth=4096)
    return plain._replace(**change)


def _kernel(problem: Problem, target: Target, *, aligned: bool = True) -> str:
    return select.select(OP, problem, target, "triton", aligned=aligned).implementation


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "float32"}, {"mode": "mxfp4", "group_size": 32}, {"bits": 6}, {"group_size": 32},
        {"bits": 8, "group_size": 128},
        {"transpose": False}, {"batch": 2}, {"rows": 8}, {"columns": 14336 + 64}, {"depth": 4096 + 256}, {"depth": 512},
    ],
    ids=str,
)  # fmt: skip
def test_other_problems_take_other_kernels(change: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "MEASURED", True)
    assert _kernel(_problem(), H200) == "gemm_w4a16_wgmma"
    assert _kernel(_problem(), H200, aligned=False) != "gemm_w4a16_wgmma"
    assert _kernel(_problem(**change), H200) != "gemm_w4a16_wgmma"


@pytest.mark.parametrize("name", ["gfx1100", "gfx942", "sm80", "sm100", "cpu"])
def test_other_targets_take_other_kernels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "MEASURED", True)
    assert _kernel(_problem(), by_name(name)) != "gemm_w4a16_wgmma"


def test_other_releases_of_triton_take_other_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "MEASURED", False)
    assert _kernel(_problem(), H200) != "gemm_w4a16_wgmma"


@pytest.mark.parametrize(
    ("rows", "suited", "implementation"),
    [(512, True, "gemm_w4a16_wgmma"), (1024, True, "dequantize+matmul"), (512, False, "dequantize+matmul")],
)
def test_many_rows_are_unpacked_on_the_way(
    rows: int, suited: bool, implementation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backends, "MEASURED", suited)
    caches.forget()
    assert select.select(OP, _problem(rows=rows), H200).implementation == implementation
    caches.forget()


@pytest.mark.parametrize("rows", [17, 64, 100, 200, 300, 2048])
@pytest.mark.parametrize("columns", [128, 1024, 4096, 14336, 151936 // 128 * 128])
@pytest.mark.parametrize(("depth", "bits"), [(1024, 4), (1536, 4), (4096, 4), (14336, 8), (512, 8)])
def test_parts_of_k_are_whole_steps(rows: int, columns: int, depth: int, bits: int) -> None:
    problem = _problem(rows=rows, columns=columns, depth=depth, bits=bits)
    config = config_for("quantized_matmul", "gemm_w4a16_wgmma", gemm_w4a16_wgmma.record_class(problem), H200)
    splits = gemm_w4a16_wgmma.splits_of(problem, config, 132)
    assert depth % (splits * config["CHUNKS"] * 512 // bits) == 0
    assert depth // (splits * config["CHUNKS"] * 512 // bits) > 1, "Triton's compiler fails at one step"
    tiles = -(-rows // config["BLOCK_M"]) * (columns // config["ROWS"])
    assert splits == 1 or splits * tiles <= 132 * 128 // config["ROWS"]


def _launched(x: Any, scales: Any, rows_of_x: int) -> list[executor.Launch]:
    """Return the launches for tensors at some addresses."""
    problem = _problem(rows=rows_of_x, columns=256, depth=1024)
    w = torch.zeros(256, 128, dtype=torch.int32)
    recorder = executor.Recorder(H200)
    with executor.using(recorder):
        host.gemm_w4a16_wgmma(x, w, scales, scales, Format("affine", 4, 64), problem)
    return recorder.launches


@pytest.mark.parametrize("rows", [16, 40, 300])
def test_tensors_at_odd_addresses_take_another_kernel(rows: int) -> None:
    pytest.importorskip("triton.experimental.gluon")
    folder = "rocmend.kernels.backends.hopper.quantized_matmul.kernels"
    kernel = importlib.import_module(f"{folder}.gemm_w4a16_wgmma").gemm_w4a16_wgmma_kernel
    x, scales = torch.zeros(rows, 1032, dtype=torch.bfloat16), torch.zeros(256 * 16 + 1, dtype=torch.bfloat16)
    at_start = scales[:-1].view(256, 16)
    launches = _launched(x[:, :-8], at_start, rows)
    (own,) = [one for one in launches if one.kernel is kernel]
    for one in launches:
        # All that it takes is given: what is not there by position has to be a constant.
        assert len(one.args) + len(one.constants) == len(one.kernel.arg_names)
    assert own.args[0].shape[-1] == 1024
    assert all(one.kernel is not kernel for one in _launched(x[:, 1:-7], at_start, rows))
    assert all(one.kernel is not kernel for one in _launched(x[:, :-8], scales[1:].view(256, 16), rows))
