"""Devices and streams, as programs choose them."""

from __future__ import annotations

import platform
import threading
from typing import TYPE_CHECKING, Any

import torch

from rocmend.core.host_memory import total_bytes
from rocmend.mlx import device as devices
from rocmend.mlx.device import Device, DeviceType, Stream, cpu, gpu
from rocmend.mlx.evaluate import let_go
from rocmend.mlx.node import current

if TYPE_CHECKING:
    from types import TracebackType

__all__ = [
    "Device", "DeviceType", "Stream", "StreamContext", "ThreadLocalStream", "clear_streams", "cpu", "default_device",
    "default_stream", "device_count", "device_info", "gpu", "is_available", "new_stream", "new_thread_local_stream",
    "new_thread_unsafe_stream", "set_default_device", "set_default_stream", "stream", "synchronize",
]  # fmt: skip


def _device(op: str, device: Any) -> Device:
    """Return a device that was given as one or as a device type."""
    if isinstance(device, Device):
        return device
    if isinstance(device, DeviceType):
        return Device(device)
    raise TypeError(f"[{op}] expected a Device or a device type, got {type(device).__name__}.")


class ThreadLocalStream:
    """A stream of its own in each thread that uses it."""

    __slots__ = ("_device", "_index", "_local")

    _made = 0

    def __init__(self, device: Device) -> None:
        self._device = device
        self._index = ThreadLocalStream._made
        ThreadLocalStream._made += 1
        self._local = threading.local()

    @property
    def device(self) -> Device:
        """The device of all its streams."""
        return self._device

    def __repr__(self) -> str:
        return f"ThreadLocalStream({self._device!r}, {self._index})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ThreadLocalStream) and self._index == other._index

    def __hash__(self) -> int:
        return hash((ThreadLocalStream, self._index))

    def resolve(self) -> Stream:
        """Return this thread's stream."""
        found: Stream | None = getattr(self._local, "stream", None)
        if found is None:
            found = self._local.stream = devices.new_stream_of(self._device)
        return found


def _resolved(op: str, s: Any) -> Stream:
    """Return the stream that anything named as one stands for.

    Raises:
        TypeError: it is no stream and no device.
        RuntimeError: it belongs to another thread.
        ValueError: its device is not there.
    """
    if isinstance(s, Stream):
        return s.entered()
    if isinstance(s, ThreadLocalStream):
        return s.resolve()
    return default_stream(_device(op, s))


def default_device() -> Device:
    """Return the device on which operations are recorded where none is named."""
    return current.state.device


def set_default_device(device: Device | DeviceType) -> None:
    """Set the default device of this thread and of threads that begin later.

    Args:
        device: a device or a device type.

    Raises:
        ValueError: there is no such device.
    """
    chosen = devices.require("set_default_device", _device("set_default_device", device))
    state = current.state
    state.device = chosen
    state.stream = default_stream(chosen)
    devices.set_default(chosen)


def default_stream(device: Device | DeviceType) -> Stream:
    """Return the stream on which a device's operations are recorded where none is named.

    Args:
        device: a device or a device type.

    Raises:
        ValueError: there is no such device.
    """
    chosen = _device("default_stream", device)
    return current.state.streams.get(chosen) or devices.default_stream_of(chosen)


def set_default_stream(stream: Stream) -> None:
    """Make a stream the default one of its device, in this thread. The default device stays.

    Args:
        stream: the stream.
    """
    if not isinstance(stream, Stream | ThreadLocalStream):
        raise TypeError(f"[set_default_stream] expected a Stream, got {type(stream).__name__}.")
    chosen = _resolved("set_default_stream", stream)
    state = current.state
    state.streams[chosen.device] = chosen
    if state.device == chosen.device:
        state.stream = chosen


def new_stream(device: Device | DeviceType) -> Stream:
    """Return a new stream, which only this thread may use.

    Args:
        device: a device or a device type.

    Raises:
        ValueError: there is no such device.
    """
    return devices.new_stream_of(_device("new_stream", device))


def new_thread_unsafe_stream(device: Device | DeviceType) -> Stream:
    """Return a new stream that any thread may use. Evaluations wait for one another, so that none disturbs another.

    Args:
        device: a device or a device type.

    Raises:
        ValueError: there is no such device.
    """
    return devices.new_stream_of(_device("new_thread_unsafe_stream", device), shared=True)


def new_thread_local_stream(device: Device | DeviceType) -> ThreadLocalStream:
    """Return what stands for a stream of its own in each thread.

    Args:
        device: a device or a device type.

    Raises:
        ValueError: there is no such device.
    """
    return ThreadLocalStream(devices.require("new_thread_local_stream", _device("new_thread_local_stream", device)))


def clear_streams() -> None:
    """Forget the default streams that this thread has set. A stream holds nothing that must be given back."""
    state = current.state
    state.streams.clear()
    state.stream = devices.default_stream_of(state.device)


class StreamContext:
    """Records operations on another stream or device for a while.

    Args:
        s: the stream or device.
    """

    __slots__ = ("_before", "_s")

    def __init__(self, s: Stream | ThreadLocalStream | Device | DeviceType) -> None:
        if not isinstance(s, Stream | ThreadLocalStream | Device | DeviceType):
            raise TypeError(f"[stream] expected a Stream, a Device or a device type, got {type(s).__name__}.")
        self._s = s
        self._before: list[tuple[Device, Stream, Stream | None, Device]] = []

    def __enter__(self) -> None:
        chosen = _resolved("stream", self._s)
        state = current.state
        self._before.append((state.device, state.stream, state.streams.get(chosen.device), chosen.device))
        state.device = chosen.device
        state.stream = state.streams[chosen.device] = chosen

    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        state = current.state
        state.device, state.stream, before, device = self._before.pop()
        if before is None:
            state.streams.pop(device, None)
        else:
            state.streams[device] = before


def stream(s: Stream | ThreadLocalStream | Device | DeviceType) -> StreamContext:
    """Return a context in which operations are recorded on a stream or device.

    Args:
        s: the stream or device.
    """
    return StreamContext(s)


def synchronize(stream: Stream | ThreadLocalStream | Device | DeviceType | None = None) -> None:
    """Wait for the work of a stream.

    Args:
        stream: a stream, or a device for its default one; None: the default stream of the default device.
    """
    chosen = current.state.stream if stream is None else _resolved("synchronize", stream)
    chosen.device.synchronize()
    let_go()


def is_available(device: Device | DeviceType) -> bool:
    """Return whether arrays can be computed on a device.

    Args:
        device: a device or a device type.
    """
    return devices.available(_device("is_available", device))


def device_count(device_type: DeviceType) -> int:
    """Return how many devices of a type there are.

    Args:
        device_type: ``cpu`` or ``gpu``.
    """
    if device_type == cpu:
        return 1
    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def device_info(d: Device | DeviceType | None = None) -> dict[str, str | int]:
    """Return what is known of a device.

    Args:
        d: a device or a device type; None: the default device.

    Returns:
        ``device_name`` and ``architecture``; ``memory_size`` in bytes; of a GPU also
        ``max_recommended_working_set_size`` and ``max_buffer_length`` in bytes, as far as torch says them.

    Raises:
        ValueError: there is no such device.
    """
    device = devices.require("device_info", current.state.device if d is None else _device("device_info", d))
    if device.type is cpu:
        return _cpu_info()
    found = torch.cuda.get_device_properties(device.torch)
    architecture = getattr(found, "gcnArchName", "") if torch.version.hip else f"sm_{found.major}{found.minor}"
    total = int(found.total_memory)
    return {
        "device_name": str(found.name),
        "architecture": str(architecture).split(":", maxsplit=1)[0],
        "memory_size": total,
        "total_memory": total,
        # what a model may take: torch itself, its libraries and the display hold the rest
        "max_recommended_working_set_size": total - total // 10,
        "max_buffer_length": total,
    }


def _cpu_info() -> dict[str, str | int]:
    name = platform.processor()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:  # noqa: PTH123
            for line in lines:
                if line.startswith("model name"):
                    name = line.partition(":")[2].strip()
                    break
    except OSError:
        pass  # no Linux: what platform says must do
    return {
        "device_name": name or platform.machine() or "cpu",
        "architecture": platform.machine(),
        "memory_size": total_bytes(),
    }
