"""Saving and loading: what comes back, what others read, and what broken files do."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

from hypothesis import given, settings
from hypothesis import strategies as st

from rocmend.mlx import activate

activate()
import mlx.core

from rocmend.mlx import evaluate
from rocmend.mlx.io import gguf_blocks, safetensors, source

mx: Any = mlx.core
pytestmark = pytest.mark.cpu

DTYPES = [
    "bool_", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "bfloat16",
    "complex64",
]  # fmt: skip


def values(dtype: str, shape: tuple[int, ...]) -> Any:
    """Return numbers that use the type's high bits."""
    count = int(np.prod(shape))
    whole = mx.arange(count).reshape(shape)
    if dtype == "bool_":
        return whole % 2 == 0
    if dtype.startswith("uint"):
        return mx.array(2 ** (8 * getattr(mx, dtype).size) - 1, getattr(mx, dtype)) - whole.astype(getattr(mx, dtype))
    return (whole - 3).astype(getattr(mx, dtype))


@pytest.mark.parametrize("extension", ["npy", "npz", "safetensors"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_comes_back(tmp_path: Path, dtype: str, extension: str) -> None:
    for shape in [(), (1,), (3, 5), (0, 4)]:
        x = values(dtype, shape)
        path = tmp_path / f"x.{extension}"
        if extension == "npy":
            mx.save(path, x)
            y = mx.load(path)
        elif extension == "npz":
            mx.savez(path, x=x)
            y = mx.load(path)["x"]
        else:
            mx.save_safetensors(path, {"x": x, "odd": mx.array([1, 2, 3], mx.uint8)})
            y = mx.load(path)["x"]
        assert y.dtype == x.dtype
        assert y.shape == shape
        assert y.tolist() == x.tolist()


def test_numpy_reads_what_is_written_and_the_other_way(tmp_path: Path) -> None:
    x = mx.arange(12, dtype=mx.uint16).reshape(3, 4).T
    mx.save(tmp_path / "x", x)
    assert (np.load(tmp_path / "x.npy") == np.arange(12, dtype=np.uint16).reshape(3, 4).T).all()
    for order in (">f4", "<f4", ">i2", ">c8"):
        for layout in ("C", "F"):
            expected = np.asarray(np.arange(6).reshape(2, 3), dtype=order, order=layout)
            np.save(tmp_path / "y.npy", expected)
            assert mx.load(tmp_path / "y.npy").tolist() == expected.tolist()


def test_safetensors_of_the_format_s_own_library(tmp_path: Path) -> None:
    library = pytest.importorskip("safetensors.torch")
    tensors = {"a": torch.arange(6, dtype=torch.bfloat16).reshape(2, 3), "b": torch.tensor([True, False, True])}
    library.save_file(tensors, tmp_path / "t.safetensors", metadata={"k": "v"})
    found, metadata = mx.load(tmp_path / "t.safetensors", return_metadata=True)
    assert metadata == {"k": "v"}
    assert {name: x.tolist() for name, x in found.items()} == {name: t.tolist() for name, t in tensors.items()}
    mx.save_safetensors(tmp_path / "u", found, metadata)
    again = library.load_file(tmp_path / "u.safetensors")
    assert all(torch.equal(again[name], tensors[name]) for name in tensors)


def test_an_aligned_tensor_lies_in_the_map_and_a_write_does_not_reach_the_file(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    mx.save_safetensors(path, {"w": mx.ones((256,))})
    before = path.read_bytes()
    opened = source.Source(str(path), "load")
    found, _ = safetensors.read_safetensors(opened, mx.default_stream(mx.cpu))
    tensor = found["w"]._n.data
    start = torch.frombuffer(opened.data, dtype=torch.uint8).data_ptr()
    assert start <= tensor.data_ptr() < start + len(opened)
    tensor.zero_()
    assert path.read_bytes() == before


def test_a_tensor_at_an_odd_address_is_right(tmp_path: Path) -> None:
    header = json.dumps({"a": {"dtype": "F32", "shape": [3], "data_offsets": [1, 13]}}).encode()
    header += b" " * (-len(header) % 8)
    data = b"\0" + struct.pack("<3f", 1, 2, 3)
    (tmp_path / "odd.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + data)
    x = mx.load(tmp_path / "odd.safetensors")["a"]
    assert x.tolist() == [1, 2, 3]
    assert x._n.data.data_ptr() % 4 == 0


def test_a_file_can_be_replaced_by_what_was_loaded_from_it(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    mx.save_safetensors(path, {"w": mx.arange(50_000)})
    weights = mx.load(path)
    mx.save_safetensors(path, {"w": weights["w"][::-1]})
    assert mx.load(path)["w"][0].item() == 49_999
    assert weights["w"][:3].tolist() == [0, 1, 2]
    assert [item.name for item in tmp_path.iterdir()] == ["m.safetensors"]


def test_what_fails_half_way_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    mx.savez(path, a=mx.array([1]))
    with pytest.raises(RuntimeError, match="expected arrays by name"):
        mx.savez(path, a=[1])
    (tmp_path / "short.npy").write_bytes((b := _npy(mx.arange(9)))[: len(b) - 4])
    with pytest.raises(RuntimeError, match="ends after 32 of 36 bytes"):
        mx.savez(path, a=mx.load(tmp_path / "short.npy"))
    assert mx.load(path)["a"].tolist() == [1]
    assert {item.name for item in tmp_path.iterdir()} == {"x.npz", "short.npy"}


def _npy(x: Any) -> bytes:
    out = io.BytesIO()
    mx.save(out, x)
    return out.getvalue()


def test_file_objects(tmp_path: Path) -> None:
    out = io.BytesIO()
    mx.save_safetensors(out, {"a": mx.array([1.5])})
    assert mx.load(io.BytesIO(out.getvalue()), format="safetensors")["a"].tolist() == [1.5]
    with (tmp_path / "a.npy").open("wb") as file:
        mx.save(file, mx.array([7]))
    with (tmp_path / "a.npy").open("rb") as file:
        x = mx.load(file)
    assert x.tolist() == [7]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: mx.load("none.npy"), RuntimeError, "Failed to open file none.npy"),
        (lambda: mx.load("none"), ValueError, "infer file format"),
        (lambda: mx.load("none.xyz"), ValueError, "Unknown file format xyz"),
        (lambda: mx.load("none.npz"), ValueError, "must be a zip file"),
        (lambda: mx.load("none.gguf"), ValueError, "Failed to open none.gguf"),
        (lambda: mx.load(3), ValueError, "file-like object"),
        (lambda: mx.load("a.npy", return_metadata=True), ValueError, "metadata not supported"),
        (lambda: mx.savez(io.BytesIO(), mx.array(1), arr_0=mx.array(1)), ValueError, "keyword arr_0"),
        (lambda: mx.save_safetensors(io.BytesIO(), {}, {"a": 1}), ValueError, "string keys and values"),
        (lambda: mx.save_gguf("x", {"a": mx.array([True])}), RuntimeError, "dtype bool_? is not supported"),
        (lambda: mx.save_gguf("x", {}, {"a": mx.array(1, mx.bfloat16)}), ValueError, "bfloat16"),
        (lambda: mx.save_gguf("x", {}, {"a": mx.ones((1, 1))}), RuntimeError, "more than one dimension"),
    ],
)  # fmt: skip
def test_errors_are_those_of_mlx(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [4], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [400], "data_offsets": [0, 1600]},
        {"dtype": "F32", "shape": [-4], "data_offsets": [0, 16]},
        {"dtype": "F32", "shape": [True], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [1], "data_offsets": [-4, 0]},
        {"dtype": "F32", "shape": [1], "data_offsets": [0]},
        {"dtype": "F32", "data_offsets": [0, 16]},
        {"dtype": ["F32"], "shape": [], "data_offsets": [0, 4]},
        {"dtype": "F8_E5M2", "shape": [4], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [2**62, 4], "data_offsets": [0, 0]},
        "F32",
        None,
    ],
)
def test_safetensors_that_lie_are_refused(tmp_path: Path, entry: Any) -> None:
    header = json.dumps({"a": entry}).encode()
    (tmp_path / "x.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(64))
    with pytest.raises(RuntimeError, match=r"^\[(load_)?safetensors?\]"):
        mx.load(tmp_path / "x.safetensors")


def _gguf(tmp_path: Path) -> bytes:
    path = tmp_path / "g.gguf"
    arrays = {"a": mx.arange(6, dtype=mx.float16).reshape(2, 3), "b": mx.array([1, -2], mx.int8)}
    meta = {"s": "text", "l": ["a", "bc"], "n": mx.array(3), "v": mx.array([1.5, 2.5]), "t": mx.array(True)}
    mx.save_gguf(path, arrays, meta)
    return path.read_bytes()


def test_gguf_and_its_metadata_come_back(tmp_path: Path) -> None:
    _gguf(tmp_path)
    arrays, meta = mx.load(tmp_path / "g.gguf", return_metadata=True)
    assert {name: (x.dtype, x.tolist()) for name, x in arrays.items()} == {
        "a": (mx.float16, [[0, 1, 2], [3, 4, 5]]),
        "b": (mx.int8, [1, -2]),
    }
    assert (meta["s"], meta["l"]) == ("text", ["a", "bc"])
    assert (meta["n"].item(), meta["v"].tolist(), meta["t"].dtype) == (3, [1.5, 2.5], mx.bool_)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("extension", ["npy", "npz", "safetensors", "gguf"])
def test_damaged_files_raise_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, extension: str, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    if extension == "gguf":
        whole = _gguf(folder)
    elif extension == "npy":
        whole = _npy(mx.arange(6).reshape(2, 3))
    else:
        out = io.BytesIO()
        if extension == "npz":
            mx.savez(out, a=mx.arange(3), b=mx.ones((2, 2)))
        else:
            mx.save_safetensors(out, {"a": mx.arange(3), "b": mx.ones((2, 2), mx.bfloat16)}, {"k": "v"})
        whole = out.getvalue()
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    damaged = damaged[: data.draw(st.integers(0, len(damaged)))]
    path = folder / f"x.{extension}"
    path.write_bytes(damaged)
    try:
        found = mx.load(path)
        for x in found.values() if isinstance(found, dict) else [found]:
            assert np.prod(x.shape) < 10_000
            evaluate.value(x._n)
    except (RuntimeError, ValueError):
        pass


def _reference(name: str, block: bytes) -> list[float]:
    """Ggml's definition of a block, an element at a time."""

    def half(at: int) -> float:
        return float(np.frombuffer(block[at : at + 2], np.float16)[0])

    if name == "Q4_0":
        return [half(0) * ((block[2 + i % 16] >> (4 * (i // 16)) & 15) - 8) for i in range(32)]
    if name == "Q4_1":
        return [half(0) * (block[4 + i % 16] >> (4 * (i // 16)) & 15) + half(2) for i in range(32)]
    if name == "Q8_0":
        return [half(0) * (block[2 + i] - 256 * (block[2 + i] > 127)) for i in range(32)]
    if name == "Q6_K":
        found = []
        for i in range(256):
            part, row, column = i // 128, i % 128 // 32, i % 32
            low = block[64 * part + 32 * (row % 2) + column] >> (4 * (row // 2)) & 15
            high = block[128 + 32 * part + column] >> (2 * row) & 3
            scale = block[192 + i // 16]
            found.append(half(208) * (scale - 256 * (scale > 127)) * ((low | high << 4) - 32))
        return found
    found = []
    packed = 16 if name == "Q4_K" else 48
    for i in range(256):
        group, column = i // 32, i % 32
        if group < 4:
            scale, least = block[4 + group] & 63, block[8 + group] & 63
        else:
            scale = block[8 + group] & 15 | block[group] >> 6 << 4
            least = block[8 + group] >> 4 | block[4 + group] >> 6 << 4
        code = block[packed + 32 * (group // 2) + column] >> (4 * (group % 2)) & 15
        if name == "Q5_K":
            code |= (block[16 + column] >> group & 1) << 4
        found.append(half(0) * scale * code - half(2) * least)
    return found


@pytest.mark.parametrize("kind", sorted(gguf_blocks.BLOCKS))
def test_quantized_blocks_of_gguf(tmp_path: Path, kind: int) -> None:
    block = gguf_blocks.BLOCKS[kind]
    rng = np.random.default_rng(kind)
    raw = rng.integers(0, 256, (4, block.size), dtype=np.uint8)
    halves = {"Q4_1": (0, 2), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}.get(block.name, (0,))
    for at in halves:
        raw[:, at : at + 2] = rng.uniform(-0.01, 0.01, (4, 1)).astype(np.float16).view(np.uint8)
    name = b"t.weight"
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q", len(name)) + name
    head += struct.pack("<IQQIQ", 2, 2 * block.elements, 2, kind, 0)
    (tmp_path / "q.gguf").write_bytes(head + bytes(-len(head) % 32) + raw.tobytes())
    found = mx.load(tmp_path / "q.gguf")
    expected = np.array([_reference(block.name, bytes(row)) for row in raw]).reshape(2, -1)
    if block.bits:
        assert found["t.weight"].shape == (2, 2 * block.bits)
        got = mx.dequantize(found["t.weight"], found["t.scales"], found["t.biases"], group_size=32, bits=block.bits)
    else:
        got = found["t.weight"]
    assert got.dtype == mx.float16
    np.testing.assert_allclose(np.array(got).astype(np.float64), expected, rtol=2e-3, atol=2e-3)


@pytest.mark.skipif(not source._NO_RESERVE, reason="only Linux can map a file without setting memory aside for it")
def test_a_mapped_file_sets_no_memory_aside(tmp_path: Path) -> None:
    mx.save_safetensors(str(tmp_path / "a.safetensors"), {"x": mx.arange(6000)})
    found = mx.load(str(tmp_path / "a.safetensors"))["x"]
    areas = Path("/proc/self/smaps").read_text(encoding="utf-8").split("a.safetensors\n")[1]
    flags = next(line for line in areas.splitlines() if line.startswith("VmFlags:")).split()
    assert "ac" not in flags  # accounted for
    assert "nr" in flags
    assert found.sum().item() == 6000 * 5999 // 2


def test_a_write_into_a_mapped_array_stays_here(tmp_path: Path) -> None:
    file = tmp_path / "a.safetensors"
    mx.save_safetensors(str(file), {"x": mx.arange(600)})
    before = file.read_bytes()
    found = mx.load(str(file))["x"]
    np.asarray(memoryview(found))[:] = 7
    assert found.tolist() == [7] * 600
    assert file.read_bytes() == before
