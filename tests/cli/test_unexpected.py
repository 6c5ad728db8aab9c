"""The file of the last resort: it is to be sent along, and holds no secrets of the command line or of the machine."""

from __future__ import annotations

import re
import stat
import tempfile
from pathlib import Path
from typing import NoReturn

import pytest

from rocmend.cli import main as main_module
from rocmend.cli.unexpected import unexpected

SECRETS = ("hunter2-and-more", "hf_QwErTyUiOpAsDfGhJk", "abc=def==")


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def int_of(text: str) -> NoReturn:
    raise ValueError(text)


def kept(folder: Path) -> tuple[str, int]:
    (path,) = folder.glob("rocmend-error-*.txt")
    return path.read_text(), stat.S_IMODE(path.stat().st_mode)


def test_secrets_of_the_command_line_are_not_written_down(tmp_path: Path) -> None:
    arguments = [
        "lab", "run", "--env", f"HF_TOKEN={SECRETS[1]}", f"--env=DB_PASSWORD={SECRETS[2]}", "--password", SECRETS[0],
        "--env", "HSA_OVERRIDE_GFX_VERSION=11.0.0",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="could not use") as caught:
        int_of(f"could not use {SECRETS[0]} and {SECRETS[2]}")
    told = unexpected(caught.value, arguments)
    text, mode = kept(tmp_path)
    assert mode == 0o600
    assert str(tmp_path) in told.next_step
    assert [secret for secret in SECRETS if secret in text] == []
    assert "HSA_OVERRIDE_GFX_VERSION=11.0.0" in text
    assert "HF_TOKEN=redacted" in text
    assert "Traceback (most recent call last)" in text
    assert "test_unexpected.py" in text


def test_what_cannot_be_redacted_is_not_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> NoReturn:
        raise RuntimeError("redacting failed")

    monkeypatch.setattr("rocmend.core.redact.redactor_here", broken)
    unexpected(ValueError(SECRETS[0]), ["--password", SECRETS[0]])
    text, mode = kept(tmp_path)
    assert SECRETS[0] not in text
    assert "RuntimeError" in text
    assert mode == 0o600


def test_through_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: object) -> NoReturn:
        raise KeyError("of the program itself")

    monkeypatch.delenv("ROCMEND_DEBUG", raising=False)
    monkeypatch.setattr(main_module.cli, "main", fail)
    with pytest.raises(SystemExit) as stop:
        main_module.main(["store", "ls", f"--token={SECRETS[1]}"])
    assert stop.value.code == 2
    err = capsys.readouterr().err
    assert "Traceback" not in err
    (named,) = re.findall(r"\S*/rocmend-error-\S+\.txt", err)
    assert Path(named).parent == tmp_path
    text, _ = kept(tmp_path)
    assert SECRETS[1] not in text
    assert "of the program itself" in text
