"""What the processes of a group do together. All of them must compute the same operations in the same order."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx import dtypes
from rocmend.mlx.arguments import as_stream, shape_text, to_array
from rocmend.mlx.array import record
from rocmend.mlx.distributed.group import Group, group_of
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rocmend.mlx.array import array
    from rocmend.mlx.device import Device, DeviceType, Stream
    from rocmend.mlx.dtypes import Dtype
    from rocmend.mlx.node import Node

    Where = Stream | Device | DeviceType | None

__all__ = ["all_gather", "all_max", "all_min", "all_sum", "recv", "recv_like", "send", "sum_scatter"]

_SUMMED = {torch.int16: torch.int32, torch.float16: torch.float32, torch.bfloat16: torch.float32}


# -- how tensors travel


def _meeting(group: Group, tensor: torch.Tensor) -> torch.device:
    """Return the device on which a group exchanges a tensor."""
    import torch.distributed as dist

    names = str(dist.get_backend_config(group.handle))
    if tensor.device.type == "cuda" and "nccl" not in names:
        return torch.device("cpu")
    if tensor.device.type == "cpu" and "gloo" not in names and "mpi" not in names:
        return torch.device("cuda", torch.cuda.current_device())
    return tensor.device


def _post(group: Group, device: torch.device) -> torch.device:
    """Return the device on which single processes exchange tensors: the CPU wherever gloo is there.

    Nccl's sends end when they are received, and stand in one queue with receives: two processes that both send first
    would wait for each other for ever.
    """
    import torch.distributed as dist

    if "gloo" in str(dist.get_backend_config(group.handle)):
        return torch.device("cpu")
    return device


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor's bytes, flat."""
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def _from_bits(raw: torch.Tensor, node: Node) -> torch.Tensor:
    return raw.view(node.dtype.storage).reshape(node.shape)


def _reduced(group: Group, tensor: torch.Tensor, dtype: Dtype, op: str, exchange: Callable[..., torch.Tensor]) -> Any:
    """Bring a tensor into a type that every backend reduces, exchange, and bring it back.

    float16 and bfloat16 are summed in float32 where gloo does it; unsigned integers are compared with the top bit
    turned over, so that their order is that of signed ones.
    """
    where = _meeting(group, tensor)
    moved = tensor.to(where)
    if dtype.is_complex:
        moved = torch.view_as_real(moved)
    elif dtype is dtypes.bool_:
        moved = moved.to(torch.int32)
    elif dtype.is_unsigned and op != "sum":
        moved = moved ^ torch.iinfo(moved.dtype).min
    if where.type == "cpu" or moved.dtype is torch.int16:
        moved = moved.to(_SUMMED.get(moved.dtype, moved.dtype))
    result = exchange(moved.contiguous().clone())
    if dtype.is_complex:
        result = torch.view_as_complex(result)
    elif dtype is dtypes.bool_:
        result = result != 0
    result = result.to(dtype.storage)
    if dtype.is_unsigned and op != "sum":
        result = result ^ torch.iinfo(result.dtype).min
    return result.to(tensor.device)


def _operation(op: str) -> Any:
    import torch.distributed as dist

    return {"sum": dist.ReduceOp.SUM, "max": dist.ReduceOp.MAX, "min": dist.ReduceOp.MIN}[op]


# -- all_sum, all_max, all_min


def _all_reduce(node: Node, x: torch.Tensor) -> torch.Tensor:
    import torch.distributed as dist

    op, group = node.attrs

    def exchange(moved: torch.Tensor) -> torch.Tensor:
        dist.all_reduce(moved, _operation(op), group.handle)
        return moved

    result: torch.Tensor = _reduced(group, x, node.dtype, op, exchange)
    return result


ALL_REDUCE = Primitive("AllReduce", _all_reduce, meets=True)


def _reduce(op: str, x: Any, group: Group | None, stream: Where) -> array:
    x, where = to_array(x), as_stream(stream)
    group = group_of(group)
    if group.size() == 1:
        return _same(x)
    if op != "sum" and x.dtype.is_complex:
        raise ValueError(f"[all_{op}] complex numbers have no order.")
    return record(ALL_REDUCE, (x._n,), x.shape, x.dtype, (op, group), None, where)


def _same(x: array) -> array:
    """Return another handle of what ``x`` is now."""
    from rocmend.mlx.array import wrap

    return wrap(x._n)


@ALL_REDUCE.rule("vjp")
def _(node: Node, primals: Sequence[array], output: array, cotangent: array) -> list[array]:
    op, _group = node.attrs
    if op == "sum":
        return [cotangent]
    return [ops.where(ops.equal(primals[0], output), cotangent, ops.zeros_like(cotangent))]


@ALL_REDUCE.rule("jvp")
def _(node: Node, primals: Sequence[array], tangents: Sequence[array], output: array) -> array:
    op, group = node.attrs
    tangent = tangents[0]
    if op != "sum":
        tangent = ops.where(ops.equal(primals[0], output), tangent, ops.zeros_like(tangent))
    return _reduce("sum", tangent, group, node.stream)


@ALL_REDUCE.rule("vmap")
def _(node: Node, arrays: Sequence[array], axes: Sequence[int | None]) -> tuple[array, int | None]:
    op, group = node.attrs
    return _reduce(op, arrays[0], group, node.stream), axes[0]


def all_sum(x: array, *, group: Group | None = None, stream: Where = None) -> array:
    """Sum the arrays of all processes, element by element.

    Args:
        x: any shape and type, the same in every process.
        group: the processes; None: all of them.
        stream: where it is computed.

    Returns:
        The sum, in every process.
    """
    return _reduce("sum", x, group, stream)


def all_max(x: array, *, group: Group | None = None, stream: Where = None) -> array:
    """Return the greatest of the arrays of all processes, element by element; arguments as of ``all_sum``."""
    return _reduce("max", x, group, stream)


def all_min(x: array, *, group: Group | None = None, stream: Where = None) -> array:
    """Return the least of the arrays of all processes, element by element; arguments as of ``all_sum``."""
    return _reduce("min", x, group, stream)


# -- all_gather, sum_scatter


def _all_gather(node: Node, x: torch.Tensor) -> torch.Tensor:
    import torch.distributed as dist

    group = node.attrs
    raw = _bits(x).to(_meeting(group, x))
    parts = [torch.empty_like(raw) for _ in range(group.size())]
    dist.all_gather(parts if group.members is None else [parts[rank] for rank in group.members], raw, group.handle)
    return _from_bits(torch.cat(parts).to(x.device), node)


ALL_GATHER = Primitive("AllGather", _all_gather, meets=True)


def all_gather(x: array, *, group: Group | None = None, stream: Where = None) -> array:
    """Concatenate the arrays of all processes along the first axis.

    Args:
        x: ``(n, ...)``, the same shape and type in every process; a 0-d array counts as one of one element.
        group: the processes; None: all of them.
        stream: where it is computed.

    Returns:
        ``(size n, ...)``, in every process.
    """
    x, where = to_array(x), as_stream(stream)
    group = group_of(group)
    if group.size() == 1:
        return _same(x)
    shape = (group.size() * x.shape[0], *x.shape[1:]) if x.ndim else (group.size(),)
    return record(ALL_GATHER, (x._n,), shape, x.dtype, group, None, where)


@ALL_GATHER.rule("vjp")
def _(node: Node, primals: Sequence[array], output: array, cotangent: array) -> list[array]:
    del output
    group, x = node.attrs, primals[0]
    count = x.shape[0] if x.ndim else 1
    own = cotangent[group.rank() * count : (group.rank() + 1) * count]
    return [ops.reshape(own, x.shape)]


@ALL_GATHER.rule("jvp")
def _(node: Node, primals: Sequence[array], tangents: Sequence[array], output: array) -> array:
    del primals, output
    return all_gather(tangents[0], group=node.attrs, stream=node.stream)


@ALL_GATHER.rule("vmap")
def _(node: Node, arrays: Sequence[array], axes: Sequence[int | None]) -> tuple[array, int | None]:
    x, axis = arrays[0], axes[0]
    if axis is None:
        return all_gather(x, group=node.attrs, stream=node.stream), None
    x = ops.expand_dims(x, 0) if x.ndim == 1 else ops.moveaxis(x, axis, 1)
    return all_gather(x, group=node.attrs, stream=node.stream), 1


def _sum_scatter(node: Node, x: torch.Tensor) -> torch.Tensor:
    import torch.distributed as dist

    group = node.attrs

    def exchange(moved: torch.Tensor) -> torch.Tensor:
        if moved.device.type == "cpu":  # gloo has no reduce-scatter
            dist.all_reduce(moved, dist.ReduceOp.SUM, group.handle)
            part: torch.Tensor = moved.chunk(group.size())[group.rank()].clone()
            return part
        chunks = moved.chunk(group.size())
        own = torch.empty_like(chunks[0])
        if group.members is not None:
            moved = torch.cat([chunks[rank] for rank in group.members])
        dist.reduce_scatter_tensor(own, moved, dist.ReduceOp.SUM, group.handle)
        return own

    result: torch.Tensor = _reduced(group, x, node.dtype, "sum", exchange)
    return result


SUM_SCATTER = Primitive("SumScatter", _sum_scatter, meets=True)


def sum_scatter(x: array, *, group: Group | None = None, stream: Where = None) -> array:
    """Sum the arrays of all processes and give each process its part of the first axis.

    Args:
        x: ``(n, ...)``, n divisible by the size of the group.
        group: the processes; None: all of them.
        stream: where it is computed.

    Returns:
        ``(n / size, ...)``: ``all_sum(x)[rank n / size : (rank + 1) n / size]``.

    Raises:
        ValueError: n is not divisible by the size of the group.
    """
    x, where = to_array(x), as_stream(stream)
    group = group_of(group)
    if group.size() == 1:
        return _same(x)
    if not x.ndim or x.shape[0] % group.size():
        raise ValueError(
            f"[sum_scatter] Invalid shape={shape_text(x.shape)} for a group of size {group.size()}. The first "
            "dimension (axis 0) must be divisible by the group size."
        )
    shape = (x.shape[0] // group.size(), *x.shape[1:])
    return record(SUM_SCATTER, (x._n,), shape, x.dtype, group, None, where)


# -- send, recv


def _send(node: Node, x: torch.Tensor) -> torch.Tensor:
    import torch.distributed as dist

    dst, group = node.attrs
    device = _post(group, _meeting(group, x))
    raw = _bits(x).to(device, copy=True)  # what it is a view of may be written to while it travels
    group.settle()
    work = dist.isend(raw, group=group.handle, group_dst=group.place(dst))
    group.pending.append((work, raw))
    return x


def _recv(node: Node) -> torch.Tensor:
    import torch.distributed as dist

    src, group = node.attrs
    place = torch.empty(0, device=node.stream.device.torch)
    device = _post(group, _meeting(group, place))
    raw = torch.empty(prod(node.shape) * node.dtype.size, dtype=torch.uint8, device=device)
    dist.recv(raw, group=group.handle, group_src=group.place(src))
    return _from_bits(raw.to(place.device), node)


SEND = Primitive("Send", _send, meets=True)
RECV = Primitive("Recv", _recv, meets=True)


def send(x: array, dst: int, *, group: Group | None = None, stream: Where = None) -> array:
    """Send an array to another process, when what is returned is computed.

    Args:
        x: any shape and type.
        dst: rank of the process that receives.
        group: the processes; None: all of them.
        stream: where it is computed.

    Returns:
        An array equal to ``x``.

    Raises:
        ValueError: this process is alone, or there is no process ``dst``.
    """
    x, where = to_array(x), as_stream(stream)
    group = _not_alone("send to", dst, group)
    return record(SEND, (x._n,), x.shape, x.dtype, (dst, group), None, where)


def recv(shape: Sequence[int], dtype: Dtype, src: int, *, group: Group | None = None, stream: Where = None) -> array:
    """Receive an array from another process.

    Args:
        shape: its shape.
        dtype: its type.
        src: rank of the process that sends.
        group: the processes; None: all of them.
        stream: where it is computed.

    Raises:
        ValueError: this process is alone, or there is no process ``src``.
    """
    group = _not_alone("recv from", src, group)
    return record(RECV, (), tuple(shape), dtype, (src, group), None, as_stream(stream))


def recv_like(x: array, src: int, *, group: Group | None = None, stream: Where = None) -> array:
    """Receive an array of the shape and type of ``x``; other arguments as of ``recv``."""
    return recv(x.shape, x.dtype, src, group=group, stream=stream)


def _not_alone(what: str, rank: int, group: Group | None) -> Group:
    group = group_of(group)
    if group.size() == 1:
        raise ValueError(f"Cannot {what} a singleton group")
    if not 0 <= rank < group.size():
        raise ValueError(
            f"Invalid {'destination' if what == 'send to' else 'source'}={rank} for a group of size {group.size()}"
        )
    return group


@SEND.rule("vjp")
@RECV.rule("vjp")
@SUM_SCATTER.rule("vjp")
def _(node: Node, primals: Sequence[array], output: array, cotangent: array) -> list[array]:
    del primals, output, cotangent
    raise ValueError(f"[{node.op}] has no vjp: a derivative would have to travel the other way.")


@SEND.rule("jvp")
@RECV.rule("jvp")
@SUM_SCATTER.rule("jvp")
def _(node: Node, primals: Sequence[array], tangents: Sequence[array], output: array) -> array:
    del primals, tangents, output
    raise ValueError(f"[{node.op}] has no jvp.")


@SEND.rule("vmap")
def _(node: Node, arrays: Sequence[array], axes: Sequence[int | None]) -> tuple[array, int | None]:
    dst, group = node.attrs
    return send(arrays[0], dst, group=group, stream=node.stream), axes[0]
