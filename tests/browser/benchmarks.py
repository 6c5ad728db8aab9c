"""Made-up benchmark runs of two AMD GPUs, with all that a page of figures can have to show."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rocmend.bench.calls import Torch
from rocmend.bench.case import DEFAULT, Case, Setting
from rocmend.bench.conditions import machine_facts
from rocmend.bench.device import Device
from rocmend.bench.records import BenchRun, Measured, evidence_of
from rocmend.bench.serving import Server
from rocmend.bench.session import Prepared, Subject
from rocmend.bench.stats import summarize
from rocmend.bench.suite import Suite
from rocmend.bench.suites.gemm import Gemm
from rocmend.bench.suites.gemm_cases import PEAK, preset_cases
from rocmend.bench.suites.kernels import SETTINGS as IMPLEMENTATIONS
from rocmend.bench.suites.kernels import Operations, operation_cases
from rocmend.bench.suites.memory import SIZES, Memory, cases_of
from rocmend.bench.suites.mlx import Models, Request
from rocmend.bench.suites.nn import PRESETS, Networks, network_cases
from rocmend.bench.suites.nn import SETTINGS as MODES
from rocmend.bench.suites.serve import Requests, Serve
from rocmend.cli.source import take_snapshot
from rocmend.core.examples import MACHINES
from rocmend.core.verdict import Verdict
from rocmend.machine.facts import Machine
from rocmend.store.store import Store

TORCH = Torch(Path(), "python3")
VERSIONS = {"python": "3.12.9", "torch": "2.9.1+rocm7.1.1", "triton": "3.5.1"}


class Gpu(msgspec.Struct, frozen=True):
    """A GPU of an example machine."""

    machine: str
    gfx_target: str
    name: str
    speed: float

    def subject(self, **versions: str) -> Subject:
        return Subject(self.gfx_target, "cuda:0", self.name, {**VERSIONS, **versions})

    def device(self) -> Device:
        return Device(
            kind="hip",
            gfx_target=self.gfx_target,
            device_name=self.name,
            integrated=self.gfx_target == "gfx1151",
            free_bytes=90 << 30,
            peers=() if self.gfx_target == "gfx1151" else (1,),
        )

    def facts(self) -> Machine:
        return take_snapshot(MACHINES / self.machine)


STRIX = Gpu("strix-halo", "gfx1151", "AMD Radeon 8060S Graphics", 1.0)
NAVI = Gpu("rx-7900-xtx-ryzen", "gfx1100", "AMD Radeon RX 7900 XTX", 2.4)


class Runs:
    """Makes the runs of a GPU; the same ones each time."""

    def __init__(self, gpu: Gpu, day: int = 28, faster: float = 1.0) -> None:
        self.gpu, self.day, self.faster = gpu, day, faster
        self.noise = random.Random(1)  # noqa: S311  noise
        self.machine = gpu.facts()
        self.clock = itertools.count()

    def all(self) -> list[BenchRun]:
        return [self.gemm(), self.memory(), self.nn(), self.kernels(), self.mlx(), self.llama(), self.serve()]

    def gemm(self) -> BenchRun:
        cases = preset_cases("quick", ["bfloat16", "float8"])
        suite = Gemm(TORCH, cases, self.gpu.device(), tune=True)
        gains = {"default": 1.0, "rocblas": 0.82, "rocblas-hipblaslt": 1.004, "hipblaslt": 1.07, "tunableop": 1.22}
        results = []
        for case in suite.cases():
            bounds = suite.bounds(case, self.gpu.subject(), self.machine)
            limit = min((bound.figure for bound in bounds), default=30.0)
            for setting in suite.settings():
                share = 0.55 * gains[setting.id] * (1.1 if case.parameters["m"] < 20 else 0.9)
                if reason := suite.applies(case, setting):
                    results.append(self.without(case, setting, Verdict.UNSUPPORTED, reason))
                elif setting.id == "tunableop" and case.parameters["m"] == 512:
                    why = "largest error 0.47 of the largest value; 0.016 is allowed for bf16"
                    results.append(self.without(case, setting, Verdict.WRONG_OUTPUT, why))
                elif setting.id == "hipblaslt" and case.parameters["m"] == 4096:
                    log = "rocBLAS error: Could not initialize Tensile host: No devices found\nAborted (core dumped)"
                    results.append(self.without(case, setting, Verdict.CRASH, "SIGABRT while the case ran", log))
                else:
                    telemetry = _throttled() if case.parameters["m"] == 4096 else _calm()
                    results.append(self.timed(case, setting, limit * share, bounds, telemetry=telemetry))
        return self.run(suite, results)

    def memory(self) -> BenchRun:
        suite = Memory(TORCH, cases_of(self.gpu.device(), SIZES, 100 << 30), self.gpu.device())
        results = []
        for case in suite.cases():
            size, where = int(case.parameters["bytes"]), case.parameters["where"]
            top = {"device": 212.0, "host": 91.0, "link": 24.0, "peer": 21.0}[where] * self.gpu.speed**0.7
            cached = 3.1 if 1 << 20 <= size <= 16 << 20 and where != "link" else 1.0
            figure = top * cached * size / (size + 3e6 / cached)
            if case.parameters.get("memory") == "pageable":
                figure *= 0.4
            bounds = suite.bounds(case, self.gpu.subject(), self.machine)
            busy = {"notes": ["waited for the processor in 12 % of the time: this machine is busy"]}
            results.append(
                self.timed(case, DEFAULT, figure, bounds, spread=0.05, telemetry=busy if where == "host" else {})
            )
        notes = ("the processor was 71 % busy before the run",)
        return self.run(suite, results, notes)

    def nn(self) -> BenchRun:
        full = PRESETS["full"]
        cases = network_cases(full.networks, full.tasks, ["float16"], 32, own_batch=True)
        suite = Networks(TORCH, cases, list(MODES.values()))
        results = []
        for number, case in enumerate(suite.cases()):
            speed = 640.0 / (1 + number)
            for setting, gain in zip(suite.settings(), (1.0, 1.31, 0.62, 1.44), strict=True):
                if reason := suite.applies(case, setting):
                    results.append(self.without(case, setting, Verdict.UNSUPPORTED, reason))
                elif case.parameters["task"] == "training" and number == 3 and setting.id == "eager":
                    why = "a batch of 32 does not fit into memory (31.2 GiB were asked for); a batch of 8 does"
                    results.append(self.without(case, setting, Verdict.OOM, why))
                else:
                    detail = {"peak_bytes": (2 + number) << 30}
                    made = self.timed(case, setting, speed * gain, (), detail=detail, first_s=38.0 * gain)
                    results.append(made)
        return self.run(suite, results)

    def kernels(self) -> BenchRun:
        suite = Operations(TORCH, operation_cases(["bfloat16"]), IMPLEMENTATIONS)
        results = []
        for case in suite.cases():
            for setting, gain in zip(suite.settings(), (1.0, 1.7, 1.2), strict=True):
                detail = {"launch_share": 0.84} if case.parameters.get("rows") == 1 else None
                figure = (140.0 if case.unit == "GB/s" else 11.0) * gain
                results.append(self.timed(case, setting, figure, detail=detail))
        return self.run(suite, results)

    def mlx(self) -> BenchRun:
        suite = Models(TORCH, Request(shape="llama-3.1-8b", depths=(0, 2048, 8192)))
        how = {"executor": "graph", "plans": 2, "captures": 1, "replays": 127, "why_not_captured": [],
               "accelerated": True, "why_not_accelerated": ""}  # fmt: skip
        results = [
            self.timed(case, setting, (612.0 if case.parameters["task"] == "prompt" else 41.0) * gain
                       / (1 + case.parameters["depth"] / 9e3), detail={"executed": how})
            for case in suite.cases()
            for setting, gain in zip(suite.settings(), (1.0,), strict=True)
        ]  # fmt: skip
        return self.run(suite, results)

    def llama(self) -> BenchRun:
        speeds = {
            "rocm": (900.0, 48.0, 9e3, 4e4),
            "vulkan-radv": (1100.0, 53.0, 5e3, 3e4),
            "cpu": (80.0, 11.0, 9e3, 2e4),
        }
        settings = [Setting(name, {}, {"backend": name, "device": "ROCm0"}) for name in speeds]
        results = []
        for test, tokens in (("prompt", 512), ("generate", 128)):
            for depth in (0, 2048, 8192, 32768):
                name = f"{'pp' if test == 'prompt' else 'tg'}{tokens}{f' @ d{depth}' if depth else ''}"
                parameters = {"model": "Qwen3-8B-Q4_K_M", "size_bytes": 5_027_783_488, "prompt": 0, "generate": 0,
                              test: tokens, "depth": depth}  # fmt: skip
                case = Case(
                    f"llama/Qwen3-8B-Q4_K_M/{name.replace(' ', '')}", "llama", parameters, "tok/s", tokens, name
                )
                for setting in settings:
                    prompt, generate, half_prompt, half_generate = speeds[setting.id]
                    speed = (
                        prompt / (1 + depth / half_prompt)
                        if test == "prompt"
                        else generate / (1 + depth / half_generate)
                    )
                    if setting.id == "cpu" and depth == 32768:
                        why = "nothing was printed for 300 s while the model was loaded"
                        results.append(self.without(case, setting, Verdict.HANG, why))
                    else:
                        said = {"said": "150 of 150 tokens are the processor's"} if setting.id != "cpu" else {}
                        results.append(
                            self.timed(
                                case,
                                setting,
                                speed,
                                detail={"output": said},
                                versions={"llama.cpp": "b7010 (1c5eba6f8)"},
                            )
                        )
        return self.made("llama", "llama.cpp: Qwen3-8B-Q4_K_M (qwen3 Q4_K - Medium)", settings, results)

    def serve(self) -> BenchRun:
        suite = Serve(
            {"rocm": Server("http://localhost:8080"), "vulkan": Server("http://localhost:8081")}, Requests(), (1, 4, 16)
        )
        results = []
        for case in suite.cases():
            clients = case.parameters["clients"]
            figure = {"first": 0.3 * clients, "each": 0.021 * clients**0.6, "all": 0.021 / clients**0.4}[
                case.parameters["figure"]
            ]
            for setting, gain in zip(suite.settings(), (1.0, 0.9), strict=True):
                results.append(self.timed(case, setting, seconds=figure / gain, spread=0.08))
        return self.run(suite, results)

    def timed(
        self,
        case: Case,
        setting: Setting,
        figure: float = 0.0,
        bounds: Sequence[Any] = (),
        *,
        seconds: float = 0.0,
        spread: float = 0.01,
        detail: dict[str, Any] | None = None,
        telemetry: dict[str, Any] | None = None,
        versions: dict[str, str] | None = None,
        first_s: float = 0.4,
    ) -> Measured:
        took = (
            seconds or case.work / figure / {"TFLOPS": 1e12, "TOPS": 1e12, "GB/s": 1e9}.get(case.unit, 1.0)
        ) / self.faster
        blocks = tuple(tuple(took * self.noise.lognormvariate(0, spread) for _ in range(6)) for _ in range(12))
        prepared = Prepared(Verdict.PASS, "", first_s, 0.1, self.gpu.subject(**(versions or {})), detail or {})
        return Measured(case, Verdict.PASS, "", prepared, blocks, summarize(blocks), self.started(case), 900.0, setting,
                        tuple(bounds), telemetry or {})  # fmt: skip

    def without(self, case: Case, setting: Setting, verdict: Verdict, reason: str, log: str = "") -> Measured:
        prepared = Prepared(verdict, reason, subject=self.gpu.subject(), log=log)
        return Measured(case, verdict, reason, prepared, (), None, self.started(case), 10.0, setting)

    def started(self, case: Case) -> str:
        """Return when a case began: the same for all its settings."""
        second = sum(case.id.encode()) % 60
        return f"2026-11-{self.day}T12:00:{second:02d}+00:00"

    def run(self, suite: Suite, results: Iterable[Measured], notes: tuple[str, ...] = ()) -> BenchRun:
        made = self.made(suite.name, suite.title, suite.settings(), results, notes)
        return msgspec.structs.replace(made, conclusions=tuple(suite.conclusions(made.results)))

    def made(
        self,
        suite: str,
        title: str,
        settings: Sequence[Setting],
        results: Iterable[Measured],
        notes: tuple[str, ...] = (),
    ) -> BenchRun:
        group = f"bench-{suite}-202611{self.day}-120000-1a2b"
        return BenchRun(
            group, suite, title, tuple(settings), tuple(results), notes=notes, machine=machine_facts(self.machine)
        )


def _calm() -> dict[str, Any]:
    return {
        "clock_mhz": {"mean": 2780.0, "low": 2760.0, "high": 2800.0},
        "power_w": {"mean": 98.0, "low": 91.0, "high": 103.0},
        "temperature_c": {"mean": 64.0, "low": 61.0, "high": 66.0},
    }


def _throttled() -> dict[str, Any]:
    return {
        "clock_mhz": {"mean": 2010.0, "low": 1650.0, "high": 2790.0},
        "power_w": {"mean": 119.0, "low": 80.0, "high": 121.0},
        "temperature_c": {"mean": 96.0, "low": 88.0, "high": 99.0},
        "notes": ["throttled by temperature in 71 % of the readings", "the clock fell by 41 % between blocks"],
    }


def keep(store: Path, runs: Iterable[BenchRun], machine: Machine) -> None:
    """Keep runs in a store."""
    with Store.open(store) as kept:
        for run in runs:
            for result in run.results:
                kept.add(evidence_of(result, run.group), machine=machine)


__all__ = ["NAVI", "PEAK", "STRIX", "Runs", "keep"]
