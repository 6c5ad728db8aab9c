"""``--hosts``: a benchmark's command line run on other machines."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec
from click.core import ParameterSource

from rocmend.cli.base import WORDS
from rocmend.cli.hostlines import HostLines
from rocmend.cli.output import finish, json_lines
from rocmend.cli.quantities import Duration
from rocmend.cli.resumable import Resumable, command_line, option_words
from rocmend.core.errors import UsageError
from rocmend.report.envelope import CLEAN, FINDINGS, Outcome

if TYPE_CHECKING:
    from rocmend.bench.records import BenchRun, Measured
    from rocmend.store.store import Store

__all__ = ["hosts_options"]

F = TypeVar("F", bound=Callable[..., Any])

_HERE = ("hosts", "gpus", "rocmend", "image", "host_limit")
"""Options of the fleet; none of them is passed on."""
_OWN = ("store_path", "no_store", "resume", "output_format", "_output", "no_redact")
"""Options that say what is done here with what comes back."""


def hosts_options(function: F) -> F:
    """Add ``--hosts`` and what belongs to it. With it the command runs on the hosts, and nothing else of it here."""
    options = (
        click.option(
            "--hosts",
            metavar="HOSTS",
            multiple=True,
            expose_value=False,
            is_eager=True,
            callback=_run,
            help="Measure on other machines: ssh:HOST,HOST, k8s, k8s:LABEL=VALUE, or a TOML file. See `rocmend bench "
            "hosts --help`.",
        ),
        click.option(
            "--gpus",
            metavar="all|N,N",
            default="",
            expose_value=False,
            callback=_alone,
            help="With --hosts: GPUs, one after the other.",
        ),
        click.option(
            "--remote-command",
            "rocmend",
            metavar="COMMAND",
            default="",
            expose_value=False,
            callback=_alone,
            help="With --hosts: how rocmend is called there, e.g. ~/venv/bin/rocmend.",
        ),
        click.option(
            "--image",
            metavar="IMAGE",
            default="",
            expose_value=False,
            callback=_alone,
            help="With --hosts k8s: the pods' image.",
        ),
        click.option(
            "--host-limit",
            type=Duration(1),
            default="6h",
            show_default=True,
            metavar="TIME",
            expose_value=False,
            callback=_alone,
            help="With --hosts: longest time of a host.",
        ),
    )
    made: Any = function
    for option in reversed(options):
        made = option(made)
    return made  # type: ignore[no-any-return]  # the decorators of click give back what they got


def _alone(context: click.Context, option: click.Parameter, value: Any) -> Any:
    """Refuse an option of the fleet without ``--hosts``, which would have taken it."""
    if not context.resilient_parsing and context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE:
        raise UsageError(option.opts[0], "it needs --hosts.", next_step="Name the hosts: --hosts ssh:HOST.")
    return value


def _run(context: click.Context, _option: click.Parameter, texts: tuple[str, ...]) -> None:
    """Run the command on the hosts and leave; paths and devices are those of the hosts, and are not looked at here."""
    if not texts or context.resilient_parsing:
        return
    given, _, order = context.command.make_parser(context).parse_args(list(context.meta[WORDS]))
    asked = list(dict.fromkeys(order))
    if any(one.name == "list_only" for one in asked):
        raise UsageError("--hosts", "--list starts nothing anywhere.", next_step="Leave out --hosts to list the cases.")
    for parameter in context.command.get_params(context):
        if parameter.name in _OWN:
            parameter.handle_parse_result(context, given, [])
    values = {name: _value(context, name, given) for name in _HERE}
    suite = context.info_name or ""
    words = [suite, *(word for one in asked if one.name not in {*_HERE, *_OWN} for word in option_words(one, given))]
    _measure(context, tuple(words), texts, values)


def _value(context: click.Context, name: str, given: dict[str, Any]) -> Any:
    option = next(one for one in context.command.get_params(context) if one.name == name)
    return option.type_cast_value(context, given.get(name, option.get_default(context)))


def _measure(context: click.Context, words: tuple[str, ...], texts: tuple[str, ...], values: dict[str, Any]) -> None:
    from rocmend.bench.fleet.places import Defaults, read_hosts
    from rocmend.bench.fleet.run import run_fleet
    from rocmend.cli.commands.bench_exclusive import gpu_numbers
    from rocmend.cli.redaction import note_hosts
    from rocmend.cli.views.fleet import fleet_document
    from rocmend.store.store import Store as Opened

    own = context.params
    gpus = gpu_numbers(context, context.command.params[0], values["gpus"])
    hosts = read_hosts(texts, Defaults(values["rocmend"], values["image"], gpus))
    note_hosts(host.name.rpartition("@")[2] for host in hosts)
    if own.get("no_store") and (own.get("resume") or own.get("store_path")):
        raise UsageError("--no-store", "it cannot be given together with --store or --resume.")
    with contextlib.ExitStack() as stack:
        resumable = stack.enter_context(Resumable(kept=True))
        lines = stack.enter_context(HostLines([host.name for host in hosts]))
        store = None if own.get("no_store") else stack.enter_context(Opened.open(own.get("store_path")))
        fleet = run_fleet(
            words,
            hosts,
            store=store,
            limit_s=values["host_limit"],
            resume=own.get("resume"),
            command=command_line(),
            say=lambda host, text: lines(host.name, text),
            on_begin=lambda run: resumable.note(run, 0, len(hosts)),
        )
        runs = (
            {group: _stored(store, group) for host in fleet.hosts for group in host.runs} if store is not None else {}
        )
    outcome = Outcome(f"bench {words[0]}", fleet, CLEAN if fleet.clean else FINDINGS)
    others = {"jsonl": lambda: json_lines(fleet.hosts)}
    finish(outcome, own["output_format"], lambda: fleet_document(fleet, runs), others=others)


def _stored(store: Store, group: str) -> BenchRun:
    """Return the figures of a run that a host sent, which may hold anything."""
    from rocmend.bench.records import KIND, BenchRun, measured_of

    found: dict[str, Measured] = {}
    for row in store.query(kind=KIND, group=group):
        with contextlib.suppress(msgspec.ValidationError):
            found.setdefault(row.evidence.subject, measured_of(row.evidence))
    results = tuple(sorted(found.values(), key=lambda item: item.started_at))
    return BenchRun(group, results[0].case.suite if results else "", "", (), results)
