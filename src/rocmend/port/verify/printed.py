"""What programs print: whether it says anything, that it failed, or the same as another run."""

from __future__ import annotations

import re

__all__ = ["comparable", "difference", "failure", "untimed"]

TOLERANCE = 1e-3
"""Relative: what a program prints has been rounded, and sums of floating-point numbers may come in another order."""
NOTHING = 1e-6
"""Absolute: what is smaller than this is an error that was measured, or nothing."""

_TIMED = re.compile(
    r"\b(?:time|timing|seconds?|[mun]?secs?|[mun]s|elapsed|cycles?|latency|[GMT]i?B/s|[GT]?FLOPS?|bandwidth|throughput"
    r"|fps|speedup)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_INTEGER = re.compile(r"[-+]?\d+")

_VERDICT = re.compile(
    r"\b(?:fail(?:s|ed|ing|ures?)?|incorrect(?:ly)?|wrong|mismatch(?:es|ed)?|(?P<error>errors?))\b(?![-/]\w)"
    r"|\bnot\s+(?:correct|passed|ok|equal|match(?:ed|ing)?|verified|valid)\b"
    r"|\b(?:do(?:es)?|did)(?:\s+not|n't)\s+(?:match|pass|agree)\b"
    r"|\b(?:pass(?:ed)?|correct(?:ness)?|match(?:es|ed|ing)?|valid(?:ation)?|verif\w+|success\w*|equal)\s*[:=?]+\s*"
    r"(?:false|no|nok)(?=\s*[.,;!)]|\s*$)",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"(?:\b(?:no|not|none|never|zero|without|if|any|pass\w*\s*(?:/|\||or))|(?<![\d.])0+(?:\.0+)?\s*%?)"
    r"(?:\s*(?:/|out\s+of|of|in)\s*\d+)?(?:\s+[a-z]+){0,2}\s*$",
    re.IGNORECASE,
)
"""What before the word takes it back: "no", "0 of 100 tests". """
_NUMBERED = re.compile(
    r"\b(?:test|case|run|iteration|step|kernel|device|gpu|rank|thread|block|index)\s*#?\s*$", re.IGNORECASE
)
"""Before a 0 that counts nothing: "test 0 failed". """
_COUNTED = re.compile(
    r"(?:\s+(?:tests?|cases?|checks?|counts?|number|total|rates?|ratio|elements?|values?|entries|items?|times|results?"
    r"|found|detected|reported|pixels?))*\s*"
    r"(?:[:=]+\s*(?P<value>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?!\w|\s+[-+]?\d|\s*!=)|none\b|no\b|false\b)|\s(?P<count>\d+)(?![.\w]))",
    re.IGNORECASE,
)
"""What after the word says how many: "failed tests: 0". """
_ERROR = re.compile(
    r"\s*[:!]\s*(?!(?:max|min|mean|avg|average|l1|l2|linf|rms|mse|rel|abs|norm|total|sum|std)\w*\b)[a-z]"
    r"|\s+(?:occurred|encountered|detected|found)\b",
    re.IGNORECASE,
)
_ERROR_ALONE = re.compile(
    r"(?:^|[:=])\s*errors?\W*$|^\W*errors?\s+(?:at|while)\b|\b(?:cuda|hip|runtime|fatal)\s+error\b", re.IGNORECASE
)


def failure(text: str) -> str | None:
    """Return the first line in which a program says that it failed; None where none does.

    Counts of nothing ("0 failed", "no errors") and measured errors ("error = 1e-7") say no such thing.
    """
    return next((line.strip() for line in text.splitlines() if _fails(line)), None)


def _fails(line: str) -> bool:
    for found in _VERDICT.finditer(line):
        counted = _COUNTED.match(line, found.end())
        if counted:
            number = counted["value"] or counted["count"]
            if _INTEGER.fullmatch(number) and int(number) and found[0].lower() != "error":
                return True  # so many; any other number was measured
            continue
        denied = _DENIED.search(line, 0, found.start())
        if denied and not (denied[0][0].isdigit() and _NUMBERED.search(line, 0, denied.start())):
            continue
        if not found["error"] or _says_error(line, found):
            return True
    return False


def _says_error(line: str, found: re.Match[str]) -> bool:
    """Tell whether "error" is what happened, and not what was measured."""
    many = re.search(r"(?<![\d.])0*[1-9]\d*\s+$", line[: found.start()]) and found[0].lower() == "errors"
    return bool(many or _ERROR.match(line, found.end()) or _ERROR_ALONE.search(line))


def untimed(text: str) -> list[str]:
    """Return the lines without times and rates."""
    return [line for line in text.splitlines() if not _TIMED.search(line)]


def comparable(text: str) -> bool:
    """Tell whether a program printed anything but times and rates."""
    return any(line.strip() for line in untimed(text))


def difference(before: str, after: str) -> str | None:
    """Return how two outputs of a program differ; None where they agree but for times, rates and rounding."""
    one, other = untimed(before), untimed(after)
    if len(one) != len(other):
        return f"{len(one)} lines in the original, {len(other)} on the ROCm side (lines with times are ignored)"
    for number, (line, ported) in enumerate(zip(one, other, strict=True), 1):
        if line != ported and not _alike(line, ported):
            return f"line {number}: {line[:80]!r} became {ported[:80]!r}"
    return None


def _alike(line: str, other: str) -> bool:
    if _NUMBER.sub("#", line) != _NUMBER.sub("#", other):
        return False
    pairs = zip(_NUMBER.findall(line), _NUMBER.findall(other), strict=True)
    return all(one == two or _near(one, two) for one, two in pairs)


def _near(one: str, two: str) -> bool:
    """Tell whether two numbers are the same but for rounding; whole numbers are counted, not rounded."""
    if _INTEGER.fullmatch(one) and _INTEGER.fullmatch(two):
        return int(one) == int(two)
    a, b = float(one), float(two)
    return abs(a - b) <= max(TOLERANCE * max(abs(a), abs(b)), NOTHING)
