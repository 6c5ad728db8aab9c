"""Golden vectors: what a project's functions give for fixed inputs, kept on one machine and compared on another.

A project names the functions in ``[tool.rocmend.port] golden``. Each takes one tensor of (batch, sequence, width) and
gives tensors. Inputs are drawn on the CPU and are the same everywhere; a function that draws numbers itself, for
parameters say, finds the generator seeded.
"""

from __future__ import annotations

import base64
import math
from array import array
from collections.abc import Sequence
from typing import Any

import msgspec

from rocmend.core.beneath import Beneath
from rocmend.core.documents import decode_json
from rocmend.core.errors import DataError
from rocmend.port.verify.records import Evidence, Outcome

__all__ = ["DTYPES", "ITERATIONS", "SHAPES", "Vector", "compared", "read", "steady", "write"]

SHAPES = ((1, 32, 512), (4, 128, 2048), (16, 512, 2048), (1, 1, 2048), (1, 2048, 2048))
DTYPES = ("float32", "float16", "bfloat16")
ITERATIONS = 100
_MAX_BYTES = 64 << 20
_TOLERANCE = {"float64": 1e-4, "float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}
_MANY_LAYERS = 1e-1
"""For bfloat16 through many layers: functions that say ``many_layers = True``."""


class Vector(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one function gave for one input.

    Attributes:
        entry: The function, ``package.module:name``.
        dtype: Of the input.
        shape: Of the input.
        outputs: Each with its shape, type, largest magnitude, count of values that are not finite, and samples.
        many_layers: Whether it says that it has many layers.
        error: What it raised instead.
        time_ms: What it took.
    """

    entry: str
    dtype: str
    shape: tuple[int, ...]
    outputs: tuple[dict[str, Any], ...] = ()
    many_layers: bool = False
    error: str = ""
    time_ms: float = 0.0

    @property
    def name(self) -> str:
        """Return what it is called in reports."""
        return f"{self.entry} {self.dtype} {'x'.join(map(str, self.shape))}"

    @property
    def tolerance(self) -> float:
        """Return by how much a result may differ: relative and absolute alike."""
        if self.many_layers and self.dtype == "bfloat16":
            return _MANY_LAYERS
        return _TOLERANCE.get(self.dtype, 1e-4)


def write(tree: Beneath, path: str, vectors: Sequence[Vector], machine: str) -> None:
    """Write vectors to a file of a project."""
    tree.put(path, msgspec.json.encode({"version": 1, "machine": machine, "vectors": list(vectors)}))


def read(tree: Beneath, path: str) -> tuple[list[Vector], str]:
    """Return the vectors of a file of a project, and the machine that they are from.

    Raises:
        DataError: It is no such file.
    """
    try:
        document = decode_json(tree.document(path, _MAX_BYTES), dict[str, Any], subject=path)
        if document["version"] != 1:
            raise DataError(path, f"its version is {document['version']!r}, this rocmend reads version 1.")
        return msgspec.convert(document["vectors"], list[Vector]), str(document["machine"])
    except (OSError, KeyError, TypeError, msgspec.ValidationError) as error:
        raise DataError(path, f"is not a file of golden vectors: {error}.") from error


def compared(given: Sequence[Vector], wanted: Sequence[Vector], source: str) -> list[Evidence]:
    """Compare vectors with those of another side or machine.

    Args:
        given: What is to be judged.
        wanted: What it is compared with.
        source: Where the latter come from, for the reader.
    """
    by_name = {vector.name: vector for vector in wanted}
    found = []
    for vector in given:
        other = by_name.get(vector.name)
        if other is None:
            found.append(Evidence(vector.name, Outcome.UNKNOWN, f"{source} does not have this vector"))
        elif other.error:
            outcome = Outcome.UNKNOWN
            found.append(Evidence(vector.name, outcome, f"{source} raised {other.error}"))
        elif vector.error:
            found.append(Evidence(vector.name, Outcome.BROKEN, f"it raised {vector.error}, but {source} did not"))
        else:
            found.append(_compared(vector, other, source))
    return found


def _compared(vector: Vector, other: Vector, source: str) -> Evidence:
    if len(vector.outputs) != len(other.outputs):
        detail = f"it returns {len(vector.outputs)} tensors, {source} returns {len(other.outputs)}"
        return Evidence(vector.name, Outcome.BROKEN, detail)
    worst = 0.0
    for number, (one, two) in enumerate(zip(vector.outputs, other.outputs, strict=True)):
        if one["shape"] != two["shape"]:
            return Evidence(
                vector.name, Outcome.BROKEN, f"tensor {number} has shape {one['shape']}, expected {two['shape']}"
            )
        if one["not_finite"] != two["not_finite"]:
            detail = f"tensor {number} has {one['not_finite']} non-finite values, expected {two['not_finite']}"
            return Evidence(vector.name, Outcome.BROKEN, detail)
        worst = max(worst, _apart(_values(one), _values(two)))
    bound = vector.tolerance
    outcome = Outcome.HOLDS if worst <= bound else Outcome.BROKEN
    detail = f"differs by {worst:.2g} from {source}; {bound:g} is allowed"
    return Evidence(vector.name, outcome, detail, time_ms=vector.time_ms, data={"error": worst, "allowed": bound})


def _values(output: dict[str, Any]) -> array[float]:
    values = array("f")
    values.frombytes(base64.b64decode(output["values"]))
    return values


def _apart(given: array[float], wanted: array[float]) -> float:
    """Return the smallest t for which each |given - wanted| is at most t + t * |wanted|."""
    if len(given) != len(wanted):
        return math.inf
    worst = 0.0
    for one, other in zip(given, wanted, strict=True):
        if math.isfinite(one) and math.isfinite(other):
            worst = max(worst, abs(one - other) / (1 + abs(other)))
        elif not (one == other or (math.isnan(one) and math.isnan(other))):
            return math.inf
    return worst


def steady(record: dict[str, Any]) -> Evidence:
    """Judge a run that was repeated: it ends, its results are finite and do not drift, and it holds no more memory."""
    name = f"{record['entry']}, {record['iterations']} times"
    if record.get("error"):
        return Evidence(name, Outcome.BROKEN, f"it raised {record['error']}")
    if record["not_finite"]:
        return Evidence(name, Outcome.BROKEN, f"{record['not_finite']} values are not finite")
    if record["largest"] > _TOLERANCE["float32"]:
        return Evidence(name, Outcome.BROKEN, f"results for the same input differ by up to {record['largest']:.2g}")
    if record.get("grown_bytes", 0) > 1 << 20:
        return Evidence(name, Outcome.BROKEN, f"GPU memory in use grew by {record['grown_bytes'] >> 20} MiB")
    told = f"{record['different']} runs not bitwise equal" if record["different"] else "all bitwise equal"
    return Evidence(name, Outcome.HOLDS, f"finite, {told}")
