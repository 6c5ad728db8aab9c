"""The kernel whose wavefronts walk over keys: its PTX on a wavefront of NumPy, and where it is taken.

Gluon has no interpreter: on a GPU the suite has cases that take the kernel.
"""

from __future__ import annotations

import gc
import re
import weakref
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import numpy as np
from tests.kernels import wavefront
from tests.kernels.wavefront import QUARTER, ROW, bits_of

from rocmend.kernels import backends, caches, executor, select
from rocmend.kernels.backends.hopper.quantized_attention.kernels import ptx
from rocmend.kernels.ops.attention.quantized_attention.function import quantized_attention
from rocmend.kernels.target import by_name

pytestmark = pytest.mark.cpu

TEXTS = ptx.texts()
ROWS = 8


def wide(halves: Any, kind: str) -> Any:
    """Return numbers of a half type, given as their bits, as float32."""
    if kind == "bf16":
        return wavefront.wide(halves)
    return np.asarray(halves).astype(np.uint16).view(np.float16).astype(np.float32)


def narrow(numbers: Any, kind: str) -> Any:
    """Return the bits of the nearest numbers of a half type."""
    if kind == "bf16":
        return wavefront.narrow(numbers)
    return np.asarray(numbers, np.float32).astype(np.float16).view(np.uint16).astype(np.uint32)


def _numbers(registers: list[Any]) -> list[Any]:
    return [one.view(np.float32) for one in registers]


class Lanes(wavefront.Wavefront):
    """A wavefront that has fp16 and the matrix unit's transposition too."""

    def _step(self, name: str, rest: str) -> None:
        to, *of = re.split(r",\s*", rest)
        if name.startswith("mma") and ".f16.f16." in name:
            self._of_fp16(*(re.split(r",\s*", part) for part in re.findall(r"\{([^}]*)\}", rest)))
        elif name == "mov.b32" and rest.startswith("{"):
            word = self._value(of[-1])
            self.held[to.strip("{}")], self.held[of[0].strip("{}")] = word & 0xFFFF, word >> 16
        elif name == "max.f32":
            one, other = _numbers([self._value(of[0]), self._value(of[1])])
            self.held[to] = bits_of(np.maximum(one, other))
        elif name == "cvt.f32.f16":
            self.held[to] = bits_of(wide(self._value(of[0]), "f16"))
        elif name == "cvt.rn.f16x2.f32":
            high, low = (narrow(one, "f16") for one in _numbers([self._value(of[0]), self._value(of[1])]))
            self.held[to] = low | (high << np.uint32(16))
        elif name == "movmatrix.sync.aligned.m8n8.trans.b16":
            tile = np.zeros((8, 8), np.uint32)
            for half in range(2):
                tile[ROW, 2 * QUARTER + half] = self._value(of[0]) >> np.uint32(16 * half) & 0xFFFF
            self.held[to] = tile[2 * QUARTER, ROW] | (tile[2 * QUARTER + 1, ROW] << np.uint32(16))
        else:
            super()._step(name, rest)

    def _of_fp16(self, d: list[str], a: list[str], b: list[str], c: list[str]) -> None:
        left, right, sums = np.zeros((16, 16)), np.zeros((16, 8)), np.zeros((16, 8))
        for half in range(2):
            for at in range(4):
                terms = 2 * QUARTER + at // 2 * 8 + half
                left[ROW + at % 2 * 8, terms] = wide(self._value(a[at]) >> np.uint32(16 * half) & 0xFFFF, "f16")
            for at in range(2):
                right[2 * QUARTER + 8 * at + half, ROW] = wide(
                    self._value(b[at]) >> np.uint32(16 * half) & 0xFFFF, "f16"
                )
        for at in range(4):
            sums[ROW + at // 2 * 8, 2 * QUARTER + at % 2] = self._value(c[at]).view(np.float32)
        sums += left @ right
        for at in range(4):
            self.held[d[at]] = bits_of(sums[ROW + at // 2 * 8, 2 * QUARTER + at % 2])


def _run(name: str, *tensors: Any) -> list[Any]:
    """Carry a block out on tensors of four registers each."""
    return Lanes([register for tensor in tensors for register in tensor]).run(TEXTS[name])


class Walk:
    """A wavefront of the kernel, lane by lane as ``streams_kernel`` has it."""

    def __init__(self, kind: str, bits: int, dim: int) -> None:
        self.kind, self.bits, self.groups = kind, bits, dim // 64
        self.steps = 4 // self.groups
        self.tile = 16 * self.steps
        self.words = 2 * bits
        none = [np.zeros(32, np.uint32)] * 4
        self.top = [bits_of(np.full(32, -np.inf))] * 4
        self.total = [np.zeros(32, np.float32)] * 4
        self.accs = [none] * (4 * self.groups)
        self.biases, self.offsets = [none] * (self.groups // 2), [none] * (self.groups // 2)

    def start(self, q: Any) -> None:
        """q: bits of halves, [ROWS, dim]."""
        self.q, self.totals = [], []
        for group in range(self.groups):
            both = []
            for register in range(8):
                low, high = (
                    q[ROW, 64 * group + np.array([ptx.element(self.bits, int(t), register, half) for t in QUARTER])]
                    for half in range(2)
                )
                both.append(low | (high << np.uint32(16)))
            self.q += [both[:4], both[4:]]
            self.totals.append(_run(f"total-{self.kind}", *self.q[-2:]))

    def _key(self, row: Any, step: int, half: int) -> Any:
        return row * 2 * self.steps + 2 * step + half

    def turn(self, keys: Any, values: Any, ends: int, factor: float) -> None:
        """keys, values: words [tile, ·], scales and biases [tile, groups] as bits."""
        name, groups, four = f"{self.kind}-{self.groups}", self.groups, range(4)

        def quad(halves: Any, end: int | None = None) -> list[Any]:
            found = []
            for at in four:
                key = ROW * 2 * self.steps + (at if groups == 2 else at // 2)
                pair = 0 if groups == 2 else at % 2
                word = halves[key, 2 * pair] | (halves[key, 2 * pair + 1] << np.uint32(16))
                found.append(np.where(key < end, word, 0) if end is not None else word)
            return found

        scores = []
        for step in range(self.steps):
            sums = []
            for group in range(groups):
                start = [bits_of(-ptx.offset(self.bits) * one) for one in _numbers(self.totals[group])]
                if self.bits == 4:
                    own = [[keys[0][self._key(ROW, step, at // 2), group * 8 + 2 * QUARTER + at % 2] for at in four]]
                else:
                    own = [
                        [keys[0][self._key(ROW, step, half), group * 16 + 4 * QUARTER + at] for at in four]
                        for half in range(2)
                    ]
                q = self.q[2 * group : 2 * group + 2]
                sums.append(_run(f"scores-{self.kind}-{self.bits}", start, *own, *q))
            s = _numbers(_run(f"scaled-{name}-{step}", quad(keys[1]), quad(keys[2]), *sums, *self.totals))
            scores.append([np.where(self._key(ROW, step, at // 2) < ends, s[at] * factor, -np.inf) for at in four])
        highest = [np.maximum.reduce([*[s[at] for s in scores], self.top[at].view(np.float32)]) for at in four]
        after = _numbers(_run("highest", [bits_of(one) for one in highest]))
        fade = [np.exp2(self.top[at].view(np.float32) - after[at]) for at in four]
        self.top = [bits_of(one) for one in after]

        def faded(tensor: list[Any]) -> list[Any]:
            return [bits_of(one * by) for one, by in zip(_numbers(tensor), fade, strict=True)]

        self.total = [one * by for one, by in zip(self.total, fade, strict=True)]
        self.accs, self.biases, self.offsets = (
            [faded(one) for one in some] for some in (self.accs, self.biases, self.offsets)
        )
        scales, biases = quad(values[1], ends), quad(values[2], ends)
        for step in range(self.steps):
            p = [np.exp2(scores[step][at] - after[at]) for at in four]
            self.total = [one + more for one, more in zip(self.total, p, strict=True)]
            weights_of = [bits_of(one) for one in p]
            for pair in range(groups // 2):
                weights = _run(f"weighed-{name}-{step}-{pair}", weights_of, scales)
                self.biases[pair] = _run(f"biased-{name}-{step}-{pair}", self.biases[pair], weights_of, biases)
                self.offsets[pair] = _run(f"offsets-{self.kind}-{self.bits}", self.offsets[pair], weights)
                for one in range(2):
                    self._add(values[0], weights, step, 2 * pair + one)

    def _add(self, words: Any, weights: list[Any], step: int, group: int) -> None:
        def key(half: int, odd: int) -> Any:
            return self._key(2 * QUARTER + odd, step, half)

        if self.bits == 4:
            own = [[words[key(at // 2, at % 2), group * 8 + ROW] for at in range(4)]]
        else:
            own = [[words[key(half, at // 2), group * 16 + 2 * ROW + at % 2] for at in range(4)] for half in range(2)]
        for tile in range(4):
            at = 4 * group + tile
            name = f"values-{self.kind}-{self.bits}-{tile}-{group % 2}"
            self.accs[at] = _run(name, self.accs[at], *own, weights)

    def result(self) -> Any:
        """Return the output, [ROWS, dim]."""
        out = np.zeros((ROWS, 64 * self.groups), np.float32)
        totals = _numbers(_run("halves", [bits_of(self._over_rows(one)) for one in self.total]))
        for group in range(self.groups):
            pair = group // 2
            left = [self._over_rows(one) for one in _numbers(self.biases[pair])]
            both = [bits_of(one + more) for one, more in zip(left, _numbers(self.offsets[pair]), strict=True)]
            extra = _numbers(_run(f"spread-{group % 2}", both))
            for tile in range(4):
                for at, acc in enumerate(_numbers(self.accs[4 * group + tile])):
                    column = 64 * group + 8 * ROW + 2 * tile + at // 2
                    out[2 * QUARTER + at % 2, column] = (acc + extra[at]) / totals[at]
        return out

    @staticmethod
    def _over_rows(one: Any) -> Any:
        return one.reshape(8, 4).sum(0)[QUARTER]


def _cache(drawn: Any, kind: str, bits: int, keys: int, dim: int) -> tuple[tuple[Any, Any, Any], Any]:
    codes = drawn.integers(0, 1 << bits, (keys, dim))
    each = 32 // bits
    words = np.zeros((keys, dim // each), np.uint32)
    for place in range(each):
        words |= codes[:, place::each].astype(np.uint32) << np.uint32(bits * place)
    scales = narrow((1.0 + 0.1 * drawn.standard_normal((keys, dim // 64))) * 4 / (1 << bits), kind)
    biases = narrow(-2.0 + 0.1 * drawn.standard_normal((keys, dim // 64)), kind)
    dense = codes.reshape(keys, -1, 64) * wide(scales, kind)[:, :, None] + wide(biases, kind)[:, :, None]
    return (words, scales, biases), dense.reshape(keys, dim)


@pytest.mark.parametrize("kind", ["bf16", "f16"])
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("dim", [128, 256])
def test_a_wavefront_attends(kind: str, bits: int, dim: int) -> None:
    drawn = np.random.default_rng(bits + dim)
    walk = Walk(kind, bits, dim)
    turns = 3
    keys = turns * walk.tile
    end = keys - 5
    (kw, ks, kb), k = _cache(drawn, kind, bits, keys, dim)
    (vw, vs, vb), v = _cache(drawn, kind, bits, keys, dim)
    # What lies behind the end may be anything.
    ks[end:], vs[end:], vb[end:] = (narrow(np.full((5, dim // 64), np.nan), kind) for _ in range(3))
    q = narrow(drawn.standard_normal((ROWS, dim)), kind)
    factor = 0.1
    walk.start(q)
    for turn in range(turns):
        here = slice(turn * walk.tile, (turn + 1) * walk.tile)
        walk.turn((kw[here], ks[here], kb[here]), (vw[here], vs[here], vb[here]), end - turn * walk.tile, factor)
    s = (wide(q, kind).astype(np.float64) @ k[:end].T) * factor
    p = np.exp2(s - s.max(1, keepdims=True))
    wanted = (p / p.sum(1, keepdims=True)) @ v[:end]
    off = 4e-3 if kind == "bf16" else 5e-4
    np.testing.assert_allclose(walk.result(), wanted, atol=off * np.abs(wanted).max())


@pytest.mark.parametrize("bits", [4, 8])
def test_every_code_of_a_group_meets_its_element(bits: int) -> None:
    places = [ptx.element(bits, t, register, half) for t in range(4) for register in range(8) for half in range(2)]
    assert sorted(places) == list(range(64))


H200 = by_name("sm90", compute_units=132)


def _quantized(keys: int, dim: int, bits: int, dtype: Any = torch.bfloat16) -> tuple[Any, Any, Any]:
    words = torch.zeros(2, 2, keys, dim * bits // 32, dtype=torch.int32)
    scales = torch.zeros(2, 2, keys, dim // 64, dtype=dtype)
    return words, scales, scales.clone()


def _launches(
    *, target: Any = H200, heads: int = 8, queries: int = 1, keys: int = 1024, dim: int = 128, bits: int = 4,
    shift: int = 0, cut: int = 0, **options: Any,
) -> list[executor.Launch]:  # fmt: skip
    """Return what a call launches; ``shift``: elements before q; ``cut``: keys that the cache has beyond."""
    q = torch.zeros(2 * heads * queries * dim + shift, dtype=torch.bfloat16)[shift:].view(2, heads, queries, dim)
    k, v = (tuple(one[:, :, :keys] for one in _quantized(keys + cut, dim, bits)) for _ in range(2))
    recorder = executor.Recorder(target)
    with executor.using(recorder), select.prefer("triton"):
        quantized_attention(q, k, v, scale=0.1, bits=bits, group_size=64, **options)
    return recorder.launches


def _names(launches: list[executor.Launch]) -> list[str]:
    return [one.kernel.__name__ for one in launches]


@pytest.fixture(autouse=True)
def _suited(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton.experimental.gluon")
    monkeypatch.setattr(backends, "MEASURED", True)
    caches.forget()


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("dim", [128, 256])
@pytest.mark.parametrize("cut", [0, 8])
def test_few_rows_of_long_caches_are_streamed(bits: int, dim: int, cut: int) -> None:
    launches = _launches(bits=bits, dim=dim, keys=4096, cut=cut)
    assert _names(launches) == ["streams_kernel", "merge_kernel"]
    one = launches[0]
    # All that it takes is given: what is not there by position has to be a constant.
    assert len(one.args) + len(one.constants) == len(one.kernel.arg_names)


def test_a_short_cache_is_one_part() -> None:
    assert _names(_launches(keys=64)) == ["streams_kernel"]


@pytest.mark.parametrize(
    "change",
    [
        {"heads": 32}, {"heads": 8, "queries": 4}, {"dim": 64}, {"bits": 2}, {"keys": 1001}, {"shift": 1},
        {"mask": torch.ones(1024, dtype=torch.bool)}, {"target": by_name("sm80")}, {"target": by_name("gfx942")},
    ],
    ids=str,
)  # fmt: skip
def test_others_take_other_kernels(change: dict[str, Any]) -> None:
    assert "streams_kernel" not in _names(_launches(**change))


def test_another_release_takes_other_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "MEASURED", False)
    assert "streams_kernel" not in _names(_launches())


@pytest.mark.parametrize("dim", [64, 128])
def test_what_is_remembered_of_a_call_keeps_none_of_its_tensors(dim: int) -> None:
    recorder = executor.Recorder(H200)
    with executor.using(recorder), select.prefer("triton"):  # what is remembered is forgotten at the end of it
        q, k, v = torch.zeros(2, 8, 1, dim, dtype=torch.bfloat16), _quantized(1024, dim, 4), _quantized(1024, dim, 4)
        given = [weakref.ref(one) for one in (q, *k, *v)]
        quantized_attention(q, k, v, scale=0.1, bits=4, group_size=64)
        assert ("streams_kernel" in _names(recorder.launches)) == (dim == 128)
        del q, k, v
        recorder.launches.clear()
        gc.collect()
        assert not [one for one in given if one() is not None]
