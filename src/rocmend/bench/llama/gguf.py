"""What the header of a GGUF file says of a model. Standard library only; the weights are not read.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

from __future__ import annotations

import hashlib
import math
import re
import struct
from pathlib import Path
from typing import BinaryIO

import msgspec

from rocmend.core.documents import open_regular
from rocmend.core.errors import DataError

MAX_HEADER_BYTES = 256 << 20
_MAX_COUNT = 1 << 20
_MAX_KEY_BYTES = 1 << 16
_MAX_DEPTH = 4
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_SHARD = re.compile(r"^(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})$")
_FILE_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S", 12: "Q3_K_M",
    13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS",
    21: "Q2_K_S", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S",
    29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4_MOE",
}  # fmt: skip


class Model(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model file.

    Attributes:
        name: The file's name without ``.gguf`` and the number of its part.
        size_bytes: Of the file, with its other parts where it is one of several.
        architecture: ``llama``, ``qwen3moe``; empty where the header has none.
        quantization: ``Q4_K_M``; empty where the header does not say.
        parameters: How many; 0 where the file is one of several parts.
        context: Longest context that it was trained for; 0 where the header does not say.
        header_sha256: Hash of the header: which model it is, without reading the weights.
        parts: How many files it is in.
    """

    name: str
    size_bytes: int
    architecture: str = ""
    quantization: str = ""
    parameters: int = 0
    context: int = 0
    header_sha256: str = ""
    parts: int = 1


class _Reader:
    """Goes through a header; nothing is allocated that the file does not hold."""

    def __init__(self, path: Path, file: BinaryIO, size: int) -> None:
        self.path, self.file, self.left = path, file, min(size, MAX_HEADER_BYTES)
        self.hash = hashlib.sha256()

    def error(self, what: str) -> DataError:
        return DataError(str(self.path), what, next_step="Copy or download the model file again.")

    def take(self, size: int) -> bytes:
        if size > self.left:
            raise self.error("ends within its header, or its header is damaged.")
        data = self.file.read(size)
        if len(data) != size:
            raise self.error("ends within its header.")
        self.left -= size
        self.hash.update(data)
        return data

    def skip(self, size: int) -> None:
        if size > self.left:
            raise self.error("ends within its header, or its header is damaged.")
        while size:
            size -= len(self.take(min(size, 1 << 20)))

    def number(self, letter: str) -> float:
        value: float = struct.unpack("<" + letter, self.take(struct.calcsize("<" + letter)))[0]
        return value

    def whole(self, letter: str) -> int:
        return int(self.number(letter))

    def text(self, most: int = _MAX_KEY_BYTES) -> str:
        size = self.whole("Q")
        if size > most:
            self.skip(size)
            return ""
        return self.take(size).decode(errors="replace")

    def count(self, what: str) -> int:
        number = self.whole("Q")
        if number > _MAX_COUNT:
            raise self.error(f"claims {number} {what}.")
        return number

    def value(self, depth: int = 0) -> str | float | None:
        """Return a text or a number; of arrays nothing is kept."""
        kind = self.whole("I")
        if kind in _NUMBERS:
            return self.number(_NUMBERS[kind])
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY:
            raise self.error(f"has a value of type {kind}, which the format does not have.")
        self._array(depth)
        return None

    def _array(self, depth: int) -> None:
        kind, count = self.whole("I"), self.whole("Q")
        if kind in _NUMBERS:
            self.skip(count * struct.calcsize("<" + _NUMBERS[kind]))
        elif kind not in {_STRING, _ARRAY} or depth >= _MAX_DEPTH or count > self.left:
            raise self.error(f"has an array of {count} values of type {kind}.")
        else:
            for _ in range(count):
                if kind == _STRING:
                    self.skip(self.whole("Q"))
                else:
                    self._array(depth + 1)


def read_model(path: Path) -> Model:
    """Read a model file's header.

    Raises:
        FileNotFoundError: It is not there.
        NotADirectoryError: What should be its folder is a file.
        DataError: It is no GGUF file, or a damaged one.
    """
    with open_regular(path) as file:
        reader = _Reader(path, file, path.stat().st_size)
        if reader.left < 4 or reader.take(4) != b"GGUF":
            raise DataError(str(path), "is not a GGUF file.", next_step="Name a model file that ends in .gguf.")
        version = reader.whole("I")
        if version not in {2, 3}:
            raise reader.error(f"is GGUF of version {version}; 2 and 3 can be read.")
        tensors, pairs = reader.count("tensors"), reader.count("pairs of metadata")
        found: dict[str, str | float | None] = {}
        for _ in range(pairs):
            name = reader.text()
            found[name] = reader.value()
        parameters = sum(_elements(reader) for _ in range(tensors))
    architecture = _text(found.get("general.architecture"))
    kind = found.get("general.file_type")
    name, files = _parts(path)
    return Model(
        name=name,
        size_bytes=sum(part.stat().st_size for part in files),
        architecture=architecture,
        quantization=_FILE_TYPES.get(int(kind), f"file type {int(kind)}") if isinstance(kind, int) else "",
        parameters=parameters if len(files) == 1 else 0,
        context=_whole(found.get(f"{architecture}.context_length")),
        header_sha256=reader.hash.hexdigest(),
        parts=len(files),
    )


def _elements(reader: _Reader) -> int:
    reader.text()
    axes = reader.whole("I")
    if axes > 8:
        raise reader.error(f"has a tensor of {axes} axes.")
    elements = math.prod(reader.whole("Q") for _ in range(axes))
    reader.take(12)
    return elements


def _parts(path: Path) -> tuple[str, list[Path]]:
    match = _SHARD.match(path.stem)
    if match is None:
        return path.stem, [path]
    count = int(match["count"])
    names = [f"{match['stem']}-{number:05}-of-{count:05}{path.suffix}" for number in range(1, min(count, 1000) + 1)]
    missing = [name for name in names if not path.with_name(name).is_file()]
    if missing:
        raise DataError(
            str(path), f"is one of {count} parts, and {missing[0]} is not beside it.", next_step="Download all parts."
        )
    return match["stem"], [path.with_name(name) for name in names]


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
