"""A folder that is complete stays where it is, whoever else completes it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rocmend.core import sealed
from rocmend.core.sealed import building, is_complete


def test_one_that_another_completes_between_look_and_rename_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "place"
    program = (
        "import sys; from pathlib import Path; from rocmend.core.sealed import building\n"
        "with building(Path(sys.argv[1])) as made:\n"
        "    (made / 'file').write_text('theirs')\n"
        "    print('ready', flush=True)\n"
        "    input()\n"
    )
    argv = [sys.executable, "-c", program, str(place)]
    looked = sealed.is_complete
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"

        def late(folder: Path) -> bool:
            found = looked(folder)
            other.stdin.write("\n")  # type: ignore[union-attr]
            other.stdin.flush()  # type: ignore[union-attr]
            with pytest.raises(subprocess.TimeoutExpired):  # it waits for us
                other.wait(0.5)
            return found

        monkeypatch.setattr(sealed, "is_complete", late)
        with building(place) as made:
            (made / "file").write_text("ours")
        monkeypatch.undo()
        assert other.wait(10) == 0
    assert (place / "file").read_text() == "ours"
    assert is_complete(place, thorough=True)
