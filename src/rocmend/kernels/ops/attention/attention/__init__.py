"""Scaled-dot-product attention and its gradients: masks, sliding window, sinks, soft cap, grouped heads."""

from __future__ import annotations

import os
from typing import NamedTuple

from rocmend.kernels.common.floats import bytes_of, rejects_dtype
from rocmend.kernels.op import Cost, Implementation, Tolerance
from rocmend.kernels.ops.attention.attention_decode import Problem as Decode
from rocmend.kernels.registry import declare
from rocmend.kernels.target import Target

# gfx targets for which PyTorch's ROCm builds have flash attention without an environment variable.
# https://github.com/ROCm/aotriton
AOTRITON = ("gfx90a", "gfx942", "gfx950")
AOTRITON_VARIABLE = "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL"

# Up to this many queries are computed by splitting the keys.
FEW = 16
# Products of lengths from which on torch is to ask cuDNN. That takes 30 ms to prepare for each new length, and every
# prompt has another one: a short one is not worth it.
MANY = 1 << 20


class Problem(NamedTuple):
    """What choices depend on.

    Args:
        dtype: Of q, k and v.
        batch: B.
        heads: H, of the queries.
        kv_heads: KV, of keys and values.
        queries: L.
        keys: S.
        dim: D, of queries and keys.
        dim_v: Dv, of values.
        mask: ``none``, ``causal``, ``boolean`` or ``additive``.
        window: Keys that a query sees at most; 0 for all.
        sinks: Whether there are sinks.
        soft_cap: Whether there is a soft cap.
        lse: Whether the logarithms of the softmax's sums are asked for.
        grad: Whether gradients will be asked for.
    """

    dtype: str
    batch: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    dim: int
    dim_v: int
    mask: str = "none"
    window: int = 0
    sinks: bool = False
    soft_cap: bool = False
    lse: bool = False
    grad: bool = False


def split(dim: int, least: int = 16) -> tuple[int, int]:
    """Return the powers of two, 16 at least, that a head dimension is computed in: 80 is (64, 16), 100 is (128, 0).

    Args:
        dim: The head dimension.
        least: A second piece has as many columns at least.
    """
    whole = max(16, 1 << (dim - 1).bit_length())
    first, second = whole // 2, dim - whole // 2
    exact = first >= 64 and least <= second < first and second.bit_count() == 1
    return (first, second) if exact else (whole, 0)


def shape_class(problem: Problem) -> str:
    """Element size and head dimension, which decide the tiles: ``half-d128``, ``float32-d64``, ``half-d192``."""
    kind = "float32" if problem.dtype == "float32" else "half"
    dim = max(sum(split(max(problem.dim, 1))), sum(split(max(problem.dim_v, 1))))
    edge = next((edge for edge in (64, 96, 128, 192, 256) if dim <= edge), 512)
    return f"{kind}-d{edge}"


def pairs(problem: Problem) -> int:
    """Return how many (query, key) pairs a head computes."""
    queries, keys = problem.queries, problem.keys
    if problem.mask != "causal":
        return queries * keys
    shown = min(queries, keys)
    total = shown * keys - shown * (shown - 1) // 2
    return min(total, queries * problem.window) if problem.window else total


def cost(problem: Problem) -> Cost:
    """Two products of every pair; q, k, v read and the output written once."""
    size = bytes_of(problem.dtype)
    rows, columns = problem.batch * problem.heads * problem.queries, problem.batch * problem.kv_heads * problem.keys
    width = problem.dim + problem.dim_v
    return Cost(2.0 * problem.batch * problem.heads * pairs(problem) * width, float(size * width * (rows + columns)))


def _rejects_flash(problem: Problem, target: Target) -> str | None:
    if reason := rejects_dtype(problem, target):
        return reason
    if max(problem.dim, problem.dim_v) > 1024:
        return "the kernel takes head dimensions up to 1024"
    return None


def _rejects_decode(problem: Problem, target: Target) -> str | None:
    if problem.queries > FEW:
        return f"more than {FEW} queries fill a block: use the prefill kernel"
    if problem.lse or problem.grad:
        return "it does not return the log-sum-exp that gradients need"
    if 0 in problem[1:7]:
        return "nothing to compute"
    return _rejects_flash(problem, target)


def _flash_records(problem: Problem) -> str:
    kind = shape_class(problem)
    return f"forward/{kind}" + f" dq/{kind} dkv/{kind} delta/*" * problem.grad


def _calls_decode(problem: Problem) -> tuple[tuple[str, Decode], ...]:
    return (("attention_decode", Decode(*problem[:8])),)


def _rejects_torch(problem: Problem, target: Target) -> str | None:  # noqa: PLR0911  a rule is a list of reasons
    """Say why torch's own attention does not do what is asked, or has no kernel for it."""
    asked = [
        name
        for name, on in (("a window", problem.window), ("sinks", problem.sinks), ("a soft cap", problem.soft_cap),
                         ("log-sum-exp output", problem.lse))
        if on
    ]  # fmt: skip
    if asked:
        return f"torch's function has no {' and no '.join(asked)}"
    if problem.mask in ("boolean", "additive"):
        return "torch's flash kernels take no mask, and its other kernels differ on rows with every key masked"
    if problem.mask == "causal" and problem.queries != problem.keys:
        return "torch aligns its causal mask to the start: the results agree only if L = S"
    if problem.dtype not in ("float16", "bfloat16"):
        return "torch's flash kernels take float16 and bfloat16"
    if problem.dim != problem.dim_v or problem.dim > 256 or problem.dim % 8:
        return "torch's flash kernels need D = Dv, up to 256 and a multiple of 8"
    if 0 in (problem.batch, problem.heads, problem.queries, problem.keys):
        return "nothing to compute"
    if target.vendor == "cpu":
        return "the reference is used on the CPU"
    if target.vendor == "amd" and target.name not in AOTRITON and os.environ.get(AOTRITON_VARIABLE) != "1":
        return (
            f"torch has no flash attention for {target.name} unless {AOTRITON_VARIABLE}=1, and would store all scores"
        )
    return None


def _rejects_torch_forward(problem: Problem, target: Target) -> str | None:
    if problem.grad:
        return "torch's backward adds with float atomics: gradients differ from run to run"
    if _ahead_of_torch(problem, target):
        return "the kernel is faster than torch's flash attention for this few queries and keys"
    return _rejects_torch(problem, target)


def _ahead_of_torch(problem: Problem, target: Target) -> bool:
    """Return whether the kernel is known to be faster than torch, where that takes its own flash attention.

    On an H200 (bfloat16, 8 and 32 heads, batches of 1 and 8, lengths of 64 to 512) it is 1.1 to 2.5 times as fast; with
    heads of 256 and 64 queries it is slower. cuDNN, asked for longer ones, is 0.8 to 1.5 times as fast as the kernel.
    """
    measured = problem.dim in (64, 96, 128) or (problem.dim in (192, 256) and problem.queries >= 256)
    return target.name == "sm90" and measured and problem.queries * problem.keys < MANY


OP = declare(
    __name__,
    summary="Scaled-dot-product attention (prefill and training) and its gradients.",
    functions=("scaled_dot_product_attention", "attention_backward"),
    reference="attention",
    problem=Problem,
    implementations=(
        Implementation(
            "decode-split",
            "triton",
            "decode:run",
            _rejects_decode,
            note="few queries: split over the keys, all query heads of a group in one program",
            calls=_calls_decode,
        ),
        Implementation("torch.sdpa", "vendor", "vendor:run", _rejects_torch_forward),
        Implementation(
            "flash",
            "triton",
            "host:run",
            _rejects_flash,
            note="one pass over the keys; deterministic",
            record_class=_flash_records,
        ),
        Implementation(
            "torch.sdpa-training",
            "vendor",
            "vendor:run",
            _rejects_torch,
            note="torch's own gradients, which differ from run to run; used only on request",
        ),
        Implementation("torch", "reference", "reference:attention"),
    ),
    domain="q [B,H,L,D], k [B,KV,S,D], v [B,KV,S,Dv], H a multiple of KV, D and Dv up to 1024, any strides; "
    "mask none, causal (aligned to the end, with or without a window), boolean or additive of any strides; "
    "sinks [H]; soft cap. No gradient of an additive mask.",
    cost=cost,
    tolerance={
        # Sums of D and of S products, and exp2 of a score whose rounding error grows with its size.
        "float32": Tolerance(ulps=4, scaled=4e-6),
        # The weights are rounded to the type before the second product.
        "float16": Tolerance(ulps=1, scaled=6e-4),
        "bfloat16": Tolerance(ulps=1, scaled=5e-3),
    },
    shape_class=shape_class,
    mlx="mlx.core.fast.scaled_dot_product_attention",
    sources=(
        "https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.fast.scaled_dot_product_attention.html",
        "https://arxiv.org/abs/2205.14135",
        "https://arxiv.org/abs/2307.08691",
    ),
    notes=(
        "A query with every key masked by a boolean or causal mask returns the mean of the values, as in MLX.",
        "It returns zeros with sinks or if S = 0, NaN if an additive mask is all -inf. No gradient flows back.",
    ),
)
