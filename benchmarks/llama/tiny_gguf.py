"""Writes a llama model of random weights, small enough to load in milliseconds.

Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import math
import random
import struct
import sys
from pathlib import Path
from typing import Any

ALIGNMENT = 32
_U32, _I32, _F32, _STRING, _ARRAY = 4, 5, 6, 8, 9
_TENSOR_F32, _TENSOR_F16 = 0, 1
_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6

LAYERS, WIDTH, HEADS, KV_HEADS, FEED_FORWARD, VOCABULARY, CONTEXT = 2, 64, 4, 2, 128, 320, 65536


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(kind: int, value: Any) -> bytes:
    if kind == _STRING:
        return _string(value)
    return struct.pack({_U32: "<I", _I32: "<i", _F32: "<f"}[kind], value)


def _pair(key: str, kind: int, value: Any) -> bytes:
    return _string(key) + struct.pack("<I", kind) + _value(kind, value)


def _list(key: str, kind: int, values: list[Any]) -> bytes:
    head = _string(key) + struct.pack("<IIQ", _ARRAY, kind, len(values))
    return head + b"".join(_value(kind, value) for value in values)


def _vocabulary() -> tuple[list[str], list[int]]:
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    kinds = [_UNKNOWN, _CONTROL, _CONTROL, *[_BYTE] * 256]
    while len(tokens) < VOCABULARY:
        tokens.append(f"\u2581w{len(tokens)}")
        kinds.append(_NORMAL)
    return tokens, kinds


def _shapes() -> list[tuple[str, tuple[int, ...]]]:
    """Return names and dimensions, the fastest first; those of one dimension are norms."""
    head = WIDTH // HEADS
    shapes: list[tuple[str, tuple[int, ...]]] = [
        ("token_embd.weight", (WIDTH, VOCABULARY)),
        ("output_norm.weight", (WIDTH,)),
        ("output.weight", (WIDTH, VOCABULARY)),
    ]
    for layer in range(LAYERS):
        of_layer: tuple[tuple[str, tuple[int, ...]], ...] = (
            ("attn_norm", (WIDTH,)),
            ("attn_q", (WIDTH, HEADS * head)),
            ("attn_k", (WIDTH, KV_HEADS * head)),
            ("attn_v", (WIDTH, KV_HEADS * head)),
            ("attn_output", (HEADS * head, WIDTH)),
            ("ffn_norm", (WIDTH,)),
            ("ffn_gate", (WIDTH, FEED_FORWARD)),
            ("ffn_up", (WIDTH, FEED_FORWARD)),
            ("ffn_down", (FEED_FORWARD, WIDTH)),
        )
        shapes += [(f"blk.{layer}.{name}.weight", dimensions) for name, dimensions in of_layer]
    return shapes


def _tensor(chance: random.Random, dimensions: tuple[int, ...]) -> bytes:
    count = math.prod(dimensions)
    if len(dimensions) == 1:
        return struct.pack(f"<{count}f", *[1.0] * count)
    return struct.pack(f"<{count}e", *(chance.gauss(0.0, 0.05) for _ in range(count)))


def write_tiny_gguf(path: Path, seed: int = 0) -> None:
    """Write the model.

    Args:
        path: The file to write.
        seed: Of its weights.
    """
    chance = random.Random(seed)  # noqa: S311  reproducible, not secret
    tokens, kinds = _vocabulary()
    pairs = [
        _pair("general.architecture", _STRING, "llama"),
        _pair("general.name", _STRING, "tiny random llama"),
        _pair("general.alignment", _U32, ALIGNMENT),
        _pair("general.file_type", _U32, 1),
        _pair("llama.context_length", _U32, CONTEXT),
        _pair("llama.embedding_length", _U32, WIDTH),
        _pair("llama.block_count", _U32, LAYERS),
        _pair("llama.feed_forward_length", _U32, FEED_FORWARD),
        _pair("llama.attention.head_count", _U32, HEADS),
        _pair("llama.attention.head_count_kv", _U32, KV_HEADS),
        _pair("llama.attention.layer_norm_rms_epsilon", _F32, 1e-5),
        _pair("llama.rope.dimension_count", _U32, WIDTH // HEADS),
        _pair("tokenizer.ggml.model", _STRING, "llama"),
        _pair("tokenizer.ggml.pre", _STRING, "default"),
        _list("tokenizer.ggml.tokens", _STRING, tokens),
        _list("tokenizer.ggml.scores", _F32, [-float(index) for index in range(VOCABULARY)]),
        _list("tokenizer.ggml.token_type", _I32, kinds),
        _pair("tokenizer.ggml.bos_token_id", _U32, 1),
        _pair("tokenizer.ggml.eos_token_id", _U32, 2),
        _pair("tokenizer.ggml.unknown_token_id", _U32, 0),
    ]
    infos, data = b"", b""
    shapes = _shapes()
    for name, dimensions in shapes:
        kind = _TENSOR_F32 if len(dimensions) == 1 else _TENSOR_F16
        infos += _string(name) + struct.pack("<I", len(dimensions)) + struct.pack(f"<{len(dimensions)}Q", *dimensions)
        infos += struct.pack("<IQ", kind, len(data))
        tensor = _tensor(chance, dimensions)
        data += tensor + b"\0" * (-len(tensor) % ALIGNMENT)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(pairs)) + b"".join(pairs) + infos
    path.write_bytes(head + b"\0" * (-len(head) % ALIGNMENT) + data)


if __name__ == "__main__":
    write_tiny_gguf(Path(sys.argv[1]))
