"""A compiler that is really there, and tools that misbehave."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from rocmend.codeobject.hip import NoToolchainError, Toolchain, find_toolchain


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCMEND_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "rocmend-home"))


@pytest.fixture(scope="session")
def tools() -> Toolchain:
    """The compiler of pip's packages, which the extra ``compile`` installs."""
    pytest.importorskip("ziglang")
    pytest.importorskip("clang.native")
    try:
        return find_toolchain({"ROCMEND_HIP_COMPILER": "pip"})
    except NoToolchainError as error:
        pytest.fail(str(error))


@pytest.fixture
def misbehaving(tmp_path: Path) -> Callable[[str], Toolchain]:
    """Return a toolchain whose clang is a shell script."""

    def made(script: str) -> Toolchain:
        program = tmp_path / "clang"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return Toolchain("rocm", "a script", (str(program),), (str(program),), (), fingerprint=str(hash(script)))

    return made


@pytest.fixture
def with_headers(tools: Toolchain, tmp_path: Path) -> Toolchain:
    """Return the compiler with one more folder of headers."""
    folder = tmp_path / "more"
    (folder / "hipcub").mkdir(parents=True)
    (folder / "hipcub/hipcub.hpp").write_text("#pragma once\n#define HIPCUB_IS_HERE 7\n")
    return msgspec.structs.replace(tools, header_folders=(str(folder),), fingerprint=f"{tools.fingerprint}+")
