"""Files that were changed by hand since a port: whether the port is still in them, and how to take it out."""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from rocmend.core.beneath import Beneath
from rocmend.port.git import PATCHING, applies
from rocmend.port.patch import only
from rocmend.port.state import INVERSE, MAX_FILE_BYTES, MAX_TOTAL_BYTES, Generation

__all__ = ["is_out", "ways_out"]


def is_out(tree: Beneath, path: str, original: bytes | None, ports: Sequence[Generation]) -> bool:
    """Tell whether ports were taken out of a file that holds other work besides.

    They were where none of their lines is left, and the first port could be written into the file as it is.

    Args:
        tree: The project's folder.
        path: The file.
        original: Its bytes from before the first port.
        ports: The ports, the oldest first.
    """
    if original is None or not tree.is_file(path):
        return False
    status = tree.stat(path)
    if status is None or status.st_size > MAX_FILE_BYTES:
        return False
    found = tree.read(path, MAX_FILE_BYTES)
    inverses = [_inverse(tree, port, path) for port in ports if _changes(port, path)]
    known = set(original.splitlines())
    written = {line for inverse in inverses for line in _removed(inverse) if line.strip()} - known
    if not inverses or not written.isdisjoint(found.splitlines()):
        return False
    with tempfile.TemporaryDirectory(prefix="rocmend-undo-") as folder:
        with Beneath(Path(folder)) as alone:
            alone.put(f"tree/{path}", found)
            alone.put(INVERSE, inverses[0])
        return applies(Path(folder) / "tree", Path(folder) / INVERSE, reverse=True)


def _changes(port: Generation, path: str) -> bool:
    return any(entry.path == path for entry in port.manifest.entries)


def _inverse(tree: Beneath, port: Generation, path: str) -> bytes:
    return only(tree.read(f"{port.folder}/{INVERSE}", MAX_TOTAL_BYTES), [path])


def _removed(patch: bytes) -> Iterator[bytes]:
    """Yield the lines that a patch of one file removes."""
    _, _, hunks = patch.partition(b"\n@@")
    for line in hunks.split(b"\n"):
        if line.startswith(b"-"):
            yield line[1:].rstrip(b"\r")


def ways_out(root: Path, paths: Sequence[str], ports: Sequence[Generation]) -> list[str]:
    """Return a shell command for each file that takes the ports out of it, and leaves what else is in it.

    They work wherever they are run, and whether or not the port is committed: git looks at the files only.
    """
    folder = os.path.abspath(root)  # noqa: PTH100  links stay as the user named them
    commands = []
    for path in paths:
        entries = [(port, entry) for port in reversed(ports) for entry in port.manifest.entries if entry.path == path]
        if entries and not entries[-1][1].before:
            here = f"{folder}/{path}"
            commands.append(shlex.join(["mv", "--", here, f"{here}.mine"]))  # the port made it: nothing of it was there
            continue
        pattern = re.sub(r"([*?\[\\\\])", r"\\\1", path)
        git = ["git", "-C", folder, f"--git-dir={os.devnull}", "apply", *PATCHING, f"--include={pattern}"]
        parts = [shlex.join([*git, str(Path(port.folder) / INVERSE)]) for port, _ in entries]
        commands.append(" && ".join(parts))
    return commands
