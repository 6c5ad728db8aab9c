"""Recording in C: it must do what the Python code does, node by node, and must not be needed."""

from __future__ import annotations

import copy
import gc
import importlib
import inspect
import os
import pickle
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("torch")

import rocmend.mlx

rocmend.mlx.activate()

from rocmend.mlx.accelerated import build, install, native
from rocmend.mlx.array import record, wrap
from rocmend.mlx.node import Node, current
from rocmend.mlx.ops.arithmetic import ADD
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from collections.abc import Callable

mx: Any = importlib.import_module("mlx.core")
pytestmark = pytest.mark.cpu
compiled = pytest.mark.skipif(native is None, reason="recording in C is off, or there is no compiler")


def _plain(function: Any) -> Any:
    return getattr(function, "__wrapped__", function)


def _recorded(call: Callable[[], Any]) -> list[tuple[Any, ...]]:
    """Return what a call records: operations, attributes, integers, shapes, types, and how nodes hang together."""
    mx.eval(mx.array(0))
    begin = len(current.state.tape)
    result = call()
    nodes = current.state.tape[begin:]
    places = {id(node): place for place, node in enumerate(nodes)}
    seen = [
        (
            node.op, repr(node.attrs), node.dyn, node.shape, node.dtype, node.stream,
            [places.get(id(one), id(one)) for one in node.inputs],
        )
        for node in nodes
    ]  # fmt: skip
    return [*seen, (places.get(id(result._n), id(result._n)), result.shape, result.dtype)]


X = mx.arange(24, dtype=mx.float32).reshape(2, 3, 4)
Y = mx.ones((2, 3, 4))
HALF = mx.ones((2, 3, 4), dtype=mx.bfloat16)
W, SCALES, BIASES = mx.quantize(mx.random.normal((32, 64)), 32, 4)
Q = mx.ones((1, 4, 1, 32))
K = mx.ones((1, 2, 7, 32))
ROW = mx.ones((1, 64))
mx.eval(X, Y, HALF, W, SCALES, BIASES, Q, K, ROW)

CALLS: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
    "add": (mx.add, (X, Y), {}),
    "add itself": (mx.add, (X, X), {}),
    "add of two types": (mx.add, (X, HALF), {}),
    "multiply by a number": (mx.multiply, (HALF, 2.0), {}),
    "multiply by an integer": (mx.multiply, (HALF, 2), {}),
    "subtract minus zero": (mx.subtract, (X, -0.0), {}),
    "power": (mx.power, (X, 2), {}),
    "reshape": (mx.reshape, (X, (6, -1)), {}),
    "reshape to itself": (mx.reshape, (X, (2, 3, 4)), {}),
    "transpose": (mx.transpose, (X, (0, 2, 1)), {}),
    "squeeze": (mx.squeeze, (ROW,), {}),
    "expand_dims": (mx.expand_dims, (X, (-2, -3)), {}),
    "astype": (mx.array.astype, (X, mx.float16), {}),
    "astype of what has the type": (mx.array.astype, (X, mx.float32), {}),
    "softmax": (mx.softmax, (HALF,), {"axis": -1, "precise": True}),
    "sum": (mx.sum, (X,), {"axis": (0, 1), "keepdims": True}),
    "argpartition": (mx.argpartition, (X,), {"kth": -2, "axis": -1}),
    "where": (mx.where, (True, X, Y), {}),
    "matmul": (mx.matmul, (X, mx.ones((4, 5))), {}),
    "quantized_matmul": (
        mx.quantized_matmul,
        (ROW, W),
        {"scales": SCALES, "biases": BIASES, "transpose": True, "group_size": 32, "bits": 4},
    ),
    "rms_norm": (mx.fast.rms_norm, (X, mx.ones((4,)), 1e-5), {}),
    "rope": (mx.fast.rope, (Q, 32), {"traditional": False, "base": 1e4, "scale": 1.0, "offset": 17}),
    "rope of places": (
        mx.fast.rope,
        (Q, 32),
        {"traditional": False, "base": 1e4, "scale": 1.0, "offset": mx.array([3])},
    ),
    "attention": (mx.fast.scaled_dot_product_attention, (Q, K, K), {"scale": 0.1, "mask": None}),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_is_remembered_is_what_is_recorded(name: str) -> None:
    function, args, kwargs = CALLS[name]
    for one in (*args, *kwargs.values()):
        if isinstance(one, mx.array):
            mx.eval(one)
    wanted = _recorded(lambda: _plain(function)(*args, **kwargs))
    for _ in range(3):
        assert _recorded(lambda: function(*args, **kwargs)) == wanted


@pytest.mark.parametrize("value", [1, 1.0, True, 0, 0.0, -0.0, float("nan"), 2.5, 2**40])
def test_numbers_that_compare_equal_are_told_apart(value: Any) -> None:
    x = mx.ones((3,), dtype=mx.float32)
    mx.eval(x)
    for other in (1, 1.0, True, 0, 0.0, -0.0):
        mx.multiply(x, other)  # remembered beside it
    assert _recorded(lambda: mx.multiply(x, value)) == _recorded(lambda: _plain(mx.multiply)(x, value))


def test_the_integer_of_a_rotation_is_that_of_the_call() -> None:
    offsets = [mx.fast.rope(Q, 32, traditional=False, base=1e4, scale=1.0, offset=k)._n.dyn for k in (0, 1, 5, 2**33)]
    assert offsets == [(0,), (1,), (5,), (2**33,)]


INDICES = [
    (..., slice(None, 2), slice(None)), (slice(None), slice(1, 3)), (slice(-1, None),), (..., slice(3, 1)), (...,),
    (slice(0, 99), ..., slice(-99, 2)), (slice(None), -1, slice(None)), (..., slice(None, None, 2)), (None, ...), (1,),
    None, 0, -1, 1, slice(None), (..., None), (..., -2), (0, None, slice(None)), (slice(None, None, -1),),
    (slice(None), slice(None), slice(None)),
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_boxes_are_those_of_python(index: Any) -> None:
    from rocmend.mlx.ops.index_read import getitem
    from rocmend.mlx.ops.index_write import setitem

    for _ in range(3):
        assert _recorded(lambda: X[index]) == _recorded(lambda: getitem(X, index))
    update = mx.zeros(X.shape if index is None else X[index].shape)  # MLX writes below None what has no new axis
    mx.eval(update)

    def written(put: Callable[..., None]) -> Any:
        x = wrap(X._n)
        put(x, index, update)
        return x

    assert _recorded(lambda: written(type(X).__setitem__)) == _recorded(lambda: written(setitem))


@pytest.mark.parametrize("index", [(slice(None),) * 4, (..., ...), (slice("a"),), (slice(1.5), 0)], ids=str)
def test_what_does_not_index_is_refused(index: Any) -> None:
    with pytest.raises(ValueError, match=r"\[index\]"):
        X[index]


def test_a_stream_of_its_own_is_not_forgotten() -> None:
    default = mx.add(X, Y)._n.stream
    with mx.stream(mx.new_stream(mx.default_device())):
        other = mx.add(X, Y)._n.stream
    assert other != default
    assert mx.add(X, Y)._n.stream == default


def test_compile_can_be_switched_off_and_on() -> None:
    calls = []

    def double(x: Any) -> Any:
        calls.append(1)
        return x + x

    double = mx.compile(double)
    for _ in range(3):
        double(X)
    assert len(calls) == 1
    mx.disable_compile()
    try:
        double(X)
    finally:
        mx.enable_compile()
    assert len(calls) == 2
    assert mx.array_equal(double(X), 2 * X)
    assert double.__name__ == "double"


def test_a_function_under_transformation_is_traced() -> None:
    def loss(x: Any) -> Any:
        return mx.sum(mx.softmax(x * 2.0, axis=-1) * Y).reshape(-1)[0]

    for _ in range(2):
        loss(X)
        gradient = mx.grad(loss)(X)
        assert gradient.shape == X.shape
        assert mx.allclose(gradient, mx.zeros(X.shape), atol=1e-5)


def test_long_chains_go_without_recursion() -> None:
    x = mx.zeros((1,))
    for _ in range(200_000):
        x = mx.add(x, x)
    gone = weakref.ref(x._n)
    current.state.tape = []
    del x
    assert gone() is None


def test_cycles_are_collected() -> None:
    node = Node(None, (), None, None, (), mx.float32, current.state.stream, None, -1)
    node.data = [node]
    gone = weakref.ref(node)
    del node
    gc.collect()
    assert gone() is None


def test_cycles_through_attributes_are_collected() -> None:
    class Holder:
        later: Any = None

    attrs: Any = Holder()
    x = record(ADD, (X._n, X._n), X.shape, X.dtype, attrs)
    attrs.later = mx.multiply(mx.add(x, X), 2.0)  # what was made of it holds it, and is held by its attributes
    gone = weakref.ref(x._n), weakref.ref(attrs.later._n)
    current.state.tape = []
    del x, attrs
    gc.collect()
    assert [one() for one in gone] == [None, None]


@compiled
def test_the_collector_does_not_see_plain_nodes() -> None:
    assert not gc.is_tracked(mx.add(X, Y)._n)
    assert not gc.is_tracked(mx.reshape(X, (6, 4))._n.inputs)
    assert gc.is_tracked(record(ADD, (X._n, X._n), X.shape, X.dtype, object())._n)
    current.state.tape = []


def _held(x: Any) -> int:
    """Return how many references the node of a handle has; a test that rewrites ``assert`` holds some of its own."""
    return sys.getrefcount(x._n)


def test_references_say_who_holds_a_node() -> None:
    mx.eval(mx.array(0))
    first = record(ADD, (X._n, X._n), X.shape, X.dtype)
    begin = _held(first)
    other = wrap(first._n)
    assert _held(first) == begin + 1
    second = mx.add(first, X)
    assert _held(first) == begin + 2
    third = mx.add(first, first)
    assert _held(first) == begin + 4
    del other
    current.state.tape = []
    del second, third
    assert _held(first) == begin - 1  # the tape let go too


def test_a_thread_records_on_its_own_tape() -> None:
    lengths = []

    def work() -> None:
        for _ in range(50):
            mx.add(X, Y)
        lengths.append(len(current.state.tape))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert lengths == [50] * 4


def test_functions_look_like_functions() -> None:
    assert mx.add.__name__ == "add"
    assert "element by element" in (mx.add.__doc__ or "")
    assert list(inspect.signature(mx.add).parameters) == ["a", "b", "stream"]
    assert pickle.loads(pickle.dumps(mx.add)) is mx.add  # noqa: S301  its own
    assert copy.deepcopy(mx.add) is mx.add
    for kind in (copy.copy(X), copy.deepcopy(X), pickle.loads(pickle.dumps(X))):  # noqa: S301
        assert mx.array_equal(kind, X)


def test_errors_are_those_of_python() -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match="reshape"):
            mx.reshape(X, (5, 5))
        with pytest.raises(ValueError, match="broadcast"):
            mx.add(X, mx.ones((7,)))
        with pytest.raises(TypeError):
            mx.add(X)


@compiled
def test_more_shapes_than_are_remembered() -> None:
    x = mx.ones((1,))
    for size in range(1, 5000):
        assert mx.broadcast_to(x, (size,)).shape == (size,)


@compiled
def test_every_name_of_a_remembering_function_is_public() -> None:
    for name in install.FUNCTIONS:
        assert isinstance(getattr(ops, name), native.Function)


def _run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )


SAYS = "from rocmend.mlx.accelerated import native, reason; print(native is not None, reason)"


@pytest.mark.slow
def test_it_can_be_switched_off() -> None:
    code = "import rocmend.mlx; rocmend.mlx.activate(); import mlx.core as mx; print((mx.ones((2,)) + 1).tolist())"
    done = _run(f"{code}; {SAYS}", ROCMEND_MLX_ACCELERATED="0")
    assert done.stdout.splitlines() == ["[2.0, 2.0]", "False switched off by ROCMEND_MLX_ACCELERATED=0"], done.stderr


def test_no_compiler_is_no_error(tmp_path: Path) -> None:
    done = _run(SAYS, ROCMEND_MLX_ACCELERATED="auto", CC="no-such-compiler", ROCMEND_CACHE_HOME=str(tmp_path))
    assert done.stdout.startswith("False the compiler 'no-such-compiler'"), done.stderr
    done = _run(SAYS, ROCMEND_MLX_ACCELERATED="1", CC="no-such-compiler", ROCMEND_CACHE_HOME=str(tmp_path))
    assert "ImportError: [ROCMEND_MLX_ACCELERATED]" in done.stderr
    done = _run(SAYS, ROCMEND_MLX_ACCELERATED="auto", CC="false", ROCMEND_CACHE_HOME=str(tmp_path))
    assert "False the compiler failed" in done.stdout, done.stderr
    done = _run(SAYS, ROCMEND_MLX_ACCELERATED="2")
    assert "ValueError: [ROCMEND_MLX_ACCELERATED]" in done.stderr


@pytest.mark.slow
@compiled
def test_processes_that_build_at_once_find_the_same_library(tmp_path: Path) -> None:
    environment = {**os.environ, "ROCMEND_CACHE_HOME": str(tmp_path), "ROCMEND_MLX_ACCELERATED": "1"}
    started = [
        subprocess.Popen([sys.executable, "-c", SAYS], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert [one.communicate()[0].strip() for one in started] == ["True"] * 3
    left = list((tmp_path / "code" / "mlx").iterdir())
    assert [one.suffix for one in left] == [".so"]
    assert left[0].name.startswith(build.NAME)
