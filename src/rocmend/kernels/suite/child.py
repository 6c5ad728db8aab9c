"""Runs the suites of ops in a process of its own, telling of each case as it comes: one JSON line an event.

    python -m rocmend.kernels.suite.child '{"ops": ["rms_norm"], "device": "cpu", "sizes": ["tiny"], "case_s": 120}'

A case that takes too long ends the process (from a thread of C, so that a hung driver cannot keep it); what was begun
and not ended is then what hung.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import time
import warnings
from typing import Any

from rocmend.core.errors import UnitError


def say(event: str, **values: Any) -> None:
    """Print an event."""
    sys.stdout.write("rocmend-kernels " + json.dumps({"event": event, **values}) + "\n")
    sys.stdout.flush()


def main(text: str) -> None:
    """Run what a request asks for."""
    request = json.loads(text)
    if request["device"] == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"
    else:
        os.environ.pop("TRITON_INTERPRET", None)
    # NumPy warns of the infinities and NaN that are meant
    warnings.filterwarnings("ignore", category=RuntimeWarning)
    try:
        import torch
        import triton
    except ImportError as error:
        say("infra", reason=f"{error}")
        return
    if request["device"].startswith("cuda") and not torch.cuda.is_available():
        say("infra", reason="torch finds no GPU here")
        return
    from rocmend.kernels import executor, registry

    device = torch.device(request["device"])
    target = executor.target_for(device)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "Triton's interpreter on the CPU"
    versions = {"torch": torch.__version__, "triton": triton.__version__}
    say("device", target=target.name, vendor=target.vendor, name=name, versions=versions)
    for op in request["ops"]:
        _suite(registry.get(op), device, request)
    say("end")


def _suite(op: Any, device: Any, request: dict[str, Any]) -> None:
    from rocmend.kernels.suite.run import cases_of

    done = set(request.get("done", ()))
    share, shares = request.get("share", (0, 1))
    try:
        cases = list(cases_of(op, tuple(request["sizes"])))
    except (ImportError, AttributeError, SyntaxError, TypeError, UnitError) as error:
        say("case", case="cases", verdict="infra", detail=f"{type(error).__name__}: {error}", worst=0.0, ms=0.0)
        return
    for case in cases[share::shares]:
        if case.name in done:
            continue
        say("begin", case=case.name)
        faulthandler.dump_traceback_later(request["case_s"], exit=True)
        start = time.perf_counter()
        verdict, detail, worst, implementation = _case(op, case, device)
        faulthandler.cancel_dump_traceback_later()
        ms = (time.perf_counter() - start) * 1e3
        about = {"implementation": implementation, "verdict": verdict, "detail": detail, "worst": worst, "ms": ms}
        say("case", case=case.name, **about)


def _case(op: Any, case: Any, device: Any) -> tuple[str, str, float, str]:
    """Return the verdict on a case, what is wrong, the worst error, and what computed it, as far as that is known."""
    import torch

    from rocmend.kernels.select import UnsupportedError
    from rocmend.kernels.suite.run import run_case

    try:
        result = run_case(op, case, device)
    except torch.OutOfMemoryError as error:
        torch.cuda.empty_cache()
        return "oom", str(error)[:300], 0.0, case.implementation
    except UnsupportedError as error:
        return "unsupported", str(error)[:500], 0.0, case.implementation
    except Exception as error:  # noqa: BLE001  whatever a kernel or its compiler raises is what the case came to
        return "crash", f"{type(error).__name__}: {error}"[:800], 0.0, case.implementation
    worst = min(result.worst, 1e300)  # JSON has no infinity
    return ("pass" if result.ok else "wrong-output"), result.detail, worst, result.implementation


if __name__ == "__main__":
    main(sys.argv[1])
