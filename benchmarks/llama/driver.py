"""Starts a llama-server, asks it for a few tokens, ends it, and ends as it ended."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time

POLL_S = 1.0


def ask(port: int, method: str, path: str, body: str = "") -> tuple[int, bytes]:
    """Return status and body of the server's answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.read()


def main() -> int:
    """Drive the server whose command line is given."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    env = {**os.environ, "LD_PRELOAD": os.environ.get("LLAMA_SHIM", "")}
    server = subprocess.Popen([*sys.argv[1:], "--host", "127.0.0.1", "--port", str(port)], env=env)
    while server.poll() is None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            if ask(port, "GET", "/health")[0] == 200:
                break
        time.sleep(POLL_S)
    if server.poll() is None:
        body = json.dumps({"prompt": "w300 w301", "n_predict": 8, "temperature": 0})
        predicted = json.loads(ask(port, "POST", "/completion", body)[1])["tokens_predicted"]
        server.terminate()
        if server.wait() in {0, -signal.SIGTERM} and predicted == 8:
            return 0
    if server.returncode < 0:
        signal.signal(-server.returncode, signal.SIG_DFL)
        os.kill(os.getpid(), -server.returncode)
    return server.returncode or 0


if __name__ == "__main__":
    sys.exit(main())
