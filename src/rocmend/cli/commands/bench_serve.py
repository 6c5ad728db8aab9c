"""``rocmend bench serve``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.bench import run_bench, run_options
from rocmend.cli.quantities import Duration
from rocmend.core.errors import UsageError

if TYPE_CHECKING:
    from rocmend.cli.bench import BenchOptions

_MOST_CLIENTS = 1024


def _numbers(_ctx: click.Context, _parameter: click.Parameter, text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and 1 <= int(part[:9]) <= _MOST_CLIENTS for part in parts):
        raise UsageError(
            "--clients",
            f"{text[:80]!r} is not a list of numbers from 1 to {_MOST_CLIENTS}.",
            next_step="Write 1, or 1,4,16.",
        )
    return tuple(dict.fromkeys(int(part) for part in parts))


@rocmend_command(
    "serve",
    examples=(
        ("rocmend bench serve --url http://localhost:8080", "a llama.cpp, vLLM, SGLang, Ollama or mlx_lm server"),
        (
            "rocmend bench serve --url rocm=http://localhost:8080 --url vulkan=http://localhost:8081",
            "two servers, compared",
        ),
        ("rocmend bench serve --url http://localhost:8000 --clients 1,64 --prompt 2048", "long prompts, few and many"),
    ),
)
@click.option(
    "--url",
    "urls",
    metavar="[NAME=]URL",
    multiple=True,
    required=True,
    help="The server's address; others are compared with the first one. Repeatable.",
)
@click.option("--model", metavar="NAME", default="", help="The model to ask for; otherwise the first one it serves.")
@click.option(
    "--clients", metavar="N,N", default="1,4,16", show_default=True, callback=_numbers, help="Clients at the same time."
)
@click.option(
    "--prompt", type=click.IntRange(32, 1 << 20), default=512, show_default=True, help="Tokens of a prompt, about."
)
@click.option(
    "--generate", type=click.IntRange(2, 1 << 20), default=128, show_default=True, help="Tokens of a reply, at most."
)
@click.option("--completions", is_flag=True, help="Use the endpoint for completions instead of that for chats.")
@click.option(
    "--key-from",
    metavar="VARIABLE",
    default="OPENAI_API_KEY",
    show_default=True,
    help="Variable of the environment that holds the server's key, if it needs one.",
)
@click.option(
    "--silence",
    type=Duration(1),
    default="5min",
    show_default=True,
    metavar="TIME",
    help="Longest wait for a reply.",
)
@run_options
def command(
    urls: tuple[str, ...],
    model: str,
    clients: tuple[int, ...],
    prompt: int,
    generate: int,
    completions: bool,
    key_from: str,
    silence: float,
    common: BenchOptions,
) -> None:
    """Measure an OpenAI-style server under load.

    It shows the time to the first token, and the tokens a second of each client and of all, at each number of clients.
    Each prompt is another one, so that no server answers from a cache. The server must be running. What it answers is
    checked for garbage only. Exit code 1 means that something has no figure.
    """
    from rocmend.bench.serving import Server
    from rocmend.bench.suites.serve import Requests, Serve

    key = os.environ.get(key_from, "")
    servers: dict[str, Server] = {}
    for number, text in enumerate(urls, 1):
        name, equals, url = text.partition("=")
        named = bool(equals) and "/" not in name and ":" not in name
        server = Server(url if named else text, chat=not completions, key=key, time_limit_s=silence)
        label = name if named else (server.name if len(urls) > 1 else "server")
        if label in servers:
            raise UsageError("--url", f"two servers are called {label!r}.", next_step=f"Name them: --url {number}=URL.")
        servers[label] = server
    for server in () if common.list_only else servers.values():
        server.reach()
    requests = Requests(model, prompt, generate)
    run_bench("bench serve", common, lambda _bench: Serve(servers, requests, clients))
