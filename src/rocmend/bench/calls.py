"""Sessions of suites that run in torch: one process for each setting, which stays from case to case."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from rocmend.bench.case import Case, Setting
from rocmend.bench.session import Block, NotStartedError, Prepared, Session, Stop, Subject
from rocmend.core.optional import how_to_install
from rocmend.core.verdict import Verdict
from rocmend.runner.result import AttemptResult
from rocmend.runner.run import run_attempt
from rocmend.runner.spec import AttemptSpec, Limits, PythonCall
from rocmend.runner.warm import WarmExecutor

LOG_CHARS = 8000
NO_TORCH = "torch cannot be imported"
"""How the child's error begins where the interpreter has no torch; see ``runner.torch_device``."""

_VERDICTS = {
    "pass": Verdict.PASS,
    "wrong-output": Verdict.WRONG_OUTPUT,
    "unsupported": Verdict.UNSUPPORTED,
    "oom": Verdict.OOM,
    "error": Verdict.CRASH,
    "infra": Verdict.INFRA,
}


class Torch(msgspec.Struct, frozen=True):
    """The torch that is measured.

    Attributes:
        home: Folder from which its interpreter finds rocmend; see ``runner.interpreter.importable``.
        python: The interpreter.
        device: ``auto``, ``cpu``, ``cuda`` or a device such as ``cuda:1``.
        limits: When a call is ended.
        warm_most_s: Seconds of warming up at most.
    """

    home: Path
    python: str
    device: str = "auto"
    limits: Limits = Limits(total_s=900.0, silence_s=300.0)
    warm_most_s: float = 5.0


class CallSession(Session):
    """A process that holds torch and the case that is ready.

    Args:
        suite: Module of ``rocmend.bench.workloads``.
        setting: The setting; its ``env`` is the process's.
        torch: Which torch.
        stop: Asked often.
    """

    def __init__(self, suite: str, setting: Setting, torch: Torch, stop: Stop) -> None:
        self._suite, self._setting, self._torch, self._stop = suite, setting, torch, stop
        self._process = WarmExecutor()

    def prepare(self, case: Case) -> Prepared:
        """Make a case ready."""
        arguments = {
            "suite": self._suite,
            "parameters": {**case.parameters, **self._setting.options},
            "device": self._torch.device,
            "warm_most_s": self._torch.warm_most_s,
        }
        result, found = self._call("prepare", case, arguments)
        if found.get("error"):
            raise not_started(self._torch.python, str(found["error"]))
        verdict, reason = _judged(result, found)
        return Prepared(
            verdict,
            reason,
            found.get("first_s"),
            found.get("warm_s", 0.0),
            Subject(
                found.get("gfx_target", ""),
                found.get("device", ""),
                found.get("device_name", ""),
                found.get("versions", {}),
            ),
            {**found.get("detail", {}), **({"steady": found["steady"]} if "steady" in found else {})},
            quarantine=result.quarantine,
            log=_log(result, found),
        )

    def block(self, case: Case, time_s: float, least: int = 1) -> Block:
        """Run the prepared case."""
        result, found = self._call("block", case, {"time_s": time_s, "least": least})
        verdict, reason = _judged(result, found)
        return Block(
            tuple(found.get("seconds", ())),
            verdict,
            reason,
            result.quarantine,
            _log(result, found),
            float(found.get("waited", 0.0)),
        )

    def close(self) -> None:
        """End the process."""
        self._process.retire()

    def _call(self, function: str, case: Case, arguments: dict[str, Any]) -> tuple[AttemptResult, dict[str, Any]]:
        call = PythonCall(
            f"rocmend.bench.child:{function}", arguments, cwd=str(self._torch.home), python=self._torch.python
        )
        spec = AttemptSpec(f"{case.id} @ {self._setting.id}", call, env=self._setting.env, limits=self._torch.limits)
        result = run_attempt(spec, stop=self._stop, executor=self._process)
        found = result.python_result if isinstance(result.python_result, dict) else {}
        if found.get("outcome") not in {"pass", "wrong-output", "unsupported"}:
            self.close()  # what an exception or an end leaves behind is no place for the next case
        return result, found


def not_started(python: str, error: str) -> NotStartedError:
    """Return the error for an interpreter whose torch or device did not start."""
    without = error.startswith(NO_TORCH)
    return NotStartedError(
        python,
        f"{error}.",
        why="The benchmarks use the torch of this interpreter.",
        next_step=f"{how_to_install('torch')} Or name the interpreter of another environment with --python."
        if without
        else "`rocmend doctor` says what is wrong; --python names another interpreter, --device cpu takes the CPU.",
    )


def _judged(result: AttemptResult, found: dict[str, Any]) -> tuple[Verdict, str]:
    """Return the child's verdict where it lived to say one, else the supervisor's."""
    own = _VERDICTS.get(str(found.get("outcome", "")))
    if own is None or result.verdict is Verdict.GPU_RESET:
        if result.verdict is Verdict.PASS:
            return Verdict.INFRA, "it ended without a result"
        error = result.python_error
        return result.verdict, f"{error.type}: {error.message}" if error else result.reason
    if result.verdict is not Verdict.PASS and own is Verdict.PASS:
        return result.verdict, result.reason
    return own, str(found.get("reason", ""))


def _log(result: AttemptResult, found: dict[str, Any]) -> str:
    if found.get("outcome") == "pass":
        return ""
    return str(found.get("trace") or (result.python_error.traceback if result.python_error else ""))[-LOG_CHARS:]
