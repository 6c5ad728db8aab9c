"""Which kernel is selected on each target, over a grid of problems: a golden, so that no rule changes unseen.

``python -m tests.kernels.test_selection`` writes it anew where a change is meant; look at what differs.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from rocmend.kernels import backends, registry
from rocmend.kernels.common.formats import every_format
from rocmend.kernels.op import Op
from rocmend.kernels.select import consider
from rocmend.kernels.target import by_name

GOLDEN = Path(__file__).with_name("golden") / "selection.json"
AMD = ("gfx906", "gfx90a", "gfx942", "gfx950", "gfx1010", "gfx1030", "gfx1100", "gfx1151", "gfx1201")
HALF = ("float32", "bfloat16")
BACKWARD = (False, True)
WIDTHS = (64, 512, 513, 2048, 4096, 8192, 8193, 16384, 16385, 32768, 32769, 151_936)
SIZES = ((256, 512), (4096, 4096), (14336, 4096), (1024, 65536))
GRIDS: dict[str, tuple[Any, ...]] = {
    "quantized_matmul": (HALF, every_format(), (True, False), (1, 2), (1, 2, 5, 16, 17, 64, 2048), SIZES),
    "gather_qmm": (
        HALF,
        tuple((*form, True, gated) for form in every_format() for gated in (False, True)),
        ((1, 1), (8, 1), (33, 1), (128, 1), (512, 1), (4096, 1), (2, 5)),
        ((768, 2048), (2048, 768), (1440, 2880)),
        (8, 128),
        (False, True),
    ),
    "quantized_attention": (
        HALF,
        (1, 3),
        ((32, 8), (8, 8), (32, 32)),
        (1, 2, 9),
        (64, 4096),
        ((64, 64), (128, 128), (256, 256), (192, 128), (1024, 1024)),
        ((2, 64), (4, 32), (4, 64), (8, 64), (8, 128)),
        (False, True),
    ),
    "quantized_projections": (HALF, every_format(), (True, False), (2, 4), (1, 2, 9), SIZES),
    "attention_decode": (
        HALF,
        (1, 3),
        ((32, 8), (8, 8), (128, 1)),
        (1, 2, 9, 64, 65),
        (64, 4096),
        ((64, 64), (128, 128), (256, 256), (192, 128), (576, 512)),
    ),
    **dict.fromkeys(("rms_norm", "add_rms_norm", "layer_norm"), (HALF, (1, 4096), WIDTHS, ((True, False),), BACKWARD)),
    **dict.fromkeys(("softmax", "logsumexp", "cross_entropy"), (HALF, (1, 4096), WIDTHS, BACKWARD)),
    "gated_linear_unit": (HALF, (4096, 1 << 24), ("silu", "gelu"), BACKWARD),
    "sort": (("bool", "bfloat16", "float32", "int64"), (1, 16, 70_000), WIDTHS, BACKWARD),
    "topk": (("bool", "bfloat16", "float32", "int64"), (0, 1, 4096), WIDTHS, (1, 8, 64)),
}


def _problems(op: Op) -> Iterator[Any]:
    for values in itertools.product(*GRIDS[op.name]):
        yield op.problem(*(part for value in values for part in (value if isinstance(value, tuple) else (value,))))


def selected(name: str) -> dict[str, dict[str, Any]]:
    """Select implementations of an op on every target."""
    op, found = registry.get(name), {}
    for target in map(by_name, (*AMD, "sm80", "sm90", "cpu")):
        taken = [
            next((one.implementation.name for one in consider(op, problem, target, here=False) if one.taken), "none")
            for problem in _problems(op)
        ]
        digest = hashlib.sha256(" ".join(taken).encode()).hexdigest()[:16]
        found[target.name] = {"kernels": dict(sorted(Counter(taken).items())), "digest": digest}
    return found


@pytest.mark.parametrize("name", GRIDS)
def test_the_same_kernels_are_selected(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "MEASURED", True)
    assert selected(name) == json.loads(GOLDEN.read_text(encoding="utf-8"))[name]


if __name__ == "__main__":
    backends.MEASURED = True
    GOLDEN.write_text(json.dumps({name: selected(name) for name in GRIDS}, indent=1) + "\n", encoding="utf-8")
