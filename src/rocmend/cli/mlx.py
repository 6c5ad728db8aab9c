"""What the commands of ``rocmend mlx`` share: whether a program can be started, and starting it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from rocmend.cli.base import OneOf
from rocmend.cli.mlx_memory import Wish, check_fits, free_room, wish_of
from rocmend.cli.output import tell
from rocmend.cli.quantities import SIZE
from rocmend.core.documents import decode_json, open_regular, read_json
from rocmend.core.errors import DataError, UsageError
from rocmend.core.optional import need
from rocmend.mlx import environment
from rocmend.mlx.footprint import footprint_of

F = TypeVar("F", bound=Callable[..., Any])
_HEADER_LIMIT = 32 << 20  # as rocmend.mlx.io.safetensors
_CONFIG_LIMIT = 4 << 20
_AGAIN = "Download it again."


class _Index(msgspec.Struct):
    """What is read of ``model.safetensors.index.json``."""

    weight_map: dict[str, str]


class _Tensor(msgspec.Struct):
    """What is read of a tensor's entry in a header, and of ``__metadata__``, which has no offsets."""

    data_offsets: tuple[int, int] = (0, 0)


def check_environment() -> None:
    """Make sure that the environment variables of ``rocmend.mlx`` have values that they can have.

    Raises:
        UsageError: one has not.
    """
    for name, variable in environment.VARIABLES.items():
        try:
            environment.asked(name)
        except ValueError:
            raise UsageError(
                name,
                f"expected one of {', '.join(variable.choices)}, got {os.environ[name]!r}.",
                why=f"The environment variable says {variable.sets}.",
                next_step="Set it to one of these, or unset it.",
            ) from None


def check_device(device: str) -> None:
    """Make sure that there is a GPU where one is asked for, by the option or the environment.

    Raises:
        UsageError: torch sees none.
    """
    if (environment.asked("ROCMEND_MLX_DEVICE") if device == "auto" else device) != "gpu":
        return
    import torch

    if not torch.cuda.is_available():
        raise UsageError(
            "--device" if device == "gpu" else "ROCMEND_MLX_DEVICE",
            f"torch {torch.__version__} finds no GPU.",
            next_step="`rocmend doctor` explains why. `--device cpu` runs without one.",
        )


def weights_bytes(folder: Path) -> int:
    """Return the bytes of a model's tensors, by the headers of its safetensors files.

    Raises:
        UsageError: there are none, or one is broken or incomplete.
    """
    config = folder / "config.json"
    if not config.is_file():
        raise UsageError("--model", f"{folder} has no config.json.", next_step="Use the folder of a complete model.")
    try:
        read_json(config, dict[str, Any], max_bytes=_CONFIG_LIMIT)
    except DataError as error:
        raise UsageError("--model", f"{config} is broken: it {error.message}", next_step=_AGAIN) from error
    files = sorted(folder.glob("model*.safetensors"))
    if not files:
        raise UsageError(
            "--model", f"{folder} has no model*.safetensors.", next_step="Download the model's weights too."
        )
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        try:
            named = set(read_json(index, _Index, max_bytes=_HEADER_LIMIT).weight_map.values())
        except DataError as error:
            raise UsageError("--model", f"{index} is broken: it {error.message}", next_step=_AGAIN) from error
        if missing := sorted(named - {path.name for path in files}):
            raise UsageError(
                "--model", f"{folder} lacks {', '.join(missing)}.", next_step="Download the missing files."
            )
    return sum(_tensor_bytes(path) for path in files)


def _tensor_bytes(path: Path) -> int:
    try:
        with open_regular(path) as opened:
            size = os.fstat(opened.fileno()).st_size
            length = int.from_bytes(opened.read(8), "little")
            if not 2 <= length <= min(size - 8, _HEADER_LIMIT):
                raise ValueError  # noqa: TRY301  one error for all
            entries = decode_json(opened.read(length), dict[str, _Tensor], subject=str(path))
            total = max((one.data_offsets[1] for one in entries.values()), default=0)
            if total > size - 8 - length:
                raise ValueError  # noqa: TRY301
    except (OSError, ValueError, DataError):
        raise UsageError("--model", f"{path} is damaged or was not downloaded completely.", next_step=_AGAIN) from None
    return total


def check_model(model: str, device: str, wish: Wish | None = None) -> str:
    """Make sure that a model can be loaded, before anything is, and return a line about its memory.

    Raises:
        UsageError: a folder lacks files, a model does not fit, or a hub name cannot be resolved.
    """
    folder = Path(model)
    wish = wish or Wish()
    if folder.is_dir():
        weights = weights_bytes(folder)
        config = read_json(folder / "config.json", dict[str, Any], max_bytes=_CONFIG_LIMIT)
        needs = footprint_of(config, weights, kv_bits=wish.kv_bits, kv_group=wish.kv_group)
        return check_fits(str(folder), needs, wish, free_room(device))
    if folder.exists() or model.startswith((".", "/", "~")) or model.count("/") != 1:
        raise UsageError(
            "--model", f"{model} is neither a folder nor a model name on the hub.", next_step="Names are OWNER/NAME."
        )
    _check_hub(model)
    return ""


def check_tokenizer(model: str) -> None:
    """Make sure that a local folder has a tokenizer, of whatever kind.

    Raises:
        UsageError: it has no file that could be one.
    """
    folder = Path(model)
    patterns = ("tokenizer*", "vocab*", "*.tiktoken", "*.model")
    if folder.is_dir() and not any(any(folder.glob(pattern)) for pattern in patterns):
        raise UsageError(
            "--model",
            f"{folder} has no tokenizer.",
            next_step="Download tokenizer.json, or the model's tokenizer files.",
        )


def _check_hub(name: str) -> None:
    import socket
    from urllib.parse import urlsplit

    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        snapshot_download(name, local_files_only=True)
    except LocalEntryNotFoundError:
        pass
    except HFValidationError as error:
        raise UsageError(
            "--model", f"{name} is not a model name on the hub: {error}", next_step="Names are OWNER/NAME."
        ) from None
    else:
        return  # it is in the cache
    address = urlsplit(os.environ.get("HF_ENDPOINT", "https://huggingface.co"))
    host = address.hostname or ""
    offline = os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}
    proxied = any(os.environ.get(key) for key in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"))
    try:
        if offline:
            raise OSError("HF_HUB_OFFLINE is set")  # noqa: TRY301
        if not proxied:
            socket.create_connection((host, address.port or 443), timeout=10).close()
    except OSError as error:
        raise UsageError(
            "--model",
            f"{name} is not in the local cache, and {host} cannot be reached: {error}.",
            next_step="Download it on a machine with network access, copy the folder here, and use the folder.",
        ) from None


def hand_over(device: str, arguments: Sequence[str], *, from_here: bool = True) -> None:
    """Become ``python -m rocmend.mlx`` with these arguments.

    Args:
        device: Where arrays are by default.
        arguments: Of the program.
        from_here: Whether modules are looked for in the working folder first, as ``python -m`` does.
    """
    chosen = [] if device == "auto" else ["--device", device]
    sys.stdout.flush()
    sys.stderr.flush()
    options = [] if from_here else ["-P"]
    os.execv(sys.executable, [sys.executable, *options, "-m", "rocmend.mlx", *chosen, *arguments])  # noqa: S606


def start_program(
    program: str, model: str, device: str, arguments: Sequence[str], *, context: int | None, limit: int | None
) -> None:
    """Check what a program of mlx_lm needs, and become it."""
    check_environment()
    need(f"mlx {'serve' if program == 'server' else program}")
    check_device(device)
    memory = check_model(model, device, wish_of(program, arguments, context=context or 0, limit=limit or 0))
    check_tokenizer(model)
    tell(f"rocmend mlx: {program} with {model}" + (f": {memory}" if memory else ""))
    limits = [f"--memory-limit={limit}"] if limit else []
    hand_over(
        device, ["-m", "rocmend.mlx.programs.lm", *limits, program, "--model", model, *arguments], from_here=False
    )


device_option = click.option(
    "--device",
    type=OneOf(["auto", "cpu", "gpu"]),
    default="auto",
    show_default=True,
    help="Default device; auto: the GPU if torch finds one.",
)


_limit_option = click.option(
    "--memory-limit",
    "limit",
    type=SIZE,
    metavar="SIZE",
    default=None,
    help="Memory that the model may take, such as 24GB. More is refused at the start; on a GPU, later too.",
)
_context_option = click.option(
    "--context",
    type=click.IntRange(1),
    metavar="TOKENS",
    default=None,
    help="Tokens for whose cache there must be memory. [default: --max-kv-size, prompt and --max-tokens, or 4096]",
)


def memory_options(function: F) -> F:
    """Add the options that say how much memory there must be."""
    return _limit_option(_context_option(function))
