"""Products of matrices and tensors."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

from rocmend.mlx import core

mx: Any = core

pytestmark = pytest.mark.cpu

FLOATS = [(mx.float32, 1e-6), (mx.float16, 2e-3), (mx.bfloat16, 1.6e-2), (mx.float64, 1e-14)]


def make(*shape: int, seed: int = 0, dtype: Any = mx.float32) -> Any:
    return mx.array(np.random.default_rng((seed, *shape)).standard_normal(shape).astype(np.float32)).astype(dtype)


def wide(x: Any) -> Any:
    return np.array(x.astype(mx.float64))


def near(found: Any, expected: Any, tolerance: float = 1e-6) -> None:
    assert found.shape == expected.shape
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(wide(found), expected, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize(("dtype", "tolerance"), FLOATS)
@pytest.mark.parametrize(
    ("a", "b"),
    [((3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)), ((2, 1, 3, 4), (6, 4, 5)), ((2, 40, 64), (64, 33)),
     ((0, 4), (4, 5)), ((3, 0), (0, 5))],
)  # fmt: skip
def test_matmul(a: Any, b: Any, dtype: Any, tolerance: float) -> None:
    x, y = make(*a, dtype=dtype), make(*b, seed=1, dtype=dtype)
    found = x @ y
    assert found.dtype is dtype
    near(found, np.matmul(wide(x), wide(y)), tolerance)


def test_matmul_of_views() -> None:
    x = make(4, 6, 5, 3)
    near(x[::2, 1:, ::-1].swapaxes(1, 2) @ x[0, :, :, :].swapaxes(0, 1)[:, 1:].swapaxes(-1, -2),
         wide(x)[::2, 1:, ::-1].swapaxes(1, 2) @ wide(x)[0].swapaxes(0, 1)[:, 1:].swapaxes(-1, -2))  # fmt: skip


def test_matmul_types_and_refusals() -> None:
    assert (mx.zeros((2, 3), mx.float16) @ mx.zeros((3, 2))).dtype is mx.float32
    assert (mx.zeros((2, 3), mx.int32) @ mx.zeros((3, 2))).dtype is mx.float32
    product = mx.array([[1 + 1j, 2]]) @ mx.array([[2.0], [1j]])
    assert product.tolist() == [[2 + 4j]]
    with pytest.raises(ValueError, match="inexact"):
        mx.zeros((2, 3), mx.int32) @ mx.zeros((3, 2), mx.int32)
    with pytest.raises(ValueError, match="must match"):
        mx.zeros((2, 3)) @ mx.zeros((2, 3))
    with pytest.raises(ValueError, match="1 dimension"):
        mx.matmul(mx.zeros((2, 3)), mx.array(1.0))


@pytest.mark.parametrize("shapes", [((3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)), ((2, 3, 4), (4, 5)),
                                    ((3, 4), (2, 4, 5)), ((2, 1, 3, 4), (6, 4, 5)), ((4,), (2, 4, 5))])  # fmt: skip
def test_gradients_of_matmul(shapes: Any) -> None:
    a, b = (make(*shape, seed=i) for i, shape in enumerate(shapes))
    found = mx.grad(lambda a, b: ((a @ b) ** 2).sum(), (0, 1))(a, b)
    left, right = (torch.tensor(wide(x), requires_grad=True) for x in (a, b))
    torch.matmul(left, right).square().sum().backward()
    for one, like in zip(found, (left, right), strict=True):
        near(one, like.grad.numpy(), 1e-5)


def test_batches_of_matmul() -> None:
    a, b, v = make(5, 3, 4), make(5, 4, 2, seed=1), make(5, 4, seed=2)
    near(mx.vmap(mx.matmul)(a, b), wide(a) @ wide(b))
    near(mx.vmap(mx.matmul, in_axes=(0, None))(a, b[0]), wide(a) @ wide(b)[0])
    near(mx.vmap(mx.matmul, in_axes=(None, 0))(a[0], b), wide(a)[0] @ wide(b))
    near(mx.vmap(mx.matmul)(a, v), np.einsum("bij,bj->bi", wide(a), wide(v)))
    near(mx.vmap(mx.matmul)(v, b), np.einsum("bj,bjk->bk", wide(v), wide(b)))


@pytest.mark.parametrize(("dtype", "tolerance"), FLOATS)
@pytest.mark.parametrize("c", [(), (5,), (3, 1), (2, 3, 5), (1, 1)])
def test_addmm(c: Any, dtype: Any, tolerance: float) -> None:
    x, a, b = make(*c, seed=2, dtype=dtype), make(2, 3, 4, dtype=dtype), make(4, 5, seed=1, dtype=dtype)
    expected = 2.0 * (wide(a) @ wide(b)) + 0.5 * wide(x)
    near(mx.addmm(x, a, b, 2.0, 0.5), expected, tolerance)
    near(mx.addmm(x, a, mx.stack([b, b])), wide(a) @ wide(b) + wide(x), tolerance)


def test_addmm_gradients_and_refusals() -> None:
    c, a, b = make(5, seed=2), make(2, 3, 4), make(4, 5, seed=1)
    found = mx.grad(lambda *x: (mx.addmm(*x, 2.0, 0.5) ** 2).sum(), (0, 1, 2))(c, a, b)
    expected = mx.grad(lambda c, a, b: ((2 * (a @ b) + 0.5 * c) ** 2).sum(), (0, 1, 2))(c, a, b)
    for one, like in zip(found, expected, strict=True):
        near(one, wide(like), 1e-6)
    with pytest.raises(ValueError, match="broadcast"):
        mx.addmm(mx.zeros((7,)), a, b)
    batched = mx.vmap(mx.addmm, in_axes=(None, 0, None))(c, a, b)
    near(batched, wide(a) @ wide(b) + wide(c))


def test_gather_mm() -> None:
    a, b = make(5, 3, 6), make(4, 6, 2, seed=1)
    left, right = mx.array([[0], [4]]), mx.array([0, 3, 3], mx.uint32)
    expected = wide(a)[[[0], [4]]] @ wide(b)[[0, 3, 3]]
    near(mx.gather_mm(a, b, left, right), expected)
    near(
        mx.gather_mm(a, b, rhs_indices=mx.array([0, 0, 1, 2, 3]), sorted_indices=True),
        wide(a) @ wide(b)[[0, 0, 1, 2, 3]],
    )
    found = mx.grad(lambda a, b: (mx.gather_mm(a, b, left, right) ** 2).sum(), (0, 1))(a, b)
    plain = mx.grad(lambda a, b: ((a[left] @ b[right]) ** 2).sum(), (0, 1))(a, b)
    for one, like in zip(found, plain, strict=True):
        near(one, wide(like), 1e-6)
    with pytest.raises(ValueError, match="integral"):
        mx.gather_mm(a, b, rhs_indices=mx.array([0.5]))
    with pytest.raises(ValueError, match="stop_gradient"):
        mx.grad(lambda w: mx.gather_mm(a, b, None, mx.argsort(w)).sum())(mx.zeros((5,)))


def test_segmented_mm() -> None:
    a, b = make(5, 30), make(30, 4, seed=1)
    segments = mx.array([[0, 7], [7, 7], [3, 30]])
    expected = np.stack([wide(a)[:, i:j] @ wide(b)[i:j] for i, j in segments.tolist()])
    near(mx.segmented_mm(a, b, segments), expected)
    found = mx.grad(lambda a, b: (mx.segmented_mm(a, b, segments) ** 2).sum(), (0, 1))(a, b)
    plain = mx.grad(
        lambda a, b: sum(((a[:, i:j] @ b[i:j]) ** 2).sum() for i, j in segments.tolist()), (0, 1)
    )(a, b)  # fmt: skip
    for one, like in zip(found, plain, strict=True):
        near(one, wide(like), 1e-6)


def test_block_masked_mm() -> None:
    a, b = make(70, 40), make(40, 33, seed=1)
    out, left, right = (
        mx.array(np.random.default_rng(i).random(s) < 0.5) for i, s in enumerate([(3, 2), (3, 2), (2, 2)])
    )

    def spread(mask: Any, shape: Any) -> Any:
        return np.repeat(np.repeat(wide(mask), 32, 0), 32, 1)[: shape[0], : shape[1]]

    expected = spread(out, (70, 33)) * ((spread(left, (70, 40)) * wide(a)) @ (spread(right, (40, 33)) * wide(b)))
    near(mx.block_masked_mm(a, b, 32, out, left, right), expected)
    nan = mx.where(mx.array(spread(left, (70, 40)) > 0), a, float("nan"))
    near(mx.block_masked_mm(nan, b, 32, None, left), (spread(left, (70, 40)) * wide(a)) @ wide(b))
    with pytest.raises(ValueError, match="block_size"):
        mx.block_masked_mm(a, b, 48)


def test_products_of_tensors() -> None:
    a, b = make(2, 3, 4), make(4, 5, 2, seed=1)
    near(mx.tensordot(a, b, [[0, 2], [2, 0]]), np.tensordot(wide(a), wide(b), [[0, 2], [2, 0]]))
    near(mx.tensordot(a, b, 1), np.tensordot(wide(a), wide(b), 1))
    near(mx.tensordot(a, b, 0), np.tensordot(wide(a), wide(b), 0))
    near(mx.inner(a, make(6, 4, seed=2)), np.inner(wide(a), wide(make(6, 4, seed=2))))
    near(mx.inner(mx.array(2.0), a), 2 * wide(a))
    near(mx.outer(a, b), np.outer(wide(a), wide(b)))
    near(mx.kron(a, b[0]), np.kron(wide(a), wide(b)[0]))
    near(mx.vecdot(a, make(3, 4, seed=3)), (wide(a) * wide(make(3, 4, seed=3))).sum(-1))
    assert mx.vecdot(mx.array([1 + 2j]), mx.array([3 + 1j])).item() == 5 - 5j
    assert mx.kron(mx.array([1, 2]), mx.array([0, 5])).tolist() == [0, 5, 0, 10]
    for call, match in (
        (lambda: mx.tensordot(a, b, 4), "at most"), (lambda: mx.tensordot(a, b, [[0], [0]]), "same shape"),
        (lambda: mx.inner(a, b), "same last"), (lambda: mx.kron(a, mx.zeros((0,))), "empty"),
        (lambda: mx.vecdot(a, mx.array(1.0)), "at least 1D"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=match):
            call()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("order", [1, 2, 64, 12, 24, 20, 40, 28, 56])
def test_hadamard_is_orthogonal_and_of_ones(order: int) -> None:
    matrix = np.array(mx.hadamard_transform(mx.eye(order), scale=1.0))
    assert set(np.unique(matrix)) <= {-1.0, 1.0}
    assert np.array_equal(matrix @ matrix.T, order * np.eye(order))
    x = make(3, order)
    near(mx.hadamard_transform(x), wide(x) @ matrix / np.sqrt(order), 1e-5)


def test_hadamard_is_that_of_mlx() -> None:
    # MLX 0.32.4
    assert mx.hadamard_transform(mx.arange(12), scale=1.0).tolist() == [
        64, -6, 0, -6, -20, -10, 0, -14, 20, -18, 0, -22,
    ]  # fmt: skip
    assert mx.hadamard_transform(mx.arange(20) ** 2, scale=1.0).tolist() == [
        90, 216, 254, 304, 466, -42, -312, -2, 328, 78, 492, 582, 492, 382, 452, -1560, -1418, -1372, -1322, -1168,
    ]  # fmt: skip
    assert mx.hadamard_transform(mx.arange(28) ** 2, scale=1.0).tolist()[:15] == [
        -1456, -1142, -1012, -1066, -1108, -942, -568, -948, -770, -1356, -802, -228, -810, -644, -1062,
    ]  # fmt: skip
    with pytest.raises(ValueError, match="m\\*2\\^k"):
        mx.hadamard_transform(mx.zeros((3,)))
    with pytest.raises(ValueError, match="empty"):
        mx.hadamard_transform(mx.zeros((0, 4)))


EINSUMS = [
    ("ij,jk->ik", [(2, 3), (3, 4)]), ("ij,jk", [(2, 3), (3, 4)]), ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
    ("ij->ji", [(2, 3)]), ("ii", [(3, 3)]), ("ii->i", [(3, 3)]), ("iijj->ij", [(3, 3, 2, 2)]), ("ij->", [(2, 3)]),
    ("i,j->ij", [(2,), (3,)]), ("ij,ij->ij", [(2, 3), (2, 3)]), ("bqhd,bkhd->bhqk", [(2, 3, 4, 5), (2, 6, 4, 5)]),
    ("ea,fb,abcd,gc,hd->efgh", [(3, 2), (4, 3), (2, 3, 4, 5), (2, 4), (3, 5)]),
    ("ijk,ilm,njm,nlk,abc->", [(2, 3, 4), (2, 5, 6), (7, 3, 6), (7, 5, 4), (2, 2, 2)]),
    ("...i,ij->...j", [(2, 3, 4), (4, 5)]), ("...ij,...jk->...ik", [(1, 2, 3), (4, 3, 5)]), ("i...->...", [(2, 3)]),
    ("i j -> j i", [(2, 3)]),
]  # fmt: skip


@pytest.mark.parametrize(("subscripts", "shapes"), EINSUMS)
def test_einsum(subscripts: str, shapes: Any) -> None:
    operands = [make(*shape, seed=i) for i, shape in enumerate(shapes)]
    near(mx.einsum(subscripts, *operands), np.einsum(subscripts, *map(wide, operands)), 1e-5)
    assert mx.einsum_path(subscripts, *operands)[0] == np.einsum_path(subscripts, *map(wide, operands))[0][1:]


def test_einsum_of_integers_text_and_refusals() -> None:
    x = mx.arange(6).reshape(2, 3)
    assert mx.einsum("ij,j->ij", x, mx.array([1, 2, 3])).tolist() == [[0, 2, 6], [3, 8, 15]]
    assert mx.einsum("ij->j", x).tolist() == [3, 5, 7]
    text = mx.einsum_path("ij,jk,kl->il", mx.zeros((2, 3)), mx.zeros((3, 4)), mx.zeros((4, 5)))[1]
    assert "Naive FLOP count:  360" in text
    assert "Optimized FLOP count:  180" in text
    two = mx.zeros((2, 3))
    for operands, match in (
        (("ij,jk", two), "Number of operands"), (("ij,jk", two, mx.zeros((4, 2))), "broadcast"),
        (("ij",), "required"), (("ij->iij", two), "Repeat"), (("ij->ik", two), "no input"), (("i1", two), "letters"),
        (("ijk", two), "subscripts"),
        (("ij,jk", x, x.T), "inexact"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=match):
            mx.einsum(*operands)


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (1, 2), (2, 0)])
@pytest.mark.parametrize(("dtype", "tolerance"), FLOATS[:3])
def test_softmax(axis: Any, dtype: Any, tolerance: float) -> None:
    x = make(3, 5, 8, dtype=dtype)
    e = np.exp(wide(x) - wide(x).max())
    over = axis if axis is None or isinstance(axis, int) else tuple(axis)
    for precise in (False, True):
        found = mx.softmax(x, axis, precise=precise)
        assert found.dtype is dtype
        near(found, e / e.sum(over, keepdims=True), tolerance)


def test_softmax_edges() -> None:
    assert mx.softmax(mx.arange(3)).dtype is mx.float32
    assert np.isnan(np.array(mx.softmax(mx.array([-np.inf, -np.inf])))).all()
    assert mx.softmax(mx.array([0.0, -np.inf])).tolist() == [1, 0]
    assert mx.softmax(mx.zeros((3, 0)), -1).shape == (3, 0)
    with pytest.raises(IndexError):
        mx.softmax(mx.zeros((2,)), 1)
    x = make(4, 6)
    found = mx.grad(lambda x: (mx.softmax(x, -1) * mx.arange(6)).sum())(x)
    p = wide(mx.softmax(x, -1))
    weights = np.arange(6)
    near(found, p * (weights - (p * weights).sum(-1, keepdims=True)), 1e-5)
    near(mx.vmap(lambda x: mx.softmax(x, 0), in_axes=1, out_axes=1)(x), wide(mx.softmax(x, 0)))
    forward = mx.jvp(lambda x: mx.softmax(x, -1), [x], [mx.ones_like(x)])[1][0]
    near(forward, np.zeros((4, 6)), 1e-6)
