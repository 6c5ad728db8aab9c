"""Compiled functions: when they are traced, what they may touch, what they become in files."""

from __future__ import annotations

import io
from functools import partial
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("torch")

from rocmend.mlx import core as mx
from rocmend.mlx.node import current

pytestmark = pytest.mark.cpu


class Counted:
    """A function that knows how often it was called."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.calls = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        return self.function(*args, **kwargs)


def test_one_trace_for_each_structure() -> None:
    body = Counted(lambda a, b: a * b + 1)
    compiled = mx.compile(body)
    for _ in range(3):
        assert compiled(mx.array([1, 2]), mx.array([3, 4])).tolist() == [4, 9]
    assert body.calls == 1
    compiled(mx.array([1]), mx.array([3]))  # shapes
    compiled(mx.array([1.0]), mx.array([3]))  # types
    assert body.calls == 3
    for constant in (2, 2.0, True, -0.0, 0.0, float("nan"), float("nan"), 2):
        compiled(mx.array([1]), constant)
    assert body.calls == 3 + 6
    compiled(mx.array([1]), b=2)
    assert body.calls == 10
    with mx.stream(mx.new_stream(mx.cpu)):
        compiled(mx.array([1]), mx.array([3]))
    assert body.calls == 11


def test_a_call_records_one_operation_and_its_value() -> None:
    compiled = mx.compile(lambda a, b: mx.exp(a) * b - a)
    a, b = mx.array([1.0]), mx.array([2.0])
    mx.eval(compiled(a, b))
    before = len(current.state.tape)
    out = compiled(a, b)
    assert len(current.state.tape) - before == 2
    np.testing.assert_allclose(np.array(out), 2 * np.e - 1, rtol=1e-6)


def test_a_body_is_simplified() -> None:
    from rocmend.mlx.transforms.trace import COMPILED

    compiled = mx.compile(lambda a: mx.stop_gradient(mx.exp(a)) + mx.exp(a))
    node = compiled(mx.array([1.0]))._n.inputs[0]
    assert node.op is COMPILED
    assert [one.op.name for one in node.attrs.nodes] == ["Exp", "Add"]


def test_trees_go_in_and_come_out() -> None:
    compiled = mx.compile(lambda tree, n: {"o": tree["p"][0] * n, "n": n, "q": None, "t": (tree["p"][0],)})
    out = compiled({"p": (mx.array([1, 2]),)}, 3)
    assert (out["o"].tolist(), out["n"], out["q"], out["t"][0].tolist()) == ([3, 6], 3, None, [1, 2])
    assert mx.compile(lambda: mx.ones(2) * 3)().tolist() == [3, 3]
    assert mx.compile(lambda _: None)(mx.array(1)) is None


def test_state_goes_in_and_comes_out() -> None:
    state = {"a": mx.array(1.0)}
    handle = state["a"]

    @partial(mx.compile, inputs=state, outputs=state)
    def step(y: Any) -> Any:
        state["a"] = state["a"] * 2 + y
        return state["a"] + 1

    assert [step(mx.array(1.0)).item(), step(mx.array(1.0)).item(), state["a"].item()] == [4, 8, 7]
    assert handle.item() == 1
    state["a"] = mx.array(0.0)
    assert step(mx.array(5.0)).item() == 6


def test_state_is_restored_after_an_error() -> None:
    state = [mx.array(1.0)]
    handle = state[0]

    @partial(mx.compile, inputs=state)
    def fails() -> Any:
        raise KeyError(len(state))

    with pytest.raises(KeyError):
        fails()
    assert state[0] is handle
    assert not current.state.tracing


def test_random_numbers_go_on() -> None:
    draw = partial(mx.compile, inputs=mx.random.state, outputs=mx.random.state)(lambda: mx.random.uniform(shape=(8,)))
    mx.random.seed(3)
    first, second = draw().tolist(), draw().tolist()
    mx.random.seed(3)
    assert first != second
    assert [mx.random.uniform(shape=(8,)).tolist(), mx.random.uniform(shape=(8,)).tolist()] == [first, second]


def test_training_with_captured_state() -> None:
    rng = np.random.default_rng(0)
    inputs, targets = mx.array(rng.normal(size=(16, 4)).astype("f")), mx.array(rng.normal(size=(16, 1)).astype("f"))

    def run(compiled: bool) -> list[float]:
        state = {"w": mx.ones((4, 1))}

        def step(a: Any, b: Any) -> Any:
            value, grad = mx.value_and_grad(lambda w: ((a @ w - b) ** 2).mean())(state["w"])
            state["w"] = state["w"] - 0.1 * grad
            return value

        call = mx.compile(step, inputs=state, outputs=state) if compiled else step
        return [call(inputs, targets).item() for _ in range(5)]

    np.testing.assert_allclose(run(compiled=True), run(compiled=False), rtol=1e-5)


def test_what_is_not_captured_is_refused() -> None:
    a = mx.array([1.0]) + 1
    with pytest.raises(ValueError, match="uncaptured"):
        mx.compile(lambda b: a + b)(a)
    later = a * 2
    with pytest.raises(ValueError, match="uncaptured"):
        mx.compile(lambda b: later + b)(a)
    assert mx.compile(lambda b: later + b)(mx.array([1.0])).item() == 5
    with pytest.raises(ValueError, match="received type object"):
        mx.compile(lambda b, _: b)(a, object())
    with pytest.raises(ValueError, match="transformations like compile"):
        mx.compile(lambda b: b.item())(a)
    assert not current.state.tracing


def test_what_leaks_from_a_trace_cannot_be_computed() -> None:
    leaked: list[Any] = []

    def leaks(a: Any) -> Any:
        leaked.append(a)
        return a

    mx.compile(leaks)(mx.array([1.0]))
    useless = leaked[0] + 1
    assert (mx.array([1.0]) * 2).item() == 2  # and disturbs nothing
    with pytest.raises(RuntimeError, match="captured"):
        mx.eval(useless)


def test_state_that_is_not_read_needs_no_value() -> None:
    """What is captured but not returned keeps a placeholder; only a body that reads it cannot be computed."""
    state = {"rate": mx.array(2.0), "step": mx.array(0)}

    @partial(mx.compile, inputs=state)
    def update(a: Any) -> Any:
        state["step"] = state["step"] + 1
        return a - state["rate"] * a

    assert update(mx.array(1.0)).item() == -1
    state["rate"] = mx.array(3.0)
    assert update(mx.array(1.0)).item() == -2
    with pytest.raises(RuntimeError, match="captured"):
        mx.eval(state["step"])


@pytest.mark.parametrize("shapeless", [False, True])
def test_arguments_that_are_not_read(shapeless: bool) -> None:
    compiled = mx.compile(lambda *args: (args[1] + 1, mx.array([7])), shapeless=shapeless)
    for size in (2, 2, 2, 5):
        got, constant = compiled(mx.zeros((size, 3)), mx.arange(size), mx.array("abc".count("b")))
        assert (got.tolist(), constant.tolist()) == ([*range(1, size + 1)], [7])


def test_disabling() -> None:
    body = Counted(lambda a: a + 1)
    compiled = mx.compile(body)
    mx.disable_compile()
    try:
        compiled(mx.array(1))
        compiled(mx.array(1))
    finally:
        mx.enable_compile()
    compiled(mx.array(1))
    compiled(mx.array(1))
    assert body.calls == 3


@pytest.mark.parametrize(
    "function",
    [
        lambda a: mx.exp(a) * 2 + a.sum(-1, keepdims=True),
        lambda a: a.reshape(a.shape[0] * a.shape[1], -1),
        lambda a: mx.softmax(a, axis=-1) @ a.swapaxes(-1, -2),
        lambda a: mx.concatenate([a, a], axis=1)[:, 1:],
        lambda a: mx.argmax(a, axis=-1),
        lambda a: mx.take(a, mx.array([1, 0]), axis=2),
        lambda a: mx.fast.rms_norm(a, None, 1e-5).max(axis=1),
    ],
)
def test_one_trace_for_all_shapes(function: Any) -> None:
    body = Counted(function)
    compiled = mx.compile(body, shapeless=True)
    rng = np.random.default_rng(1)
    for shape in ((2, 3, 4), (2, 3, 8), (2, 3, 2)):
        given = mx.array(rng.normal(size=shape).astype("f"))
        np.testing.assert_allclose(np.array(compiled(given)), np.array(function(given)), rtol=1e-5, atol=1e-6)
    assert body.calls == 1


def test_arrays_like_others_have_the_shapes_of_a_call() -> None:
    filled = mx.compile(lambda a: (mx.zeros_like(a), mx.ones_like(a, mx.int32), mx.full_like(a, 3)), shapeless=True)
    for shape in ((1, 4), (3, 2)):
        zeros, ones, threes = filled(mx.arange(shape[0] * shape[1]).reshape(shape))
        assert (zeros.tolist(), zeros.dtype) == (np.zeros(shape).tolist(), mx.int32)
        assert ones.tolist() == np.ones(shape).tolist()
        assert threes.tolist() == np.full(shape, 3).tolist()
    slope = mx.compile(mx.grad(lambda a: (a * mx.ones_like(a)).sum()), shapeless=True)
    assert [slope(mx.zeros(shape)).shape for shape in ((2, 1), (1, 3))] == [(2, 1), (1, 3)]
    many = mx.compile(mx.vmap(mx.ones_like), shapeless=True)
    assert [many(mx.zeros(shape)).shape for shape in ((2, 1), (1, 3))] == [(2, 1), (1, 3)]
    _, along = mx.jvp(mx.compile(mx.ones_like, shapeless=True), [mx.zeros((2, 3))], [mx.ones((2, 3))])
    assert along[0].tolist() == [[0] * 3] * 2


@pytest.mark.parametrize(
    "calls",
    [
        [((2, 1, 4, 2), (3, 2, 5)), ((3, 1, 4, 2), (2, 2, 5))],
        [((3, 4, 2), (2, 5)), ((1, 6, 3), (3, 2))],
        [((4,), (3, 4, 2)), ((2,), (1, 2, 5))],
        [((3, 2, 4), (4,)), ((1, 5, 2), (2,))],
        [((4,), (4,)), ((7,), (7,))],
    ],
)
def test_gradients_of_products_have_the_shapes_of_a_call(calls: Any) -> None:
    def loss(a: Any, b: Any) -> Any:
        return (a @ b).square().sum()

    compiled = mx.compile(mx.grad(loss, (0, 1)), shapeless=True)
    for shapes in calls:
        a, b = (mx.random.normal(shape, key=mx.random.key(i)) for i, shape in enumerate(shapes))
        for ours, expected in zip(compiled(a, b), mx.grad(loss, (0, 1))(a, b), strict=True):
            assert ours.shape == expected.shape
            assert mx.allclose(ours, expected, rtol=1e-5, atol=1e-5).item()


def test_shapes_that_cannot_be_inferred() -> None:
    compiled = mx.compile(lambda a: a.reshape(6, -1), shapeless=True)
    assert compiled(mx.zeros((2, 3))).shape == (6, 1)
    with pytest.raises(ValueError, match="reshape"):
        compiled(mx.zeros((5, 5)))
    compiled = mx.compile(lambda a: mx.as_strided(a, (2,), (1,), 0), shapeless=True)
    compiled(mx.zeros(6))
    with pytest.raises(ValueError, match="AsStrided cannot infer"):
        compiled(mx.zeros(8))


def test_functions_keep_their_names() -> None:
    def named(a: Any) -> Any:
        """Say so."""
        return a

    compiled = mx.compile(named)
    assert (compiled.__name__, compiled.__doc__) == ("named", "Say so.")
    assert mx.compile(partial(named))(mx.array(2)).item() == 2
    with pytest.raises(TypeError, match="function"):
        mx.compile(3)


def test_functions_in_files(tmp_path: Path) -> None:
    path = str(tmp_path / "f.fn")
    weight = mx.arange(6).reshape(2, 3).astype(mx.float32)

    def function(a: Any, *, b: Any) -> Any:
        return a @ weight + b * 2.5, mx.stack(mx.split(a, 2, axis=-1))

    mx.export_function(path, function, mx.ones((4, 2)), b=mx.ones(3), metadata="about")
    imported, metadata = mx.import_function(path, return_metadata=True)
    assert metadata == "about"
    rng = np.random.default_rng(2)
    a, b = mx.array(rng.normal(size=(4, 2)).astype("f")), mx.array(rng.normal(size=3).astype("f"))
    for found, expected in zip(imported(a, b=b), function(a, b=b), strict=True):
        np.testing.assert_array_equal(np.array(found), np.array(expected))
    grads = mx.grad(lambda a: imported((a,), {"b": b})[0].sum())(a)
    np.testing.assert_allclose(np.array(grads), np.tile([3, 12], (4, 1)))
    with pytest.raises(ValueError, match="Possible functions"):
        imported(a)
    with pytest.raises(ValueError, match="single tuple"):
        imported(a, b=1.0)


def test_several_calls_share_constants_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "f.fn"
    big = mx.zeros((64, 64))

    def function(*arrays: Any) -> Any:
        return big + sum(arrays)

    with mx.exporter(str(path), function, shapeless=True) as exporter:
        for count in range(4):
            exporter(*[mx.array([1.0])] * count)
    assert path.stat().st_size < big.nbytes + 8192
    with pytest.raises(RuntimeError, match="closed"):
        exporter(mx.array(1.0))
    imported = mx.import_function(str(path))
    assert imported(mx.ones(64), mx.ones(1))[0].sum().item() == 2 * 64 * 64


@pytest.mark.parametrize("content", [b"", b"rocmend-mlx-function\n\xff\xff\xff\xff\xff\xff\xff\xff{", b"x" * 100])
def test_files_that_are_no_functions(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.fn"
    path.write_bytes(content)
    with pytest.raises(RuntimeError, match="import_function"):
        mx.import_function(str(path))
    with pytest.raises(RuntimeError, match="Failed to open"):
        mx.import_function(str(tmp_path / "none.fn"))


def test_a_file_names_only_what_this_package_has() -> None:
    from rocmend.mlx.transforms.codec import decode

    for named in ({"op": "NoSuchOperation"}, {"record": ["os:stat_result", []]}, {"record": ["rocmend.cli:main", []]}):
        with pytest.raises(ValueError, match="does not have"):
            decode(named)


def test_a_callback_is_told_of_each_part() -> None:
    told: list[dict[str, Any]] = []
    mx.export_function(told.append, lambda a, b: mx.abs(a - b) * 3.5, mx.array(1.0), b=mx.array(2.0))
    assert [one["type"] for one in told[:4]] == ["inputs", "keyword_inputs", "outputs", "constants"]
    assert [one["name"] for one in told[4:]] == ["Subtract", "Abs", "Multiply"]
    assert told[3]["constants"][0][1].item() == 3.5
    with pytest.raises(ValueError, match="metadata"):
        mx.export_function(told.append, lambda a: a, mx.array(1.0), metadata="m")


def test_pictures() -> None:
    a = mx.array([1.0])
    file = io.StringIO()
    mx.export_to_dot(file, mx.compile(lambda b: mx.exp(b) * 2)(a), *mx.split(mx.zeros(4), 2), a=a)
    assert 'label ="CompiledExpMultiply"' in file.getvalue()
    assert '"a" ->' in file.getvalue()
