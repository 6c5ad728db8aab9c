"""Arrays as buffers: ``memoryview``, and what looks at memory through it."""

from __future__ import annotations

import sys
import weakref

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("torch")

from rocmend.mlx import core as mx
from rocmend.mlx.accelerated import native

pytestmark = pytest.mark.cpu


LENDS = native is not None or sys.version_info >= (3, 12)


@pytest.mark.skipif(not LENDS, reason="a class written in Python lends no memory before Python 3.12")
@pytest.mark.parametrize(("dtype", "code"), [
    (mx.bool_, "?"), (mx.uint8, "B"), (mx.int8, "b"), (mx.uint16, "H"), (mx.int16, "h"), (mx.uint32, "I"),
    (mx.int32, "i"), (mx.uint64, "Q"), (mx.int64, "q"), (mx.float16, "e"), (mx.float32, "f"), (mx.complex64, "Zf"),
])  # fmt: skip
def test_memory_is_lent_under_the_name_of_its_type(dtype: mx.Dtype, code: str) -> None:
    x = mx.array([[0, 1, 2], [3, 4, 5]]).astype(dtype)
    for array_, strides in ((x, (3, 1)), (x.T, (1, 3))):
        view = memoryview(array_)
        assert (view.format, view.shape) == (code, array_.shape)
        assert view.strides == tuple(step * dtype.size for step in strides)
        assert not view.readonly
        assert np.array_equal(np.asarray(view), np.array(array_.tolist(), dtype=np.asarray(view).dtype))
    assert bytes(mx.array([1, 258], mx.int16)) == np.array([1, 258], np.int16).tobytes()


@pytest.mark.skipif(not LENDS, reason="as above")
def test_a_view_keeps_its_array_alive() -> None:
    x = mx.arange(3)
    kept = weakref.ref(x)
    view = memoryview(x)
    del x
    assert kept() is not None
    view.release()
    del view
    assert kept() is None


@pytest.mark.skipif(native is None, reason="Python knows no bfloat16")
def test_bfloat16_is_lent_under_mlx_s_name() -> None:
    x = mx.array([1.0, -2.0], mx.bfloat16)
    view = memoryview(x)
    assert (view.format, view.itemsize, view.strides) == ("bfloat16", 2, (2,))
    with pytest.raises(ValueError, match="bfloat16"):
        np.array(x)
