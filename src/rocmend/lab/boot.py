"""Trials that need another boot: what a person does for it, and whether the running boot is the right one."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from rocmend.core.errors import RocmendError
from rocmend.core.patterns import compile_pattern
from rocmend.lab.experiment import UNSET, Experiment, Factor, FactorKind
from rocmend.lab.trial import Trial
from rocmend.runner.run import run_attempt
from rocmend.runner.spec import AttemptSpec, Command, Container, Limits, Local, Where

BOOT_ID = "/proc/sys/kernel/random/boot_id"
CMDLINE = "/proc/cmdline"
_MAX_BYTES = 1 << 20
_MARK = "rocmend-file:"


class Boot(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of a host's running boot.

    Attributes:
        id: Its boot id; empty where it could not be read.
        cmdline: Its kernel command line.
        files: Contents of the files that tell which firmware runs; None where one could not be read.
    """

    id: str = ""
    cmdline: str = ""
    files: dict[str, str | None] = {}


class BootProblem(msgspec.Struct, frozen=True):
    """Something that a trial wants of the boot and the boot does not have."""

    factor: str
    wanted: str
    found: str


class BootUnknownError(RocmendError):
    """The boot of the host that the trials run on could not be read."""

    code = "boot-unknown"


def read_boot(experiment: Experiment, where: Where, *, proc: Path = Path("/")) -> Boot:
    """Read the boot of the host that trials run on.

    Args:
        experiment: Its firmware factors name files to read.
        where: Where trials run: on an SSH host or in a pod the files are read there.
        proc: Root of this machine's files, for local trials.

    Raises:
        BootUnknownError: It could not be read over there.
    """
    names = [BOOT_ID, CMDLINE, *sorted({item.file for item in experiment.factor if item.file})]
    if isinstance(where, (Local, Container)):  # a container shares the kernel
        texts = {name: _read(proc / name.lstrip("/")) for name in names}
    else:
        texts = _read_there(names, where)
    found = {name: texts.get(name) for name in names[2:]}
    return Boot((texts.get(BOOT_ID) or "").strip(), (texts.get(CMDLINE) or "").strip(), found)


def _read(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES).decode(errors="replace")
    except OSError:
        return None


def _read_there(names: list[str], where: Where) -> dict[str, str | None]:
    lines = "; ".join(f"echo {_MARK}{name}; cat {name} 2>/dev/null; echo" for name in names)
    command = Command(("sh", "-c", lines))
    result = run_attempt(AttemptSpec("boot", command, where, limits=Limits(total_s=600, silence_s=300)))
    if result.verdict != "pass":
        raise BootUnknownError(
            "lab",
            f"the boot of the host could not be read: {result.reason}",
            why="Trials of kernel parameters and firmware count only in a boot with these settings.",
        )
    texts: dict[str, str | None] = {}
    for part in result.output.head.split(_MARK)[1:]:
        name, _, text = part.partition("\n")
        texts[name.strip()] = text.strip() or None
    return texts


def parameters(cmdline: str) -> dict[str, str]:
    """Return a kernel command line's parameters; of one given twice the last counts, as in the kernel.

    Source:
        https://docs.kernel.org/admin-guide/kernel-parameters.html: hyphens and underscores are equal in names.
    """
    found: dict[str, str] = {}
    for word in re.findall(r'(?:[^\s"]|"[^"]*")+', cmdline):
        name, _, value = word.partition("=")
        found[_canonical(name)] = value.strip('"')
    return found


def _canonical(name: str) -> str:
    return name.replace("-", "_")


def problems(experiment: Experiment, trial: Trial, boot: Boot) -> list[BootProblem]:
    """Return what a trial wants of the boot and the boot does not have; the baseline wants its own values."""
    given = parameters(boot.cmdline)
    found = []
    for factor in experiment.factor:
        value = trial.settings[factor.name]
        if factor.kind is FactorKind.KERNEL_PARAMETER:
            now = given.get(_canonical(factor.parameter), UNSET)
            if now != value:
                found.append(BootProblem(factor.name, factor.setting(value), factor.setting(now)))
        elif factor.kind is FactorKind.FIRMWARE:
            text = boot.files.get(factor.file)
            pattern = factor.pattern.replace("{value}", re.escape(value))
            if text is None:
                found.append(BootProblem(factor.name, factor.setting(value), f"{factor.file} could not be read"))
            elif not compile_pattern(pattern, lines=True).search(text):
                found.append(BootProblem(factor.name, factor.setting(value), f"{factor.file} does not show it"))
    return found


def problem_text(found: list[BootProblem]) -> str:
    """Return what the boot lacks, in a sentence's part."""
    return "; ".join(f"wanted {item.wanted}, found {item.found}" for item in found)


class BootStep(msgspec.Struct, frozen=True):
    """What a person does on one kind of system."""

    system: str
    commands: tuple[str, ...]
    language: str = "bash"


class RebootPlan(msgspec.Struct, frozen=True):
    """How to come to a boot that a trial needs.

    Attributes:
        trials: The trials.
        wants: What the boot must carry, in words.
        steps: What to do, by system.
        notes: What commands cannot do.
    """

    trials: tuple[str, ...]
    wants: tuple[str, ...]
    steps: tuple[BootStep, ...]
    notes: tuple[str, ...] = ()


def reboot_plan(experiment: Experiment, trial: Trial, boot: Boot) -> RebootPlan:
    """Return what a person can do so that the next boot is the one that a trial needs.

    Source:
        GRUB: https://www.gnu.org/software/grub/manual/grub/ (update-grub, grub-mkconfig; grubby on Fedora);
        systemd-boot: kernel-install(8), /etc/kernel/cmdline; Talos: https://docs.siderolabs.com/talos (machine.install
        .extraKernelArgs, applied by an upgrade); Fedora Atomic: rpm-ostree(1), kargs.
    """
    lacking = {item.factor: item for item in problems(experiment, trial, boot)}
    factors = [item for item in experiment.factor if item.name in lacking]
    kernel = [(item, trial.settings[item.name]) for item in factors if item.kind is FactorKind.KERNEL_PARAMETER]
    given = parameters(boot.cmdline)
    steps = _kernel_steps(kernel, given) if kernel else ()
    notes = tuple(
        f"Install the firmware {trial.settings[item.name]!r} and rebuild the initramfs; after the boot, "
        f"{item.file} must match {item.pattern.replace('{value}', trial.settings[item.name])!r}."
        for item in factors
        if item.kind is FactorKind.FIRMWARE
    )
    return RebootPlan((trial.id,), tuple(lacking[item.name].wanted for item in factors), steps, notes)


def _kernel_steps(kernel: list[tuple[Factor, str]], given: dict[str, str]) -> tuple[BootStep, ...]:
    add = [f"{item.parameter}={value}" for item, value in kernel if value != UNSET]
    drop = [
        f"{item.parameter}={given[_canonical(item.parameter)]}"
        for item, _ in kernel
        if _canonical(item.parameter) in given
    ]
    edit = "; ".join(
        part for part in (f"add {' '.join(add)}" if add else "", f"take out {' '.join(drop)}" if drop else "") if part
    )
    grubby = [f'--args="{" ".join(add)}"'] if add else []
    grubby += [f'--remove-args="{" ".join(drop)}"'] if drop else []
    ostree = [f"--delete={item}" for item in drop] + [f"--append={item}" for item in add]
    talos = [f"      - {item}" for item in add] + [f"      - -{item}" for item in drop]
    return (
        BootStep(
            "GRUB (Debian, Ubuntu)",
            (f"sudoedit /etc/default/grub   # GRUB_CMDLINE_LINUX_DEFAULT: {edit}", "sudo update-grub", "sudo reboot"),
        ),
        BootStep("GRUB (Fedora)", (f"sudo grubby --update-kernel=ALL {' '.join(grubby)}", "sudo reboot")),
        BootStep(
            "systemd-boot",
            (
                f"sudoedit /etc/kernel/cmdline   # {edit}",
                'sudo kernel-install add "$(uname -r)" "/lib/modules/$(uname -r)/vmlinuz"',
                "sudo reboot",
            ),
        ),
        BootStep(
            "Talos (machine-config patch; it takes effect with `talosctl upgrade`)",
            ("machine:", "  install:", "    extraKernelArgs:", *talos),
            "yaml",
        ),
        BootStep("Fedora Atomic", (f"sudo rpm-ostree kargs {' '.join(ostree)}", "sudo systemctl reboot")),
    )
