"""What each process of a group computes; leaves with 0 where all of it is right. Run by ``test_distributed.py``."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

from rocmend.mlx import activate
from rocmend.mlx.distributed.group import leave

activate()
import mlx.core

mx: Any = mlx.core
WORLD = mx.distributed.init(strict=True, backend=sys.argv[1])
RANK, SIZE = WORLD.rank(), WORLD.size()


def check(got: Any, expected: Any) -> None:
    """Fail if an array is not what it should be."""
    if got.tolist() != expected:
        raise AssertionError(f"rank {RANK}: {got.tolist()} is not {expected}")


def reductions() -> None:
    """Sum, greatest and least for every type, with numbers that have the top bit set."""
    for dtype in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
        kind = getattr(mx, dtype)
        top = 2 ** (8 * kind.size) - 1 if dtype.startswith("u") else 2 ** (8 * kind.size - 1) - 1
        x = mx.array([top - RANK if dtype[0] == "i" else 0, RANK], kind)
        if dtype[0] == "u":  # wraps around, as a list cannot hold the greatest of 64 bits
            x = x - mx.array([1 + RANK, 0], kind)
        check(mx.distributed.all_max(x), [top, SIZE - 1])
        check(mx.distributed.all_min(x), [top - SIZE + 1, 0])
        check(mx.distributed.all_sum(mx.array([RANK, 3], kind)), [SIZE * (SIZE - 1) // 2, 3 * SIZE])
    for dtype in ("float16", "bfloat16", "float32", "float64", "complex64"):
        x = mx.array([RANK + 0.5, -1], getattr(mx, dtype))
        check(mx.distributed.all_sum(x), [SIZE * SIZE / 2, -SIZE])
    check(mx.distributed.all_max(mx.array([RANK == 0, False])), [True, False])
    check(mx.distributed.all_min(mx.array([RANK == 0, True])), [False, True])
    strided = (mx.arange(6).reshape(2, 3) + RANK).T
    check(
        mx.distributed.all_sum(strided),
        [[SIZE * v + SIZE * (SIZE - 1) // 2 for v in row] for row in ([0, 3], [1, 4], [2, 5])],
    )
    kept = mx.array([RANK, 1])
    check(mx.distributed.all_sum(kept), [SIZE * (SIZE - 1) // 2, SIZE])
    check(kept, [RANK, 1])


def moves() -> None:
    """Gather, scatter, send and receive."""
    check(mx.distributed.all_gather(mx.array(RANK)), list(range(SIZE)))
    x = mx.full((2, 3), RANK, mx.bfloat16)
    check(mx.distributed.all_gather(x), [[rank] * 3 for rank in range(SIZE) for _ in range(2)])
    check(mx.distributed.sum_scatter(mx.arange(2 * SIZE) + RANK), [
        SIZE * v + SIZE * (SIZE - 1) // 2 for v in (2 * RANK, 2 * RANK + 1)
    ])  # fmt: skip
    after, before = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    sent = mx.distributed.send(mx.array([RANK, 7], mx.uint16), after)  # all send before any receives
    mx.eval(sent)
    check(sent, [RANK, 7])
    check(mx.distributed.recv((2,), mx.uint16, before), [before, 7])
    mx.eval(mx.distributed.send(mx.array([[RANK * 1j]]), after))
    check(mx.distributed.recv_like(mx.zeros((1, 1), mx.complex64), before), [[before * 1j]])


def rules() -> None:
    """Derivatives and batches."""
    x = mx.array([1.0, 2.0]) * (RANK + 1)
    total = SIZE * (SIZE + 1) // 2
    check(mx.grad(lambda v: (mx.distributed.all_sum(v) * mx.array([1.0, 3.0])).sum())(x), [1.0, 3.0])
    check(mx.grad(lambda v: (mx.distributed.all_max(v) * 2).sum())(x), [2.0 * (RANK == SIZE - 1)] * 2)
    weights = mx.arange(2 * SIZE, dtype=mx.float32)
    check(mx.grad(lambda v: (mx.distributed.all_gather(v) * weights).sum())(x), [2.0 * RANK, 2.0 * RANK + 1])
    out, tangent = mx.jvp(mx.distributed.all_sum, [x], [mx.ones(2)])
    check(out[0], [total, 2.0 * total])
    check(tangent[0], [SIZE, SIZE])
    rows = mx.arange(6, dtype=mx.float32).reshape(2, 3)
    check(mx.vmap(mx.distributed.all_sum, in_axes=1, out_axes=1)(rows), (rows * SIZE).tolist())
    check(mx.vmap(mx.distributed.all_gather)(rows), [row * SIZE for row in rows.tolist()])
    check(mx.vmap(mx.distributed.all_gather)(mx.array([1.0, 2.0])), [[1.0] * SIZE, [2.0] * SIZE])


def groups() -> None:
    """A group split by color, with the order turned round."""
    part = WORLD.split(RANK % 2, SIZE - RANK)
    members = [rank for rank in reversed(range(SIZE)) if rank % 2 == RANK % 2]
    if (part.size(), part.rank()) != (len(members), members.index(RANK)):
        raise AssertionError(f"rank {RANK}: {part.rank()} of {part.size()}")
    check(mx.distributed.all_gather(mx.array([RANK]), group=part), members)
    check(mx.distributed.sum_scatter(mx.arange(part.size()), group=part), [part.rank() * part.size()])
    if part.size() > 1:
        peer = 1 - part.rank()
        mx.eval(mx.distributed.send(mx.array(RANK), peer, group=part))
        check(mx.distributed.recv((), mx.int32, peer, group=part), members[peer])


def training() -> None:
    """Data-parallel training with mlx.nn: gradients averaged over processes are those of the whole batch."""
    from mlx.nn.utils import average_gradients

    from mlx import nn

    mx.random.seed(3)
    model = nn.Linear(4, 2)
    x, y = mx.random.normal((2 * SIZE, 4)), mx.random.normal((2 * SIZE, 2))

    def loss(model: Any, x: Any, y: Any) -> Any:
        return nn.losses.mse_loss(model(x), y)

    _, whole = nn.value_and_grad(model, loss)(model, x, y)
    _, part = nn.value_and_grad(model, loss)(model, x[2 * RANK : 2 * RANK + 2], y[2 * RANK : 2 * RANK + 2])
    averaged = average_gradients(part)
    for name in ("weight", "bias"):
        if not math.isclose(mx.abs(averaged[name] - whole[name]).max().item(), 0, abs_tol=1e-5):
            raise AssertionError(f"rank {RANK}: gradient of {name} differs")


def split_model() -> None:
    """A model of mlx_lm whose layers are split over the processes generates what the whole one does."""
    from mlx_lm.generate import generate_step
    from mlx_lm.models import llama

    from mlx import nn

    config = {
        "model_type": "llama", "hidden_size": 128, "num_hidden_layers": 2, "intermediate_size": 256,
        "num_attention_heads": 8, "num_key_value_heads": 4, "rms_norm_eps": 1e-5, "vocab_size": 256,
        "rope_theta": 5e5, "tie_word_embeddings": False,
    }  # fmt: skip
    prompt = mx.array([(7 * i * i + 3 * i + 11) % 256 for i in range(19)])
    for quantized in (False, True):
        models = []
        for _ in range(2):
            mx.random.seed(0)
            model: Any = llama.Model(llama.ModelArgs.from_dict(config))
            if quantized:
                nn.quantize(model, group_size=32, bits=4)
            mx.eval(model.parameters())
            models.append(model)
        whole, split = models
        split.shard(WORLD)
        difference = mx.abs(whole(prompt[None]) - split(prompt[None])).max().item()
        if difference > 1e-4 * mx.abs(whole(prompt[None])).max().item():
            raise AssertionError(f"rank {RANK}: logits differ by {difference}")
        one, other = ([int(token) for token, _ in generate_step(prompt, model, max_tokens=12)] for model in models)
        if one != other:
            raise AssertionError(f"rank {RANK}: {other} is not {one}")


def leaving() -> None:
    """No thread of gloo outlives the groups: one that lets go of a tensor while Python ends aborts the process."""
    leave()
    tasks = Path("/proc/self/task")
    if tasks.is_dir():
        names = [(task / "comm").read_text() for task in tasks.iterdir()]
        if any("gloo" in name for name in names):
            raise AssertionError(f"rank {RANK}: {names}")


for part in (reductions, moves, rules, groups, training, split_model, leaving):
    part()
