"""``rocmend compare``."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.output import finish, output_options
from rocmend.cli.stored import store_option
from rocmend.core.errors import UsageError
from rocmend.report.envelope import CLEAN, FINDINGS, Outcome

if TYPE_CHECKING:
    from rocmend.report.document import Document
    from rocmend.report.junit import Suite
    from rocmend.store.store import Store

_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,6})?)%")


def _share(_ctx: click.Context, _parameter: click.Parameter, text: str) -> float:
    found = _PERCENT.fullmatch(text.strip())
    if found is None or float(found[1]) > 100:
        raise UsageError("--fail", f"{text[:40]!r} is not a percentage.", next_step="Write e.g. 5%.")
    return float(found[1]) / 100


@rocmend_command(
    "compare",
    examples=(
        ("rocmend compare last~1 last", "the last run of a benchmark with the one before"),
        ("rocmend compare gemm~1 gemm", "the same of matrix products, whatever was run last"),
        ("rocmend compare before.json after.json --fail 3%", "two runs from files, for a script or CI"),
        ("rocmend compare gemm@rocblas gemm@hipblaslt", "two settings of a run"),
        ("rocmend compare a.json b.json --across-devices", "two devices"),
    ),
)
@click.argument("a")
@click.argument("b")
@click.option(
    "--fail",
    "limit",
    metavar="PERCENT",
    default="5%",
    show_default=True,
    callback=_share,
    help="Exit with 1 where a case is slower than this, by all of its interval, or has lost its figure.",
)
@click.option("--across-devices", "across", is_flag=True, help="Compare figures of different devices, too.")
@store_option
@output_options("jsonl", "junit")
def command(a: str, b: str, limit: float, *, across: bool, store_path: Path | None, output_format: str) -> None:
    """Compare two benchmark runs, or two settings.

    A and B are each the id of a run or a beginning of it, `gemm` (the newest run of that benchmark), `gemm~1` (the one
    before), `last` and `last~1` (of the benchmark that was run last), or a file that `bench … --json` or `--format
    jsonl` wrote; with @SETTING only that setting of it. Each case is faster, slower, without a difference shown, or
    incomparable, and why. What else differs (versions, machine, variables) is listed. Exit code 1 means that a case is
    slower than --fail allows or lost its figure, or that no case could be compared.
    """
    from rocmend.bench.compare import changes_between
    from rocmend.bench.sides import read_side
    from rocmend.cli.output import json_lines
    from rocmend.cli.views.compare import changed_document, junit_suite

    opened: list[Store] = []

    def store() -> Store:
        from rocmend.store.store import Store as Opened

        if not opened:
            opened.append(click.get_current_context().with_resource(Opened.open(store_path, create=False)))
        return opened[0]

    sides = read_side(a, store), read_side(b, store)
    found = changes_between(*sides, limit=limit, across=across)
    if not (found.changes or found.neither):
        one, other = (f"{side.named}, bench {side.suite}" for side in sides)
        raise UsageError(
            "compare",
            f"there is no case in common of {one}, and {other}.",
            next_step="Compare runs of the same benchmark, with the same cases.",
        )
    outcome = Outcome("compare", found, CLEAN if found.clean else FINDINGS)
    others: dict[str, Callable[[], str | Document | Suite]] = {
        "jsonl": lambda: json_lines(found.changes),
        "junit": lambda: junit_suite(found),
    }
    finish(outcome, output_format, lambda: changed_document(found), others=others)
