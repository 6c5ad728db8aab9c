"""Tools that hang, crash, print without an end, or lie."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rocmend.codeobject.hip import Failure, HipFailure, Toolchain, check_syntax, compile_hip, compiler

SOURCE = b"__global__ void k() {}"
Misbehaving = Callable[[str], Toolchain]


def failure(tools: Toolchain, time_limit_s: float = 20) -> HipFailure:
    made = compile_hip(SOURCE, "gfx942", toolchain=tools, time_limit_s=time_limit_s)
    assert isinstance(made, HipFailure)
    return made


def test_a_compiler_that_hangs_is_ended_with_its_children(misbehaving: Misbehaving, tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    tools = misbehaving(f"(while sleep 0.1; do date >> {alive}; done) &\nsleep 600")
    made = failure(tools, time_limit_s=1)
    assert made.reason is Failure.TIMED_OUT
    assert "Give it more time" in made.message
    size = alive.stat().st_size
    time.sleep(0.5)
    assert alive.stat().st_size == size, "a process of the compiler's group is still there"


def test_a_compiler_that_stands_still_is_ended_long_before_its_time(
    misbehaving: Misbehaving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiler, "STALL_LIMIT_S", 0.5)
    made = failure(misbehaving("sleep 600"), time_limit_s=500)
    assert made.reason is Failure.TIMED_OUT
    assert "used no CPU time" in made.message


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("kill -SEGV $$", "signal 11"),
        ("echo 'fatal error: error in backend: Cannot select: t1' >&2; kill -ABRT $$", "Cannot select"),
        (
            "echo 'clang: error: clang frontend command failed with exit code 139' >&2; exit 139",
            "no error of the source",
        ),
        ("exit 70", "exit status 70"),
        ("head -c 4000 /dev/urandom >&2; exit 1", "nothing that can be read"),
        ("yes 'note: again' >&2", "without an end"),
    ],
)
def test_a_compiler_that_fails_in_itself(script: str, told: str, misbehaving: Misbehaving) -> None:
    made = failure(misbehaving(script))
    assert made.reason is Failure.CRASHED
    assert told in made.message


def test_a_compiler_that_says_success_and_writes_nothing(misbehaving: Misbehaving) -> None:
    assert failure(misbehaving("exit 0")).reason is Failure.CRASHED


def test_a_linker_that_writes_no_code_object(misbehaving: Misbehaving) -> None:
    script = 'while [ $# -gt 0 ]; do [ "$1" = -o ] && { shift; printf garbage > "$1"; }; shift; done'
    made = failure(misbehaving(script))
    assert made.reason is Failure.UNREADABLE


def test_a_compiler_that_is_not_there(tmp_path: Path) -> None:
    tools = Toolchain("rocm", "none", (str(tmp_path / "none"),), ("ld.lld",), ())
    made = failure(tools)
    assert made.reason is Failure.CRASHED
    assert "does not start" in made.message


def test_a_source_that_is_not_there(misbehaving: Misbehaving, tmp_path: Path) -> None:
    tools = misbehaving("exit 0")
    for made in (
        compile_hip(tmp_path / "none.cu", "gfx942", toolchain=tools),
        check_syntax(tmp_path / "none.cu", "gfx942", toolchain=tools),
    ):
        assert isinstance(made, HipFailure)
        assert made.reason is Failure.UNREADABLE


def test_a_failure_is_not_kept(misbehaving: Misbehaving, tmp_path: Path) -> None:
    count = tmp_path / "count"
    tools = misbehaving(f"echo x >> {count}; exit 1")
    failure(tools)
    failure(tools)
    assert count.read_text().count("x") == 2


def test_a_cache_that_is_damaged_counts_as_none(tmp_path: Path) -> None:
    from rocmend.codeobject.hip.cache import Cache

    cache = Cache(tmp_path)
    path = cache._path("0" * 64)
    path.parent.mkdir(parents=True)
    for data in (b"", b"garbage", b"\x28\xb5\x2f\xfd\x04\x00"):
        path.write_bytes(data)
        assert cache.find("0" * 64) is None
