"""Files of strangers: what they say of their own sizes is not believed, and reading them takes bounded memory."""

from __future__ import annotations

import io
import json
import os
import struct
import threading
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
np = pytest.importorskip("numpy")

from rocmend.mlx import activate

activate()
import mlx.core

from rocmend.core.files import write_atomic
from rocmend.mlx.distributed import group
from rocmend.mlx.io import npy
from rocmend.mlx.transforms import codec

mx: Any = mlx.core
pytestmark = pytest.mark.cpu


def archive(path: Path, count: int, *, kind: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Write an array of zeros as a member of a zip file, and return the file."""
    with zipfile.ZipFile(path, "w", kind) as made, made.open("a.npy", "w") as member:
        np.lib.format.write_array(member, np.zeros(count, np.uint8))
    return path.read_bytes()


def test_a_zip_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npy, "_FREE_BYTES", 1 << 20)
    path = tmp_path / "bomb.npz"
    archive(path, 64 << 20)
    with pytest.raises(RuntimeError, match=r"\[load_npz\] a\.npy cannot be read: it unpacks to 67,\d+,\d+ bytes"):
        mx.load(str(path))
    monkeypatch.setattr(npy, "_FREE_BYTES", 128 << 20)
    assert mx.load(str(path))["a"].shape == (64 << 20,)


def test_a_member_that_lies_about_its_size_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    data = bytearray(archive(path, 64 << 20))
    true = struct.pack("<L", 64 << 20 | 128)
    assert data.count(true)
    for at in range(len(data) - 4):
        if data[at : at + 4] == true:
            data[at : at + 4] = struct.pack("<L", 200)
    path.write_bytes(data)
    import tracemalloc

    tracemalloc.start()
    try:
        with pytest.raises(RuntimeError, match=r"\[load_npz\] a\.npy"):
            mx.load(str(path))
        assert tracemalloc.get_traced_memory()[1] < 16 << 20, "only what was declared is unpacked"
    finally:
        tracemalloc.stop()


def test_members_that_name_the_same_bytes_share_one_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npy, "_FREE_BYTES", 3 << 20)
    path = tmp_path / "many.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for number in range(8):
            with made.open(f"{number}.npy", "w") as member:
                np.lib.format.write_array(member, np.zeros(1 << 20, np.uint8))
    with pytest.raises(RuntimeError, match="are left for it"):
        mx.load(str(path))


@pytest.mark.parametrize("kind", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused(tmp_path: Path, kind: int) -> None:
    archive(tmp_path / "a.npz", 10, kind=kind)
    with pytest.raises(RuntimeError, match="compressed in a way that numpy does not write"):
        mx.load(str(tmp_path / "a.npz"))


@pytest.mark.parametrize("at", [60, 80, 120])
def test_damaged_compression_is_an_error_of_ours(tmp_path: Path, at: int) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, a=np.random.default_rng(0).random(100))
    data = bytearray(path.read_bytes())
    data[at : at + 8] = b"\xff" * 8
    path.write_bytes(data)
    with pytest.raises((RuntimeError, ValueError), match=r"\[load"):
        mx.load(str(path))


@pytest.mark.parametrize(
    "header",
    [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"a": "\xff"}',
        b'{"a": {"dtype": "F32", "shape": [' + b"[" * 100_000,
        b'{"a": {"dtype": "\xff", "shape": [1], "data_offsets": [0, 4]}}',
        b'{"__metadata__": {"a": "\xff"}}',
        json.dumps({"a": {"dtype": "F32", "shape": [2**40] * 100_000, "data_offsets": [0, 0]}}).encode(),
        json.dumps({"a": {"dtype": "F32", "shape": [1] * 100_000, "data_offsets": [0, 4]}}).encode(),
    ],
    ids=range(8),
)
def test_a_safetensors_header_is_bounded(tmp_path: Path, header: bytes) -> None:
    (tmp_path / "x.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(64))
    began = time.process_time()
    with pytest.raises(RuntimeError, match=r"^\[load_safetensors\]"):
        mx.load(str(tmp_path / "x.safetensors"))
    assert time.process_time() - began < 2


def test_a_header_larger_than_that_of_any_model_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(struct.pack("<Q", 60 << 20))
    os.truncate(path, 64 << 20)
    with pytest.raises(RuntimeError, match="Invalid json header length"):
        mx.load(str(path))


def exported(path: Path, header: bytes, length: int | None = None) -> str:
    size = len(header) if length is None else length
    path.write_bytes(codec.MAGIC + struct.pack("<Q", size) + header)
    return str(path)


@pytest.mark.parametrize(
    "header",
    [
        b"[" * 100_000, b'{"a":' * 100_000, b'{"version": "\xff"}', b"[]", b"{}", b'{"version": 1}',
        b'{"version": 1, "constants": 3}', b'{"version": 1, "constants": ["a"], "calls": []}',
    ],
)  # fmt: skip
def test_an_exported_function_that_is_none(tmp_path: Path, header: bytes) -> None:
    with pytest.raises(RuntimeError, match=r"^\[import_function\]"):
        mx.import_function(exported(tmp_path / "f", header))


def test_an_exported_function_s_header_is_bounded(tmp_path: Path) -> None:
    path = exported(tmp_path / "f", b"{}", 1 << 40)
    os.truncate(path, 1 << 40)
    with pytest.raises(RuntimeError, match="is damaged"):
        mx.import_function(path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "f")
    failed: list[str] = []

    def load() -> None:
        try:
            mx.import_function(str(tmp_path / "f"))
        except RuntimeError as error:
            failed.append(str(error))

    thread = threading.Thread(target=load, daemon=True)
    thread.start()
    thread.join(5)
    assert failed, "it waits for a writer"
    assert "expected a regular file" in failed[0]


def test_an_exported_function_imports_nothing_but_this_package() -> None:
    with pytest.raises(ValueError, match="names record"):
        codec.decode({"record": ["rocmend.core.documents:Limits", []]})


@pytest.mark.parametrize("data", [b'[["\xff"]]', b"[" * 100_000, b"[]", b"[[]]", b"{}", b"[[1]]", b" " * (2 << 20)])
def test_a_hostfile_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    write_atomic(tmp_path / "hosts.json", data)
    monkeypatch.setenv("MLX_RANK", "0")
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.setenv("MLX_HOSTFILE", str(tmp_path / "hosts.json"))
    with pytest.raises(RuntimeError, match=r"^\[ring\] MLX_HOSTFILE="):
        group._launched_by_mlx()


def test_a_stream_is_read_whole() -> None:
    out = io.BytesIO()
    mx.savez(out, a=mx.arange(5))
    assert mx.load(io.BytesIO(out.getvalue()), format="npz")["a"].tolist() == [0, 1, 2, 3, 4]
