"""Linear algebra, against numpy."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

from rocmend.mlx import core

mx: Any = core

pytestmark = pytest.mark.cpu


def make(*shape: int, seed: int = 0, dtype: Any = mx.float32) -> Any:
    return mx.array(np.random.default_rng((seed, *shape)).standard_normal(shape).astype(np.float32)).astype(dtype)


def wide(x: Any) -> Any:
    return np.array(x) if x.dtype is mx.complex64 else np.array(x.astype(mx.float64))


def near(found: Any, expected: Any, tolerance: float = 2e-5) -> None:
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(wide(found), expected, rtol=0, atol=tolerance * scale)


def definite(*batch: int) -> Any:
    x = make(*batch, 4, 4)
    return x @ x.swapaxes(-1, -2) + mx.eye(4)


@pytest.mark.parametrize("shape", [(3, 4), (4, 4), (5, 3), (2, 3, 4, 4), (0, 3, 3)])
def test_factors_multiply_to_the_matrix(shape: Any) -> None:
    a = make(*shape)
    q, r = mx.linalg.qr(a)
    near(q @ r, wide(a))
    near(q.swapaxes(-1, -2) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*shape[:-2], q.shape[-1], q.shape[-1])))
    u, s, vt = mx.linalg.svd(a)
    k = s.shape[-1]
    near((u[..., :k] * s[..., None, :]) @ vt[..., :k, :], wide(a))
    near(mx.linalg.svd(a, compute_uv=False), np.linalg.svd(wide(a), compute_uv=False))
    p, lower, upper = mx.linalg.lu(a)
    assert p.dtype is mx.uint32
    near(mx.take_along_axis(lower, p[..., None], -2) @ upper, wide(a))
    packed, pivots = mx.linalg.lu_factor(a)
    assert (packed.shape, pivots.dtype) == (a.shape, mx.uint32)
    near(mx.triu(packed[..., :k, :]), wide(upper))


def test_positive_definite() -> None:
    a = definite(2)
    factor = mx.linalg.cholesky(a)
    near(factor, np.linalg.cholesky(wide(a)))
    near(mx.linalg.cholesky(a, upper=True), wide(factor).swapaxes(-1, -2))
    near(mx.linalg.cholesky_inv(factor), np.linalg.inv(wide(a)))
    near(mx.linalg.cholesky_inv(factor.swapaxes(-1, -2), upper=True), np.linalg.inv(wide(a)))
    values, vectors = mx.linalg.eigh(a)
    near(values, np.linalg.eigvalsh(wide(a)))
    near(a @ vectors, wide(vectors) * wide(values)[..., None, :])
    lower = mx.tril(a)
    near(mx.linalg.eigvalsh(lower), np.linalg.eigvalsh(wide(a)))
    near(mx.linalg.eigvalsh(lower.swapaxes(-1, -2), "U"), np.linalg.eigvalsh(wide(a)))


def test_eigenvalues_of_any_matrix() -> None:
    a = make(3, 4, 4)
    values, vectors = mx.linalg.eig(a)
    assert values.dtype is mx.complex64
    found = np.sort_complex(np.round(wide(mx.linalg.eigvals(a))[0], 4))
    np.testing.assert_allclose(found, np.sort_complex(np.linalg.eigvals(wide(a)[0])), atol=1e-3)
    near(a.astype(mx.complex64) @ vectors, wide(vectors) * wide(values)[..., None, :])


def test_inverses_and_systems() -> None:
    a, b, v = make(2, 4, 4), make(2, 4, 3, seed=1), make(4, seed=2)
    near(mx.linalg.inv(a), np.linalg.inv(wide(a)), 1e-4)
    near(mx.linalg.tri_inv(a), np.linalg.inv(np.tril(wide(a))), 1e-4)
    near(mx.linalg.tri_inv(a, upper=True), np.linalg.inv(np.triu(wide(a))), 1e-4)
    near(mx.linalg.pinv(make(5, 3)), np.linalg.pinv(wide(make(5, 3))), 1e-4)
    near(mx.linalg.solve(a, b), np.linalg.solve(wide(a), wide(b)), 1e-4)
    near(mx.linalg.solve(a[0], v), np.linalg.solve(wide(a)[0], wide(v)), 1e-4)
    square = make(4, 4, seed=3)  # a matrix, not as many vectors as there are matrices
    near(mx.linalg.solve(make(4, 4, 4), square), np.linalg.solve(wide(make(4, 4, 4)), wide(square)[None]), 1e-3)
    near(mx.linalg.solve_triangular(a, b), np.linalg.solve(np.tril(wide(a)), wide(b)), 1e-4)
    near(mx.linalg.solve_triangular(a, b, upper=True), np.linalg.solve(np.triu(wide(a)), wide(b)), 1e-4)
    near(mx.linalg.det(a), np.linalg.det(wide(a)))
    sign, logarithm = mx.linalg.slogdet(a)
    near(sign, np.linalg.slogdet(wide(a))[0])
    near(logarithm, np.linalg.slogdet(wide(a))[1])
    assert mx.linalg.det(mx.array([[1, 2], [3, 4]])).item() == pytest.approx(-2)
    sign, logarithm = mx.linalg.slogdet(mx.zeros((2, 2)))
    assert (sign.item(), logarithm.item()) == (0, -np.inf)
    with pytest.raises(RuntimeError, match="singular"):
        mx.linalg.inv(mx.zeros((2, 2))).tolist()


def test_gradients() -> None:
    a, b = make(3, 3) + 3 * mx.eye(3), make(3, 2, seed=1)
    found = mx.grad(lambda a, b: (mx.linalg.solve(a, b) ** 2).sum(), (0, 1))(a, b)
    leaves = [torch.tensor(wide(x), requires_grad=True) for x in (a, b)]
    torch.linalg.solve(*leaves).square().sum().backward()
    for one, like in zip(found, leaves, strict=True):
        near(one, like.grad.numpy(), 1e-4)
    near(
        mx.grad(lambda a: mx.linalg.inv(a).sum())(a), -np.outer(*(wide(mx.linalg.inv(a)).sum(i) for i in (0, 1))), 1e-4
    )
    near(mx.grad(mx.linalg.det)(a), np.linalg.det(wide(a)) * np.linalg.inv(wide(a)).T, 1e-4)
    near(mx.grad(lambda a: mx.linalg.svd(a, compute_uv=False).sum())(a), np.matmul(*np.linalg.svd(wide(a))[::2]), 1e-4)


@pytest.mark.parametrize("name", ["inv", "cholesky", "det", "pinv", "eigvalsh"])
def test_batches(name: str) -> None:
    a, function = definite(3), getattr(mx.linalg, name)
    near(mx.vmap(function)(a), wide(function(a)), 1e-4)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("order", [None, "fro", "nuc", np.inf, -np.inf, 1, -1, 2, -2, 0, 3, 2.5])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((5,), None), ((3, 4), 0), ((3, 4), None), ((2, 3, 4), [0, 2]), ((2, 3, 4), [2, 0]), ((2, 3, 4), 1)],
)
def test_norms(shape: Any, axis: Any, order: Any, keepdims: bool) -> None:
    a = make(*shape)
    axes = tuple(axis) if isinstance(axis, list) else axis
    try:
        expected = np.linalg.norm(wide(a), order, axes, keepdims)
    except ValueError:
        with pytest.raises(ValueError, match="norm"):
            mx.linalg.norm(a, order, axis, keepdims)
        return
    near(mx.linalg.norm(a, order, axis, keepdims), expected)


def test_norms_of_other_types() -> None:
    assert mx.linalg.norm(mx.arange(5)).item() == pytest.approx(30**0.5)
    assert mx.linalg.norm(mx.array([3 + 4j, 0])).item() == 5
    assert mx.linalg.norm(make(2, 3, 4)).item() == pytest.approx(np.linalg.norm(wide(make(2, 3, 4))), rel=1e-6)
    assert mx.linalg.norm(make(3, dtype=mx.float16), 1).dtype is mx.float16


def test_cross() -> None:
    a, b = make(4, 3), make(4, 3, seed=1)
    near(mx.linalg.cross(a, b), np.cross(wide(a), wide(b)))
    near(mx.linalg.cross(a.T, b.T, axis=0), np.cross(wide(a), wide(b)).T)
    near(mx.linalg.cross(a[:, :2], b), np.cross(np.pad(wide(a)[:, :2], ((0, 0), (0, 1))), wide(b)))
    assert mx.linalg.cross(mx.array([1, 0, 0]), mx.array([0, 1, 0])).tolist() == [0, 0, 1]


def test_refusals() -> None:
    a = make(3, 4)
    for name in ("inv", "tri_inv", "cholesky", "cholesky_inv", "eig", "eigvals", "eigh", "eigvalsh", "det", "slogdet"):
        with pytest.raises(ValueError, match="square"):
            getattr(mx.linalg, name)(a)
    for name in ("inv", "qr", "svd", "lu", "lu_factor", "pinv", "eigh", "cholesky"):
        with pytest.raises(ValueError, match="type"):
            getattr(mx.linalg, name)(mx.zeros((2, 2), mx.float16))
        with pytest.raises(ValueError, match="dimensions"):
            getattr(mx.linalg, name)(mx.zeros((2,)))
    for call, match in (
        (lambda: mx.linalg.solve(a, a), "square"), (lambda: mx.linalg.solve(make(4, 4), a), "must match"),
        (lambda: mx.linalg.cross(a, a), "size 2 or 3"), (lambda: mx.linalg.eigh(make(2, 2), "X"), "UPLO"),
        (lambda: mx.linalg.norm(a, "foo"), "Invalid ord"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=match):
            call()  # type: ignore[no-untyped-call]
