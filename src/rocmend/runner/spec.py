"""What an attempt is to run, where, and within which limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from rocmend.core.documents import read_toml
from rocmend.core.errors import DataError, UsageError
from rocmend.core.evidence import identity_of


class Command(msgspec.Struct, frozen=True, tag="command", tag_field="kind", omit_defaults=True):
    """A program with its arguments; never a shell line.

    Attributes:
        argv: Program and arguments.
        cwd: Working folder where it runs; empty for the executor's own.
        stdin: Text given to its standard input, which is otherwise empty.
    """

    argv: tuple[str, ...]
    cwd: str = ""
    stdin: str = ""


class PythonCall(msgspec.Struct, frozen=True, tag="python", tag_field="kind", omit_defaults=True):
    """A Python function called in a child process.

    The function gets ``arguments`` as keyword arguments and returns a JSON value. It says which phase it is in with
    ``rocmend.runner.child.phase(name)``.

    Attributes:
        target: ``module:function``.
        arguments: Keyword arguments, JSON values.
        cwd: Working folder; empty for the executor's own.
        python: The interpreter; empty for the one that runs us, or ``python3`` elsewhere.
        path: Folders put in front of the child's ``sys.path``.
    """

    target: str
    arguments: dict[str, Any] = {}
    cwd: str = ""
    python: str = ""
    path: tuple[str, ...] = ()


class Local(msgspec.Struct, frozen=True, tag="local", tag_field="kind", omit_defaults=True):
    """In a child process on this machine."""


class Mount(msgspec.Struct, frozen=True, omit_defaults=True):
    """A folder or file of the host shown in a container."""

    source: str
    target: str
    read_only: bool = False


class Container(msgspec.Struct, frozen=True, tag="container", tag_field="kind", omit_defaults=True):
    """In a container, by the podman or docker command line.

    Attributes:
        image: Name, or ``name@sha256:…``; an executor's ``resolve`` pins it to its digest.
        runtime: ``podman``, ``docker`` or ``auto`` (podman first).
        devices: Device nodes shown inside, e.g. ``/dev/kfd`` and ``/dev/dri``.
        mounts: Folders and files shown inside.
        memory_bytes: Memory limit; 0 for none.
        network: ``none``, ``host``, ``bridge`` …; empty for the runtime's default.
        user: User (and group) inside; empty for the image's.
        groups: Extra groups, e.g. ``video``, ``render``, ``keep-groups``.
        pull: ``never``, ``missing`` or ``always``.
        extra_args: Further arguments for ``podman run``.
        global_args: Arguments for the runtime itself, before ``run``, e.g. ``--root``.
        init: A small init is process 1, which hands on TERM and reaps; without it TERM reaches only handlers.
    """

    image: str
    runtime: str = "auto"
    devices: tuple[str, ...] = ()
    mounts: tuple[Mount, ...] = ()
    memory_bytes: int = 0
    network: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    pull: str = "missing"
    extra_args: tuple[str, ...] = ()
    global_args: tuple[str, ...] = ()
    init: bool = True


class Ssh(msgspec.Struct, frozen=True, tag="ssh", tag_field="kind", omit_defaults=True):
    """On another host, by the OpenSSH client.

    Attributes:
        host: Host name, address or alias of the client's configuration.
        port: TCP port; 0 for the client's default.
        user: Login name; empty for the client's default.
        identity_file: Private key; empty for the client's default.
        config_file: The client's configuration file; empty for its default.
        options: Further ``-o`` options by name.
        python: The interpreter over there, for Python calls.
    """

    host: str
    port: int = 0
    user: str = ""
    identity_file: str = ""
    config_file: str = ""
    options: dict[str, str] = {}
    python: str = "python3"


class Kubernetes(msgspec.Struct, frozen=True, tag="kubernetes", tag_field="kind", omit_defaults=True):
    """As a Kubernetes Job.

    Attributes:
        image: The container image.
        namespace: Where the Job is made.
        resources: Requests and limits alike, e.g. ``{"amd.com/gpu": "1", "memory": "16Gi"}``.
        node_selector: Labels that the node must carry.
        tolerations: Tolerations as in a pod's manifest.
        active_deadline_s: The Job's own deadline; 0 takes the attempt's total limit with room for its start.
        kubeconfig: Path of a kubeconfig; empty for the client's default.
        context: Context of the kubeconfig; empty for its current one.
        service_account: Empty for the namespace's default.
        image_pull_policy: Empty for the cluster's default.
        image_pull_secrets: Names of secrets.
        labels: Further labels of the Job and its pod.
        volumes: Volumes as in a pod's manifest.
        volume_mounts: Their mounts as in a container's manifest.
        start_s: Seconds that scheduling and pulling may take before the attempt is ``infra``.
    """

    image: str
    namespace: str = "default"
    resources: dict[str, str] = {}
    node_selector: dict[str, str] = {}
    tolerations: tuple[dict[str, Any], ...] = ()
    active_deadline_s: int = 0
    kubeconfig: str = ""
    context: str = ""
    service_account: str = ""
    image_pull_policy: str = ""
    image_pull_secrets: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    volumes: tuple[dict[str, Any], ...] = ()
    volume_mounts: tuple[dict[str, Any], ...] = ()
    start_s: float = 600.0


Where = Local | Container | Ssh | Kubernetes


class Limits(msgspec.Struct, frozen=True, omit_defaults=True):
    """When an attempt is ended.

    Attributes:
        total_s: Wall seconds in all.
        silence_s: Seconds without output, where the phase set allows its phase nothing else.
        phase_silence: Seconds without output by phase; stronger than the phase set's.
        grace_s: Seconds between TERM and KILL.
        max_output_bytes: Bytes of output kept (half from its head, half from its tail); the rest is counted.
        memory_bytes: Address space of a local child, or memory of a container; 0 for no limit.
    """

    total_s: float = 3600.0
    silence_s: float = 120.0
    phase_silence: dict[str, float] = {}
    grace_s: float = 5.0
    max_output_bytes: int = 16 << 20
    memory_bytes: int = 0

    def __post_init__(self) -> None:
        """Refuse limits that would end every run at once, or none.

        Raises:
            UsageError: A limit is not positive.
        """
        for name in ("total_s", "silence_s", "max_output_bytes"):
            if getattr(self, name) <= 0:
                raise UsageError("limits", f"{name} must be above 0, got {getattr(self, name)}.")
        if self.grace_s < 0 or self.memory_bytes < 0 or any(value <= 0 for value in self.phase_silence.values()):
            raise UsageError("limits", "grace_s and memory_bytes cannot be negative, nor a phase's silence 0 or less.")


class AttemptSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing to run under supervision.

    Attributes:
        name: What to call it; no part of its identity.
        command: The command or the Python call.
        where: The executor's choice.
        env: Variables added to the environment; a value of None takes one away.
        phases: Name of a phase set, or path of a TOML file; empty for none but the child's own phases.
        limits: When it is ended.
        allow_slow_first_run: First runs that are known to be slow get the silence that they are known to need.
    """

    name: str
    command: Command | PythonCall
    where: Where = Local()
    env: dict[str, str | None] = {}
    phases: str = ""
    limits: Limits = Limits()
    allow_slow_first_run: bool = True

    def definition(self) -> dict[str, Any]:
        """Return everything that defines the run, as a JSON value: all of it but the name."""
        value: dict[str, Any] = msgspec.to_builtins(self)
        del value["name"]
        return value

    def identity(self) -> str:
        """Return the hash of the definition."""
        return identity_of(self.definition())


def spec_from_toml(path: Path) -> AttemptSpec:
    """Read an attempt from a TOML file.

    Raises:
        DataError: The file is not a valid attempt.
    """
    try:
        return msgspec.convert(read_toml(path), AttemptSpec)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise DataError(str(path), f"cannot be read: {error.strerror}.") from error
    except msgspec.ValidationError as error:
        raise DataError(str(path), f"is not an attempt: {error}.") from error
