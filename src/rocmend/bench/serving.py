"""A client of an OpenAI-style server: streamed replies, timed as they come. Standard library alone."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import ssl
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import msgspec

from rocmend.core.errors import RocmendError, UsageError

MOST_REPLY_BYTES = 8 << 20
"""What a reply may have; a server that sends more is not answered any longer."""
_CONNECTING_S = 10.0
_MOST_LINE_BYTES = 1 << 20
_MOST_ERROR_CHARS = 300
_WORDS = (
    "time",
    "people",
    "way",
    "day",
    "man",
    "thing",
    "child",
    "world",
    "school",
    "state",
    "family",
    "group",
    "part",
)


class ServerError(RocmendError):
    """The server can't be used, or did not answer as it should."""

    code = "server"


class Reply(msgspec.Struct, frozen=True):
    """A reply as it came.

    Attributes:
        first_s: Seconds from the request to the first text.
        last_s: Seconds to the last text.
        tokens: Tokens of the reply.
        prompt_tokens: Tokens of the prompt; 0 where the server does not say.
        counted: The server said how many; otherwise each piece of text counts as one.
        text: The reply.
    """

    first_s: float
    last_s: float
    tokens: int
    prompt_tokens: int
    counted: bool
    text: str


class Server:
    """Where requests go.

    Args:
        url: ``http://localhost:8080`` or with a path: ``/v1`` is added where it is missing.
        chat: Ask the endpoint for chats; otherwise that for completions.
        key: Sent as a bearer token; empty for none.
        time_limit_s: For each wait for the server.

    Raises:
        UsageError: It is no such address.
    """

    def __init__(self, url: str, *, chat: bool = True, key: str = "", time_limit_s: float = 300.0) -> None:
        parts = urlsplit(url if "//" in url else f"http://{url}")
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme not in {"http", "https"} or not parts.hostname or port == -1:
            raise UsageError(
                "--url", f"{url[:200]!r} is no address of a server.", next_step="Write e.g. http://localhost:8080."
            )
        self.secure, self.host, self.port = parts.scheme == "https", parts.hostname, port
        path = parts.path.rstrip("/")
        self.path = path if path.endswith("/v1") else f"{path}/v1"
        self.name = f"{self.host}{f':{port}' if port else ''}"
        self._chat, self._key, self._limit_s = chat, key, time_limit_s

    def connect(self) -> http.client.HTTPConnection:
        """Return a connection that is opened with the first request."""
        if self.secure:
            return http.client.HTTPSConnection(
                self.host, self.port, timeout=self._limit_s, context=ssl.create_default_context()
            )
        return http.client.HTTPConnection(self.host, self.port, timeout=self._limit_s)

    def reach(self) -> None:
        """Connect once, so that an address without a server is an error before anything is measured.

        Raises:
            ServerError: It can't be reached.
        """
        connection = self.connect()
        connection.timeout = min(self._limit_s, _CONNECTING_S)
        with contextlib.closing(connection), self._told():
            connection.connect()

    def models(self) -> list[str]:
        """Return the names of the models that it serves; none where it does not say.

        Raises:
            ServerError: It does not answer.
        """
        connection = self.connect()
        with contextlib.closing(connection), self._told():
            connection.request("GET", f"{self.path}/models", headers=self._headers())
            response = connection.getresponse()
            data = response.read(MOST_REPLY_BYTES)
            if response.status != 200:
                return []
        try:
            found = json.loads(data)["data"]
            return [str(model["id"]) for model in found]
        except (ValueError, KeyError, TypeError):
            return []

    def ask(self, connection: http.client.HTTPConnection, body: dict[str, Any], prompt: str) -> Reply:
        """Send a request and read its reply as it comes.

        Args:
            connection: To this server.
            body: The request without its prompt.
            prompt: The prompt.

        Raises:
            ServerError: It refuses, breaks off, sends no text or too much.
        """
        where = f"{self.path}/{'chat/completions' if self._chat else 'completions'}"
        asked = {"messages": [{"role": "user", "content": prompt}]} if self._chat else {"prompt": prompt}
        request = json.dumps({**body, **asked, "stream": True, "stream_options": {"include_usage": True}}).encode()
        with self._told():
            begin = time.perf_counter()
            connection.request("POST", where, request, {**self._headers(), "Content-Type": "application/json"})
            response = connection.getresponse()
            if response.status != 200:
                text = response.read(_MOST_LINE_BYTES).decode(errors="replace")
                raise ServerError(self.name, f"the server answered {response.status}: {_error_text(text)}")
            return _reply(_events(response, self.name), begin, self.name)

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._key}"} if self._key else {}

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Turn what a connection raises into an error that says what and where."""
        try:
            yield
        except TimeoutError as error:
            raise ServerError(
                self.name, f"the server was silent for {self._limit_s:.0f} s.", next_step="Allow more with --silence."
            ) from error
        except (OSError, http.client.HTTPException) as error:
            text = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise ServerError(
                self.name,
                f"the server can't be reached or broke off: {text}.",
                next_step="Is it running, and is --url right?",
            ) from error


def _error_text(text: str) -> str:
    with contextlib.suppress(ValueError, TypeError, KeyError):
        error = json.loads(text)["error"]
        text = str(error["message"] if isinstance(error, dict) else error)
    return " ".join(text.split())[:_MOST_ERROR_CHARS] or "nothing"


def _events(response: http.client.HTTPResponse, name: str) -> Iterator[dict[str, Any]]:
    """Yield the events of a stream.

    Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
    """
    left, finished = MOST_REPLY_BYTES, False
    while line := response.readline(_MOST_LINE_BYTES):
        left -= len(line)
        if left < 0 or (len(line) == _MOST_LINE_BYTES and not line.endswith(b"\n")):
            raise ServerError(name, f"a reply has more than {MOST_REPLY_BYTES >> 20} MiB.")
        field, _, value = line.strip().partition(b":")
        if field != b"data":
            continue
        if value.strip() == b"[DONE]":
            response.read()  # so that the connection serves the next request
            return
        try:
            event = json.loads(value)
        except ValueError:
            raise ServerError(name, "the server sent an event that is no JSON.") from None
        if isinstance(event, dict):
            if "error" in event:
                raise ServerError(name, f"the server sent an error: {_error_text(json.dumps(event))}")
            finished = finished or _finishes(event)
            yield event
    if not finished:
        raise ServerError(name, "the server broke off in the middle of a reply: it sent neither its end nor [DONE].")


def _finishes(event: dict[str, Any]) -> bool:
    """Return whether an event says why a reply ends."""
    choices = event.get("choices")
    return isinstance(choices, list) and any(isinstance(one, dict) and one.get("finish_reason") for one in choices)


def _reply(events: Iterator[dict[str, Any]], begin: float, name: str) -> Reply:
    first = last = 0.0
    pieces: list[str] = []
    tokens = prompt_tokens = 0
    counted = False
    for event in events:
        text = _text_of(event)
        if text:
            last = time.perf_counter() - begin
            first = first or last
            pieces.append(text)
        usage = event.get("usage")
        if isinstance(usage, dict) and isinstance(usage.get("completion_tokens"), int):
            tokens, counted = usage["completion_tokens"], True
            prompt_tokens = usage["prompt_tokens"] if isinstance(usage.get("prompt_tokens"), int) else 0
    if not pieces:
        raise ServerError(name, "the reply has no text.")
    return Reply(first, last, max(tokens, 1) if counted else len(pieces), prompt_tokens, counted, "".join(pieces))


def _text_of(event: dict[str, Any]) -> str:
    choices = event.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return ""
    delta = choices[0].get("delta")
    found = [choices[0].get("text")]
    if isinstance(delta, dict):
        found += [delta.get("content"), delta.get("reasoning_content"), delta.get("reasoning")]
    return "".join(text for text in found if isinstance(text, str))


class Load(msgspec.Struct, frozen=True):
    """Replies under load.

    Attributes:
        clients: Clients at the same time.
        seconds: From the first request to the last reply.
        replies: All of them.
    """

    clients: int
    seconds: float
    replies: tuple[Reply, ...]

    @property
    def tokens(self) -> int:
        """Tokens of all replies."""
        return sum(reply.tokens for reply in self.replies)


class Prompts:
    """Prompts of about so many tokens, each another one, so that no server has it in a cache."""

    def __init__(self, tokens: int, seed: int = 7) -> None:
        self._tokens, self._random, self._lock = tokens, random.Random(seed), threading.Lock()  # noqa: S311  words

    def next(self) -> str:
        """Return one."""
        with self._lock:
            words = self._random.choices(_WORDS, k=max(1, self._tokens - 24))
        return f"Here are some words: {' '.join(words)}. Write a long story in which they occur, and do not stop."


def load(server: Server, body: dict[str, Any], prompts: Prompts, *, clients: int, rounds: int) -> Load:
    """Let clients send requests, each one after the other.

    Args:
        server: Where to.
        body: The request without its prompt.
        prompts: Where prompts come from.
        clients: At the same time.
        rounds: Requests of each client.

    Raises:
        ServerError: A request failed.
    """
    ready = threading.Barrier(clients)

    def client(_number: int) -> list[Reply]:
        connection = server.connect()
        with contextlib.closing(connection):
            texts = [prompts.next() for _ in range(rounds)]
            ready.wait()
            return [server.ask(connection, body, text) for text in texts]

    begin = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        replies = [reply for some in pool.map(client, range(clients)) for reply in some]
    return Load(clients, time.perf_counter() - begin, tuple(replies))


def wrong_text(text: str) -> str:
    """Say why a reply can't be right, or nothing: one character, or one word, all through."""
    words = text.split()
    if len(text) >= 16 and len(set(text)) == 1:
        return f"the reply is {text[0]!r} {len(text)} times"
    if len(words) >= 16 and len(set(words)) == 1:
        return f"the reply is {words[0][:20]!r} {len(words)} times"
    return ""
