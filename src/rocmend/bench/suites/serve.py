"""An OpenAI-style server under load: time to the first token, tokens a second, at one to many clients."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import msgspec

from rocmend.bench.case import Case, Setting
from rocmend.bench.serving import Load, Prompts, Reply, Server, ServerError, load, wrong_text
from rocmend.bench.session import Block, Prepared, Session, Stop, Subject
from rocmend.bench.suite import Suite
from rocmend.core.verdict import Verdict

ROUNDS = 2
"""Requests of each client in a block: the second meets a server that is busy with others' replies."""
FIGURES = {"first": ("ms", "first token"), "each": ("tok/s", "each client"), "all": ("tok/s", "all clients together")}
"""What is measured: its unit, and what it is called."""


class Requests(msgspec.Struct, frozen=True):
    """What clients ask for.

    Attributes:
        model: Name of the model; empty for the first one that the server names.
        prompt: Tokens of a prompt, about.
        generate: Tokens of a reply.
    """

    model: str = ""
    prompt: int = 512
    generate: int = 128


class Serve(Suite):
    """A server's answers to numbers of clients.

    Args:
        servers: Name to server; those after the first are compared with it.
        requests: What clients ask for.
        clients: Numbers of clients.
    """

    name = "serve"
    title = "A server under load"

    def __init__(self, servers: dict[str, Server], requests: Requests, clients: Sequence[int]) -> None:
        self._servers, self._requests, self._clients = servers, requests, tuple(clients)

    def cases(self) -> list[Case]:
        """Return each figure at each number of clients."""
        asked = {"prompt": self._requests.prompt, "generate": self._requests.generate}
        lengths = f"{self._requests.prompt}+{self._requests.generate}"
        return [
            Case(
                f"serve/{lengths}/clients-{clients}/{figure}",
                "serve",
                {**asked, "clients": clients, "figure": figure},
                unit,
                0.0 if unit == "ms" else 1.0,
                f"{clients} {'client' if clients == 1 else 'clients'}, {words}",
            )
            for clients in self._clients
            for figure, (unit, words) in FIGURES.items()
        ]

    def settings(self) -> list[Setting]:
        """Return the servers."""
        return [Setting(name, options={"url": server.name}) for name, server in self._servers.items()]

    def open(self, setting: Setting, stop: Stop) -> Session:
        """Ask nothing yet."""
        del stop
        return _Asked(self._servers[setting.id], self._requests)


class _Asked(Session):
    """A server's figures; those of one number of clients are of the same requests."""

    def __init__(self, server: Server, requests: Requests) -> None:
        self._server, self._requests = server, requests
        self._prompts = Prompts(requests.prompt)
        self._body: dict[str, Any] = {}
        self._loads: list[Load] = []
        self._clients, self._taken = 0, 0

    def prepare(self, case: Case) -> Prepared:
        """Ask once, and look at the reply."""
        clients = int(case.parameters["clients"])
        self._taken = 0
        if clients != self._clients:
            self._clients, self._loads = clients, []
        try:
            if not self._body:
                models = self._server.models()
                self._body = {
                    "model": self._requests.model or next(iter(models), "default"),
                    "max_tokens": self._requests.generate,
                    "temperature": 0.0,
                    "ignore_eos": True,  # llama.cpp and vLLM; others leave it unread
                }
            reply = self._one()
        except ServerError as error:
            return Prepared(Verdict.INFRA, error.message)
        subject = Subject(device=self._server.name, versions={"model": str(self._body["model"])})
        if wrong := wrong_text(reply.text):
            return Prepared(Verdict.WRONG_OUTPUT, wrong, reply.first_s, subject=subject)
        detail = {"prompt_tokens": reply.prompt_tokens, "reply_tokens": reply.tokens, "counted": reply.counted}
        return Prepared(Verdict.PASS, "", reply.first_s, reply.last_s, subject, detail)

    def _one(self) -> Reply:
        with contextlib.closing(self._server.connect()) as connection:
            return self._server.ask(connection, self._body, self._prompts.next())

    def block(self, case: Case, time_s: float, least: int = 1) -> Block:
        """Send requests, or take the figure from those that were sent for another one."""
        del time_s, least
        if self._taken == len(self._loads):
            try:
                made = load(self._server, self._body, self._prompts, clients=self._clients, rounds=ROUNDS)
            except ServerError as error:
                return Block((), Verdict.INFRA, error.message)
            self._loads.append(made)
        taken = self._loads[self._taken]
        self._taken += 1
        figure = case.parameters["figure"]
        if figure == "first":
            return Block(tuple(reply.first_s for reply in taken.replies))
        if figure == "all":
            return Block((taken.seconds / taken.tokens,))
        several = [reply for reply in taken.replies if reply.tokens > 1 and reply.last_s > reply.first_s]
        if not several:
            return Block((), Verdict.UNSUPPORTED, "the server sends a reply in one piece")
        return Block(tuple((reply.last_s - reply.first_s) / (reply.tokens - 1) for reply in several))

    def close(self) -> None:
        """Forget what was measured: connections end with each block."""
        self._loads = []
