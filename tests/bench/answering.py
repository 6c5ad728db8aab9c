"""A server that answers like a model's, well or in one of several wrong ways."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

FIRST_S, EACH_S, TOKENS = 0.02, 0.004, 6


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._send(json.dumps({"data": [{"id": "some-model"}]}).encode(), "application/json")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(body)  # type: ignore[attr-defined]
        how = self.server.how  # type: ignore[attr-defined]
        if how == "refuses":
            self._send(json.dumps({"error": {"message": "the model is loading"}}).encode(), "application/json", 503)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.close_connection = True
        self.end_headers()
        if how == "no-json":
            self.wfile.write(b"data: {no\n\n")
            return
        time.sleep(FIRST_S)
        for number in range(TOKENS):
            text = "@" * 8 if how == "garbage" else f"word{number} "
            part = {"delta": {"content": text}} if "messages" in body else {"text": text}
            self._event({"choices": [part]})
            time.sleep(EACH_S)
            if how == "breaks" or (how == "breaks-later" and len(self.server.asked) % 3 == 0):  # type: ignore[attr-defined]
                return
        if how == "no-done":
            self._event({"choices": [{"delta": {}, "finish_reason": "length"}]})
            return
        if how != "no-usage":
            self._event({"choices": [], "usage": {"completion_tokens": TOKENS, "prompt_tokens": 40}})
        self.wfile.write(b"data: [DONE]\n\n")

    def _event(self, value: Any) -> None:
        self.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n")
        self.wfile.flush()

    def _send(self, data: bytes, kind: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextlib.contextmanager
def serving(how: str = "well") -> Iterator[tuple[str, list[Any]]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.how, server.asked = how, []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", server.asked  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
