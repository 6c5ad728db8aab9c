"""Matrix products under the libraries' settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgspec

from rocmend.bench.calls import CallSession, Torch
from rocmend.bench.case import Case, Setting
from rocmend.bench.conclusion import Conclusion
from rocmend.bench.device import Device, limits_of
from rocmend.bench.records import Measured
from rocmend.bench.session import Prepared, Stop, Subject
from rocmend.bench.suite import Bound, Suite
from rocmend.bench.suites.gemm_cases import FASTEST, PEAK, bytes_of, operand_bytes
from rocmend.bench.suites.gemm_conclude import conclusions
from rocmend.core.gfx import find

if TYPE_CHECKING:
    from rocmend.machine.facts import Machine

_UNSET: dict[str, str | None] = {
    "ROCBLAS_USE_HIPBLASLT": None,
    "TORCH_BLAS_PREFER_HIPBLASLT": None,
    "TORCH_BLAS_PREFER_CUBLASLT": None,
    "PYTORCH_TUNABLEOP_ENABLED": None,
}
_WITHOUT = {**_UNSET, "ROCBLAS_USE_HIPBLASLT": "0", "TORCH_BLAS_PREFER_HIPBLASLT": "0"}
_THROUGH = {**_UNSET, "ROCBLAS_USE_HIPBLASLT": "1", "TORCH_BLAS_PREFER_HIPBLASLT": "0"}
_DIRECT = {**_UNSET, "ROCBLAS_USE_HIPBLASLT": "1", "TORCH_BLAS_PREFER_HIPBLASLT": "1"}
_TUNED = {**_UNSET, "PYTORCH_TUNABLEOP_ENABLED": "1", "PYTORCH_TUNABLEOP_TUNING": "1"}

DEFAULT = Setting("default", _UNSET, note="torch and rocBLAS choose")
ROCBLAS = Setting(
    "rocblas", _WITHOUT, {"blas": "hipblas"}, "torch calls rocBLAS, which takes its own kernels (Tensile)"
)
THROUGH = Setting("rocblas-hipblaslt", _THROUGH, {"blas": "hipblas"}, "torch calls rocBLAS, which prefers hipBLASLt")
HIPBLASLT = Setting("hipblaslt", _DIRECT, {"blas": "hipblaslt"}, "torch calls hipBLASLt itself")
TUNED = Setting("tunableop", _TUNED, {"tune": True}, "torch times every kernel of both libraries in the first run")
SETTINGS = (DEFAULT, ROCBLAS, THROUGH, HIPBLASLT, TUNED)

_PEAKS = {"float64": "fp64", "float32": "fp32", "tf32": "xf32", "float16": "fp16", "bfloat16": "bf16", "float8": "fp8",
          "int8": "int8"}  # fmt: skip
_LT_ALONE = {"float8", "int8"}
MEMORY, MEASURED = "specified memory bandwidth", "measured memory bandwidth"


class _Reached:
    """What processes measured: memory's bandwidth by case, the fastest square product and its size by dtype."""

    def __init__(self) -> None:
        self.bandwidth_gb_s: dict[str, float] = {}
        self.square: dict[str, tuple[float, int]] = {}


class Gemm(Suite):
    """Products of given shapes and dtypes under given settings.

    Args:
        torch: The torch that is measured.
        cases: The products.
        device: What it runs on; None where that is not asked, and all settings are offered.
        tune: Offer TunableOp, too: its first runs take minutes.
    """

    name = "gemm"
    title = "Matrix products"

    def __init__(self, torch: Torch, cases: Sequence[Case], device: Device | None, *, tune: bool = False) -> None:
        self._torch, self._cases, self._device, self._tune = torch, list(cases), device, tune
        self._reached = _Reached()

    def cases(self) -> list[Case]:
        """Return the products."""
        return self._cases

    def settings(self) -> list[Setting]:
        """Return the settings that mean something on the device."""
        left = self.left_out()
        made = [one for one in SETTINGS if one.id not in left and (self._tune or one is not TUNED)]
        if self._device is not None and self._device.kind != "hip":  # its note names libraries of an AMD GPU
            made = [msgspec.structs.replace(one, note="torch chooses") for one in made]
        return made

    def left_out(self) -> dict[str, str]:
        """Return why settings mean nothing on the device, by their ids."""
        if self._device is None:
            return {}
        libraries = [one.id for one in SETTINGS[1:] if self._tune or one is not TUNED]
        if self._device.kind != "hip":
            what = "a CPU" if self._device.kind == "cpu" else "not an AMD GPU"
            return dict.fromkeys(
                libraries, f"{self._device.device_name} is {what}: rocBLAS and hipBLASLt do not run on it"
            )
        target = find(self._device.gfx_target)
        if target is not None and "hipBLASLt" in target.excluded_libraries:
            reason = f"hipBLASLt is not built for {target.name}: rocBLAS always takes its own kernels"
            return dict.fromkeys([name for name in libraries if name != TUNED.id], reason)
        return {}

    def applies(self, case: Case, setting: Setting) -> str:
        """Say where a setting does not reach the products of a dtype."""
        if case.parameters["dtype"] in _LT_ALONE and setting.id in {ROCBLAS.id, THROUGH.id}:
            return "torch multiplies fp8 and int8 with hipBLASLt alone"
        if case.parameters["dtype"] == "int8" and setting is TUNED:
            return "TunableOp does not reach torch._int_mm"
        return ""

    def open(self, setting: Setting, stop: Stop) -> CallSession:
        """Start a process with the setting's environment."""
        return _Session(self.name, setting, self._torch, stop, self._reached)

    def bounds(self, case: Case, subject: Subject, machine: Machine | None) -> tuple[Bound, ...]:
        """Return the GPU's peak (else the fastest product measured) and what its memory allows, the lowest first.

        Memory is a bound where the operands of a process are more than its caches hold.
        """
        limits = limits_of(subject, machine)
        found = []
        peak = limits.peaks_tflops.get(_PEAKS[case.parameters["dtype"]])
        if peak:
            found.append(Bound(peak, PEAK, limits.peaks_source))
        elif fastest := self._reached.square.get(str(case.parameters["dtype"])):
            speed, size = fastest
            source = f"{case.parameters['dtype']} {size}x{size}x{size} in this run, {speed:.4g} {case.unit}"
            found.append(Bound(speed, FASTEST, source))
        intensity = case.work / bytes_of(case)
        if limits.bandwidth_gb_s:
            source = f"{limits.product}, {limits.bandwidth_gb_s:g} GB/s"
            found.append(Bound(intensity * limits.bandwidth_gb_s / 1e3, MEMORY, source))
        elif measured := self._reached.bandwidth_gb_s.get(case.id):
            found.append(
                Bound(intensity * measured / 1e3, MEASURED, f"copied or read in this run, {measured:.4g} GB/s")
            )
        return tuple(sorted(found, key=lambda bound: bound.figure))

    def memory_bytes(self) -> int:
        """Return how much the operands of the largest product take."""
        cpu = self._device is not None and self._device.kind == "cpu"
        return max((operand_bytes(case, cpu=cpu) for case in self._cases), default=0)

    def conclusions(self, results: Sequence[Measured]) -> list[Conclusion]:
        """Return which setting to use for which kind of product."""
        return conclusions(results)


class _Session(CallSession):
    """Notes what the process measured: the fastest product, and memory's bandwidth for cases that no cache serves."""

    def __init__(self, suite: str, setting: Setting, torch: Torch, stop: Stop, reached: _Reached) -> None:
        super().__init__(suite, setting, torch, stop)
        self._reached = reached
        self._folder: TemporaryDirectory[str] | None = None
        self._tunes = bool(setting.options.get("tune"))

    def prepare(self, case: Case) -> Prepared:
        """Make a case ready."""
        if self._tunes:  # torch would write what it tuned into the folder that it runs in
            self._folder = self._folder or TemporaryDirectory(prefix="rocmend-tunableop-")
            private = {**case.parameters, "tuning_file": str(Path(self._folder.name) / "tuned.csv")}
            case = msgspec.structs.replace(case, parameters=private)
        found = super().prepare(case)
        if found.detail.get("cold") and found.subject.device.startswith("cuda"):
            fastest = max(float(found.detail.get(name, 0.0)) for name in ("copy_gb_s", "read_gb_s"))
            known = self._reached.bandwidth_gb_s
            known[case.id] = max(known.get(case.id, 0.0), fastest)
        if speed := found.detail.get("square_tflops"):
            dtype = str(case.parameters["dtype"])
            square = (float(speed), int(found.detail["square"]))
            self._reached.square[dtype] = max(self._reached.square.get(dtype, (0.0, 0)), square)
        return found

    def close(self) -> None:
        """End the process, and remove what it wrote."""
        super().close()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
