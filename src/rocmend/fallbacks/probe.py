"""Try one path in this process: run as ``python -m rocmend.fallbacks.probe`` by a supervisor that may have to end it.

Prints one line for each step, so that the supervisor knows where it stood. Each case is compared, forward and
backward, with float64 on the CPU, over memory that was filled with NaN.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import torch
from torch import Tensor

from rocmend.core.verdict import Verdict
from rocmend.fallbacks import cases
from rocmend.fallbacks.attend import safe_attention
from rocmend.fallbacks.cases import TOLERANCE, Case
from rocmend.fallbacks.choice import MARK
from rocmend.fallbacks.conv import safe_conv

_TIMED_RUNS = 5
_LONG_RUN_S = 2.0
"""A run of more says enough by itself."""
_POISON_BYTES = 32 << 20


def say(event: str, **fields: Any) -> None:
    """Print an event for the supervisor."""
    sys.stdout.write(MARK + json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


def run(case: Case, tensors: list[Tensor]) -> list[Tensor]:
    """Return the case's result and the gradients of all its tensors, for a gradient of the result that varies."""
    leaves = [tensor.detach().requires_grad_() for tensor in tensors]
    result = case.function(*leaves)
    slope = torch.linspace(-1, 1, result.numel(), dtype=torch.float64).reshape(result.shape)
    gradients = torch.autograd.grad(result, leaves, slope.to(result.device, result.dtype))
    return [result.detach(), *gradients]


def error_of(found: Tensor, expected: Tensor, scale: float) -> float:
    """Return the largest difference relative to the largest expected value; infinite where a value is not finite.

    Args:
        found: What was computed.
        expected: The reference.
        scale: Largest value of the whole case; a tensor far below it (a gradient that vanishes) is measured by it.
    """
    found = found.to("cpu", torch.float64)
    if found.shape != expected.shape or not bool(found.isfinite().all()):
        return float("inf")
    return float((found - expected).abs().max() / expected.abs().max().clamp_min(scale / 10))


def _poison(device: torch.device) -> None:
    """Leave NaN in memory that the allocator hands out next."""
    for size in (_POISON_BYTES, 1 << 20, 1 << 16):
        torch.full((size // 8,), float("nan"), dtype=torch.float64, device=device)


def _compare(case: Case, device: torch.device, dtype: torch.dtype, expected: list[Tensor]) -> str:
    """Return what is wrong with a case, empty where nothing is."""
    _poison(device)
    scale = max(float(reference.abs().max()) for reference in expected)
    found = run(case, [tensor.to(dtype).to(device) for tensor in case.tensors()])
    for name, one, reference in zip(
        ("result", *(f"gradient {i + 1}" for i in range(9))), found, expected, strict=False
    ):
        if one.device.type != device.type:
            return f"{name} of {case.name} is on {one.device}"
        error = error_of(one, reference, scale)
        if error > TOLERANCE[dtype]:
            return f"{name} of {case.name} differs by {error:.2g} of its largest value (limit {TOLERANCE[dtype]:.0e})"
    return ""


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _time_ms(case: Case, device: torch.device, dtype: torch.dtype) -> float:
    tensors = [tensor.to(dtype).to(device) for tensor in case.tensors()]
    times = []
    for _ in range(_TIMED_RUNS):
        _synchronize(device)
        start = time.perf_counter()
        run(case, tensors)
        _synchronize(device)
        times.append(time.perf_counter() - start)
        if times[-1] > _LONG_RUN_S:
            break
    return round(sorted(times)[len(times) // 2] * 1000, 3)


def _suite(options: argparse.Namespace) -> tuple[list[Case], Case]:
    if options.kind == "conv":
        return cases.convolution_cases(options.size), cases.timed_convolution(options.size)
    suite = cases.attention_cases(options.size, masks=options.path != "vendor")
    return suite, cases.timed_attention(options.size)


def _judge(options: argparse.Namespace) -> tuple[Verdict, str, float]:
    device, dtype = torch.device(options.device), getattr(torch, options.dtype)
    suite, timed = _suite(options)
    torch.backends.cudnn.allow_tf32 = False  # the paths are to be compared at the dtype's own precision
    references = [run(case, [tensor.to(dtype).double() for tensor in case.tensors()]) for case in suite]
    install = safe_conv if options.kind == "conv" else safe_attention
    at = "the first use of the device"
    try:
        with install(options.path, device=device.type):
            for case, expected in zip(suite, references, strict=True):
                at = case.name
                say("begin", case=at)
                wrong = _compare(case, device, dtype, expected)
                if wrong:
                    return Verdict.WRONG_OUTPUT, wrong, 0.0
            at = timed.name
            say("begin", case=at)
            time_ms = _time_ms(timed, device, dtype)
    except torch.OutOfMemoryError as error:
        return Verdict.OOM, f"{at}: {error}"[:300], 0.0
    except NotImplementedError as error:
        return Verdict.UNSUPPORTED, f"{at}: {error}"[:300], 0.0
    except (RuntimeError, ImportError, AttributeError, TypeError) as error:
        return Verdict.CRASH, f"{at}: {type(error).__name__}: {error}"[:300], 0.0
    return Verdict.PASS, f"{len(suite)} cases right, {time_ms} ms for {timed.name}", time_ms


def main(arguments: list[str] | None = None) -> int:
    """Try a path and say what came of it."""
    parser = argparse.ArgumentParser(
        prog="python -m rocmend.fallbacks.probe", description="Try one path of an operation."
    )
    parser.add_argument("kind", choices=("conv", "attention"))
    parser.add_argument("dtype", choices=("float16", "bfloat16", "float32", "float64"))
    parser.add_argument("size", type=int, help="spatial axes of a convolution, or the size of an attention head")
    parser.add_argument("--path", required=True)
    parser.add_argument("--device", required=True)
    options = parser.parse_args(arguments)
    verdict, reason, time_ms = _judge(options)
    say("end", verdict=verdict, reason=reason, time_ms=time_ms)
    return 0 if verdict is Verdict.PASS else 1


if __name__ == "__main__":
    sys.exit(main())
