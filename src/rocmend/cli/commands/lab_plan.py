"""``rocmend lab plan``."""

from __future__ import annotations

from pathlib import Path

from rocmend.cli.base import rocmend_command
from rocmend.cli.experiments import experiment_argument, read_experiment
from rocmend.cli.output import finish, output_options
from rocmend.report.envelope import Outcome


@rocmend_command(
    "plan",
    examples=(
        ("rocmend lab plan demo-lab/local-demo.toml", "which trials would run, in which order"),
        ("rocmend lab plan demo-lab/strix-halo-load-hang.toml", "with predictions and reboot plans"),
    ),
)
@experiment_argument
@output_options()
def command(path: Path, output_format: str) -> None:
    """Check an experiment's file and show its trials.

    Trials are listed in run order, with the predictions of knowledge entries. For runs in a container, over SSH or on
    Kubernetes it shows what is denied and granted, each with its reason. For trials that need another boot it shows
    what to change on GRUB, systemd-boot, Talos and Fedora Atomic. Nothing is run or changed.
    """
    from rocmend.cli.views.lab import plan_document
    from rocmend.lab.service import plan_of

    experiment, predictions = read_experiment(path)
    plan = plan_of(experiment, predictions)
    finish(Outcome("lab plan", plan), output_format, lambda: plan_document(plan, str(path)))
