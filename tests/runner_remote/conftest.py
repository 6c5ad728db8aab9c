"""Containers, hosts and clusters to run on: small ones that the tests make."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rocmend.runner.executor import Exit, Handle
from rocmend.runner.spec import Container, Ssh

APPLETS = ("sh", "sleep", "echo", "cat", "yes", "head", "dd", "true", "false", "env", "id", "printf", "kill", "touch")


class Outcome(msgspec.Struct):
    """What was seen of a handle."""

    exit: Exit | None
    stdout: bytes
    stderr: bytes
    notes: tuple[str, ...]
    samples: list[Any]
    time_s: float


def read_streams(handle: Handle, kept: dict[str, bytearray], open_streams: dict[int, str], seconds: float) -> None:
    """Read what there is, waiting at most so long for the first byte."""
    descriptors = [*open_streams]
    wake = handle.wake()
    if wake is not None:
        descriptors.append(wake)
    for descriptor in select.select(descriptors, [], [], seconds)[0]:
        if descriptor not in open_streams:
            continue
        with contextlib.suppress(BlockingIOError):
            data = os.read(descriptor, 1 << 16)
            if data:
                kept[open_streams[descriptor]] += data
            else:
                del open_streams[descriptor]


def drive(
    handle: Handle, *, limit_s: float = 40.0, on_turn: Callable[[Handle, dict[str, bytearray]], object] | None = None
) -> Outcome:
    """Watch a handle until it is over, or its time is up; then close it."""
    kept = {name: bytearray() for name in handle.streams}
    open_streams = {descriptor: name for name, descriptor in handle.streams.items()}
    notes: list[str] = []
    samples: list[Any] = []
    begin = sampled = time.monotonic()
    try:
        while (end := handle.exit()) is None and time.monotonic() - begin < limit_s:
            read_streams(handle, kept, open_streams, 0.05)
            if time.monotonic() - sampled > 0.3:
                sampled = time.monotonic()
                samples.append(handle.sample())
            notes += handle.notes()
            if on_turn:
                on_turn(handle, kept)
        time_s = time.monotonic() - begin
        drained = time.monotonic() + 2
        while open_streams and time.monotonic() < drained:
            before = sum(map(len, kept.values()))
            read_streams(handle, kept, open_streams, 0.05)
            if sum(map(len, kept.values())) > before:
                drained = time.monotonic() + 2
        handle.settle()
        notes += handle.notes()
    finally:
        handle.close()
    return Outcome(end, bytes(kept["stdout"]), bytes(kept.get("stderr", b"")), tuple(notes), samples, time_s)


def _need(program: str, variable: str) -> None:
    if shutil.which(program) is None and not Path(f"/usr/sbin/{program}").exists():
        if os.environ.get(variable):
            pytest.fail(f"{program} is required ({variable}) and is not installed")
        pytest.skip(f"{program} is not installed")


class Server(msgspec.Struct):
    """An SSH server of the tests' own.

    Attributes:
        where: How it is reached.
        process: It.
        folder: Where its keys and configuration lie.
    """

    where: Ssh
    process: subprocess.Popen[bytes]
    folder: Path


def free_port() -> int:
    """Return a TCP port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A running sshd on 127.0.0.1 with keys of its own."""
    for program in ("sshd", "ssh", "ssh-keygen"):
        _need(program, "ROCMEND_REQUIRE_SSHD")
    sshd = shutil.which("sshd") or "/usr/sbin/sshd"
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)], check=True)
    shutil.copy(tmp_path / "user.pub", tmp_path / "authorized_keys")
    port = free_port()
    lines = (
        f"Port {port}",
        "ListenAddress 127.0.0.1",
        f"HostKey {tmp_path}/host",
        f"AuthorizedKeysFile {tmp_path}/authorized_keys",
        f"PidFile {tmp_path}/pid",
        "StrictModes no",
        "UsePAM no",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
    )
    (tmp_path / "sshd_config").write_text("\n".join(lines) + "\n")
    key = (tmp_path / "host.pub").read_text().split()
    (tmp_path / "known_hosts").write_text(f"[127.0.0.1]:{port} {key[0]} {key[1]}\n")
    process = subprocess.Popen([sshd, "-D", "-e", "-f", str(tmp_path / "sshd_config")], stderr=subprocess.DEVNULL)
    where = Ssh(
        "127.0.0.1",
        port=port,
        identity_file=str(tmp_path / "user"),
        config_file="/dev/null",
        options={"UserKnownHostsFile": str(tmp_path / "known_hosts"), "GlobalKnownHostsFile": "/dev/null"},
    )
    for _ in range(100):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
            break
        time.sleep(0.05)
    yield Server(where, process, tmp_path)
    process.terminate()
    process.wait(10)


@pytest.fixture(scope="session")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    """A busybox image in a podman store of its own."""
    for program in ("podman", "runc", "busybox"):
        _need(program, "ROCMEND_REQUIRE_PODMAN")
    base = tmp_path_factory.mktemp("podman")
    rootfs = base / "rootfs"
    for folder in ("bin", "tmp", "proc", "dev", "etc"):
        (rootfs / folder).mkdir(parents=True)
    shutil.copy(str(shutil.which("busybox")), rootfs / "bin" / "busybox")
    for applet in APPLETS:
        (rootfs / "bin" / applet).symlink_to("busybox")
    args = ("--root", str(base / "store"), "--runroot", str(base / "run"), "--runtime", "runc")
    archive = subprocess.run(["tar", "-C", str(rootfs), "-c", "."], check=True, capture_output=True).stdout
    subprocess.run(
        ["podman", *args, "import", "--change", "ENV=FROM_IMAGE=1", "--change", "ENV=PATH=/bin", "-", "rocmend-test"],
        input=archive,
        check=True,
        capture_output=True,
    )
    yield Container(
        image="rocmend-test",
        runtime="podman",
        network="none",
        pull="never",
        extra_args=("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"),
        global_args=args,
    )
    subprocess.run(["podman", *args, "rm", "-f", "-a", "-t", "0"], check=False, capture_output=True)
    subprocess.run(["umount", str(base / "store" / "overlay")], check=False, capture_output=True)
