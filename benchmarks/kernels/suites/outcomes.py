"""Outcomes of cases, written down one by one as they come: a run that is cut off loses nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from rocmend.core.verdict import Verdict
from rocmend.kernels.suite.supervise import CaseOutcome


class Cost(NamedTuple):
    """What a case took.

    Args:
        seconds: Wall time, compilation included.
        gib: Most memory of the GPU that it held; None where it was not told.
    """

    seconds: float
    gib: float | None


class Log:
    """The outcomes of a run, and the file that they are added to.

    Args:
        path: The file, of JSON lines; None to write nothing. Of what stands there already, what was had with the code
            of today is taken over; the last that is told of a case counts.
        codes: Digest of each op's code.
    """

    def __init__(self, path: Path | None, codes: Mapping[str, str]) -> None:
        self.path, self.codes = path, codes
        self.about: dict[str, Any] = {}
        self.outcomes: dict[str, dict[str, CaseOutcome]] = {op: {} for op in codes}
        self.lock = Lock()
        for value in lines(path) if path else ():
            self.about = value.get("about", self.about)
            if "code" in value and codes.get(value["op"]) == value["code"]:
                self.outcomes[value["op"]][value["case"]] = _outcome(value)

    def passed(self, op: str, case: str) -> bool:
        """Return whether a case is known to have passed."""
        found = self.outcomes[op].get(case)
        return found is not None and found.verdict is Verdict.PASS

    def device(self, about: Mapping[str, Any]) -> None:
        """Write down what the cases run on, once."""
        with self.lock:
            if not self.about:
                self.about = dict(about)
                self._write({"about": self.about})

    def add(self, op: str, outcome: CaseOutcome, size: str, gib: float | None) -> None:
        """Write down an outcome."""
        with self.lock:
            self.outcomes[op][outcome.case] = outcome
            value = {"op": op, "case": outcome.case, "verdict": outcome.verdict.value, "size": size, "gib": gib}
            value |= {"ms": round(outcome.time_ms, 1), "worst": outcome.worst, "detail": outcome.detail[:400]}
            self._write({**value, "code": self.codes[op]})

    def _write(self, value: Mapping[str, Any]) -> None:
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(value) + "\n")


def _outcome(value: Mapping[str, Any]) -> CaseOutcome:
    return CaseOutcome(value["case"], Verdict(value["verdict"]), value["detail"], value["worst"], value["ms"])


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Iterate over the values of a log; a last line that was cut off is left out."""
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            value = json.loads(text)
        except ValueError:
            continue
        if isinstance(value, dict) and ("about" in value or {"op", "case", "verdict"} <= set(value)):
            yield value


def costs(paths: list[Path]) -> dict[tuple[str, str], Cost]:
    """Return what cases took in earlier runs, by op and case; the last that is told counts."""
    found = {}
    for path in paths:
        for value in lines(path):
            if value.get("ms", 0) > 0:
                found[value["op"], value["case"]] = Cost(value["ms"] / 1e3, value.get("gib"))
    return found
