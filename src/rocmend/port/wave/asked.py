"""Names on which it depends whether lanes decide the same, and which a file does not define: its headers may."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from rocmend.port.cuda.file import CudaFile

__all__ = ["ask", "asked"]

_MOST = 256
_kept: WeakKeyDictionary[CudaFile, set[bytes]] = WeakKeyDictionary()


def ask(file: CudaFile, name: bytes) -> None:
    """Note that something was decided without knowing what a name is."""
    known = _kept.setdefault(file, set())
    if name not in file.macros and len(known) < _MOST:
        known.add(name)


def asked(file: CudaFile) -> tuple[str, ...]:
    """Return the names that were noted, in order."""
    return tuple(sorted(name.decode("utf-8", "replace") for name in _kept.get(file, ())))
