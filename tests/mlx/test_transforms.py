"""Derivatives and batching. Figures without a formula were recorded from mlx 0.32.4 on the CPU."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("torch")

from rocmend.mlx import core as mx

pytestmark = pytest.mark.cpu

X = [0.5, -1.5, 2.0]


def x() -> Any:
    return mx.array(X)


def wave(a: Any) -> Any:
    return (mx.sin(a) * mx.exp(a)).sum()


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.array(found), np.array(expected), rtol=2e-5, atol=2e-5)


def slope(values: Any) -> Any:
    return np.exp(values) * (np.sin(values) + np.cos(values))


def bend(values: Any) -> Any:
    return 2 * np.exp(values) * np.cos(values)


def test_gradients_of_gradients() -> None:
    close(mx.grad(wave)(x()), slope(np.array(X)))
    second = mx.grad(lambda a: mx.grad(wave)(a).sum())(x())
    close(second, bend(np.array(X)))
    close(mx.jvp(mx.grad(wave), [x()], [mx.array([1.0, 0.0, 2.0])])[1][0], bend(np.array(X)) * [1, 0, 2])


def test_transformations_nest_in_any_order() -> None:
    rows = mx.arange(12).reshape(3, 4) / 7
    expected = slope(np.arange(12).reshape(3, 4) / 7)
    close(mx.vmap(mx.grad(wave))(rows), expected)
    close(mx.grad(lambda a: mx.vmap(wave)(a).sum())(rows), expected)
    close(mx.compile(mx.vmap(mx.grad(wave)))(rows), expected)
    close(mx.vmap(mx.grad(mx.compile(wave)))(rows), expected)
    hessian = mx.vmap(lambda v: mx.jvp(mx.grad(wave), [x()], [v])[1][0])(mx.eye(3))
    close(hessian, np.diag(bend(np.array(X))))

    def both(a: Any) -> Any:
        return mx.vjp(lambda b: mx.sin(b) * b, [a], [mx.ones_like(a)])[1][0]

    close(mx.jvp(both, [x()], [x()])[1][0], [0.7577, 2.03219, -5.30176])


def test_arguments_by_number_and_name() -> None:
    def product(a: Any, b: Any) -> Any:
        return (a * b).sum()

    value, (first, second) = mx.value_and_grad(product, argnums=(0, 1))(x(), 2 * x())
    assert value.item() == 13
    close(first, [1, -3, 4])
    close(second, X)
    assert mx.grad(product, argnames="b")(x(), b=2 * x())[0] is None
    by_number, by_name = mx.grad(product, argnums=0, argnames=["b"])(x(), b=2 * x())
    close(by_number, [1, -3, 4])
    close(by_name["b"], X)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: mx.grad(lambda a: a, argnums=-1), ValueError, "negative"),
        (lambda: mx.grad(lambda a: a, argnums=(0, 0)), ValueError, "Duplicate"),
        (lambda: mx.grad(lambda a: a, argnums=()), ValueError, "no argument"),
        (lambda: mx.grad(lambda a: a, argnums="0"), TypeError, "argnums"),
        (lambda: mx.grad(lambda a: a, argnums=1)(x()), ValueError, "only 1 positional"),
        (lambda: mx.grad(lambda a: a)("text"), ValueError, "only arrays"),
        (lambda: mx.grad(lambda a: (a.sum(), 1))(x()), ValueError, "scalar array; but tuple"),
        (lambda: mx.value_and_grad(lambda _: ())(x()), ValueError, "non-empty"),
        (lambda: mx.grad(lambda a: a)(x()), ValueError, r"\(3\)"),
        (lambda: mx.vjp(lambda a: a, [x()], [x(), x()]), ValueError, "Number of outputs"),
        (lambda: mx.vjp(lambda a: a, [x()], [mx.array(1.0)]), ValueError, "does not match cotangent shape"),
        (lambda: mx.jvp(lambda a: a, [x()], []), ValueError, "number of tangents"),
        (lambda: mx.vmap(mx.exp)(mx.array(1.0)), ValueError, "vectorization axis"),
        (lambda: mx.vmap(mx.exp)(mx.array(1.0)), IndexError, "vectorization axis"),
        (lambda: mx.vmap(mx.add, in_axes=(None, None))(x(), x()), ValueError, "non-None"),
        (lambda: mx.vmap(mx.add)(x(), mx.ones(4)), ValueError, "3 and 4"),
        (lambda: mx.vmap(lambda t: t["a"], in_axes={"b": 0})({"a": x()}), ValueError, "prefix"),
    ],
)
def test_errors(call: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()


def test_containers_keep_what_the_function_wrote() -> None:
    arrays = [mx.array(1.0), mx.array(2.0)]
    first, second = arrays

    def loss(given: list[Any]) -> Any:
        given[1] = given[0] * 5
        return given[1]

    close(mx.grad(loss)(arrays)[0], 5)
    assert arrays[0] is first
    assert arrays[1] is not second
    assert arrays[1].item() == 5


def test_containers_are_restored_after_an_error() -> None:
    arrays = [mx.array(1.0)]
    first = arrays[0]

    def loss(given: list[Any]) -> Any:
        raise KeyError(len(given))

    with pytest.raises(KeyError):
        mx.grad(loss)(arrays)
    assert arrays[0] is first
    assert mx.grad(lambda a: a * a)(mx.array(3.0)).item() == 6  # and tracing is over


def test_updates_in_place_are_differentiated() -> None:
    def loss(a: Any) -> Any:
        b = a * 2
        b[0] = a[1] * 3
        b[1:] += a[1:]
        return (b * b).sum()

    given = x()
    close(mx.grad(loss)(given), [0, -54, 36])
    close(given, X)  # values from before are not written to
    close(mx.grad(lambda a: (a.at[1].add(a[0] * 2) ** 2).sum())(given), [-1, -1, 4])
    close(given, X)


def test_evaluation_inside_keeps_the_graph() -> None:
    def loss(a: Any) -> Any:
        b = a * a
        mx.eval(b)
        return b.sum() * (2 if b[2].item() > 1 else 1)

    close(mx.grad(loss)(x()), [2, -6, 8])
    close(mx.grad(lambda a: (mx.grad(loss)(a) * a).sum())(x()), [4, -12, 16])


def test_stop_gradient() -> None:
    close(mx.grad(lambda a: (mx.stop_gradient(a) * a).sum())(x()), X)
    close(mx.jvp(lambda a: mx.stop_gradient(a) * a, [x()], [x()])[1][0], np.square(X))
    outputs, products = mx.vjp(lambda a: (mx.stop_gradient(a), a), [x()], [x()])
    assert len(outputs) == 2
    close(products[0], X)


def test_places_have_no_derivative() -> None:
    def best(a: Any) -> Any:
        return mx.take(a, mx.argsort(a)[1:]).sum()

    with pytest.raises(ValueError, match="stop_gradient"):
        mx.grad(best)(x())
    close(mx.grad(lambda a: mx.take(a, mx.stop_gradient(mx.argsort(a)[1:])).sum())(x()), [1, 0, 1])


def test_batches_where_they_are_wanted() -> None:
    rows = mx.arange(12).reshape(3, 4)
    total, double = mx.vmap(lambda a: (a.sum(), a * 2), out_axes=(0, 1))(rows)
    assert (total.tolist(), double.shape) == ([6, 22, 38], (4, 3))
    assert mx.vmap(lambda a, b: a * b, in_axes=(1, None), out_axes=1)(rows, mx.array([1, 10, 100]))[2].tolist() == [
        800, 900, 1000, 1100,
    ]  # fmt: skip
    assert mx.vmap(lambda _: mx.array(7))(rows).tolist() == [7, 7, 7]
    nested = mx.vmap(mx.vmap(lambda a, b: a * b, in_axes=(0, None)), in_axes=(None, 0))
    assert nested(mx.array([1, 2]), mx.array([3, 4, 5])).tolist() == [[3, 6], [4, 8], [5, 10]]


def test_operations_without_a_batching_rule_are_called_for_each_item() -> None:
    rows = mx.arange(8).reshape(2, 4).astype(mx.float32)
    found = mx.vmap(lambda a: mx.as_strided(a, (2, 2), (1, 1), 0))(rows)
    assert found.tolist() == [[[0, 1], [1, 2]], [[4, 5], [5, 6]]]


def test_operations_without_a_derivative_rule_are_differentiated_by_torch() -> None:
    from rocmend.mlx.array import array, record
    from rocmend.mlx.primitive import PRIMITIVES, Primitive

    cube = Primitive("TestCube", lambda _, a: a * a * a)
    try:

        def cubed(a: array) -> Any:
            return record(cube, (a._n,), a._n.shape, a._n.dtype)

        given = np.array(X)
        close(mx.grad(lambda a: cubed(a).sum())(x()), 3 * given**2)
        close(mx.jvp(cubed, [x()], [x()])[1][0], 3 * given**3)
        close(mx.grad(lambda a: mx.grad(lambda b: cubed(b).sum())(a).sum())(x()), 6 * given)
        third = mx.grad(lambda a: mx.grad(lambda b: mx.grad(lambda c: cubed(c).sum())(b).sum())(a).sum())(x())
        close(third, np.full(3, 6.0))
        close(mx.vmap(cubed)(mx.ones((2, 3)) * 2), np.full((2, 3), 8.0))
    finally:
        del PRIMITIVES["TestCube"]


def test_an_operation_that_torch_cannot_differentiate_says_so() -> None:
    from rocmend.mlx.array import record
    from rocmend.mlx.primitive import PRIMITIVES, Primitive

    opaque = Primitive("TestOpaque", lambda _, a: a.detach() * 2)
    try:
        with pytest.raises(ValueError, match="TestOpaque has no derivative"):
            mx.eval(mx.grad(lambda a: record(opaque, (a._n,), a._n.shape, a._n.dtype).sum())(x()))
    finally:
        del PRIMITIVES["TestOpaque"]


def test_rules_by_hand() -> None:
    @mx.custom_function  # type: ignore[untyped-decorator]
    def pair(a: Any, b: Any) -> Any:
        return {"o": a * b, "r": a + b}

    total = mx.grad(lambda a, b: pair(a, b)["o"].sum(), argnums=1)
    close(total(x(), x()), X)

    @pair.vjp  # type: ignore[untyped-decorator]
    def _(primals: Any, cotangents: Any, outputs: Any) -> Any:
        return primals[0] * cotangents["o"], cotangents["r"] + outputs["o"]

    first, second = mx.grad(lambda a, b: sum(v.sum() for v in pair(a, b).values()), argnums=(0, 1))(x(), 2 * x())
    close(first, X)
    close(second, [1.5, 5.5, 9])
    # what is not overridden follows from the function
    close(mx.jvp(lambda a: pair(a, a)["o"], [x()], [x()])[1][0], 2 * np.square(X))
    close(mx.vmap(lambda a: pair(a, a)["o"])(mx.stack([x(), x()])), np.square([X, X]))
    close(mx.compile(lambda a: pair(a, a)["r"])(x()), np.array(X) * 2)


def test_captured_arrays_of_custom_functions_are_constants() -> None:
    def outer(a: Any, b: Any) -> Any:
        @mx.custom_function  # type: ignore[untyped-decorator]
        def inner(c: Any) -> Any:
            return c * b

        @inner.vjp  # type: ignore[untyped-decorator]
        def _(_primal: Any, cotangent: Any, _output: Any) -> Any:
            return cotangent * 7

        return inner(a)

    assert mx.grad(outer)(mx.array(2.0), mx.array(3.0)).item() == 7
    assert mx.grad(outer, argnums=1)(mx.array(2.0), mx.array(3.0)).item() == 0


def test_checkpoints() -> None:
    calls = []

    @mx.checkpoint  # type: ignore[untyped-decorator]
    def layer(parameters: Any, a: Any) -> Any:
        calls.append(1)
        return (mx.sin(a) * parameters["w"]).sum()

    value, gradients = mx.value_and_grad(layer)({"w": x()}, x())
    close(value, (np.sin(X) * X).sum())
    close(gradients["w"], np.sin(X))
    assert len(calls) == 2
    close(mx.grad(lambda a: mx.grad(mx.checkpoint(wave))(a).sum())(x()), bend(np.array(X)))


@pytest.mark.slow
def test_graphs_are_deeper_than_the_stack() -> None:
    def chain(a: Any) -> Any:
        for _ in range(20_000):
            a = a + 1
        return a.sum()

    assert mx.grad(chain)(x()).tolist() == [1, 1, 1]
    assert mx.jvp(chain, [x()], [x()])[1][0].item() == 1
    assert mx.vmap(chain)(mx.zeros((2, 1))).tolist() == [20_000, 20_000]


def test_the_derivative_of_tan_near_a_pole_is_exact() -> None:
    """By the cosine: the tangent's own value is large there, and what it has lost by rounding would be squared."""
    x = np.float32([1.5, 1.57, -1.5707, 4.7])
    found = np.array(mx.grad(lambda v: mx.tan(v).sum())(mx.array(x)))
    np.testing.assert_allclose(found, np.cos(x.astype(np.float64)) ** -2.0, rtol=4e-7)
    z = np.array(mx.vjp(mx.tan, [mx.array([0.3 + 0.4j])], [mx.array([1 + 0j])])[1][0])
    np.testing.assert_allclose(z, np.conj(np.cos(np.array([0.3 + 0.4j])) ** -2.0), rtol=1e-6)
