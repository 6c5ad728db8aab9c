"""Triton loads libraries from its cache: where others can write to it, another is used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rocmend.kernels.triton_cache import use_trusted_cache


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROCMEND_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    return tmp_path / "triton"


def test_its_own_is_used_where_it_is_the_users_alone(named: Path) -> None:
    use_trusted_cache()
    assert os.environ["TRITON_CACHE_DIR"] == str(named)
    assert named.stat().st_mode & 0o777 == 0o700


def test_one_that_others_can_write_is_not(named: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    named.mkdir()
    named.chmod(0o777)
    use_trusted_cache()
    assert os.environ["TRITON_CACHE_DIR"] == str(tmp_path / "cache" / "code" / "triton-cache")
    assert f"Triton's cache {named} is not used: other users can write to" in caplog.text


def test_the_default_is_looked_at_too(named: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_CACHE_DIR")
    monkeypatch.setenv("TRITON_HOME", str(tmp_path))
    (tmp_path / ".triton" / "cache").mkdir(parents=True)
    (tmp_path / ".triton").chmod(0o777)
    use_trusted_cache()
    assert str(named.parent / "cache") in os.environ["TRITON_CACHE_DIR"]
