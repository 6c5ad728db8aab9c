"""The machine code of single kernels: registers, widths of loads, occupancy."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from rocmend.kernels import target as targets
from rocmend.kernels.compiled.checks import judge
from rocmend.kernels.compiled.measure import Measured
from rocmend.kernels.compiled.pool import Worker
from rocmend.kernels.compiled.run import SAME_CODE
from rocmend.kernels.compiled.toolchain import Toolchain
from rocmend.kernels.compiled.toolchains import available, choose_toolchain
from rocmend.kernels.tuning.record import triton_version

pytestmark = [pytest.mark.cpu, pytest.mark.slow]

Spec = dict[str, Any]
_recorded: dict[tuple[str, str], list[Spec]] = {}


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    one = Worker(Toolchain(triton_version()), tmp_path_factory.mktemp("worker"))
    yield one
    one.close()


def _spec(worker: Worker, target: str, op: str, case: str, kernel: str) -> Spec:
    if (target, op) not in _recorded:
        _recorded[target, op] = worker.ask({"do": "record", "op": op, "targets": [target]}, 300)["ok"]["specs"]
    return next(one for one in _recorded[target, op] if one["case"] == case and one["kernel"].endswith(f":{kernel}"))


def _measured(worker: Worker, spec: Spec) -> Measured:
    return msgspec.convert(worker.ask({"do": "compile", "spec": spec}, 120)["ok"], Measured)


def _loads(worker: Worker, spec: Spec) -> Counter[str]:
    """Return the widths of a kernel's loads from global memory, with their number."""
    assembly = worker.ask({"do": "compile", "spec": spec, "whole": True}, 120)["ok"]["assembly"]
    return Counter(re.findall(r"^\s+(?:buffer|global)_load_(\w+)", assembly, re.MULTILINE))


def _instructions(worker: Worker, spec: Spec) -> list[str]:
    """Return the lines of a kernel's assembly, but for those that name the target."""
    assembly = worker.ask({"do": "compile", "spec": spec, "whole": True}, 120)["ok"]["assembly"]
    code = assembly.partition(".section\t.debug")[0]
    return [line for line in code.splitlines() if spec["target"] not in line]


@pytest.mark.parametrize(
    ("op", "case", "kernel"),
    [
        ("quantized_matmul", "bfloat16-b4g128-32x2048-2048", "tiles_kernel"),  # groups wider than a tile
        ("quantized_matmul", "float32-b4g128-16x2048-2048", "tiles_kernel"),
        ("conv", "bfloat16-convnext-odd-weight", "depthwise_weight_kernel"),  # channels loaded one by one
    ],
)
def test_no_registers_are_spilled(worker: Worker, op: str, case: str, kernel: str) -> None:
    found = _measured(worker, _spec(worker, "gfx1100", op, case, kernel))
    assert judge(found, targets.by_name("gfx1100")) == ()


@pytest.mark.parametrize("target", ["gfx1103", "gfx1150"])
@pytest.mark.parametrize(
    ("op", "case", "kernel"),
    [
        ("attention", "float16-1x8x2x512x512x128x128-causal", "forward_kernel"),
        ("attention_decode", "bfloat16-8k-d256", "split_kernel"),
    ],
)
def test_a_simd_of_1024_vector_registers_is_enough(
    worker: Worker, target: str, op: str, case: str, kernel: str
) -> None:
    found = _measured(worker, _spec(worker, target, op, case, kernel))
    assert judge(found, targets.by_name(target)) == ()
    assert found.matrix


@pytest.mark.parametrize(("shown", "others"), SAME_CODE.items())
def test_targets_of_the_same_code_have_it(tmp_path: Path, shown: str, others: tuple[str, ...]) -> None:
    toolchain = choose_toolchain(shown, available())
    if toolchain is None:
        pytest.skip(f"no Triton here compiles for {shown}: rocmend kernels compile --fetch-triton 3.7.0 installs one")
    served = Worker(toolchain, tmp_path)
    try:
        spec = _spec(served, shown, "attention", "float16-1x8x2x512x512x128x128-causal", "forward_kernel")
        codes = {name: _instructions(served, spec | {"target": name}) for name in (shown, *others)}
    finally:
        served.close()
    assert len(codes[shown]) > 1000
    assert [name for name in others if codes[name] != codes[shown]] == []


@pytest.mark.parametrize("case", ["bfloat16-32k-d128", "bfloat16-8k-d256"])
def test_decoding_on_cdna_holds_four_wavefronts_a_simd(worker: Worker, case: str) -> None:
    assert _measured(worker, _spec(worker, "gfx942", "attention_decode", case, "split_kernel")).occupancy >= 4


def test_a_row_of_straddling_codes_is_loaded_in_whole_words(worker: Worker) -> None:
    loads = _loads(worker, _spec(worker, "gfx1100", "quantized_matmul", "bfloat16-b3g64-1x4096-1024", "rows_kernel"))
    # Of four rows of weights: 32 codes are 12 bytes, and x 64; two bytes at a time only scales and biases.
    assert loads == {"b96": 4, "b128": 4, "u16": 8}


@pytest.mark.parametrize("target", ["gfx942", "gfx1151"])
def test_a_code_of_one_row_takes_one_instruction_beside_its_product(worker: Worker, target: str) -> None:
    """And half a shift. gfx9 takes one scalar register in an instruction: with mask and exponent in two it took two.

    A few more are outside the loop, and round sums.
    """
    spec = _spec(worker, target, "quantized_matmul", "bfloat16-b4g64-1x4096-4096", "gemv_kernel")
    lines = _instructions(worker, spec)
    taken = Counter(match[1] for line in lines if (match := re.match(r"\s+(v_\w+?)(?:_e32|_e64)?\s", line)))
    codes = 32 * spec["config"]["ROWS"]
    assert codes <= taken["v_and_or_b32"] + taken["v_or_b32"] <= 1.2 * codes
    assert _loads(worker, spec).keys() & {"dwordx4", "b128"}
    assert _measured(worker, spec).occupancy >= 4


@pytest.mark.parametrize(
    ("case", "kernel"),
    [("bfloat16-b3g64-8x4096-1024", "tiles_kernel"), ("bfloat16-b3g64-plain-16x2048-4096", "columns_kernel")],
)
def test_tiles_of_straddling_codes_take_two_words_for_eight(worker: Worker, case: str, kernel: str) -> None:
    spec = _spec(worker, "gfx1100", "quantized_matmul", case, kernel)
    loads = _loads(worker, spec)
    # Each stage loads at most a scale and a bias for each eight codes of a lane.
    lanes = 32 * spec["config"]["num_warps"]
    octets = spec["config"]["BLOCK_N"] * spec["config"]["BLOCK_K"] // (8 * lanes)
    assert 0 < loads["u16"] <= 2 * octets * 2 * spec["config"]["STAGES"]
    assert loads["b32"] <= loads["u16"]


def test_what_is_compiled_has_the_options_of_what_runs(worker: Worker) -> None:
    for op, fused in (("dequantize", False), ("rope", True)):
        recorded = worker.ask({"do": "record", "op": op, "targets": ["gfx1100", "sm90"]}, 120)["ok"]["specs"]
        assert {spec["options"]["enable_fp_fusion"] for spec in recorded} == {fused}
        assert {spec["config"].get("enable_fp_fusion", True) for spec in recorded} == {fused}
