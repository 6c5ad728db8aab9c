"""A process that runs cases as they are handed to it, one JSON line each, and tells of each as it is done.

    echo '{"op": "rms_norm", "case": "bfloat16-4x64"}' | python -m benchmarks.kernels.suites.worker cuda 90

A case that takes longer than the seconds named ends the process; so does an error of the driver, which would spoil the
cases that follow.
"""

from __future__ import annotations

import faulthandler
import json
import sys
import time
import warnings
from typing import Any

from rocmend.kernels.suite.child import _case, say

SPOILT = ("CUDA error", "HIP error", "cudaError", "hipError")


def main(device_name: str, case_s: float) -> None:
    """Run the cases that standard input names."""
    warnings.filterwarnings("ignore", category=RuntimeWarning)  # NumPy's, of the infinities and NaN that are meant
    import torch
    import triton

    from rocmend.kernels import executor, registry
    from rocmend.kernels.op import resolve

    device = torch.device(device_name)
    on_gpu = device.type == "cuda"
    target = executor.target_for(device)
    name = torch.cuda.get_device_name(device) if on_gpu else "Triton's interpreter on the CPU"
    versions = {"torch": torch.__version__, "triton": triton.__version__}
    total = torch.cuda.get_device_properties(device).total_memory / 2**30 if on_gpu else 0.0
    say("device", target=target.name, vendor=target.vendor, name=name, versions=versions, gib=total)
    known: dict[str, dict[str, Any]] = {}
    for line in sys.stdin:
        asked = json.loads(line)
        op = registry.get(asked["op"])
        if op.name not in known:
            known[op.name] = {case.name: case for case in resolve(op.cases)()}
        if on_gpu:
            torch.cuda.reset_peak_memory_stats()
        faulthandler.dump_traceback_later(case_s, exit=True)
        start = time.perf_counter()
        verdict, detail, worst, implementation = _case(op, known[op.name][asked["case"]], device)
        faulthandler.cancel_dump_traceback_later()
        ms = (time.perf_counter() - start) * 1e3
        spoilt = verdict == "crash" and any(word in detail for word in SPOILT)
        gib = round(torch.cuda.max_memory_reserved() / 2**30, 2) if on_gpu and not spoilt else 0.0
        if on_gpu and not spoilt and torch.cuda.memory_reserved() > 1 << 29:
            torch.cuda.empty_cache()  # other processes want it
        said = {"verdict": verdict, "detail": detail, "worst": worst, "implementation": implementation}
        say("case", **said, ms=ms, gib=gib)
        if spoilt:
            return


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
