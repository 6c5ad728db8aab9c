"""What works and what does not, by family and dtype."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from rocmend.core.evidence import Evidence
from rocmend.core.verdict import Verdict

SEVERITY = (
    Verdict.GPU_RESET,
    Verdict.HANG,
    Verdict.CRASH,
    Verdict.WRONG_OUTPUT,
    Verdict.OOM,
    Verdict.SILENT_CPU_FALLBACK,
    Verdict.UNSUPPORTED,
    Verdict.SLOW,
    Verdict.INFRA,
    Verdict.PASS,
    Verdict.SKIPPED,
)
"""Verdicts, the gravest first."""


class Cell(msgspec.Struct, frozen=True):
    """What came out of a family's probes in one dtype.

    Attributes:
        worst: The gravest verdict among them.
        passed: How many passed.
        count: How many there were, those skipped left out.
    """

    worst: Verdict
    passed: int
    count: int


class Row(msgspec.Struct, frozen=True):
    """A family of probes.

    Attributes:
        family: Its name.
        works: It has probes that ran, and all of them passed.
        cells: By dtype.
        failed: Results that did not pass, the gravest first.
    """

    family: str
    works: bool
    cells: dict[str, Cell]
    failed: tuple[Evidence, ...]


class Matrix(msgspec.Struct, frozen=True):
    """All families.

    Attributes:
        dtypes: The columns.
        rows: Families by name.
        verdicts: How often each verdict came, the gravest first.
    """

    dtypes: tuple[str, ...]
    rows: tuple[Row, ...]
    verdicts: dict[str, int]

    @property
    def works(self) -> tuple[str, ...]:
        """Families of which every probe that ran passed."""
        return tuple(row.family for row in self.rows if row.works)

    @property
    def broken(self) -> tuple[str, ...]:
        """Families of which a probe did not pass."""
        return tuple(row.family for row in self.rows if row.failed)


def rank(verdict: Verdict) -> int:
    """Return how grave a verdict is: 0 is the gravest."""
    return SEVERITY.index(verdict)


def matrix_of(results: Iterable[Evidence]) -> Matrix:
    """Return the matrix of a run's results."""
    families: dict[str, list[Evidence]] = {}
    for result in results:
        families.setdefault(str(result.detail.get("family", "other")), []).append(result)
    everything = [result for group in families.values() for result in group]
    dtypes = dict.fromkeys(_dtype(result) for result in everything)
    counted = {verdict: sum(result.verdict is verdict for result in everything) for verdict in SEVERITY}
    return Matrix(
        dtypes=tuple(sorted(dtypes, key=_dtype_order)),
        rows=tuple(_row(name, families[name]) for name in sorted(families)),
        verdicts={verdict.value: count for verdict, count in counted.items() if count},
    )


def _row(family: str, results: list[Evidence]) -> Row:
    by_dtype: dict[str, list[Evidence]] = {}
    for result in results:
        by_dtype.setdefault(_dtype(result), []).append(result)
    failed = [result for result in results if result.verdict not in {Verdict.PASS, Verdict.SKIPPED}]
    ran = [result for result in results if result.verdict is not Verdict.SKIPPED]
    return Row(
        family,
        works=bool(ran) and not failed,
        cells={dtype: _cell(group) for dtype, group in by_dtype.items()},
        failed=tuple(sorted(failed, key=lambda result: (rank(result.verdict), result.subject))),
    )


def _cell(results: list[Evidence]) -> Cell:
    ran = [result for result in results if result.verdict is not Verdict.SKIPPED]
    worst = min((result.verdict for result in results), key=rank)
    return Cell(worst, sum(result.verdict is Verdict.PASS for result in ran), len(ran))


def _dtype(result: Evidence) -> str:
    return str(result.detail.get("dtype", "")) or result.subject.partition(":")[2]


def _dtype_order(dtype: str) -> tuple[int, str]:
    first = ("float32", "float16", "bfloat16", "float64")
    return (first.index(dtype) if dtype in first else len(first), dtype)
