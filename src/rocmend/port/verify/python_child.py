"""What runs in the project's own interpreter: imports, golden vectors and the stability run.

It is executed as a file, in an interpreter that may not have rocmend, and imports nothing but the standard library and
what it is told to. Each result is a line of JSON, written at once: what is there when it is ended stays there.
"""

from __future__ import annotations

import base64
import importlib
import importlib.util
import json
import math
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

SAMPLES = 16_384
"""Elements of a result that are kept: of a larger one, evenly spread ones."""

Told = Callable[[dict[str, Any]], None]


def main(job_file: str) -> None:
    """Do what a job says."""
    job = json.loads(Path(job_file).read_text(encoding="utf-8"))
    with Path(job["results"]).open("a", encoding="utf-8") as results:

        def tell(record: dict[str, Any]) -> None:
            results.write(json.dumps(record) + "\n")
            results.flush()

        for what in job["what"]:
            {"import": imports, "golden": golden, "stability": stability}[what](job, tell)


def imports(job: dict[str, Any], tell: Told) -> None:
    """Import modules one after the other."""
    for path, name in job["modules"]:
        tell({"path": path, "began": True})
        try:
            if name:
                importlib.import_module(name)
            else:
                _script(path)
        except BaseException as error:  # noqa: BLE001  a module may end the process: that is its result
            missing = error.name if isinstance(error, ModuleNotFoundError) else None
            last = traceback.format_exception_only(type(error), error)[-1].strip()
            tell({"path": path, "error": last, "missing": missing})
        else:
            tell({"path": path, "error": None, "missing": None})


def _script(path: str) -> None:
    """Load a file that is no module of a package, not as a program."""
    sys.argv[:] = [path]
    sys.path.insert(0, str(Path(path).resolve().parent))
    spec = importlib.util.spec_from_file_location(f"_script_{Path(path).stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)


def golden(job: dict[str, Any], tell: Told) -> None:
    """Call functions with inputs that are the same on every machine, and keep what comes out."""
    torch = importlib.import_module("torch")
    device = _device(torch, job["device"])
    for entry, function in _functions(job):
        for dtype in job["dtypes"]:
            for shape in job["shapes"]:
                record: dict[str, Any] = {"entry": entry, "dtype": dtype, "shape": shape}
                record["many_layers"] = bool(getattr(function, "many_layers", False))
                started = time.monotonic()
                try:
                    made = function(_input(torch, shape, dtype, device))
                    record["outputs"] = [_kept(torch, tensor) for tensor in _tensors(torch, made)]
                except Exception as error:  # noqa: BLE001  whatever the project raises is the result
                    record["error"] = traceback.format_exception_only(type(error), error)[-1].strip()
                record["time_ms"] = round((time.monotonic() - started) * 1000, 1)
                tell(record)


def stability(job: dict[str, Any], tell: Told) -> None:
    """Call functions again and again with one input, and compare each result with the first."""
    torch = importlib.import_module("torch")
    device = _device(torch, job["device"])
    for entry, function in _functions(job):
        record: dict[str, Any] = {
            "repeated": True,
            "entry": entry,
            "iterations": 0,
            "largest": 0.0,
            "different": 0,
            "not_finite": 0,
        }
        try:
            given = _input(torch, job["shapes"][0], job["dtypes"][0], device)
            first: list[Any] = []
            allocated = 0
            for number in range(job["iterations"]):
                torch.manual_seed(0)
                found = [tensor.detach().double().cpu() for tensor in _tensors(torch, function(given.clone()))]
                first = first or found
                for one, other in zip(found, first, strict=True):
                    record["not_finite"] += int((~torch.isfinite(one)).sum())
                    apart = float((one - other).abs().max()) if one.numel() else 0.0
                    record["different"] += not torch.equal(one, other)
                    record["largest"] = max(record["largest"], apart if math.isfinite(apart) else 1e300)
                record["iterations"] = number + 1
                if device.type == "cuda":
                    held = torch.cuda.memory_allocated(device)
                    allocated = held if number == job["iterations"] // 10 else allocated
                    record["grown_bytes"] = max(0, held - allocated) if allocated else 0
        except Exception as error:  # noqa: BLE001  whatever the project raises is the result
            record["error"] = traceback.format_exception_only(type(error), error)[-1].strip()
        tell(record)


def _functions(job: dict[str, Any]) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    for entry in job["entries"]:
        module, _, name = entry.partition(":")
        function: Any = importlib.import_module(module)
        for part in name.split("."):
            function = getattr(function, part)
        yield entry, function


def _device(torch: Any, wanted: str) -> Any:
    return torch.device(("cuda" if torch.cuda.is_available() else "cpu") if wanted == "auto" else wanted)


def _input(torch: Any, shape: list[int], dtype: str, device: Any) -> Any:
    """Return normal numbers drawn on the CPU in float32: the same everywhere, whatever the device and type."""
    torch.manual_seed(0)  # what the function itself draws: parameters
    generator = torch.Generator().manual_seed(20_240_229)
    return torch.randn(shape, generator=generator, dtype=torch.float32).to(getattr(torch, dtype)).to(device)


def _tensors(torch: Any, made: Any) -> Iterator[Any]:
    if isinstance(made, torch.Tensor):
        yield made
    elif isinstance(made, dict):
        for key in sorted(made, key=str):
            yield from _tensors(torch, made[key])
    elif isinstance(made, (list, tuple)):
        for item in made:
            yield from _tensors(torch, item)


def _kept(torch: Any, tensor: Any) -> dict[str, Any]:
    values = tensor.detach().to("cpu", torch.float32).reshape(-1)
    step = max(1, -(-values.numel() // SAMPLES))
    finite = values[torch.isfinite(values)]
    data = bytes(values[::step].contiguous().view(torch.uint8).tolist()) if values.numel() else b""
    return {
        "shape": list(tensor.shape),
        "dtype": str(tensor.dtype).rpartition(".")[2],
        "not_finite": values.numel() - finite.numel(),
        "largest": float(finite.abs().max()) if finite.numel() else 0.0,
        "values": base64.b64encode(data).decode("ascii"),
    }


if __name__ == "__main__":
    main(sys.argv[1])
