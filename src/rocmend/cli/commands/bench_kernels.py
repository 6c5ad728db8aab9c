"""``rocmend bench kernels``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
import msgspec

from rocmend.cli.base import OneOf, rocmend_command
from rocmend.cli.bench import bench_options, run_bench

if TYPE_CHECKING:
    from rocmend.bench.case import Case
    from rocmend.bench.suites.kernels import Operations
    from rocmend.cli.bench import Bench, BenchOptions

_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}


@rocmend_command(
    "kernels",
    examples=(
        ("rocmend bench kernels", "rocmend's kernels and torch's at the shapes of Llama-3.1-8B"),
        (
            "rocmend bench kernels --select 'rms_norm/*' --setting torch-compile --setting rocmend",
            "against torch.compile",
        ),
    ),
)
@click.option(
    "--dtype", "dtypes", type=OneOf(_DTYPES), multiple=True, default=("bf16",), show_default=True, help="Repeatable."
)
@click.option("--tiny", is_flag=True, help="Tiny shapes, to try the command.")
@bench_options
def command(dtypes: tuple[str, ...], tiny: bool, common: BenchOptions) -> None:
    """Measure rocmend's kernels beside torch's.

    Norms, gated units, rotary embeddings, attention, losses and products with 4-bit weights, of one token and of a
    prompt. A result is first compared with the op's reference in float64; a wrong one gets no figure. A GPU is needed:
    without one rocmend's side is `unsupported`. Exit code 1 means that something has no figure.
    """
    from rocmend.bench.suites.kernels import LLAMA, TINY, operation_cases
    from rocmend.core.optional import need

    if common.python is None and not common.list_only:
        need("bench kernels")
    cases = operation_cases([_DTYPES[name] for name in dict.fromkeys(dtypes)], TINY if tiny else LLAMA)
    run_bench("bench kernels", common, lambda bench: _suite(bench, cases))


def _suite(bench: Bench, cases: list[Case]) -> Operations:
    """Make the suite, with rocmend's own interpreter unless another one is named: the kernels are there."""
    from rocmend.bench.suites.kernels import DEFAULT_SETTINGS, SETTINGS, Operations

    common, torch = bench.common, bench.torch
    if common.python is None:
        torch = msgspec.structs.replace(torch, python=sys.executable)
    wanted = [one for one in SETTINGS if common.settings or one.id in DEFAULT_SETTINGS]
    return Operations(torch, cases, wanted)
