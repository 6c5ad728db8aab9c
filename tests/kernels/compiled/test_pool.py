"""A pool of workers that is interrupted: nothing of it is left, and nobody waits for what was being compiled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("triton")

pytestmark = [pytest.mark.cpu, pytest.mark.slow]

PROGRAM = """
    import signal, sys
    from pathlib import Path
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job in the background ignores it
    sys.path.insert(0, sys.argv[2])
    from tests.kernels.compiled.specs import dot
    import msgspec
    from rocmend.kernels.compiled.pool import Pool
    from rocmend.kernels.compiled.toolchain import Toolchain
    from rocmend.kernels.tuning.record import triton_version
    own = triton_version()
    spec = msgspec.to_builtins(dot("gfx1100", own)) | {"kernel": "slow_kernels:never"}
    tasks = [(number, Toolchain(own), {"do": "compile", "spec": spec}) for number in range(4)]
    Pool(2, 300, [Path(sys.argv[1])]).map(tasks, lambda name, answer: print("answer", answer, flush=True))
"""


def test_an_interrupt_ends_what_is_being_compiled(tmp_path: Path) -> None:
    (tmp_path / "slow_kernels.py").write_text(
        "import os, pathlib, time\n"
        "def __getattr__(name):\n"
        "    if name == 'never':\n"
        f"        pathlib.Path({str(tmp_path)!r}, f'{{os.getpid()}}.pid').touch()\n"
        "        time.sleep(200)\n"
        "    raise AttributeError(name)\n"
    )
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), str(tmp_path), str(root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as parent:
        while len(begun := list(tmp_path.glob("*.pid"))) < 2:
            with pytest.raises(subprocess.TimeoutExpired):
                parent.wait(0.05)
        parent.send_signal(signal.SIGINT)
        out, errors = parent.communicate(timeout=60)
    assert out == ""  # that they were ended is no answer
    assert "KeyboardInterrupt" in errors
    for one in begun:
        with pytest.raises(ProcessLookupError):
            os.kill(int(one.stem), 0)
