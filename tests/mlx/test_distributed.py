"""Processes that compute together: two and four of them on the CPU, and one alone."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("mlx.utils")

from rocmend.mlx import activate

activate()
import mlx.core

pytest.importorskip("mlx_lm")

mx: Any = mlx.core
pytestmark = pytest.mark.cpu
PROGRAM = Path(__file__).parent / "distributed_program.py"


def _port() -> int:
    """Return a free port below those that the system gives to connections, which could take it in the meantime."""
    while True:
        port = random.randrange(15000, 32000)  # noqa: S311  no secret
        with socket.socket() as free:
            try:
                free.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def _run(environments: list[dict[str, str]], backend: str) -> None:
    base = {name: value for name, value in os.environ.items() if not name.startswith(("MLX_", "NCCL_"))}
    base |= {"ROCMEND_MLX_DEVICE": "cpu"}
    children = [
        subprocess.Popen([sys.executable, str(PROGRAM), backend], env=base | one, stderr=subprocess.PIPE, text=True)
        for one in environments
    ]
    try:
        ends = [(child.communicate(timeout=240)[1], child.returncode) for child in children]
    finally:
        for child in children:
            child.kill()
    assert [code for _, code in ends] == [0] * len(children), "\n".join(text[-2000:] for text, _ in ends)


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 4])
def test_processes_of_torchrun_agree(size: int) -> None:
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_port()), "WORLD_SIZE": str(size)}
    _run([{**where, "RANK": str(rank)} for rank in range(size)], "any")


@pytest.mark.slow
def test_processes_of_mlx_launch_agree(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.json"
    hosts.write_text(json.dumps([[f"127.0.0.1:{_port()}"], [f"127.0.0.1:{_port()}"]]))
    _run([{"MLX_RANK": str(rank), "MLX_HOSTFILE": str(hosts)} for rank in range(2)], "ring")


def test_a_process_alone_is_a_group_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "MLX_RANK"):
        monkeypatch.delenv(name, raising=False)
    group = mx.distributed.init()
    assert (group.rank(), group.size()) == (0, 1)
    x = mx.array([1.0, 2.0])
    for function in ("all_sum", "all_max", "all_min", "all_gather", "sum_scatter"):
        assert getattr(mx.distributed, function)(x).tolist() == [1, 2]
    with pytest.raises(ValueError, match="singleton group"):
        mx.distributed.send(x, 0)
    with pytest.raises(ValueError, match="singleton group"):
        mx.distributed.recv_like(x, 0)
    with pytest.raises(RuntimeError, match="Cannot split"):
        group.split(0)
    with pytest.raises(RuntimeError, match="Couldn't initialize any backend"):
        mx.distributed.init(strict=True)
    with pytest.raises(ValueError, match="valid values for backend"):
        mx.distributed.init(backend="smoke signals")
    assert mx.distributed.is_available()
    assert not mx.distributed.is_available("jaccl")
