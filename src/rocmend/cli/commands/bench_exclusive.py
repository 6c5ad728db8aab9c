"""``rocmend bench exclusive``."""

from __future__ import annotations

import datetime as dt
import re
import secrets
import signal
import threading
from typing import TYPE_CHECKING

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.output import finish, output_options
from rocmend.cli.progress import Progress
from rocmend.core.errors import UsageError
from rocmend.report.envelope import Outcome

if TYPE_CHECKING:
    from rocmend.bench.fleet.messages import Message

_NUMBERS = re.compile(r"\d{1,3}(?:,\d{1,3})*")


def gpu_numbers(_ctx: click.Context, _parameter: click.Parameter, text: str) -> str:
    """Check what ``--gpus`` was given."""
    if text in {"", "all"} or _NUMBERS.fullmatch(text):
        return text
    raise UsageError("--gpus", f"{text[:80]!r} is neither `all` nor numbers of GPUs.", next_step="Write e.g. 0,1.")


@rocmend_command(
    "exclusive",
    examples=(
        ("rocmend bench exclusive gemm --quick", "health check, matrix products, health check"),
        ("rocmend bench exclusive --gpus all memory", "each GPU of this machine, one after the other"),
    ),
    context_settings={"allow_interspersed_args": False},
)
@click.option(
    "--gpus", metavar="all|N,N", default="", callback=gpu_numbers, help="GPUs to measure one after the other."
)
@click.option("--run", "run_id", metavar="ID", default="", help="Go on with the run of this id, where there is one.")
@click.option("--messages", is_flag=True, help="Print messages for the program that started it, evidence included.")
@output_options()
@click.argument("words", metavar="BENCHMARK [OPTIONS]...", nargs=-1, required=True, type=click.UNPROCESSED)
def command(words: tuple[str, ...], gpus: str, run_id: str, messages: bool, output_format: str) -> None:
    """Run a benchmark alone here, between two health checks.

    Only one benchmark, of all users, is on a machine at a time: this one is refused while another one measures, and a
    plain `rocmend bench` waits for it. The checks are products with a known result, resets and other lines of the
    kernel log, uncorrected memory errors. A machine that is not healthy before is not measured. This is what
    `rocmend bench … --hosts` starts on each host.
    Results are kept in a store of this run alone for two weeks. Exit code 1 means that something has no figure, or that
    the machine is not healthy.
    """
    from rocmend.bench.fleet.host import measure_alone
    from rocmend.bench.fleet.messages import Busy, Doing, Part, line_of
    from rocmend.cli.redaction import command_redactor
    from rocmend.cli.views.fleet import exclusive_document
    from rocmend.core.places import data_home

    run_id = run_id or f"own-{dt.datetime.now(dt.UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())  # what was measured is sent before it ends
    if messages:
        code = measure_alone(
            words,
            run=run_id,
            gpus=_chosen(gpus),
            emit=lambda message: click.echo(line_of(message)),
            redactor=command_redactor(),
            stop=stopped.is_set,
        )
        raise click.exceptions.Exit(code)
    found: list[Message] = []
    with Progress("rocmend bench exclusive", "reading the machine") as progress:

        def hear(message: Message) -> None:
            if isinstance(message, Doing):
                progress(f"GPU {message.gpu}: {message.text}" if message.gpu else message.text)
            elif not isinstance(message, Part):
                found.append(message)

        code = measure_alone(
            words, run=run_id, gpus=_chosen(gpus), emit=hear, redactor=command_redactor(), stop=stopped.is_set
        )
    if busy := next((one for one in found if isinstance(one, Busy)), None):
        raise UsageError("bench exclusive", busy.reason, next_step="Wait until it has ended.")
    folder = data_home() / "fleet" / "measured" / run_id
    finish(
        Outcome("bench exclusive", {"run": run_id, "messages": found}, code),
        output_format,
        lambda: exclusive_document(found, folder),
    )


def _chosen(gpus: str) -> list[str]:
    """Return the numbers of the GPUs; of ``all`` those that the driver shows."""
    if gpus != "all":
        return [part for part in gpus.split(",") if part]
    from rocmend.cli.source import take_snapshot

    machine = take_snapshot(None)
    count = sum(bool(machine.value(f"gpu.{number}.gfx_target")) for number in machine.indices("gpu"))
    if not count:
        raise UsageError("--gpus", "no AMD GPU was found on this machine.", next_step="Name their numbers: --gpus 0,1.")
    return [str(number) for number in range(count)]
