"""The lock of measurements, as commands take it: a second one waits, and says for whom."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING

from rocmend.core.variables import MEASURING

if TYPE_CHECKING:
    from rocmend.cli.progress import Progress


def measure_alone(command: str, device: str, progress: Progress, stack: ExitStack) -> bool:
    """Wait until nothing else measures what this command does, and keep others from it; say whether it waited.

    Args:
        command: Its path: ``bench gemm``.
        device: What ``--device`` names.
        progress: Says who is waited for.
        stack: Holds the lock.
    """
    from rocmend.bench.lock import gpu_of, measuring

    waited = []

    def wait(holder: str) -> None:
        waited.append(holder)
        progress.say(f"Waits for another measurement on this machine to end: {holder}. Ctrl-C gives up.")
        progress("waits for another measurement to end")

    if not os.environ.get(MEASURING):
        stack.enter_context(measuring(command, gpu=gpu_of(device, os.environ), on_wait=wait))
    return bool(waited)
