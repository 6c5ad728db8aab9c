"""From a supervised attempt to the record that is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rocmend.core.evidence import Evidence, identity_of
from rocmend.core.units import count_text
from rocmend.core.verdict import Verdict
from rocmend.probe.case import SEED
from rocmend.probe.records import KIND, Subject, Tried, subject_of
from rocmend.probe.registry import Probe
from rocmend.runner.result import AttemptResult

_VERDICTS = {
    "pass": Verdict.PASS,
    "wrong-output": Verdict.WRONG_OUTPUT,
    "unsupported": Verdict.UNSUPPORTED,
    "silent-cpu-fallback": Verdict.SILENT_CPU_FALLBACK,
    "skipped": Verdict.SKIPPED,
    "oom": Verdict.OOM,
    "error": Verdict.CRASH,  # an exception ends a program as surely as a signal does
    "infra": Verdict.INFRA,
}

_OWN = ("outcome", "reason", "versions", "gfx_target")
"""Parts of what the child returns that have a place of their own in the record."""


def returned_by(result: AttemptResult) -> dict[str, Any]:
    """Return what the child returned; nothing where it did not live to."""
    return result.python_result if isinstance(result.python_result, dict) else {}


def evidence_of(  # noqa: PLR0913, PLR0917  a record is made of that many things
    tried: Tried,
    probe: Probe,
    dtype: str,
    subject: Subject,
    settings: Mapping[str, Any],
    group: str,
) -> Evidence:
    """Return the record of a probe's attempt.

    Args:
        tried: How the probe ended.
        probe: The probe.
        dtype: The dtype that it ran in.
        subject: What was probed.
        settings: What was set besides: variables of the environment, limits.
        group: Id of the run of probes.
    """
    result, returned = tried.result, returned_by(tried.result)
    verdict, reason = judged(result, returned)
    detail: dict[str, Any] = {"family": probe.family, "title": probe.title, "tags": probe.tags, "dtype": dtype}
    detail |= {"device_name": subject.device_name}
    detail |= {name: value for name, value in returned.items() if name not in _OWN}
    detail |= _observed(result, shared=tried.shared)
    detail["process"] = "shared" if tried.shared else "own"
    if tried.earlier is not None:
        detail["shared_attempt"] = earlier = _in_shared(tried.earlier, tried.after)
        reason = "; ".join(text for text in (reason, _difference(verdict, earlier)) if text)
    return Evidence(
        kind=KIND,
        subject=subject_of(probe.id, dtype),
        identity=identity(probe.id, dtype, subject, settings),
        verdict=verdict,
        reason=reason,
        started_at=result.started_at,
        time_ms=result.time_ms,
        gfx_target=subject.gfx_target,
        versions=subject.versions,
        settings={"device": subject.device, "python": subject.python, **settings},
        timeline=result.timeline,
        last_phase=result.last_phase,
        silence=result.silence,
        detail=detail,
        group=group,
    )


def identity(probe_id: str, dtype: str, subject: Subject, settings: Mapping[str, Any]) -> str:
    """Return the hash of everything that defines a probe's run; the interpreter's path is no part of it."""
    return identity_of(
        {
            "kind": KIND,
            "probe": probe_id,
            "dtype": dtype,
            "seed": SEED,
            "device": subject.device_name,
            "gfx_target": subject.gfx_target,
            "versions": subject.versions,
            "settings": dict(settings),
        }
    )


def judged(result: AttemptResult, returned: Mapping[str, Any]) -> tuple[Verdict, str]:
    """Return the verdict and its reason: the child's where it lived to say one, else the supervisor's."""
    own = _VERDICTS.get(str(returned.get("outcome", "")))
    if result.verdict is Verdict.GPU_RESET or own is None:
        return _supervised(result)
    if result.verdict not in {Verdict.PASS, Verdict.UNSUPPORTED} and own is Verdict.PASS:
        return result.verdict, f"its result was right, but then: {result.reason}"
    return own, str(returned.get("reason", ""))


def _supervised(result: AttemptResult) -> tuple[Verdict, str]:
    error = result.python_error
    if error is not None and error.stage == "import":
        return Verdict.INFRA, f"the probe could not be loaded: {error.type}: {error.message}"
    if result.verdict is Verdict.PASS:
        return Verdict.INFRA, "it ended without a result"
    after = f" in phase {result.last_phase}" if result.last_phase and result.last_phase not in result.reason else ""
    return result.verdict, f"{result.reason}{after}"


def _in_shared(result: AttemptResult, after: tuple[str, ...]) -> dict[str, Any]:
    """Return how the first attempt ended, in a process that others had run in."""
    verdict, reason = judged(result, returned_by(result))
    return {
        "verdict": verdict.value,
        "reason": reason,
        "last_phase": result.last_phase,
        "time_ms": result.time_ms,
        "after": after,
    }


def _difference(verdict: Verdict, earlier: Mapping[str, Any]) -> str:
    """Say how the attempt in a shared process differed; nothing where it did not."""
    if earlier["verdict"] == verdict.value:
        return ""
    others = len(earlier["after"])
    where = f"after {count_text(others, 'other')} in one process" if others else "in an earlier attempt"
    text = f"{where} it ended otherwise: {earlier['verdict']} ({earlier['reason']})"
    return f"passed in a process of its own, but {text}" if verdict is Verdict.PASS else text


def _observed(result: AttemptResult, *, shared: bool) -> dict[str, Any]:
    """Return what the supervisor saw that explains an end."""
    seen: dict[str, Any] = {
        "exit_code": result.exit_code,
        "signal": result.signal,
        "dmesg": result.dmesg,
        "dmesg_lines": result.dmesg_lines,
        "silent_s": result.silent_s,
        "stalled_s": result.stalled_s,
        "notes": result.notes,
        "process_rss_max_bytes" if shared else "rss_max_bytes": result.samples.rss_max_bytes,
        "gpu_busy_max_percent": result.samples.gpu_busy_max_percent,
    }
    if result.python_error is not None:
        seen["trace"] = result.python_error.traceback
    return {name: value for name, value in seen.items() if value}


def artifacts_of(result: AttemptResult) -> dict[str, bytes]:
    """Return what is worth keeping beside the record: what was printed, and the stacks of a silent child."""
    kept = {}
    text = "\n".join(part for part in (result.output.head, result.output.tail) if part)
    if text.strip():
        kept["output.log"] = text.encode(errors="replace")
    for number, stack in enumerate(result.stacks):
        kept[f"stack-{number}-{stack.kind}.txt"] = stack.text.encode(errors="replace")
    return kept
