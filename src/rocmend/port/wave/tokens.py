"""Looking at tokens that may not be there: sources end anywhere."""

from __future__ import annotations

from rocmend.port.cuda.file import CudaFile

__all__ = ["text_at"]


def text_at(file: CudaFile, index: int) -> bytes:
    """Return the text of a token; nothing where the file has none of that index."""
    return file.tokens[index].text if 0 <= index < len(file.tokens) else b""
