"""A row of llama-bench's results, as all its output formats and generations have it."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping
from typing import Any

import msgspec

MAX_SAMPLES = 10_000
MAX_TEXT = 500
_TEST = re.compile(r"^(?:pp(?P<prompt>\d{1,9}))?\+?(?:tg(?P<generate>\d{1,9}))?(?: ?@ ?d(?P<depth>\d{1,9}))?$")
_LONGEST_S = 1e7
_FASTEST = 1e9
_OPTIONS = (
    "n_batch", "n_ubatch", "n_threads", "type_k", "type_v", "n_gpu_layers", "n_cpu_moe", "split_mode", "main_gpu",
    "no_kv_offload", "flash_attn", "devices", "tensor_split", "use_mmap", "load_mode", "embeddings", "no_op_offload",
    "no_host",
)  # fmt: skip
_FLAGS = {"cuda": "CUDA", "hip": "ROCm", "vulkan": "Vulkan", "opencl": "OpenCL", "metal": "Metal", "kompute": "Kompute",
          "sycl": "SYCL", "gpu_blas": "GPU BLAS", "blas": "BLAS"}  # fmt: skip


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """One test of llama-bench.

    Attributes:
        prompt: Tokens of the prompt; 0 where none is processed.
        generate: Tokens generated; 0 where none are.
        depth: Tokens that the context held before.
        rate: Mean tokens per second.
        spread: Their standard deviation; None where it is not given.
        seconds: Of each repetition; empty where only the mean is given.
        model: What llama-bench calls the model: ``llama 7B Q4_0``.
        model_file: Name of its file, without folders.
        size_bytes: Of its weights; 0 where it is not given.
        parameters: How many; 0 where it is not given.
        backends: What the build was made with: ``ROCm``, ``Vulkan``, ``CPU``. Not what computed.
        gpu: The GPU's name; empty where there is none.
        cpu: The processor's name.
        build: Commit and number: ``39eab74a0 (10246)``.
        time: When, as ISO time; empty where it is not given.
        options: What else was set, by llama-bench's field names.
    """

    prompt: int
    generate: int
    depth: int
    rate: float
    spread: float | None = None
    seconds: tuple[float, ...] = ()
    model: str = ""
    model_file: str = ""
    size_bytes: int = 0
    parameters: int = 0
    backends: str = ""
    gpu: str = ""
    cpu: str = ""
    build: str = ""
    time: str = ""
    options: dict[str, str] = {}

    @property
    def test(self) -> str:
        """The test as llama-bench prints it: ``pp512 @ d2048``."""
        return test_name(self.prompt, self.generate, self.depth)

    @property
    def tokens(self) -> int:
        """Tokens of a repetition."""
        return self.prompt + self.generate


def test_name(prompt: int, generate: int, depth: int) -> str:
    """Return what llama-bench calls a test."""
    parts = [f"pp{prompt}"] if prompt else []
    parts += [f"tg{generate}"] if generate else []
    return "+".join(parts) + (f" @ d{depth}" if depth else "")


def parse_test(text: str) -> tuple[int, int, int]:
    """Return prompt, generate and depth of ``tg128 @ d8192``.

    Raises:
        ValueError: It is no such name.
    """
    match = _TEST.match(text.strip())
    if match is None or not (match["prompt"] or match["generate"]):
        raise ValueError(f"test is {text[:60]!r}, expected e.g. pp512, tg128 or tg128 @ d8192")
    prompt, generate, depth = (int(match[name] or 0) for name in ("prompt", "generate", "depth"))
    return prompt, generate, depth


def row_of(fields: Mapping[str, Any]) -> Row:
    """Return the row that a mapping of llama-bench's fields holds: values as JSON or as text.

    Raises:
        ValueError: A field that is needed is missing, of another type, or no number that a measurement can give.
    """
    prompt, generate = _whole(fields, "n_prompt"), _whole(fields, "n_gen")
    depth = _whole(fields, "n_depth") if "n_depth" in fields else 0
    if not prompt + generate:
        raise ValueError("n_prompt and n_gen are both 0")
    seconds = _seconds(fields.get("samples_ns"))
    rate = _number(fields.get("avg_ts"), "avg_ts", _FASTEST)
    if rate <= 0:
        raise ValueError("avg_ts must be above 0")
    spread = None if fields.get("stddev_ts") in {None, ""} else _number(fields["stddev_ts"], "stddev_ts", _FASTEST)
    backends = _text(fields, "backends")
    if not backends:
        flags = [name for key, name in _FLAGS.items() if str(fields.get(key, "0")) in {"1", "True", "true"}]
        backends = flags[0] if flags else ("CPU" if "cuda" in fields else "")
    number = _text(fields, "build_number")
    commit = _text(fields, "build_commit")
    return Row(
        prompt=prompt,
        generate=generate,
        depth=depth,
        rate=rate,
        spread=spread,
        seconds=seconds,
        model=_text(fields, "model_type"),
        model_file=re.split(r"[/\\]", _text(fields, "model_filename"))[-1],
        size_bytes=_whole(fields, "model_size") if fields.get("model_size") else 0,
        parameters=_whole(fields, "model_n_params") if fields.get("model_n_params") else 0,
        backends=backends,
        gpu=_text(fields, "gpu_info"),
        cpu=_text(fields, "cpu_info"),
        build=f"{commit} ({number})" if number and commit else commit or number,
        time=_time(_text(fields, "test_time")),
        options={name: _text(fields, name) for name in _OPTIONS if name in fields},
    )


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name, "")
    if isinstance(value, str):
        return value[:MAX_TEXT]
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, int | float):
        return str(value)[:MAX_TEXT]
    raise ValueError(f"{name} is {_kind(value)}, expected a text or a number")


def _whole(fields: Mapping[str, Any], name: str) -> int:
    if name not in fields:
        raise ValueError(f"{name} is missing")
    value = fields[name]
    if isinstance(value, str) and re.fullmatch(r"\d{1,19}", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 63:
        raise ValueError(f"{name} is {_shown(value)}, expected a whole number")
    return value


def _number(value: Any, name: str, most: float) -> float:
    if isinstance(value, str) and len(value) < 64:
        try:
            value = float(value)
        except ValueError:
            raise ValueError(f"{name} is {value!r}, expected a number") from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        said = f"{name} is missing" if value is None else f"{name} is {_shown(value)}, expected a number"
        raise ValueError(said)  # noqa: TRY004  a fault of the data
    if not (math.isfinite(value) if isinstance(value, float) else True) or not 0 <= value <= most:
        raise ValueError(f"{name} is {_shown(value)}, which is no measurement")
    return float(value)


def _seconds(samples: Any) -> tuple[float, ...]:
    if samples is None:
        return ()
    if not isinstance(samples, list) or len(samples) > MAX_SAMPLES:
        raise ValueError("samples_ns is no list of at most 10,000 times")
    found = tuple(_number(sample, "samples_ns", _LONGEST_S * 1e9) / 1e9 for sample in samples)
    if not all(found):
        raise ValueError("samples_ns holds a time of 0")
    return found


def _time(text: str) -> str:
    try:
        return dt.datetime.fromisoformat(text).isoformat() if text else ""
    except ValueError:
        return ""


def _kind(value: Any) -> str:
    return {dict: "an object", list: "a list", type(None): "null"}.get(type(value), type(value).__name__)


def _shown(value: Any) -> str:
    return repr(value)[:40] if isinstance(value, str | int | float) else _kind(value)
