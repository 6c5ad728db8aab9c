"""Functions in files: recorded bodies written and read.

The format is our own (``codec``): MLX's stores the private state of its C++ operations.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx import evaluate
from rocmend.mlx.arguments import shape_text
from rocmend.mlx.array import array, leaf, wrap
from rocmend.mlx.construct import CONSTANT
from rocmend.mlx.node import Node, current
from rocmend.mlx.primitive import ITEM
from rocmend.mlx.transforms import codec
from rocmend.mlx.transforms.compiled import record_body
from rocmend.mlx.transforms.dot import letters
from rocmend.mlx.transforms.shapeless import reshaped
from rocmend.mlx.transforms.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rocmend.mlx.dtypes import Dtype

__all__ = ["Exporter", "Imported", "arguments", "export_to", "tell"]

Kinds = list[tuple[tuple[int, ...], "Dtype"]]


@dataclass(slots=True)
class Recorded:
    """One recorded call: how many positional arguments, the names of the others in the order of ``trace.inputs``."""

    trace: Trace
    positional: int
    names: tuple[str, ...]
    constants: list[array] = field(default_factory=list)

    def kinds(self) -> Kinds:
        """Return the shapes and types of the inputs."""
        return [(node.shape, node.dtype) for node in self.trace.inputs]


def arguments(op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[array], dict[str, array]]:
    """Return positional and keyword arrays, given as such or as one tuple and one dictionary.

    Raises:
        ValueError: there is anything else than arrays.
    """
    given: list[Any] = list(args)
    named: dict[str, Any] = dict(kwargs)
    if not kwargs and args and len(args) <= 2 and not isinstance(args[0], array):
        first, rest = args[0], args[1:]
        if isinstance(first, list | tuple) and (not rest or isinstance(rest[0], dict)):
            given, named = list(first), dict(rest[0]) if rest else {}
        elif isinstance(first, dict) and not rest:
            given, named = [], dict(first)
    if not all(isinstance(x, array) for x in (*given, *named.values())) or not all(isinstance(k, str) for k in named):
        raise ValueError(
            f"[{op}] Inputs can either be a variable number of positional and keyword arrays or a single tuple and/or "
            "dictionary of arrays."
        )
    return given, named


def recorded(fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Recorded:
    """Record one call of a function.

    Raises:
        ValueError: an argument or an output is something else than an array.
    """
    given, named = arguments("export_function", args, kwargs)
    names = tuple(sorted(named))

    def body(traced: list[array]) -> tuple[None, list[array]]:
        value = fun(*traced[: len(given)], **dict(zip(names, traced[len(given) :], strict=True)))
        outputs = [value] if isinstance(value, array) else value
        if not isinstance(outputs, list | tuple) or not all(isinstance(x, array) for x in outputs):
            raise ValueError("[export_function] Outputs can be either a single array, a tuple, or a list of arrays.")
        return None, list(outputs)

    inputs, _, outputs, constants, nodes = record_body(body, [*given, *(named[name] for name in names)])
    trace = Trace(inputs, constants, nodes, outputs, stream=current.state.stream)
    return Recorded(trace, len(given), names)


class Exporter:
    """Collects recorded calls of one function and writes them to one file."""

    def __init__(self, path: str, fun: Callable[..., Any], *, shapeless: bool, metadata: str | None) -> None:
        if metadata is not None and not isinstance(metadata, str):
            raise TypeError(f"[export_function] expected metadata as a string, got {type(metadata).__name__}.")
        self.path = Path(path)
        self.fun = fun
        self.shapeless = shapeless
        self.metadata = metadata or ""
        self.calls: list[Recorded] = []
        self.closed = False

    def add(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Record one call.

        Raises:
            RuntimeError: the file was written already.
            ValueError: an argument or an output is no array.
        """
        if self.closed:
            raise RuntimeError("[export_function] Attempting to write after exporting is closed.")
        self.calls.append(recorded(self.fun, args, kwargs))

    def close(self) -> None:
        """Write the file."""
        if self.closed:
            return
        self.closed = True
        tensors: dict[int, int] = {}
        entries: list[dict[str, Any]] = []
        parts: list[bytes] = []
        for call in self.calls:
            for node in call.trace.constants:
                if id(node) not in tensors:
                    data = evaluate.value(node).detach().cpu().contiguous()
                    raw = data.reshape(-1).view(torch.uint8).numpy().tobytes() if data.numel() else b""
                    tensors[id(node)] = len(entries)
                    entries.append({"shape": node.shape, "dtype": node.dtype.name, "size": len(raw)})
                    parts.append(raw)
        header = {
            "shapeless": self.shapeless,
            "metadata": self.metadata,
            "constants": entries,
            "calls": [_written(call, tensors) for call in self.calls],
        }
        codec.write(self.path, header, b"".join(parts))


def export_to(
    path: str, fun: Callable[..., Any], args: Any, kwargs: Any, *, shapeless: bool, metadata: str | None
) -> None:
    """Write one recorded call of a function to a file."""
    exporter = Exporter(path, fun, shapeless=shapeless, metadata=metadata)
    exporter.add(args, kwargs)
    exporter.close()


def _places(trace: Trace) -> dict[int, int]:
    return {id(node): i for i, node in enumerate((*trace.inputs, *trace.constants, *trace.nodes))}


def _written(call: Recorded, tensors: dict[int, int]) -> dict[str, Any]:
    trace, place = call.trace, _places(call.trace)
    default = trace.stream.device
    nodes = []
    for node in trace.nodes:
        entry = {
            "op": node.op.name,  # type: ignore[union-attr]
            "inputs": [place[id(child)] for child in node.inputs],
            "attrs": codec.encode(node.attrs),
            "dyn": node.dyn,
            "shape": node.shape,
            "dtype": node.dtype.name,
            "device": None if node.stream.device == default else node.stream.device.type.name,
        }
        if node.op.outputs is not None:  # type: ignore[union-attr]
            entry["outputs"] = [[shape, dtype.name] for shape, dtype in node.outputs]
        nodes.append(entry)
    return {
        "positional": call.positional,
        "names": call.names,
        "inputs": [[shape, dtype.name] for shape, dtype in call.kinds()],
        "constants": [tensors[id(node)] for node in trace.constants],
        "nodes": nodes,
        "outputs": trace.places,
    }


def _kind(entry: Any) -> tuple[tuple[int, ...], Dtype]:
    return tuple(entry[0]), codec.decode({"dtype": entry[1]})


def _read_call(entry: dict[str, Any], constants: list[array]) -> Recorded:
    from rocmend.mlx.arguments import as_stream
    from rocmend.mlx.device import DeviceType

    stream = current.state.stream
    values: list[Node] = []
    for one in entry["inputs"]:
        shape, dtype = _kind(one)
        values.append(Node(None, (), None, None, shape, dtype, stream, None, -1))
    inputs = list(values)
    kept = [constants[i] for i in entry["constants"]]
    values += [x._n for x in kept]
    body = []
    for one in entry["nodes"]:
        where = stream if one["device"] is None else as_stream(DeviceType[one["device"]])
        dyn = None if one["dyn"] is None else tuple(one["dyn"])
        sizes = None if one["shape"] is None else tuple(one["shape"])
        children = tuple(values[i] for i in one["inputs"])
        op, dtype = codec.decode({"op": one["op"]}), codec.decode({"dtype": one["dtype"]})
        node = Node(op, children, codec.decode(one["attrs"]), dyn, sizes, dtype, where, None, -1)
        if "outputs" in one:
            node.outputs = tuple(_kind(spec) for spec in one["outputs"])
        values.append(node)
        body.append(node)
    trace = Trace(inputs, [x._n for x in kept], body, [values[i] for i in entry["outputs"]], stream=stream)
    return Recorded(trace, entry["positional"], tuple(entry["names"]), kept)


class Imported:
    """A function read from a file."""

    def __init__(self, path: str) -> None:
        header, blob = codec.read(Path(path))
        try:
            constants, offset = [], 0
            for entry in header["constants"]:
                raw = blob[offset : offset + entry["size"]]
                offset += entry["size"]
                constants.append(_leaf(tuple(entry["shape"]), codec.decode({"dtype": entry["dtype"]}), raw))
            self.calls = [_read_call(entry, constants) for entry in header["calls"]]
            self.metadata: str = header["metadata"]
            self.shapeless: bool = header["shapeless"]
        except (AttributeError, KeyError, IndexError, TypeError, RecursionError) as error:
            raise RuntimeError(f"[import_function] {path} is damaged: {error!r}.") from error

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[array, ...]:
        """Record the body that was exported for arguments like these.

        Raises:
            ValueError: there is none, or an argument is no array.
        """
        given, named = arguments("import_function::call", args, kwargs)
        names = tuple(sorted(named))
        arrays = [x._n for x in (*given, *(named[name] for name in names))]
        for one in self.calls:
            if one.positional == len(given) and one.names == names and self._takes(one, arrays):
                same = all(a.shape == b.shape for a, b in zip(arrays, one.trace.inputs, strict=True))
                trace = one.trace if same else reshaped(one.trace, arrays)
                return tuple(wrap(node) for node in trace.inline(arrays))
        possible = "\n".join(
            f" {i}. {_signature(one.positional, one.names, one.kinds())}" for i, one in enumerate(self.calls, 1)
        )
        called = _signature(len(given), names, [(node.shape, node.dtype) for node in arrays])
        raise ValueError(
            "[import_function::call] No imported function found which matches the given positional and keyword "
            f"arguments. Possible functions include:\n{possible}\nCalled: {called}"
        )

    def _takes(self, one: Recorded, arrays: Sequence[Node]) -> bool:
        return all(
            node.dtype is dtype and (len(node.shape) == len(shape) if self.shapeless else node.shape == shape)
            for node, (shape, dtype) in zip(arrays, one.kinds(), strict=True)
        )


def _leaf(shape: tuple[int, ...], dtype: Dtype, raw: bytes) -> array:
    data = torch.frombuffer(bytearray(raw), dtype=dtype.storage) if raw else torch.empty(0, dtype=dtype.storage)
    return leaf(data.reshape(shape).to(current.state.stream.device.torch), dtype)


def _signature(positional: int, names: tuple[str, ...], kinds: Kinds) -> str:
    labels = [*map(str, range(1, positional + 1)), *names]
    listed = ", ".join(f"{label}: {shape_text(s)} {d.name}" for label, (s, d) in zip(labels, kinds, strict=True))
    return f"Function with {positional} positional inputs and {len(names)} keyword inputs: {listed or 'none'}"


# what MLX says of logarithms: its number of the base
_BASES = {"Log2": 0, "Log10": 1, "Log": 2}


def tell(callback: Callable[[dict[str, Any]], Any], fun: Callable[..., Any], args: Any, kwargs: Any) -> None:
    """Record one call of a function and tell a callback of each part of it."""
    call = recorded(fun, args, kwargs)
    trace = call.trace
    names: dict[int, str] = {}

    def spec(node: Node) -> tuple[str, Any, Any]:
        return names.setdefault(id(node), letters(len(names))), node.shape, node.dtype

    callback({"type": "inputs", "inputs": [spec(node) for node in trace.inputs]})
    keywords = zip(call.names, trace.inputs[call.positional :], strict=True)
    callback({"type": "keyword_inputs", "keywords": [(name, names[id(node)]) for name, node in keywords]})
    callback({"type": "outputs", "outputs": [spec(node) for node in trace.outputs]})
    constants = [*trace.constants, *(node for node in trace.nodes if node.op is CONSTANT)]
    callback({"type": "constants", "constants": [(spec(node)[0], wrap(node)) for node in constants]})
    items: dict[int, list[Node]] = {}
    for node in trace.nodes:
        if node.op is ITEM:
            items.setdefault(id(node.inputs[0]), []).append(node)
    for node in trace.nodes:
        if node.op is ITEM or node.op is CONSTANT:
            continue
        name = node.op.name  # type: ignore[union-attr]
        attrs = node.dtype if name == "AsType" else _BASES.get(name, node.attrs)
        listed = [] if attrs is None else list(attrs) if isinstance(attrs, tuple) else [attrs]
        callback(
            {
                "type": "primitive",
                "name": name,
                "inputs": [spec(child) for child in node.inputs],
                "outputs": [spec(child) for child in items.get(id(node), [node])],
                "arguments": [*listed, *([] if node.dyn is None else [node.dyn])],
            }
        )
