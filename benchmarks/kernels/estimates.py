"""Write a page of what the cost model says of the kernels on AMD GPUs: what limits each, and how far from the floor.

python -m benchmarks.kernels.estimates docs/reference/kernels-estimates.md

It compiles, and runs nothing: no GPU is needed. Takes some ten minutes on two cores.
"""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from rocmend.kernels import executor, registry, select
from rocmend.kernels import target as targets
from rocmend.kernels.compiled.pool import Pool
from rocmend.kernels.executor import Recorder
from rocmend.kernels.explain import explain
from rocmend.kernels.model.estimate import VERSION, Estimate
from rocmend.kernels.model.hardware import hardware
from rocmend.kernels.op import resolve
from rocmend.kernels.suite.case import Maker
from rocmend.kernels.tuning.propose import toolchain_for

TARGETS = ("gfx1151", "gfx1100", "gfx1201", "gfx942")
LIMIT_S = 300.0
CASES = {
    "quantized_matmul": ("bfloat16-b4g64-1x4096-4096", "bfloat16-b4g64-8x4096-4096", "bfloat16-b4g64-512x4096-4096"),
    "quantized_projections": (
        "bfloat16-b4g64-1x4096-4096+1024+1024",
        "add-norm-bfloat16-b4-1x4096-4096+1024+1024",
    ),
    "gather_qmm": ("bfloat16-several-affine4",),
    "attention": ("bfloat16-1x8x2x512x512x128x128-causal", "bfloat16-backward-1x8x2x512x512x128x128-causal"),
    "attention_decode": ("bfloat16-32k-d128",),
    "quantized_attention": ("bfloat16-32k-4bit-g64",),
    "conv": ("bfloat16-resnet-56",),
    "rms_norm": ("bfloat16-40000x4096",),
    "add_rms_norm": ("bfloat16-20000x4096",),
    "layer_norm": ("bfloat16-40000x4096",),
    "softmax": ("bfloat16-8192x4096-axis--1",),
    "cross_entropy": ("bfloat16-512x152064-int64-smooth-0.0",),
    "gated_linear_unit": ("bfloat16-silu-4096x14336",),
    "rope": ("bfloat16-large",),
    "gated_delta": ("bfloat16-1x512-h16-32-d128-128-state", "bfloat16-4x1-h16-32-d128-128-state"),
    "selective_scan": ("bfloat16-1x1024x5120x16",),
    "ssd": ("bfloat16-1x512-h80-1-d64-128-state",),
    "wkv7": ("bfloat16-1x300x32x64-state",),
    "sort": ("argbfloat16-16x151936-axis-1",),
    "topk": ("bfloat16-2x151936-k50-axis-1",),
}
"""What is shown of each hot op: cases of its suite."""


class Public(NamedTuple):
    """A figure that somebody published.

    Args:
        gpu: The GPU.
        tool: What was run.
        figure: What came out.
        source: Where it stands.
    """

    gpu: str
    tool: str
    figure: str
    source: str


PUBLIC = (
    Public(
        "Radeon 8060S (gfx1151)",
        "llama.cpp, ROCm: a model of 18.31 GiB in Q6_K, one token at a time",
        "11.34 tokens/s, which is 223 GB/s of weights",
        "https://github.com/ggml-org/llama.cpp/issues/17596",
    ),
    Public(
        "Radeon 8060S (gfx1151)",
        "rocm_bandwidth_test; bf16 matrix products of hipBLASLt",
        "212 GB/s; 36.9 TFLOPS",
        "https://llm-tracker.info/_TOORG/Strix-Halo",
    ),
    Public(
        "Radeon RX 7900 XTX (gfx1100)",
        "llama.cpp, ROCm: llama 8B Q4_K_M, prompt in batches of 512, then 64 tokens",
        "3,227 and 105.8 tokens/s",
        "https://github.com/ggml-org/llama.cpp/pull/26284",
    ),
    Public(
        "Radeon RX 7900 XTX (gfx1100)",
        "llama.cpp: LLaMA 7B Q4_0, 128 tokens, with ROCm and with Vulkan",
        "129 to 144 and 167 to 177 tokens/s",
        "https://github.com/ggml-org/llama.cpp/issues/20934",
    ),
    Public(
        "Radeon RX 9070 XT (gfx1201)",
        "LM Studio (llama.cpp): gpt-oss-20b, with ROCm and with Vulkan",
        "about 110 and 132 tokens/s",
        "https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/574",
    ),
    Public(
        "Instinct MI300X (gfx942)",
        "aiter: fp8 matrix product, 32 x 8192 by 1280",
        "10.7 µs, which is 0.98 TB/s of weights",
        "https://github.com/ROCm/aiter/pull/1092",
    ),
)


class Row(NamedTuple):
    """A case on a target.

    Args:
        op: The op.
        case: The case.
        target: The target.
        launches: Estimates of its launches; empty where there is none.
        floor_us: The least time that the published peaks allow.
        bytes: Bytes that must travel.
        error: Why there is none.
    """

    op: str
    case: str
    target: str
    launches: tuple[Estimate, ...]
    floor_us: float
    bytes: float
    error: str


def floor_of(op_name: str, case_name: str, target_name: str) -> tuple[float, float]:
    """Return the least time of a case in microseconds, by a product's published peaks, and its bytes."""
    op, gpu = registry.get(op_name), hardware(target_name)
    target = targets.by_name(target_name, compute_units=gpu.compute_units)
    case = next(one for one in resolve(op.cases)() if one.name == case_name)
    function = resolve(op.functions[case.function] if case.function else next(iter(op.functions.values())))
    from rocmend.kernels.compiled.record import META

    call = case.make(Maker(META, 0))
    with executor.using(Recorder(target)), select.prefer(*case.preferences), select.observed() as problems:
        function(*call.args, **call.kwargs)
    problem = next(found for name, found, _ in problems if name == op_name)
    floor = explain(op, problem, target, here=False, product=gpu.product).floor
    times = [] if floor is None else [one for one in (floor.travel_us, floor.arithmetic_us) if one is not None]
    return max(times, default=0.0), float(op.cost(problem).bytes)


def estimate_all(names: Iterable[str]) -> list[Row]:
    """Compile and estimate the cases of ops for all targets, in workers."""
    wanted = [(op, case, target) for op in names for case in CASES[op] for target in TARGETS]
    answers: dict[tuple[str, str, str], dict[str, Any]] = {}

    def done(key: tuple[str, str, str], answer: dict[str, Any]) -> None:
        answers[key] = answer
        print(f"{len(answers)} of {len(wanted)}: {' '.join(key)}", file=sys.stderr)

    tasks = [
        ((op, case, target), toolchain_for(target),
         {"do": "estimate", "op": op, "kernel": "", "class": "*", "cases": [case], "target": target, "product": None})
        for op, case, target in wanted
    ]  # fmt: skip
    Pool[tuple[str, str, str]](os.cpu_count() or 1, LIMIT_S).map(tasks, done)
    rows = []
    for key in wanted:
        answer = answers[key]
        launches = tuple(msgspec.convert(one, Estimate) for one in answer.get("ok", ()))
        error = str(answer.get("error", "")).strip().splitlines()[:1]
        try:
            floor_us, size = floor_of(*key)
        except Exception as failure:  # noqa: BLE001  a case that an op does not support on a target
            floor_us, size, error = 0.0, 0.0, [str(failure)]
        rows.append(Row(*key, launches, floor_us, size, error[0] if error else ""))
    return rows


def page(rows: Iterable[Row], triton: str) -> str:
    """Return the page."""
    gpus = ", ".join(f"{name} ({hardware(name).product})" for name in TARGETS)
    about = (
        "**Every time on this page is an estimate of a model. Nothing was run on these GPUs, and no estimate was "
        "compared with a measurement on one.** The [cost model](../explanation/kernels.md#the-cost-model) computes "
        "them from the compiled code. They say what limits a kernel, not how fast it is. "
        f"Version {VERSION} of the model, Triton {triton}; {gpus}."
    )
    how = (
        "The floor is the larger of the bytes that must travel over the peak bandwidth, and the arithmetic over the "
        "peak rate, both as published. The time is that of all launches of a call, each with 3 µs from the launch "
        "before; `bound by` names the unit that limits the longest launch. `of the floor` is the floor over the time."
    )
    command = "```console\n$ python -m benchmarks.kernels.estimates docs/reference/kernels-estimates.md\n```"
    about, how = (textwrap.fill(text, 160, break_on_hyphens=False) for text in (about, how))
    parts = ["# Estimates for AMD GPUs", about, command, how]
    by_op: dict[str, list[Row]] = {}
    for row in rows:
        by_op.setdefault(row.op, []).append(row)
    for op, own in by_op.items():
        lines = [
            "| case | GPU | bound by | µs | floor, µs | of the floor | GB/s | occupancy |",
            "|---|---|---|--:|--:|--:|--:|--:|",
        ]
        lines += [_line(row) for row in own]
        parts += [f"## {op}", "\n".join(lines)]
    parts += [
        "## What other tools report on these GPUs",
        "Published measurements of others, for orientation: whole models or other kernels, not these cases.",
        "\n".join(
            ["| GPU | what | figure | source |", "|---|---|---|---|"]
            + [f"| {one.gpu} | {one.tool} | {one.figure} | <{one.source}> |" for one in PUBLIC]
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _line(row: Row) -> str:
    if not row.launches:
        return f"| `{row.case}` | {row.target} | no estimate: {row.error[:80] or 'it launches nothing'} | | | | | |"
    total = sum(one.time_us for one in row.launches)
    longest = max(row.launches, key=lambda one: one.time_us)
    spilled = ", spills" if any(one.spills for one in row.launches) else ""
    floor = f"{row.floor_us:,.1f} | {100 * row.floor_us / total:.0f} %" if row.floor_us else " | "
    return (
        f"| `{row.case}` | {row.target} | {longest.bound}{spilled} | {total:,.1f} | {floor} "
        f"| {row.bytes / total / 1e3:,.0f} | {longest.occupancy} |"
    )


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description="Write what the cost model says of the kernels on AMD GPUs.")
    parser.add_argument("page", type=Path)
    parser.add_argument("--op", action="append", choices=sorted(CASES), help="Only these ops.")
    given = parser.parse_args()
    rows = estimate_all(given.op or CASES)
    given.page.write_text(page(rows, toolchain_for(TARGETS[0]).version), encoding="utf-8")


if __name__ == "__main__":
    main()
