"""Handles: operators that are routed by a mode until they are restored; and the choices that ``auto`` has made."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, ClassVar, Self

import torch

from rocmend.core.errors import UsageError
from rocmend.fallbacks.choice import Choice, announce
from rocmend.fallbacks.dispatch import DEVICE_TYPES, Override

_lock = threading.RLock()


class Handle:
    """Operators routed by a mode, until restored. A context manager.

    Attributes:
        mode: A path, or auto.
        device_type: The type of device whose operators are routed.
        override: The operators.
        active: The handles in force, the last one deciding for its device type.
    """

    override: ClassVar[Override]
    active: ClassVar[list[Any]]

    def __init_subclass__(cls) -> None:
        cls.active = []

    def __init__(self, mode: str, device_type: str) -> None:
        self.mode = mode
        self.device_type = device_type
        with _lock:
            self.override.hold(device_type)
            self.active.append(self)

    def restore(self) -> None:
        """Put the operators back to how they were; a second call does nothing."""
        with _lock:
            if self in self.active:
                self.active.remove(self)
                self.override.release(self.device_type)

    @classmethod
    def deciding(cls, tensor: torch.Tensor) -> Self | None:
        """Return the handle that decides for a tensor's device."""
        kind = tensor.device.type
        return next((handle for handle in reversed(cls.active) if handle.device_type == kind), None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        self.restore()


class Choices:
    """Choices by what they are for, each made at its first use.

    Args:
        make: Makes one for a device and more.
        usual: Returns the path that is usual for the same.
    """

    def __init__(self, make: Callable[..., Choice], usual: Callable[..., str]) -> None:
        self._make, self._usual = make, usual
        self._made: dict[tuple[Any, ...], Choice] = {}
        self._lock = threading.RLock()

    def find(self, *key: Any) -> Choice:
        """Return the choice for a device and more; paths are tried at the first call.

        Raises:
            NoWorkingPathError: No path works.
        """
        found = self._made.get(key)
        if found is None:
            with self._lock:
                found = self._made.get(key)
                if found is None:
                    found = self._made[key] = self._make(*key)
                    announce(found, self._usual(*key))
        return found

    def all(self) -> tuple[Choice, ...]:
        """Return the choices made so far in this process."""
        return tuple(self._made.values())

    def forget(self) -> None:
        """Forget the choices made in this process; what is kept on disk stays."""
        self._made.clear()


def mode_of(subject: str, mode: str | None, modes: Sequence[str], variable: str) -> str:
    """Return the mode that was asked for; None and ``auto`` give way to an environment variable.

    Raises:
        UsageError: There is no such mode.
    """
    if mode in {None, "auto"}:
        mode = os.environ.get(variable) or "auto"
    if mode not in modes:
        raise UsageError(subject, f"expected a mode among {', '.join(modes)}, got {mode!r}.")
    return mode


def device_type_of(subject: str, device: str | None) -> str:
    """Return the type of a device; None stands for the GPU where PyTorch sees one.

    Raises:
        UsageError: The device is of another type than can be routed.
    """
    kind = torch.device(device).type if device else ("cuda" if torch.cuda.is_available() else "cpu")
    if kind not in DEVICE_TYPES:
        raise UsageError(subject, f"expected a device of type {' or '.join(DEVICE_TYPES)}, got {device!r}.")
    return kind
