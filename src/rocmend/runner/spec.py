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
    """A folder or file of the host shown in a container.

    Attributes:
        source: Its path, or the name of a volume.
        target: Its path inside.
        read_only: The container may not write there.
        relabel: Give all that is in it an SELinux label of the container's own, which stays: only for a folder that was
            made for the run. Without SELinux it changes nothing.
    """

    source: str
    target: str
    read_only: bool = False
    relabel: bool = False


class Container(msgspec.Struct, frozen=True, tag="container", tag_field="kind", omit_defaults=True):
    """In a container, by the podman or docker command line.

    Attributes:
        image: Name, or ``name@sha256:…``; an executor's ``resolve`` pins it to its digest.
        runtime: ``podman``, ``docker`` or ``auto`` (podman first).
        devices: Device nodes shown inside, e.g. ``/dev/kfd`` and ``/dev/dri``, which stands for the render nodes of
            AMD GPUs.
        mounts: Folders and files shown inside.
        memory_bytes: Memory limit; 0 for none.
        network: ``none``, ``host``, ``bridge`` …
        user: User (and group) inside; empty for the image's.
        groups: Extra groups, by number or name; empty for the groups that own the GPU's device nodes.
        pull: ``never``, ``missing`` or ``always``.
        options: What is given back of what a run is denied, by the names in ``runner.remote.confine.OPTIONS``, e.g.
            ``ptrace``, ``writable-root``.
        pids: Most processes and threads; 0 for the runtime's default.
        shm_bytes: Size of ``/dev/shm``.
        tmp_bytes: Size of ``/tmp``, in memory, while the root is read-only.
        extra_args: Further arguments for ``podman run``, shown in the plan as the experiment's own.
        global_args: Arguments for the runtime itself, before ``run``, e.g. ``--root``.
        init: A small init is process 1, which hands on TERM and reaps; without it TERM reaches only handlers.
    """

    image: str
    runtime: str = "auto"
    devices: tuple[str, ...] = ()
    mounts: tuple[Mount, ...] = ()
    memory_bytes: int = 0
    network: str = "none"
    user: str = ""
    groups: tuple[str, ...] = ()
    pull: str = "missing"
    options: tuple[str, ...] = ()
    pids: int = 16384
    shm_bytes: int = 8 << 30
    tmp_bytes: int = 8 << 30
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
        options: Further ``-o`` options by name, stronger than ours and than the configuration file's.
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
        resources: Limits, e.g. ``{"amd.com/gpu": "1", "memory": "16Gi"}``; where they are not given, ``cpu`` is 8 and
            ``memory`` 32Gi.
        requests: What the scheduler reserves; empty for what ``resources`` gives, else 1 processor and 4Gi.
        node_selector: Labels that the node must carry.
        tolerations: Tolerations as in a pod's manifest.
        active_deadline_s: The Job's own deadline; 0 takes the attempt's total limit with room for its start.
        kubeconfig: Path of a kubeconfig; empty for the client's default.
        context: Context of the kubeconfig; empty for its current one.
        service_account: Empty for the namespace's default.
        service_account_token: Mount its token, with which the pod can speak to the API server.
        run_as_user: User id inside, which must not be 0; 0 for the image's user, who may be root.
        supplemental_groups: Further group ids inside, e.g. the ids of the node's groups render and video.
        capabilities: Capabilities given back, e.g. ``SYS_PTRACE``.
        shm: Size of ``/dev/shm``, as a Kubernetes quantity.
        secret_env: Variables taken from Secrets of the cluster: name to ``SECRET/KEY``.
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
    requests: dict[str, str] = {}
    node_selector: dict[str, str] = {}
    tolerations: tuple[dict[str, Any], ...] = ()
    active_deadline_s: int = 0
    kubeconfig: str = ""
    context: str = ""
    service_account: str = ""
    service_account_token: bool = False
    run_as_user: int = 0
    supplemental_groups: tuple[int, ...] = ()
    capabilities: tuple[str, ...] = ()
    shm: str = "8Gi"
    secret_env: dict[str, str] = {}
    image_pull_policy: str = ""
    image_pull_secrets: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    volumes: tuple[dict[str, Any], ...] = ()
    volume_mounts: tuple[dict[str, Any], ...] = ()
    start_s: float = 600.0


Where = Local | Container | Ssh | Kubernetes

LONGEST_S = 365 * 86400.0
"""Seconds that a limit may be: a year. Without a bound, inf and nan would mean a run that nothing ends."""


class Limits(msgspec.Struct, frozen=True, omit_defaults=True):
    """When an attempt is ended.

    Attributes:
        total_s: Wall seconds in all.
        silence_s: Seconds without output, where the phase set allows its phase nothing else.
        phase_silence: Seconds without output by phase; stronger than the phase set's.
        grace_s: Seconds between TERM and KILL.
        max_output_bytes: Bytes of output kept (half from its head, half from its tail); the rest is counted.
        memory_bytes: Address space of a local child, or memory of a container; 0 for no limit.
        file_bytes: Size of a file that a local child writes; 0 for no limit.
        processes: Processes and threads that this user may have beyond those of the start; 0 for no limit. A local
            child of root has no such limit.
    """

    total_s: float = 3600.0
    silence_s: float = 120.0
    phase_silence: dict[str, float] = {}
    grace_s: float = 5.0
    max_output_bytes: int = 16 << 20
    memory_bytes: int = 0
    file_bytes: int = 0
    processes: int = 0

    def __post_init__(self) -> None:
        """Refuse limits that would end every run at once, or none.

        Raises:
            UsageError: A limit is not positive, or longer than a year.
        """
        times = {"total_s": self.total_s, "silence_s": self.silence_s, "grace_s": self.grace_s}
        for name, value in (
            *times.items(),
            *((f"phase_silence.{key}", own) for key, own in self.phase_silence.items()),
        ):
            if not value <= LONGEST_S:  # nan too
                raise UsageError("limits", f"{name} must be at most a year ({LONGEST_S:.0f} s), got {value}.")
        for name in ("total_s", "silence_s", "max_output_bytes"):
            if getattr(self, name) <= 0:
                raise UsageError("limits", f"{name} must be above 0, got {getattr(self, name)}.")
        numbers = (self.grace_s, self.memory_bytes, self.file_bytes, self.processes)
        if min(numbers) < 0 or any(value <= 0 for value in self.phase_silence.values()):
            raise UsageError(
                "limits",
                "grace_s, memory_bytes, file_bytes and processes cannot be negative, nor a phase's silence 0 or less.",
            )


class AttemptSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing to run under supervision.

    Attributes:
        name: What to call it; no part of its identity.
        command: The command or the Python call.
        where: The executor's choice.
        env: Variables added to the environment; a value of None takes one away, ``***`` is taken from our own.
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
        """Return everything that defines the run, as a JSON value: all of it but the name and the values of secrets."""
        value: dict[str, Any] = msgspec.to_builtins(self.kept())
        del value["name"]
        return value

    def kept(self) -> AttemptSpec:
        """Return it as it is written down: without the values of secrets, in variables and on command lines."""
        from rocmend.runner.secret import without_secret, without_secrets

        command, where = self.command, self.where
        if isinstance(command, Command):
            command = msgspec.structs.replace(command, argv=tuple(map(without_secret, command.argv)))
        if isinstance(where, Container):
            where = msgspec.structs.replace(where, extra_args=tuple(map(without_secret, where.extra_args)))
        return msgspec.structs.replace(self, command=command, where=where, env=without_secrets(self.env))

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
