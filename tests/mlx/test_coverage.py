"""What is written of the coverage of MLX is what calls do."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("mlx")

from rocmend.mlx import core as mx
from rocmend.mlx.accelerated import native
from rocmend.mlx.programs import surface
from rocmend.mlx.programs.left_out import BEHAVES, LEFT_OUT

pytestmark = pytest.mark.cpu

CALLS: dict[str, Any] = {
    "fast.metal_kernel": lambda: mx.fast.metal_kernel("k", ["x"], ["y"], "y[0] = x[0];")(
        inputs=[mx.array([1.0])], template=[], grid=(1, 1, 1), threadgroup=(1, 1, 1), output_shapes=[(1,)],
        output_dtypes=[mx.float32],
    ),
    "fast.cuda_kernel": lambda: mx.fast.cuda_kernel("k", ["x"], ["y"], "y[0] = x[0];")(
        inputs=[mx.array([1.0])], template=[], grid=(1, 1, 1), threadgroup=(1, 1, 1), output_shapes=[(1,)],
        output_dtypes=[mx.float32],
    ),
    "fast.precompiled_cuda_kernel": lambda: mx.fast.precompiled_cuda_kernel(
        name="k", compiled_source=b"", inputs=[mx.array([1.0])], output_shapes=[(1,)], output_dtypes=[mx.float32],
        scalars=[], grid=(1, 1, 1), threadgroup=(1, 1, 1),
    ),
    "metal.start_capture": lambda: mx.metal.start_capture("trace"),
    "metal.stop_capture": mx.metal.stop_capture,
}  # fmt: skip


def test_what_is_left_out_raises_when_it_is_called() -> None:
    assert set(CALLS) == set(LEFT_OUT)
    for name, call in CALLS.items():
        with pytest.raises(NotImplementedError, match=name.rpartition(".")[2]):
            call()


def test_what_behaves_otherwise_is_a_name_of_mlx() -> None:
    assert set(BEHAVES) <= set(surface.read_stubs(surface.stub_folder()))
    assert not set(BEHAVES) & set(LEFT_OUT)


def test_buffers_need_recording_in_c_or_python_3_12() -> None:
    x = mx.array([1, 2, 3])
    if native is not None or sys.version_info >= (3, 12):
        assert memoryview(x).tolist() == [1, 2, 3]
    else:
        with pytest.raises(TypeError, match="bytes-like"):
            memoryview(x)


@pytest.mark.slow
def test_buffers_without_recording_in_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same as everywhere, as far as the version of Python allows it."""
    monkeypatch.setenv("ROCMEND_MLX_ACCELERATED", "0")
    code = (
        "import numpy as np\n"
        "from rocmend.mlx import core as mx\n"
        "x = mx.arange(3)\n"
        "try: print(memoryview(x).format)\n"
        "except TypeError as error: print(error)\n"
        "print(np.asarray(x).tolist())\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    first, second = ran.stdout.splitlines()
    assert ("i" if sys.version_info >= (3, 12) else "bytes-like") in first
    assert second == "[0, 1, 2]"


def test_other_back_ends_are_not_there() -> None:
    assert not mx.cuda.is_available()
    assert not mx.metal.is_available()
    assert not mx.distributed.is_available("jaccl")


def test_the_wired_limit_is_remembered() -> None:
    before = mx.set_wired_limit(1)
    assert mx.set_wired_limit(before) == 1
