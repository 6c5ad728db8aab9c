"""What watches a call that is recorded: it keeps launches, knows the memory, and refuses what no record can hold."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from rocmend.kernels import fast
from rocmend.kernels.executor import Recorder
from rocmend.kernels.replay import Given
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import Config

_CREATES = {"aten::empty", "aten::empty_strided", "aten::empty_like", "aten::new_empty", "aten::new_empty_strided"}


class Unsuited(Exception):  # noqa: N818  no error: the call is then made as it is written
    """A call cannot be recorded.

    Args:
        reason: Why.
        lasting: It never can; else only now.
    """

    def __init__(self, reason: str, *, lasting: bool = True) -> None:
        super().__init__(reason)
        self.lasting = lasting


class Varying:
    """Stands for a number of the call while that is recorded: it can be handed to a launch, and nothing else.

    Args:
        place: Which of those given.
    """

    __slots__ = ("place",)

    def __init__(self, place: int) -> None:
        self.place = place

    def _used(self, *_: Any) -> Any:
        raise Unsuited("it computes with a number that changes")

    __bool__ = __index__ = __int__ = __float__ = __eq__ = __lt__ = __le__ = __gt__ = __ge__ = _used
    __hash__ = _used


class Wanted(NamedTuple):
    """What a launch asks of ``arrivals.room``."""

    counters: int
    size_bytes: int


class Notes(Recorder):
    """Keeps the launches of the thread that records; those of others are carried out."""

    aside = True

    def __init__(self, target: Target, device: torch.device) -> None:
        super().__init__(target)
        self._owner = threading.get_ident()
        self.device_index = device.index if device.type == "cuda" else None
        self.rooms: list[tuple[Wanted, tuple[torch.Tensor, torch.Tensor]]] = []

    @property
    def mine(self) -> bool:
        """Whether they are of this thread."""
        return threading.get_ident() == self._owner

    def room(self, counters: int, size_bytes: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Stand in for ``arrivals.room``, and keep what was asked for."""
        given = (
            torch.empty(counters, dtype=torch.int32, device="meta"),
            torch.empty(-(-size_bytes // 8), dtype=torch.int64, device="meta"),
        )
        self.rooms.append((Wanted(counters, size_bytes), given))
        return given

    def used(self, memory: int) -> bool:
        """Return whether a launch was given a part of some memory."""
        args = [arg for one in self.launches for arg in one.args if isinstance(arg, torch.Tensor)]
        return any(identity(arg) == memory for arg in args)

    def launch(
        self, kernel: Any, grid: Sequence[int], args: Sequence[Any], constants: Mapping[str, Any], config: Config
    ) -> None:
        """Keep a launch, or carry it out."""
        if self.mine:
            super().launch(kernel, grid, args, constants, config)
        else:
            fast.bound(kernel, constants, config)(grid, args)


class Watch(TorchDispatchMode):
    """Knows the memory that is given and allocated, and refuses whatever computes with torch."""

    def __init__(self, given: Given, notes: Notes) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's
        self.notes, self.given = notes, len(given)
        self.zeroed: set[int] = set()
        self.bases: list[torch.Tensor | None] = [one if isinstance(one, torch.Tensor) else None for one in given]
        self._places = {identity(one): index for index, one in enumerate(self.bases) if one is not None}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Keep torch from importing its compiler, which takes a second, to have it skip this class."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Carry out one operation of torch if it only allocates or views."""
        del types
        out = func(*args, **(kwargs or {}))
        name: str = func._schema.name  # noqa: SLF001  public in all but name
        if name in _CREATES and isinstance(out, torch.Tensor):
            self._places[identity(out)] = len(self.bases)
            self.bases.append(out)
            return out
        if name == "aten::zero_" and self._fresh(out):
            self.zeroed.add(self.base_of(out))
            return out
        made = out if isinstance(out, (tuple, list)) else (out,)
        if func._schema.is_mutable or not all(one in self for one in made if isinstance(one, torch.Tensor)):  # noqa: SLF001
            raise Unsuited(f"it computes with {name}")
        return out

    def _fresh(self, tensor: torch.Tensor) -> bool:
        """Return whether a tensor lies in memory that was allocated and that no launch has seen."""
        return self._places.get(identity(tensor), -1) >= self.given and not self.notes.used(identity(tensor))

    def __contains__(self, tensor: torch.Tensor) -> bool:
        """Return whether a tensor lies in memory that is known."""
        return identity(tensor) in self._places

    def base_of(self, tensor: torch.Tensor) -> int:
        """Return in which tensor another lies.

        Raises:
            Unsuited: In none.
        """
        try:
            return self._places[identity(tensor)]
        except KeyError:
            raise Unsuited("it uses memory that was neither given nor allocated") from None


def identity(tensor: torch.Tensor) -> int:
    """Return what tells the memory of a tensor from others."""
    return int(tensor.untyped_storage()._cdata)  # noqa: SLF001  the identity of a storage has no other name
