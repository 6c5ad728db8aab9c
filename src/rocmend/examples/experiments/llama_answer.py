"""Start a llama-server, ask it for a few tokens, say what came and how fast, and end it.

    LLAMA_SERVER=llama-server LLAMA_MODEL=model.gguf python llama_answer.py [server options]

The server's own output is passed on, so that its phases of loading can be told from it.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time

PROMPT = "w300 w301 w302"
TOKENS = 8
POLL_S = 0.2


def ask(port: int, method: str, path: str, body: str = "") -> tuple[int, bytes]:
    """Return status and body of the server's answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request(method, path, body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.read()


def wait_until_ready(server: subprocess.Popen[bytes], port: int) -> bool:
    """Return whether the server came up before it ended."""
    while server.poll() is None:
        try:
            if ask(port, "GET", "/health")[0] == 200:
                return True
        except (OSError, http.client.HTTPException):
            pass  # it does not listen yet
        time.sleep(POLL_S)
    return False


def main() -> int:
    """Run the server once; the exit status is 0 where it answered."""
    program, model = os.environ.get("LLAMA_SERVER"), os.environ.get("LLAMA_MODEL")
    if not program or not model:
        sys.stderr.write("set LLAMA_SERVER to a llama-server and LLAMA_MODEL to a GGUF file\n")
        return 127
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ["-m", model, "--host", "127.0.0.1", "--port", str(port), "-c", "1024", "-lv", "5", "-fit", "off"]
    server = subprocess.Popen([program, *options, *sys.argv[1:]])
    try:
        if not wait_until_ready(server, port):
            return server.returncode or 1
        body = json.dumps({"prompt": PROMPT, "n_predict": TOKENS, "temperature": 0, "ignore_eos": True})
        answer = json.loads(ask(port, "POST", "/completion", body)[1])
        sys.stdout.write(f"answer: {json.dumps(answer['content'])}\n")
        sys.stdout.write(f"predicted: {answer['tokens_predicted']} tokens\n")
        sys.stdout.write(f"speed: {answer['timings']['predicted_per_second']:.2f} tokens per second\n")
        return 0
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


if __name__ == "__main__":
    sys.exit(main())
