"""A thread between a client program's output and the run loop, which takes out what is not the attempt's own."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Callable

PIPE_BYTES = 1 << 20
_CHUNK_BYTES = 1 << 16
_TAIL_BYTES = 2000

Filter = Callable[[bytes], bytes]
"""Given what came in (nothing at its end), returns what goes on."""


def pipe() -> tuple[int, int]:
    """Make a pipe with a non-blocking read end and, where allowed, room for a burst."""
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    with contextlib.suppress(OSError):
        fcntl.fcntl(read_end, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    return read_end, write_end


class Pump:
    """Carries bytes from a descriptor to a pipe, as fast as that is read.

    Args:
        source: Where they come from; the pump reads it to its end and leaves it open.
        through: What they are put through.

    Attributes:
        output: The pipe's read end; closed by ``close``.
        tail: The last bytes that went on.
        total: How many went on.
    """

    def __init__(self, source: int, through: Filter | None = None) -> None:
        self.output, self._write_end = pipe()
        self.tail = b""
        self.total = 0
        self._source = source
        self._through = through
        self._thread = threading.Thread(target=self._run, name="pump", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while True:
                data = os.read(self._source, _CHUNK_BYTES)
                passed = self._through(data) if self._through else data
                self.tail = (self.tail + passed[-_TAIL_BYTES:])[-_TAIL_BYTES:]
                self.total += len(passed)
                view = memoryview(passed)
                while view:
                    view = view[os.write(self._write_end, view) :]
                if not data:
                    return
        except OSError:  # nobody reads any more
            return
        finally:
            os.close(self._write_end)

    @property
    def over(self) -> bool:
        """All has been carried."""
        return not self._thread.is_alive()

    def wait(self, seconds: float) -> bool:
        """Wait until all has been carried; return whether it has."""
        self._thread.join(seconds)
        return self.over

    def close(self, seconds: float = 1.0) -> None:
        """Stop carrying; the source should have ended, or end now."""
        os.close(self.output)
        self._thread.join(seconds)
