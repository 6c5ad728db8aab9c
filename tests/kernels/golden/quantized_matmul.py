"""Golden values of MLX's quantized_matmul; needs mlx, which the project does not.

Run: ``pip install mlx==0.32.4 mlx-cpu==0.32.4 && python tests/kernels/golden/quantized_matmul.py``
"""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import numpy as np

FORMATS = [("affine", bits, group) for bits, group in ((2, 32), (3, 64), (4, 64), (5, 128), (6, 32), (8, 64))]
FORMATS += [("mxfp4", 4, 32), ("mxfp8", 8, 32), ("nvfp4", 4, 16)]


def main() -> None:
    """Write quantized_matmul.npz beside this file."""
    mx.random.seed(4)
    out: dict[str, np.ndarray] = {}
    for mode, bits, group in FORMATS:
        name = f"{mode}-{bits}-{group}"
        parts = mx.quantize(mx.random.normal((5, 128)), group_size=group, bits=bits, mode=mode)
        out |= {f"{name}/w{index}": np.array(part) for index, part in enumerate(parts)}
        for dtype in ("float32", "bfloat16"):
            scaled = [part.astype(getattr(mx, dtype)) if part.dtype == mx.float32 else part for part in parts]
            for transpose, depth in ((True, 128), (False, 5)):
                x = mx.random.normal((2, depth)).astype(mx.bfloat16).astype(getattr(mx, dtype))
                y = mx.quantized_matmul(x, *scaled, transpose=transpose, group_size=group, bits=bits, mode=mode)
                key = f"{name}/{dtype}/{'t' if transpose else 'n'}"
                # bfloat16 holds them, too: the upper halves are enough.
                out[f"{key}/x"] = (np.array(x.astype(mx.float32)).view(np.uint32) >> 16).astype(np.uint16)
                out[f"{key}/y"] = np.array(y.astype(mx.float32))
    np.savez_compressed(Path(__file__).with_suffix(".npz"), **out)  # type: ignore[arg-type]  # the names are arrays, none is allow_pickle


if __name__ == "__main__":
    main()
