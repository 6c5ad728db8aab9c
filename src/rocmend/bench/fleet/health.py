"""Whether a machine is fit to be measured: products with a known result, the kernel log, memory errors.

Sources: https://docs.kernel.org/gpu/amdgpu/ras.html (``*_err_count``: corrected and uncorrected errors by block)
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rocmend.bench.fleet.messages import Health
from rocmend.core.documents import MALFORMED
from rocmend.core.supervise import CommandResult, Ending, run_command
from rocmend.core.visible import one_line
from rocmend.machine.parse.kernel_log import CLASSES
from rocmend.runner.kernel import RESET_CLASSES, KernelLog

OWN_COMMAND = (sys.executable, "-P", "-m", "rocmend")
"""How this rocmend is started again; the working folder's modules are not imported."""

PRODUCTS = ("probe", "run", "--select", "matmul-odd", "--no-store", "--json")
"""Products of odd shapes in four dtypes, all elements compared with float64."""

BAD_LINES = RESET_CLASSES | {"amdgpu_init_failed", "ecc_error", "gpu_hang", "mes_hang", "ring_timeout", "sdma_error"}
"""Classes of kernel lines after which a GPU's figures are not to be trusted."""

_MEANINGS = {one.id: one.meaning.rstrip(".") for one in CLASSES}
_TAKES_OPTIONS = frozenset({"gemm", "kernels", "memory", "mlx", "nn"})
"""Benchmarks in torch, whose device and Python are those that the products are made with."""
_PASSED = frozenset({"pass", "skipped", "unsupported"})
_NO_TORCH = "torch cannot be imported"
_LIMIT_S = 900.0
_MOST_NAMED = 4
_UNCORRECTED = re.compile(r"^ue:\s*(\d{1,12})\s*$", re.MULTILINE)

Run = Callable[[Sequence[str], Mapping[str, str]], CommandResult]


def _run(argv: Sequence[str], env: Mapping[str, str]) -> CommandResult:
    return run_command(argv, time_limit_s=_LIMIT_S, env=env)


class Checkup:
    """Checks this machine several times; the kernel log and the counters are read from its making on.

    Args:
        words: The benchmark's command line, which says which device and Python it measures.
        log: The kernel log.
        drm: The folder of DRM devices.
        run: Runs a program.
    """

    def __init__(
        self,
        words: Sequence[str],
        *,
        log: KernelLog | None = None,
        drm: Path = Path("/sys/class/drm"),
        run: Run = _run,
    ) -> None:
        self._options = _options(words)
        self._log = log or KernelLog()
        self._drm, self._run = drm, run
        self._uncorrected = self._errors()

    def check(self, when: str, gpu: str = "", env: Mapping[str, str] | None = None) -> Health:
        """Return what is wrong with the machine now.

        Args:
            when: ``before`` or ``after``.
            gpu: The GPU that is checked, for the message.
            env: Variables that choose it.
        """
        problems, notes = self._products({**os.environ, **(env or {})})
        seen: dict[str, str] = {}
        for line in self._log.new_lines():
            for name in line.classes:
                if name in BAD_LINES:
                    seen.setdefault(name, line.text)
        problems += [f"kernel log: {_MEANINGS.get(name, name)} ({one_line(text)[:160]})" for name, text in seen.items()]
        if not self._log.readable:
            notes.append("the kernel log can't be read by this user, so that resets of the GPU are not seen in it")
        errors = self._errors()
        if errors > self._uncorrected:
            problems.append(f"memory: {errors - self._uncorrected} uncorrected errors since the last check")
        self._uncorrected = errors
        return Health(when, gpu, tuple(problems), tuple(notes))

    def close(self) -> None:
        """Let go of the kernel log."""
        self._log.close()

    def _errors(self) -> int:
        """Return how many uncorrected memory errors the driver has counted, on all GPUs."""
        found = 0
        for path in self._drm.glob("card*/device/ras/*_err_count"):
            with contextlib.suppress(OSError):
                match = _UNCORRECTED.search(path.read_text(encoding="ascii", errors="replace"))
                found += int(match[1]) if match else 0
        return found

    def _products(self, env: Mapping[str, str]) -> tuple[list[str], list[str]]:
        """Return what is wrong with products on the device, and why they could not be tried."""
        done = self._run([*OWN_COMMAND, *PRODUCTS, *self._options], env)
        if done.ending is not Ending.EXITED:
            return [f"products with a known result: the check did not end ({done.ending.value})"], []
        try:
            found: dict[str, Any] = msgspec.json.decode(done.stdout, type=dict[str, Any])
            errors, data = found.get("errors") or [], found.get("data") or {}
            if errors:
                message = str(errors[0].get("message", ""))[:300]
                text = f"products with a known result can't be tried: {one_line(message)}"
                return ([], [text]) if _NO_TORCH in message else ([text], [])
            failed = [
                f"{item['subject']}: {item['verdict']} {item['reason']}".strip()
                for item in data["results"]
                if item["verdict"] not in _PASSED
            ]
        except (*MALFORMED, KeyError, TypeError, AttributeError) as error:
            return [f"products with a known result: the check's output can't be read ({type(error).__name__})"], []
        if not failed and found.get("exit_code"):
            failed = [str(data.get("quarantine") or "something failed after other operations")]
        more = f" and {len(failed) - _MOST_NAMED} more" if len(failed) > _MOST_NAMED else ""
        said = f"products with a known result: {one_line('; '.join(failed[:_MOST_NAMED]))}{more}"
        return ([said] if failed else []), []


def _options(words: Sequence[str]) -> list[str]:
    """Return the device and the Python that a benchmark's command line names."""
    if not words or words[0] not in _TAKES_OPTIONS:
        return []
    found = []
    for name in ("--device", "--python"):
        for at, word in enumerate(words):
            if word == name and at + 1 < len(words):
                found += [name, words[at + 1]]
            elif word.startswith(f"{name}="):
                found.append(word)
    return found
