"""A llama-bench that computes nothing: it has the options, the output and the faults of several generations."""

from __future__ import annotations

import json
import os
import random
import stat
import struct
import sys
import time
from pathlib import Path

_OLD_HELP = """usage: {program} [options]

options:
  -h, --help
  -m, --model <filename>              (default: models/7B/ggml-model-q4_0.gguf)
  -p, --n-prompt <n>                  (default: 512)
  -n, --n-gen <n>                     (default: 128)
  -b, --batch-size <n>                (default: 512)
  -t, --threads <n>                   (default: 8)
  -ngl, --n-gpu-layers <n>            (default: 99)
  -mmp, --mmap <0|1>                  (default: 1)
  -r, --repetitions <n>               (default: 5)
  -o, --output <csv|json|md|sql>      (default: md)
  -v, --verbose                       (default: 0)

Multiple values can be given for each parameter by separating them with ','.
"""
_NEW_HELP = """usage: {program} [options]

options:
  -h, --help
  -r, --repetitions <n>                       number of times to repeat each test (default: 5)
  -o, --output <csv|json|jsonl|md|sql>        output format printed to stdout (default: md)
  --list-devices                              list available devices and exit
  -v, --verbose                               verbose output
  --progress                                  print test progress indicators

test parameters:
  -m, --model <filename>                            (default: models/7B/ggml-model-q4_0.gguf)
  -p, --n-prompt <n>                                (default: 512)
  -n, --n-gen <n>                                   (default: 128)
  -d, --n-depth <n>                                 (default: 0)
  -b, --batch-size <n>                              (default: 2048)
  -ub, --ubatch-size <n>                            (default: 512)
  -t, --threads <n>                                 (default: 8)
  -ngl, --n-gpu-layers <n>                          (default: 99)
  -sm, --split-mode <none|layer|row>                (default: layer)
  -mg, --main-gpu <i>                               (default: 0)
  -ts, --tensor-split <ts0/ts1/..>                  (default: 0)
  -fa, --flash-attn <on|off|auto>                   (default: auto)
  -dev, --device <dev0/dev1/...>                    (default: auto)
  -lm, --load-mode <auto|none|mmap|mlock|dio>       (default: auto)
  -mmp, --mmap <0|1>                                (DEPRECATED IN FAVOUR OF --load-mode)
"""
_ROCM = "ggml_cuda_init: found {} ROCm devices (Total VRAM: 65536 MiB):"
_ROCM_DEVICE = "  Device {}: AMD Radeon Test, gfx1151 (0x1151), VMM: no, Wave Size: 32, VRAM: 65536 MiB"


def write_program(folder: Path, *, old: bool = False, faults: dict[str, str] | None = None) -> Path:
    """Write the program.

    Args:
        folder: Where it is put.
        old: A generation without -d, -dev, -fa, --list-devices, --progress and jsonl.
        faults: What goes wrong, by device (``ROCm0``, ``none``) or by test (``pp512@d2048``): ``abort``, ``hang``,
            ``oom``, ``said``, ``cpu``, ``nothing``, ``spins``; ``killed`` and ``waits`` only where the file ``mark``
            is not there, ``waits-later`` the second time.
            By test and physical batch (``pp2048-ub1024``) likewise. ``speeds`` says how fast prompts are with one:
            ``ub1024=1.2``. ``gpus`` is how many there are; ``holds`` which of them hold weights, whatever is asked for.
    """
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "llama-bench"
    start = f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\nimport fake_llama\n"
    program.write_text(f"{start}fake_llama.main({old!r}, {faults or {}!r})\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


def write_completion(folder: Path, texts: dict[str, str], *, batch: bool = True) -> Path:
    """Write a llama-completion that generates a text by device, or by device and physical batch: ``ROCm0-ub1024``.

    Args:
        folder: Where it is put.
        texts: What it generates.
        batch: It has an option for the physical batch.
    """
    program = folder / "llama-completion"
    options = ["-m, --model FNAME", "-dev, --device D", "-no-cnv, --no-conversation", "-ngl, --gpu-layers N"]
    options += ["-ub, --ubatch-size N"] if batch else []
    program.write_text(
        f"#!{sys.executable}\nimport sys\nwords, texts = sys.argv, {texts!r}\n"
        f"if '--help' in words:\n    print(*{options!r}, sep='\\n')\n"
        "else:\n    device = words[words.index('-dev') + 1]\n"
        "    size = f\"-ub{words[words.index('-ub') + 1]}\" if '-ub' in words else ''\n"
        "    print(texts.get(device + size) or texts[device])\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


def write_model(path: Path) -> Path:
    """Write the header of a model, and a little weight."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    pairs = text("general.architecture") + struct.pack("<I", 8) + text("llama")
    pairs += text("general.file_type") + struct.pack("<II", 4, 15)
    pairs += text("llama.context_length") + struct.pack("<II", 4, 4096)
    pairs += text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("b")
    infos = text("token_embd.weight") + struct.pack("<IQQIQ", 2, 64, 32, 0, 0)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 1, 4) + pairs + infos + bytes(64))
    return path


def main(old: bool, faults: dict[str, str]) -> None:
    """Do what llama-bench does with these arguments."""
    arguments = sys.argv[1:]
    if not old or arguments != ["--help"]:
        _say("load_backend: loaded CPU backend", err=True)
    no_gpu = os.environ.get("HIP_VISIBLE_DEVICES") == "-1" or faults.get("devices") == "no"
    shown = os.environ.get("HIP_VISIBLE_DEVICES")
    count = len(shown.split(",")) if shown else int(faults.get("gpus", "1"))
    if not no_gpu:
        _say("\n".join([_ROCM.format(count), *(_ROCM_DEVICE.format(number) for number in range(count))]), err=True)
    if arguments == ["--help"]:
        _say((_OLD_HELP if old else _NEW_HELP).format(program=sys.argv[0]))
        return
    if arguments == ["--list-devices"]:
        lines = [f"  ROCm{number}: AMD Radeon Test (65536 MiB, 65000 MiB free)" for number in range(count)]
        _say("\n".join(["Available devices:", *([] if no_gpu else lines)]))
        return
    known = {word for line in (_OLD_HELP if old else _NEW_HELP).splitlines() for word in line.replace(",", " ").split()}
    for word in arguments:
        if word.startswith("-") and not word[1:].isdigit() and (word not in known or (word == "-mmp" and not old)):
            _say(f"error: invalid parameter for argument: {word}", err=True)
            sys.exit(1)
    every = "/".join(f"ROCm{number}" for number in range(count))
    _run(_Test(arguments, every, no_gpu=no_gpu), old=old, faults=faults)


class _Test:
    def __init__(self, arguments: list[str], every: str, *, no_gpu: bool) -> None:
        self.arguments = arguments
        self.prompt, self.generate = int(self.after("-p")), int(self.after("-n"))
        self.depth, self.repetitions = int(self.after("-d")), int(self.after("-r", "5"))
        self.layers = 0 if no_gpu else int(self.after("-ngl"))
        self.device = self.after("-dev", "none" if not self.layers else every)
        self.name = f"pp{self.prompt}" if self.prompt else f"tg{self.generate}"
        self.name += f"@d{self.depth}" if self.depth else ""

    def after(self, name: str, default: str = "0") -> str:
        return self.arguments[self.arguments.index(name) + 1] if name in self.arguments else default


def _run(test: _Test, *, old: bool, faults: dict[str, str]) -> None:
    size = f"ub{test.after('-ub', '512')}"
    fault = faults.get(f"{test.name}-{size}") or faults.get(test.name) or faults.get(test.device, "")
    if fault == "killed" and not Path(faults["mark"]).exists():
        Path(faults["mark"]).touch()
        os.kill(os.getpid(), 9)
    if fault == "waits" and not Path(faults["mark"]).exists():
        Path(faults["mark"]).touch()
        fault = "hang"
    if fault == "waits-later" and Path(faults["mark"]).exists() and not Path(f"{faults['mark']}-2").exists():
        Path(f"{faults['mark']}-2").touch()
        fault = "hang"
    elif fault == "waits-later":
        Path(faults["mark"]).touch()
    _fail(fault)
    layers = 0 if fault == "cpu" else test.layers
    on_gpu = layers and test.device != "none"
    if "-v" in test.arguments:
        name = "llm_load_tensors" if old else "load_tensors"
        _say(f"{name}: offloaded {33 if on_gpu else 0}/33 layers to GPU", err=True)
        kind = "" if old else " model"
        for device in (faults.get("holds") or _holding(test)).split("/") if on_gpu else ["CPU"]:
            _say(f"{name}: {device}{kind} buffer size = 100.00 MiB", err=True)
    tokens = test.prompt + test.generate
    seconds = (0.01 if on_gpu else 0.02) * (1 + test.depth / 4096)
    seconds /= len(test.device.split("/")) if on_gpu else 1
    speeds = dict(part.split("=") for part in faults.get("speeds", "").split())
    seconds /= float(speeds.get(size, "1")) if test.prompt else 1
    noise = random.Random()  # noqa: S311  it draws times
    if speeds:
        seconds *= 1 + 0.002 * noise.random()
    samples = [int(seconds * 1e9) + index for index in range(test.repetitions)]
    row = {
        "build_commit": "abc1234", "build_number": 42, "cpu_info": "Test CPU", "gpu_info": "AMD Radeon Test",
        "backends": "ROCm", "model_filename": test.after("-m"), "model_type": "llama 7B Q4_K - Medium",
        "model_size": 1000, "model_n_params": 2048, "n_gpu_layers": layers, "n_prompt": test.prompt,
        "n_gen": test.generate, "test_time": "2026-01-31T10:00:00Z", "avg_ns": samples[0], "stddev_ns": 0,
        "avg_ts": tokens / seconds, "stddev_ts": 0.1, "samples_ns": samples,
        "samples_ts": [1e9 * tokens / sample for sample in samples],
    }  # fmt: skip
    if not old:
        row |= {"n_depth": test.depth, "devices": test.device, "split_mode": test.after("-sm", "layer")}
    if fault == "nothing":
        row = {}
    _say(json.dumps(row) if test.after("-o") == "jsonl" else json.dumps([row], indent=2))
    if fault == "said":
        _say("ggml_cuda_compute_forward: MUL_MAT failed\nROCm error: unspecified launch failure", err=True)


def _holding(test: _Test) -> str:
    """Return the devices that hold weights, as buffers are called."""
    mode, devices = test.after("-sm", "layer"), test.device.split("/")
    if mode == "none":
        return devices[int(test.after("-mg"))]
    return f"ROCm_Split/{devices[0]}" if mode == "row" else test.device


def _fail(fault: str) -> None:
    if fault == "abort":
        _say("ggml/src/ggml-cuda/ggml-cuda.cu:89: ROCm error: out of order", err=True)
        os.abort()
    if fault == "oom":
        _say("ggml_backend_cuda_buffer_type_alloc_buffer: failed to allocate buffer of size 9", err=True)
        sys.exit(1)
    if fault == "hang":
        time.sleep(3600)
    end = time.monotonic() + 0.8
    while fault == "spins" and time.monotonic() < end:
        pass


def _say(text: str, *, err: bool = False) -> None:
    stream = sys.stderr if err else sys.stdout
    stream.write(f"{text}\n")
    stream.flush()
