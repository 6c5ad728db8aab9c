"""What a container is denied and given back.

Sources: https://docs.podman.io/en/latest/markdown/podman-run.1.html,
https://docs.docker.com/reference/cli/docker/container/run/,
https://rocm.docs.amd.com/projects/install-on-linux/en/latest/how-to/docker.html (devices; ``seccomp=unconfined``
is optional there), https://docs.docker.com/engine/security/seccomp/ (calls that need a capability)
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from rocmend.core.units import size_text
from rocmend.runner.executor import NotStartedError
from rocmend.runner.remote.confine import Effect, Rule
from rocmend.runner.spec import Container, Mount

KFD = "/dev/kfd"
DRI = "/dev/dri"
AMD_VENDOR = "0x1002"
SMALL_TMP_BYTES = 64 << 20
ROOT = "root file system"
EXTRA = "extra_args"


class Option(msgspec.Struct, frozen=True):
    """Something that an experiment may ask for by name.

    Attributes:
        arguments: What is added to the command line.
        reason: What needs it.
        instead_of: What the rules that it replaces are about.
    """

    arguments: tuple[str, ...]
    reason: str
    instead_of: tuple[str, ...] = ()


OPTIONS = {
    "ptrace": Option(
        ("--cap-add", "SYS_PTRACE"),
        "debuggers attach to processes that are not their own children; a process may trace its children without it",
    ),
    "sys-nice": Option(
        ("--cap-add", "SYS_NICE"),
        "NUMA memory policies (mbind, set_mempolicy, move_pages): the default seccomp profile ties them to this",
    ),
    "seccomp-unconfined": Option(
        ("--security-opt", "seccomp=unconfined"),
        "system calls that the default profile blocks; AMD calls it optional, for memory policies on HPC nodes",
    ),
    "ipc-host": Option(
        ("--ipc", "host"), "shares memory segments with processes outside of the container", ("shared memory",)
    ),
    "dac-override": Option(
        ("--cap-add", "DAC_OVERRIDE"), "root inside reads and writes mounted files that belong to other users"
    ),
    "memlock": Option(
        ("--ulimit", "memlock=-1:-1"), "pins more host memory than the default limit: RDMA, RCCL over IB"
    ),
    "selinux-off": Option(
        ("--security-opt", "label=disable"),
        "on SELinux hosts without the boolean container_use_devices: the label hides /dev/kfd and mounts",
    ),
    "writable-root": Option((), "writes beside its own files; what it writes is removed with the container", (ROOT,)),
}
"""What ``options`` of a container may name."""


class EngineFacts(msgspec.Struct, frozen=True):
    """What is known of the engine that runs a container. The defaults are for a plan, which asks no engine.

    Attributes:
        here: It runs on this machine, so that this machine's device nodes count.
        rootless_podman: Podman without root: numbers of groups are not the host's inside.
        runtime: Its OCI runtime, ``crun`` or ``runc``; empty where it is not known.
        pids: It can limit the number of processes; None where it is not known.
    """

    here: bool = True
    rootless_podman: bool = False
    runtime: str = ""
    pids: bool | None = None


def container_rules(where: Container, engine: EngineFacts | None = None, *, root: Path = Path("/")) -> tuple[Rule, ...]:
    """Return the rules for a container.

    Args:
        where: The place.
        engine: What is known of the engine; None for a plan.
        root: Root of this machine's files, for its device nodes.

    Raises:
        NotStartedError: An option is not known.
    """
    engine = engine or EngineFacts()
    unknown = [name for name in where.options if name not in OPTIONS]
    if unknown:
        raise NotStartedError(
            "container",
            f"expected options of {', '.join(OPTIONS)}, got {unknown[0]!r}.",
            why="Extra permissions have names, so that they can be shown.",
            next_step="Other arguments of the engine go into extra_args.",
        )
    asked = [OPTIONS[name] for name in where.options]
    replaced = {what for option in asked for what in option.instead_of} | _own(where.extra_args)
    denied = [rule for rule in (*_denied(where, engine), _network(where)) if rule.what not in replaced]
    nodes = _device_nodes(where, engine, root)
    rules = [*denied, *_device_rules(nodes), *_group_rules(where, nodes, engine, root)]
    rules += [Rule(Effect.ASKED, name, OPTIONS[name].reason, OPTIONS[name].arguments) for name in where.options]
    return (*rules, *_asked(where))


def _own(extra_args: tuple[str, ...]) -> set[str]:
    """Return what the experiment's own arguments are about: of two flags that exclude each other, theirs stands."""
    flags = {"--network": "network", "--net": "network", "--ipc": "shared memory", "--shm-size": "shared memory"}
    flags |= {"--pids-limit": "processes", "--read-only": ROOT}
    return {flags[name] for name in (argument.partition("=")[0] for argument in extra_args) if name in flags}


def _denied(where: Container, engine: EngineFacts) -> list[Rule]:
    rules = [
        Rule(Effect.DENIED, "capabilities", "GPU computing needs no root privileges", ("--cap-drop", "all")),
        Rule(
            Effect.DENIED,
            "new privileges",
            "setuid programs gain no privileges",
            ("--security-opt", "no-new-privileges"),
        ),
    ]
    if where.pids and engine.pids is not False:
        limit = ("--pids-limit", str(where.pids))
        rules.append(Rule(Effect.LIMITED, "processes", "a fork bomb ends in the container, not on the host", limit))
    shared = ("--ipc", "private", "--shm-size", str(where.shm_bytes))
    rules.append(
        Rule(
            Effect.LIMITED,
            "shared memory",
            f"{size_text(where.shm_bytes)} of its own: data loaders need more than the default 64 MiB, and "
            "--ipc=host would expose the host's segments",
            shared,
        )
    )
    rules.append(
        Rule(
            Effect.DENIED,
            ROOT,
            "the image stays unchanged and the host's disk cannot be filled; writes go to memory",
            ("--read-only", *_writable(where)),
        )
    )
    return rules


def _writable(where: Container) -> tuple[str, ...]:
    """Return the writable folders in memory, and the variable that sends caches there.

    They are mounted ``exec``, because Triton and MIOpen load what they compile. A home that something is mounted into
    stays the home.
    """
    targets = [mount.target.rstrip("/") for mount in where.mounts]
    sizes = {"/tmp": where.tmp_bytes, "/var/tmp": SMALL_TMP_BYTES, "/run": SMALL_TMP_BYTES}  # noqa: S108  inside
    found: list[str] = []
    for folder, size in sizes.items():
        if folder not in targets:
            found += ["--tmpfs", f"{folder}:rw,exec,nosuid,nodev,size={size},mode=1777"]
    if not any(target.startswith(("/root", "/home/")) for target in targets):
        found += ["--env", "HOME=/tmp"]
    return tuple(found)


def _network(where: Container) -> Rule:
    name = where.network or "none"
    if name == "none":
        return Rule(Effect.DENIED, "network", "no network access unless requested", ("--network", name))
    return Rule(Effect.ASKED, "network", "requested by the experiment", ("--network", name))


def _device_nodes(where: Container, engine: EngineFacts, root: Path) -> tuple[str, ...]:
    nodes: list[str] = []
    for device in where.devices:
        found = _render_nodes(root) if device.rstrip("/") == DRI and engine.here else ()
        nodes += found or (device,)
    return tuple(dict.fromkeys(nodes))


def _render_nodes(root: Path) -> tuple[str, ...]:
    """Return the render nodes of this machine's AMD GPUs, and of those whose maker cannot be read."""
    found = []
    for node in sorted((root / DRI.lstrip("/")).glob("renderD*")):
        try:
            vendor = (root / "sys/class/drm" / node.name / "device/vendor").read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            vendor = AMD_VENDOR
        if vendor == AMD_VENDOR:
            found.append(f"{DRI}/{node.name}")
    return tuple(found)


def _is_gpu(node: str) -> bool:
    return node == KFD or node.startswith(DRI)


def _device_rules(nodes: tuple[str, ...]) -> list[Rule]:
    reasons = {
        KFD: "the compute driver: queues, memory and events of every AMD GPU",
        DRI: "the render nodes; of the whole folder, because none of an AMD GPU was found on this machine",
    }
    return [
        Rule(
            Effect.GIVEN if _is_gpu(node) else Effect.ASKED,
            "device",
            reasons.get(
                node.rstrip("/"), "a GPU's render node: memory and submission, without the display's node card*"
            )
            if _is_gpu(node)
            else "requested by the experiment",
            ("--device", node),
        )
        for node in nodes
    ]


def _group_rules(where: Container, nodes: tuple[str, ...], engine: EngineFacts, root: Path) -> list[Rule]:
    """Return the groups: those asked for, else those that own the GPU's nodes."""
    if where.groups:
        return [
            Rule(Effect.ASKED, "group", "requested by the experiment", ("--group-add", name)) for name in where.groups
        ]
    if not engine.here or not any(_is_gpu(node) for node in nodes):
        return []
    if engine.rootless_podman:
        if engine.runtime not in {"", "crun"}:
            return []
        reason = "rootless containers map group ids: crun keeps yours, which own the GPU's device nodes"
        return [Rule(Effect.GIVEN, "group", reason, ("--group-add", "keep-groups"))]
    owners: dict[int, list[str]] = {}
    for node in filter(_is_gpu, nodes):
        try:
            status = (root / node.lstrip("/")).stat()
        except OSError:
            continue
        if status.st_gid and status.st_mode & 0o060 == 0o060 and status.st_mode & 0o006 != 0o006:
            owners.setdefault(status.st_gid, []).append(node)
    return [
        Rule(Effect.GIVEN, "group", f"owns {', '.join(mine)} on this machine", ("--group-add", str(gid)))
        for gid, mine in owners.items()
    ]


def _asked(where: Container) -> list[Rule]:
    """Return what else the experiment asks for."""
    rules = [
        Rule(
            Effect.ASKED,
            "mount",
            "read only" if mount.read_only else "the run may write there",
            ("--volume", _volume(mount)),
        )
        for mount in where.mounts
    ]
    if where.user:
        rules.append(Rule(Effect.ASKED, "user", "requested by the experiment", ("--user", where.user)))
    if where.extra_args:
        rules.append(Rule(Effect.ASKED, EXTRA, "set by the experiment, not checked by rocmend", where.extra_args))
    return rules


def _volume(mount: Mount) -> str:
    """Sources: podman-run(1) and docker-run(1), ``--volume``: ``Z`` is a label for this container alone."""
    settings = ",".join([*(["ro"] if mount.read_only else []), *(["Z"] if mount.relabel else [])])
    return f"{source_of(mount.source)}:{mount.target}{f':{settings}' if settings else ''}"


def source_of(text: str) -> str:
    """Return what is mounted: a path from the root up, or the name of a volume as it is."""
    return str(Path(text).absolute()) if "/" in text or text.startswith(".") else text


def shortcomings(where: Container, engine: EngineFacts) -> list[str]:
    """Say what was to be denied or given and cannot be, by this engine."""
    found = []
    if where.pids and engine.pids is False:
        found.append("the engine has no pids controller: the number of processes is not limited")
    gpu = any(_is_gpu(device) for device in where.devices)
    if gpu and engine.rootless_podman and engine.runtime not in {"", "crun"} and not where.groups:
        found.append(f"{engine.runtime} cannot keep your groups in rootless mode: GPU access may be denied; crun can")
    return found
