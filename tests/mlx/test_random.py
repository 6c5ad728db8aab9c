"""Random numbers. Recorded values are of MLX 0.32.4 on the CPU."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

from rocmend.mlx import core

mx: Any = core

pytestmark = pytest.mark.cpu


def close(found: Any, expected: Any, tolerance: float = 2e-6) -> None:
    np.testing.assert_allclose(np.array(found.astype(mx.float32)), expected, rtol=tolerance, atol=tolerance)


def test_keys() -> None:
    assert mx.random.key(5).tolist() == [0, 5]
    assert mx.random.key((3 << 32) + 7).tolist() == [3, 7]
    assert mx.random.key(2**64 - 1).tolist() == [2**32 - 1, 2**32 - 1]
    assert mx.random.split(mx.random.key(3), 3).tolist() == [
        [877192987, 1614509672], [1950127089, 3448417067], [2823528474, 3529024829],
    ]  # fmt: skip
    with pytest.raises(TypeError, match="seed"):
        mx.random.key(-1)
    with pytest.raises(ValueError, match="key type"):
        mx.random.uniform(key=mx.array([1, 2]))
    with pytest.raises(ValueError, match="key shape"):
        mx.random.uniform(key=mx.zeros((3, 2), mx.uint32))


def test_uniform_is_bit_for_bit() -> None:
    key = mx.random.key(7)
    drawn = mx.random.uniform(-1, 2, (5,), key=key)
    assert drawn.tolist() == [
        -0.8068431615829468, -0.39792269468307495, 0.9513776302337646, 0.1468278169631958, 1.0262525081634521,
    ]  # fmt: skip
    half = mx.random.uniform(shape=(5,), dtype=mx.float16, key=key)
    assert half.tolist() == [0.06439208984375, 0.20068359375, 0.650390625, 0.38232421875, 0.67529296875]
    brain = mx.random.uniform(shape=(5,), dtype=mx.bfloat16, key=key)
    assert brain.tolist() == [0.064453125, 0.201171875, 0.65234375, 0.3828125, 0.67578125]


def test_integers_and_truth_values_are_bit_for_bit() -> None:
    key = mx.random.key(7)
    assert mx.random.randint(-5, 100, (8,), key=key).tolist() == [-4, 34, 30, 4, 70, 99, 86, 85]
    assert mx.random.bernoulli(0.3, (10,), key=key).astype(mx.int32).tolist() == [0, 1, 1, 0, 1, 0, 1, 0, 0, 0]
    assert mx.random.permutation(9, key=key).tolist() == [6, 1, 2, 5, 4, 7, 8, 3, 0]
    assert mx.random.bernoulli(1.0, (10000,), key=key).all().item()
    assert not mx.random.bernoulli(0.0, (10000,), key=key).any().item()
    assert mx.random.randint(3, 4, (50,), mx.uint8, key).tolist() == [3] * 50


def test_classes_are_those_of_mlx() -> None:
    key = mx.random.key(7)
    logits = mx.array(np.sin(np.arange(12)).astype(np.float32).reshape(3, 4))
    assert mx.random.categorical(logits, key=key).tolist() == [0, 1, 1]
    several = mx.random.categorical(logits, num_samples=5, key=key)
    assert several.tolist() == [[1, 1, 1, 3, 2], [2, 3, 1, 3, 3], [1, 0, 0, 0, 1]]
    # one distribution is drawn from through its cumulated probabilities
    assert mx.random.categorical(logits[0], num_samples=8, key=key).tolist() == [0, 1, 1, 0, 2, 3, 3, 3]
    assert mx.random.categorical(logits[0], num_samples=0, key=key).shape == (0,)
    assert mx.random.categorical(logits, 0, [5, 4], key=key).shape == (5, 4)
    assert mx.random.categorical(mx.array([-np.inf, 0.0, -np.inf]), num_samples=20).tolist() == [1] * 20
    with pytest.raises(ValueError, match="At most one"):
        mx.random.categorical(logits, shape=[2, 3], num_samples=2)
    with pytest.raises(IndexError, match="axis"):
        mx.random.categorical(logits, 2)


def test_normal_and_its_relatives() -> None:
    key = mx.random.key(7)
    close(
        mx.random.normal((5,), key=key),
        [-1.5189650058746338, -0.8391503095626831, 0.38656067848205566, -0.2995086908340454, 0.45492252707481384],
    )
    close(mx.random.gumbel((4,), key=key), [-0.399931937456131, -0.384045273065567, 0.235065668, -0.336862385])
    close(mx.random.laplace((4,), key=key), [0.7985759377479553, 0.7750645279884338, 0.0973716750, 0.7073991298])
    close(mx.random.truncated_normal(-1, 1, (4,), key=key), [-0.489482939, -0.479183942, -0.0794695392, -0.448454887])
    mean, cov = mx.array([1.0, 2.0]), mx.array([[2.0, 0.5], [0.5, 1.0]])
    expected = [[-1.30081033, 0.86000239], [0.73902761, 1.67741227], [1.54164147, 1.65645502]]
    close(mx.random.multivariate_normal(mean, cov, (3,), key=key), expected, 2e-5)


def test_moments() -> None:
    mx.random.seed(0)
    drawn = np.array(mx.random.normal((100000,), loc=3.0, scale=2.0))
    assert abs(drawn.mean() - 3) < 0.03
    assert abs(drawn.std() - 2) < 0.02
    parts = np.array(mx.random.normal((100000,), mx.complex64))
    assert abs(parts.real.var() - 0.5) < 0.01
    assert abs(parts.imag.var() - 0.5) < 0.01
    cut = mx.random.truncated_normal(mx.array([0.0, -2.0]), mx.array([1.0, -1.0]), (1000, 2))
    assert mx.all(mx.logical_and(cut >= mx.array([0.0, -2.0]), cut <= mx.array([1.0, -1.0]))).item()


def test_global_state() -> None:
    mx.random.seed(11)
    close(mx.random.uniform(shape=(3,)), [0.43049925565719604, 0.3751341700553894, 0.2060239315032959], 0)
    close(mx.random.normal((2,)), [-0.6720049977302551, 0.15543198585510254])
    assert len(mx.random.state) == 1
    before = mx.random.state[0]
    first = mx.random.uniform()
    mx.random.state[0] = before
    assert mx.random.uniform().item() == first.item()
    mx.random.seed(1)
    assert mx.random.state[0].tolist() == [0, 1]


def test_state_is_each_thread_s_own() -> None:
    import threading

    mx.random.seed(4)
    seen: list[Any] = []

    def other() -> None:
        mx.random.seed(9)
        seen.extend((mx.random.state, mx.random.state[0].tolist()))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert seen[0] is mx.random.state
    assert seen[1] == [0, 9]
    assert mx.random.state[0].tolist() == [0, 4]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 8, 1001])
def test_bits_are_those_of_the_kernels(count: int) -> None:
    from rocmend import kernels
    from rocmend.mlx.random.keys import bits

    key = kernels.random_key(12345)
    for width in (1, 2, 4):
        expected = kernels.random_bits(key, (count,), width=width).view(torch.uint8).tolist()
        found = bits((count,), width, mx.random.key(12345))
        assert np.array(found).view(np.uint8).tolist() == expected


@pytest.mark.parametrize("count", [33, 34, 64, 65, 66, 97, 128, 129])
def test_bits_do_not_depend_on_how_many_are_drawn_at_a_time(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from rocmend.mlx.random import keys

    some = torch.tensor([[1, 2], [-3, 4]], dtype=torch.int32)
    whole = keys.words(some, count)
    assert torch.equal(whole, keys._few_words(some, count))
    monkeypatch.setattr(keys, "_CHUNK", 16)
    assert torch.equal(keys.words(some, count), whole)


def test_draws_are_batched() -> None:
    keys = mx.random.split(mx.random.key(0), 4)
    drawn = mx.vmap(lambda key: mx.random.uniform(shape=(3,), key=key))(keys)
    assert drawn.tolist() == [mx.random.uniform(shape=(3,), key=keys[i]).tolist() for i in range(4)]


def test_refusals() -> None:
    with pytest.raises(ValueError, match="floating point"):
        mx.random.uniform(shape=(2,), dtype=mx.int32)
    with pytest.raises(ValueError, match="Negative"):
        mx.random.normal((2, -1))
    with pytest.raises(ValueError, match="broadcast"):
        mx.random.uniform(0, mx.ones((3,)), (2,))
    with pytest.raises(ValueError, match="float type"):
        mx.random.bernoulli(1)
    with pytest.raises(ValueError, match="integer types"):
        mx.random.randint(0, 3, (2,), mx.float32)
    with pytest.raises(ValueError, match="compatible shapes"):
        mx.random.multivariate_normal(mx.zeros((2,)), mx.eye(3))
