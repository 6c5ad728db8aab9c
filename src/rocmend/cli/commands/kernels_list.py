"""``rocmend kernels list``."""

from __future__ import annotations

from pathlib import Path

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.names import OP
from rocmend.cli.output import finish, output_options
from rocmend.cli.stored import existing_store, store_option
from rocmend.report.envelope import CLEAN, FINDINGS, Outcome


@rocmend_command(
    "list",
    examples=(
        ("rocmend kernels list", "every op with its implementations and recorded runs"),
        ("rocmend kernels list rms_norm", "one op: domain, tolerances, implementations, records"),
        ("rocmend kernels list --json", "the same as data"),
    ),
)
@click.argument("ops", nargs=-1, metavar="[OP]...", type=OP)
@store_option
@output_options(private=False)
def command(ops: tuple[str, ...], store_path: Path | None, output_format: str) -> None:
    """List the ops and the recorded runs of each.

    Runs are those whose records ship with rocmend, and your own (`rocmend kernels check`). A target without a record
    is untested. Exit code 1 means that an op could not be loaded.
    """
    from rocmend.cli.views.kernels import list_document, op_row
    from rocmend.kernels import registry, rungs

    store = existing_store(store_path)
    kept = rungs.from_evidence(row.evidence for row in store.query(kind=rungs.KIND)) if store else []
    runs = rungs.latest([*rungs.shipped(), *reversed(kept)])
    chosen = [registry.get(name) for name in ops] or list(registry.ops())
    rows = [op_row(op, tuple(runs.get(op.name, {}).values())) for op in chosen]
    problems = [f"{one.module}: {one.reason}" for one in registry.problems()]
    data = {"ops": rows, "problems": problems}
    outcome = Outcome("kernels list", data, FINDINGS if problems else CLEAN)
    finish(outcome, output_format, lambda: list_document(rows, problems, whole=bool(ops)))
