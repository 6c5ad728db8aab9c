"""Processes that compute together, over ``torch.distributed``."""

from __future__ import annotations

import atexit
import os
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocmend.core.documents import read_json
from rocmend.core.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Group", "group_of", "init", "is_available", "leave"]

_MAX_HOSTFILE_BYTES = 1 << 20
_BACKENDS = {"any": "", "mpi": "mpi", "ring": "gloo", "nccl": "nccl", "jaccl": "", "gloo": "gloo"}
"""MLX's names, and torch's of what stands for them here: gloo speaks TCP as MLX's ring does; nccl is RCCL on ROCm."""

_groups: dict[str, Group] = {}
_connected: weakref.WeakSet[Group] = weakref.WeakSet()


class Group:
    """Processes that can communicate.

    Args:
        handle: torch's process group; None: this process alone.
        places: for each rank of this group the rank in torch's; None: they are the same. torch numbers the processes of
            a new group as all processes are numbered, whatever order is asked for (before 2.13).

    Attributes:
        places: as given.
        members: the inverse: for each rank in torch's group the rank in this one; None likewise.
    """

    def __init__(self, handle: Any = None, places: tuple[int, ...] | None = None) -> None:
        self.handle = handle
        self.pending: list[tuple[Any, Any]] = []  # sends under way, and what they send
        self.places: tuple[int, ...] | None = None
        self.members: tuple[int, ...] | None = None
        if handle is None:
            self._rank, self._size = 0, 1
        else:
            import torch.distributed as dist

            _connected.add(self)
            self._rank, self._size = dist.get_rank(handle), dist.get_world_size(handle)
            if places is not None and places != tuple(range(self._size)):
                self.places = places
                self.members = tuple(places.index(place) for place in range(self._size))
                self._rank = self.members[self._rank]

    def rank(self) -> int:
        """Return the number of this process in the group."""
        return self._rank

    def size(self) -> int:
        """Return how many processes the group has."""
        return self._size

    def split(self, color: int, key: int = -1) -> Group:
        """Return the group of those processes that give the same color; all processes of this one must call it.

        Args:
            color: number of the new group.
            key: processes are ordered by it in the new group; by their rank in this one if it is negative.

        Raises:
            RuntimeError: this process is alone.
        """
        if self.handle is None:
            raise RuntimeError("Cannot split the distributed group further.")
        import torch.distributed as dist

        told: list[Any] = [None] * self._size
        dist.all_gather_object(told, (color, self._rank if key < 0 else key, dist.get_rank()), group=self.handle)
        own: Group | None = None
        for one in sorted({item[0] for item in told}):
            ranks = [rank for other, _, rank in sorted(told, key=lambda item: item[1:]) if other == one]
            numbered = sorted(ranks)
            handle = dist.new_group(numbered, use_local_synchronization=True)
            if one == color:
                own = Group(handle, tuple(map(numbered.index, ranks)))
        assert own is not None  # noqa: S101  this process's color is among those told
        return own

    def place(self, rank: int) -> int:
        """Return the rank in torch's group of a rank of this one."""
        return rank if self.places is None else self.places[rank]

    def settle(self) -> None:
        """Forget the sends that are over."""
        self.pending = [item for item in self.pending if not item[0].is_completed()]


def is_available(backend: str = "any") -> bool:
    """Return whether a backend can be had, whether or not there are processes to talk to.

    Args:
        backend: ``any``, ``mpi``, ``ring`` (gloo, over TCP), ``nccl`` (RCCL on ROCm) or ``jaccl``.
    """
    import torch.distributed as dist

    if not dist.is_available():
        return False
    return {
        "any": dist.is_gloo_available,
        "ring": dist.is_gloo_available,
        "gloo": dist.is_gloo_available,
        "mpi": dist.is_mpi_available,
        "nccl": _has_nccl,
    }.get(backend, bool)()


def _has_nccl() -> bool:
    import torch
    import torch.distributed as dist

    return dist.is_nccl_available() and torch.cuda.is_available()


def init(
    strict: bool = False,
    backend: str = "any",
    *,
    all_gather_factory: Callable[[int, int], Callable[[bytes, int], bytes]] | None = None,
) -> Group:
    """Return the group of all processes that were launched together; connects them at the first call.

    ``torchrun`` and ``mlx.launch`` say which there are. Without such a launcher the group is this process alone.

    Args:
        strict: raise instead of going on alone.
        backend: as of ``is_available``. ``any``: gloo for arrays on the CPU and nccl for those on a GPU.
        all_gather_factory: for ``jaccl``, which is Apple's; not used.

    Raises:
        ValueError: there is no such backend.
        RuntimeError: ``strict``, and there are no other processes or the backend is not available.
    """
    del all_gather_factory
    if backend not in _BACKENDS:
        raise ValueError(
            "[distributed] The only valid values for backend are 'any', 'mpi', 'nccl', 'jaccl', 'ring' and 'gloo' but "
            f"'{backend}' was provided."
        )
    found = _groups.get(backend) or (_groups.get("any") if backend == "any" else None)
    if found is None:
        found = _connect(backend)
        if found is None:
            if strict:
                raise RuntimeError(_why_alone(backend))
            found = Group()
        _groups[backend] = found
        if found.size() > 1:
            _groups.setdefault("any", found)
    if strict and found.handle is None:
        raise RuntimeError(_why_alone(backend))
    return found


def _why_alone(backend: str) -> str:
    if not is_available(backend):
        return f"[distributed] Couldn't initialize any backend: {backend} is not available with this torch."
    return (
        "[distributed] Couldn't initialize any backend: the environment names no other processes. Launch with "
        "`torchrun --nproc-per-node N` or `mlx.launch -n N`."
    )


def _connect(backend: str) -> Group | None:
    import torch.distributed as dist

    if not is_available(backend):
        return None
    if dist.is_initialized():
        return Group(dist.group.WORLD)
    _launched_by_mlx()
    if not all(os.environ.get(name) for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")):
        return None
    kind = _BACKENDS[backend] or ("nccl" if _has_nccl() else "gloo")
    if kind == "nccl" and dist.is_gloo_available():
        kind = "cpu:gloo,cuda:nccl"  # sends and receives go over gloo
    dist.init_process_group(kind)
    atexit.register(leave)
    return Group(dist.group.WORLD)


def leave() -> None:
    """Leave the group before the interpreter ends: gloo's threads abort a process that ends under them.

    torch ends those threads when nothing holds a group any more, so that programs that still hold one let go here.
    """
    import torch.distributed as dist

    for group in list(_connected):
        group.handle = None
        group.pending.clear()
    if dist.is_initialized():
        dist.destroy_process_group()


def _launched_by_mlx() -> None:
    """Put what ``mlx.launch`` says into the words of torch."""
    rank = os.environ.get("MLX_RANK")
    if rank is None or "RANK" in os.environ:
        return
    size, host, port = (os.environ.get(name) for name in ("MLX_WORLD_SIZE", "NCCL_HOST_IP", "NCCL_PORT"))
    hostfile = os.environ.get("MLX_HOSTFILE")
    if hostfile:
        try:
            hosts: list[list[str]] = read_json(Path(hostfile), list[list[str]], max_bytes=_MAX_HOSTFILE_BYTES)
            host, _, port = hosts[0][0].rpartition(":")
            size = str(len(hosts))
        except (OSError, DataError, IndexError) as error:
            raise RuntimeError(f"[ring] MLX_HOSTFILE={hostfile} holds no lists of addresses: {error}.") from error
    if size and host and port:
        os.environ.update(RANK=rank, WORLD_SIZE=size, MASTER_ADDR=host, MASTER_PORT=port)


def group_of(group: Group | None) -> Group:
    """Return a group, the global one for None."""
    return init() if group is None else group
