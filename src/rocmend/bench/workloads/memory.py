"""How fast memory is: copied and computed with where it is, and copied from one place to another."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rocmend.bench.workload import Workload
from rocmend.bench.workloads.guarded import Guarded
from rocmend.runner.torch_device import UnsupportedError

if TYPE_CHECKING:
    import torch

FACTOR = 3.0
"""Of scale and triad. Operands are small whole numbers, so that every result is exact, fused or not."""
_NUMBERS = 1024
_PERIOD = 1_000_003


class Traffic(Workload):
    """Something that reads memory and writes a result."""

    def __init__(
        self, act: Callable[[], Any], result: Guarded, expected: Callable[[], torch.Tensor], **more: Any
    ) -> None:
        self._act, self._result, self._expected, self._more = act, result, expected, more

    def run(self) -> Any:
        """Do it once."""
        return self._act()

    def wrong(self) -> str:
        """Fill the result with NaN, do it once, and compare bit by bit."""
        import torch

        self._result.poison()
        self._act()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        if found := self._result.wrong():
            return found
        got, expected = self._result.tensor.cpu(), self._expected()
        if torch.equal(got.view(torch.int32), expected.view(torch.int32)):
            return ""
        off = int((got.view(torch.int32) != expected.view(torch.int32)).sum())
        return f"{off:,} of {got.numel():,} elements are wrong"

    def detail(self) -> dict[str, Any]:
        """Return what is known about the memory."""
        return self._more


def make(parameters: dict[str, Any], device: torch.device) -> Traffic:
    """Make memory and what is done with it.

    Args:
        parameters: ``test`` (``copy``, ``scale``, ``add``, ``triad``; ``to-device``, ``from-device``, ``read-host``,
            ``write-host``; ``peer``), ``bytes`` of each array, ``memory`` of the host's side (``pageable``,
            ``pinned``) and ``peer``, the number of the other GPU.
        device: Where it runs.
    """
    import torch

    count = int(parameters["bytes"]) // 4
    test = str(parameters["test"])
    first, second = (_numbers(count, seed) for seed in (3, 4))
    if test in _STREAM:
        a, b = first.to(device), second.to(device)
        result = Guarded((count,), torch.float32, device)
        out = result.tensor
        acts: dict[str, Callable[[], Any]] = {
            "copy": lambda: out.copy_(a),
            "scale": lambda: torch.mul(a, FACTOR, out=out),
            "add": lambda: torch.add(a, b, out=out),
            "triad": lambda: torch.add(a, b, alpha=FACTOR, out=out),
        }
        return Traffic(acts[test], result, lambda: _STREAM[test](first, second))
    if device.type != "cuda":
        raise UnsupportedError("there is no GPU to copy to or from")
    if test == "peer":
        return _peer(first, device, int(parameters["peer"]))
    return _transfer(test, first, device, pinned=parameters["memory"] == "pinned")


def _numbers(count: int, seed: int) -> torch.Tensor:
    """Return whole numbers without a pattern that a power of two would hide."""
    import torch

    some = torch.randint(_NUMBERS, (min(count, _PERIOD),), generator=torch.Generator().manual_seed(seed)).float()
    return some.repeat(-(-count // len(some)))[:count]


_STREAM: dict[str, Callable[[Any, Any], Any]] = {
    "copy": lambda a, _b: a,
    "scale": lambda a, _b: a * FACTOR,
    "add": lambda a, b: a + b,
    "triad": lambda a, b: a + b * FACTOR,
}


def _transfer(test: str, host: torch.Tensor, device: torch.device, *, pinned: bool) -> Traffic:
    """Copy between host and device, or let a kernel of the device use the host's memory where it is."""
    import torch

    count = host.numel()
    source = host.pin_memory() if pinned else host
    if test == "to-device":
        result = Guarded((count,), torch.float32, device)
        return Traffic(lambda: result.tensor.copy_(source, non_blocking=pinned), result, lambda: host)
    if test == "from-device":
        result = Guarded((count,), torch.float32, "cpu", pinned=pinned)
        there = host.to(device)
        return Traffic(lambda: result.tensor.copy_(there, non_blocking=pinned), result, lambda: host)
    if test == "read-host":
        result = Guarded((count,), torch.float32, device)
        mapped = _mapped(source, device)
        return Traffic(lambda: torch.mul(mapped, FACTOR, out=result.tensor), result, lambda: host * FACTOR)
    result = Guarded((count,), torch.float32, "cpu", pinned=True)
    there, mapped = host.to(device), _mapped(result.tensor, device)
    return Traffic(lambda: torch.mul(there, FACTOR, out=mapped), result, lambda: host * FACTOR)


class _Array:
    """Pinned host memory under the address by which the device reads it."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor  # it must live as long as what is made from it
        self.__cuda_array_interface__ = {
            "shape": tuple(tensor.shape),
            "typestr": "<f4",
            "data": (tensor.data_ptr(), False),
            "version": 3,
        }


def _mapped(host: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Return pinned host memory as a tensor of the device.

    Raises:
        UnsupportedError: Torch makes none of it here.
    """
    import torch

    try:
        mapped = torch.as_tensor(_Array(host), device=device)
    except (RuntimeError, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UnsupportedError(f"torch gives the device no access to host memory here: {reason}") from error
    if mapped.device.type != "cuda" or mapped.data_ptr() != host.data_ptr():
        raise UnsupportedError("torch copies host memory in place of giving the device access to it")
    return mapped


def _peer(host: torch.Tensor, device: torch.device, other: int) -> Traffic:
    import torch

    index = torch.cuda.current_device() if device.index is None else device.index
    if other >= torch.cuda.device_count():
        raise UnsupportedError(f"there is no GPU {other}")
    source = host.to(device)
    result = Guarded((host.numel(),), torch.float32, f"cuda:{other}")
    direct = bool(torch.cuda.can_device_access_peer(index, other))
    return Traffic(lambda: result.tensor.copy_(source, non_blocking=True), result, lambda: host, direct=direct)
