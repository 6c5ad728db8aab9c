"""Measures with llama-bench: one start of the program for each block of repetitions."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from rocmend.bench.case import Case
from rocmend.bench.llama.backends import Backend
from rocmend.bench.llama.build import Build, Said, say
from rocmend.bench.llama.check import Checked, Checker
from rocmend.bench.llama.offload import Computed, judge, read_computed
from rocmend.bench.llama.options import Chosen, arguments, lacking, output_format, test_arguments
from rocmend.bench.llama.output import read_output
from rocmend.bench.llama.rows import Row
from rocmend.bench.llama.waiting import waiting
from rocmend.bench.session import Block, Prepared, Session, Stop, Subject
from rocmend.core.evidence import identity_of
from rocmend.core.verdict import Verdict
from rocmend.runner.spec import Limits

LOG_CHARS = 8000
CHECK_PROMPT, CHECK_GENERATE = 16, 4
MOST_REPETITIONS = 100
"""Repetitions of one start at most: so many are asked for where one takes less than a hundredth of the block."""
_LEAST_S = 300.0
_LOAD_BYTES_S = 50e6
_TOKENS_S = 5.0


class LlamaSession(Session):
    """A build on a back end, with options.

    Args:
        build: The build.
        model: The model file.
        size_bytes: Of the model, for how long loading may take.
        backend: Where it computes.
        chosen: Options.
        checker: Compares what the build generates; None where that is not asked for.
        longest_s: Seconds that a start may take; 0 for a limit that follows from the model and the test.
        stop: Asked often.
        proves: Find out which device computes, and compare what is generated, before anything is timed.
    """

    def __init__(  # noqa: PLR0913, PLR0917  it is made in two places
        self,
        build: Build,
        model: Path,
        size_bytes: int,
        backend: Backend,
        chosen: Chosen,
        checker: Checker | None,
        longest_s: float,
        stop: Stop,
        *,
        proves: bool = True,
    ) -> None:
        self.build, self.model, self.backend, self.chosen = build, model, backend, chosen
        self._size, self._checker, self._longest_s, self._stop = size_bytes, checker, longest_s, stop
        self._first = None if proves else Prepared(Verdict.PASS)
        self._rate: dict[str, float] = {}

    def prepare(self, case: Case) -> Prepared:
        """Run the build once, short and verbose, and compare what it generates: for the first case only."""
        missing = lacking(self.build, self.chosen, int(case.parameters["depth"]))
        if missing:
            return Prepared(Verdict.UNSUPPORTED, missing)
        if not output_format(self.build):
            return Prepared(Verdict.UNSUPPORTED, "this build prints no jsonl, json or csv")
        if self._first is None:
            first = self._begin()
            if first.verdict is Verdict.SKIPPED:
                return first
            self._first = first
        return msgspec.structs.replace(self._first, command=self._command(case, 1))

    def block(self, case: Case, time_s: float, least: int = 1) -> Block:
        """Start llama-bench for one test."""
        known = self._rate.get(case.id)
        repetitions = max(least, 1) if known is None else max(least, min(MOST_REPETITIONS, int(time_s / known)))
        argv = self._command(case, repetitions)
        name, limits = f"{case.id} @ {self.backend.name}", self._limits(case, repetitions)
        with waiting() if self.backend.on_cpu else contextlib.nullcontext() as waited:
            said = say(name, argv, self.backend.env, limits, self._stop)
        row, without = self._row(case, said)
        if said.result.verdict is not Verdict.PASS:
            return Block((), said.result.verdict, said.result.reason, said.result.quarantine, _log(said))
        if row is None:
            return Block((), Verdict.INFRA, without, said.result.quarantine, _log(said))
        judged = judge(self.backend, read_computed(said.err), row, self.chosen)
        if judged.fault:
            return Block((), judged.verdict, judged.fault, said.result.quarantine, _log(said))
        seconds = row.seconds or (row.tokens / row.rate,)
        self._rate[case.id] = sorted(seconds)[len(seconds) // 2]
        return Block(seconds, quarantine=said.result.quarantine, waited=waited.share if waited else 0.0)

    def close(self) -> None:
        """Nothing of it goes on running between two blocks."""

    def _command(self, case: Case, repetitions: int) -> tuple[str, ...]:
        has = self.build.help.has
        prompt, generate, depth = (int(case.parameters[name]) for name in ("prompt", "generate", "depth"))
        argv = arguments(self.build, self.model, self.backend, self.chosen)
        argv += test_arguments(self.build, prompt, generate, depth)
        if name := has("-r", "--repetitions"):
            argv += [name, str(repetitions)]
        if name := has("--progress"):
            argv.append(name)
        return tuple(argv)

    def _limits(self, case: Case, repetitions: int) -> Limits:
        tokens = sum(int(case.parameters[name]) for name in ("prompt", "generate", "depth"))
        silence = _LEAST_S + self._size / _LOAD_BYTES_S + tokens / _TOKENS_S
        total = self._longest_s or silence * (repetitions + 1)
        return Limits(total_s=total, silence_s=min(silence, total))

    def _begin(self) -> Prepared:
        """Run llama-bench verbosely on a short prompt, and judge which device computed."""
        case = Case("begin", "llama", {"prompt": CHECK_PROMPT, "generate": 0, "depth": 0}, "tok/s")
        verbose = self.build.help.has("-v", "--verbose")
        argv = [*self._command(case, 1), *([verbose] if verbose else [])]
        said = say(f"start of {self.backend.name}", argv, self.backend.env, self._limits(case, 1), self._stop)
        row, without = self._row(case, said)
        computed = read_computed(said.err)
        begun = Prepared(
            said.result.verdict,
            said.result.reason,
            first_s=round(said.result.time_ms / 1e3, 3),
            subject=self._subject(computed, row),
            detail=self._detail(computed, row),
            quarantine=said.result.quarantine,
            log=_log(said),
        )
        if begun.verdict is not Verdict.PASS:
            return begun
        if row is None:
            return msgspec.structs.replace(begun, verdict=Verdict.INFRA, reason=without)
        fault, doubt, verdict = judge(self.backend, computed, row, self.chosen)
        if fault:
            return msgspec.structs.replace(begun, verdict=verdict, reason=fault)
        checked = self._checked()
        detail = {**begun.detail, "output": msgspec.to_builtins(checked), **({"doubt": doubt} if doubt else {})}
        reason = "" if checked.verdict is Verdict.PASS else checked.said
        return msgspec.structs.replace(begun, verdict=checked.verdict, reason=reason, detail=detail, log=checked.log)

    def _checked(self) -> Checked:
        if self._checker is None:
            return Checked(Verdict.PASS, "the output was not checked: it was not asked for")
        return self._checker.check(self.build, self.backend, self.chosen, self._stop)

    def _row(self, case: Case, said: Said) -> tuple[Row | None, str]:
        rows, problems = read_output("\n".join(said.out), output_format(self.build))
        wanted = tuple(int(case.parameters[name]) for name in ("prompt", "generate", "depth"))
        row = next((row for row in rows if (row.prompt, row.generate, row.depth) == wanted), None)
        if row is not None:
            return row, ""
        said_instead = [line for line in (*said.err, *said.out) if "error" in line.lower() or "fail" in line.lower()]
        more = f": {said_instead[0][:200]}" if said_instead else ""
        return None, problems[0] if problems else f"it ended without a result{more}"

    def _subject(self, computed: Computed, row: Row | None) -> Subject:
        versions = {"llama.cpp": row.build} if row is not None and row.build else {}
        if self.backend.on_cpu:
            return Subject("cpu", "CPU", row.cpu if row else "", versions)
        if len(computed.used) > 1 or computed.rows:
            return Subject(computed.gfx_target, "/".join(self.backend.devices), self.backend.device_name, versions)
        known = dict(zip(self.backend.devices, self.backend.names, strict=False))
        name = computed.device_name or known.get(computed.device) or self.backend.device_name
        name = name or (row.gpu if row else "")
        return Subject(computed.gfx_target, computed.device or self.backend.device, name, versions)

    def _detail(self, computed: Computed, row: Row | None) -> dict[str, Any]:
        detail: dict[str, Any] = {"computed": msgspec.to_builtins(computed)}
        if row is not None:
            model = {"type": row.model, "size_bytes": row.size_bytes, "parameters": row.parameters}
            detail |= {"model": model, "backends": row.backends, "options": row.options}
        return detail


def _log(said: Said) -> str:
    """Return the end of what it printed, errors last."""
    lines: Sequence[str] = (*said.out, *said.err)
    return "\n".join(lines)[-LOG_CHARS:]


def identity_of_model(header_sha256: str, size_bytes: int) -> str:
    """Return what identifies a model file: its header and its size."""
    return identity_of({"header": header_sha256, "size_bytes": size_bytes})[:16]
