"""What the GPU is doing."""

import pynvml


def free_bytes(index: int = 0) -> int:
    """Return the free memory of a GPU."""
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    return int(pynvml.nvmlDeviceGetMemoryInfo(handle).free)
