"""The machines of a fleet: what ``--hosts`` names.

``ssh:HOST``, ``ssh:USER@HOST:PORT``, ``k8s``, ``k8s:LABEL=VALUE``, several with commas between them, or a TOML file::

    [[host]]
    name = "strix"
    rocmend = "~/venv/bin/rocmend"
    gpus = "all"
    env = {HSA_ENABLE_SDMA = "0"}
    where = {kind = "ssh", host = "10.0.0.7", user = "me", identity_file = "/home/me/.ssh/lab"}

``where`` is what the runner takes, ``kind = "ssh"`` or ``"kubernetes"`` with an ``image``.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from pathlib import Path
from typing import Any

import msgspec

from rocmend.core.documents import read_toml
from rocmend.core.errors import DataError, UsageError
from rocmend.runner.remote.cluster import ApiFault, Cluster, Unreachable, connect
from rocmend.runner.remote.pod_rules import GPU
from rocmend.runner.remote.ssh_rules import checked
from rocmend.runner.spec import Kubernetes, Ssh

HOSTNAME_LABEL = "kubernetes.io/hostname"
MOST_HOSTS = 256
_PORT = re.compile(r"(.+):([1-9]\d{0,4})")
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,300}(?:=[A-Za-z0-9._-]{0,63})?")
_GPUS = re.compile(r"(?:all|\d{1,3}(?:,\d{1,3})*)?")


class Host(msgspec.Struct, frozen=True):
    """A machine.

    Attributes:
        name: What it is called, in what is shown.
        where: How it is reached; of Kubernetes one node.
        rocmend: The command there: program and arguments.
        env: Variables set there.
        gpus: Its GPUs that are measured one after the other: ``all`` or numbers; empty for the machine as it is.
    """

    name: str
    where: Ssh | Kubernetes
    rocmend: tuple[str, ...] = ("rocmend",)
    env: dict[str, str] = {}
    gpus: str = ""

    @property
    def key(self) -> str:
        """What tells it from all others, without its name: a hash of how it is reached."""
        where = self.where
        if isinstance(where, Ssh):
            parts: tuple[object, ...] = ("ssh", where.user, where.host, where.port)
        else:
            parts = ("kubernetes", where.context, where.namespace, sorted(where.node_selector.items()))
        home = self.env.get("ROCMEND_HOME", "")
        return hashlib.sha256(msgspec.json.encode((*parts, home))).hexdigest()[:8]


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A ``[[host]]`` of a file."""

    where: Ssh | Kubernetes
    name: str = ""
    rocmend: str = ""
    env: dict[str, str] = {}
    gpus: str = ""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    host: list[_Entry]


class Defaults(msgspec.Struct, frozen=True):
    """What holds for hosts that do not say otherwise.

    Attributes:
        rocmend: The command there.
        image: The image of pods.
        gpus: Which GPUs.
    """

    rocmend: str = ""
    image: str = ""
    gpus: str = ""


def read_hosts(texts: tuple[str, ...], defaults: Defaults) -> list[Host]:
    """Return the machines that texts name; a selector of nodes becomes one for each node.

    Raises:
        UsageError: A text names nothing, or one machine is named twice.
        DataError: A file is damaged.
        NotStartedError: The cluster can't be asked.
    """
    found: list[Host] = []
    for text in texts:
        if text.endswith(".toml"):
            found += _from_file(Path(text), defaults)
            continue
        for word in _words(text):
            kind, _, rest = word.partition(":")
            if kind == "k8s":
                found += _nodes(rest, Kubernetes(defaults.image), "k8s", defaults)
            elif kind == "ssh":
                found.append(_ssh(rest, defaults))
            else:
                raise UsageError(
                    "--hosts",
                    f"{word[:80]!r} names no host.",
                    next_step="Write ssh:HOST, k8s, k8s:LABEL=VALUE, or the path of a .toml file.",
                )
    if len(found) > MOST_HOSTS:
        raise UsageError("--hosts", f"{len(found)} hosts are named; at most {MOST_HOSTS} are measured at once.")
    for attribute in ("key", "name"):
        known: set[str] = set()
        for host in found:
            if (value := getattr(host, attribute)) in known:
                raise UsageError("--hosts", f"{host.name} is named twice.", next_step="Name each host once.")
            known.add(value)
    return found


def _words(text: str) -> list[str]:
    """Return the hosts of a text; what follows a comma is of the kind of what stands before it."""
    found: list[str] = []
    for word in (part.strip() for part in text.split(",")):
        last = found[-1] if found else ""
        if last.startswith("k8s:") and not word.startswith(("ssh:", "k8s")):
            found[-1] = f"{last},{word}"  # a further label
        elif last.startswith("ssh:") and not word.startswith(("ssh:", "k8s")):
            found.append(f"ssh:{word}")
        else:
            found.append(word)
    return found


def _ssh(text: str, defaults: Defaults) -> Host:
    match = _PORT.fullmatch(text)
    host, port = (match[1], int(match[2])) if match and text.count(":") == 1 else (text, 0)
    if not host or port > 65535:
        raise UsageError("--hosts", f"{f'ssh:{text}'[:80]!r} names no host.", next_step="Write ssh:HOST.")
    return _host(_Entry(checked(Ssh(host, port=port))), defaults, text)


def _host(entry: _Entry, defaults: Defaults, name: str) -> Host:
    words = shlex.split(entry.rocmend or defaults.rocmend or "rocmend")
    if not words or not _GPUS.fullmatch(entry.gpus):
        raise UsageError("--hosts", f"{name}: `rocmend` is a command, and `gpus` is `all` or numbers such as 0,1.")
    # a shell over there would expand ~; nothing does, and the login folder is where the command begins
    words[0] = words[0].removeprefix("~/") if "/" in words[0][2:] else words[0]
    return Host(entry.name or name, entry.where, tuple(words), entry.env, entry.gpus or defaults.gpus)


def _from_file(path: Path, defaults: Defaults) -> list[Host]:
    try:
        entries = msgspec.convert(read_toml(path), _File).host
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UsageError("--hosts", f"there is no file {str(path)!r}.") from error
    except (msgspec.ValidationError, ValueError) as error:
        raise DataError(
            str(path),
            f"names no hosts: {error}.",
            next_step="`rocmend bench hosts --help` names the page with the form.",
        ) from error
    found: list[Host] = []
    for entry in entries:
        if isinstance(entry.where, Ssh):
            found.append(_host(entry, defaults, checked(entry.where).host))
            continue
        where = msgspec.structs.replace(entry.where, image=entry.where.image or defaults.image)
        if HOSTNAME_LABEL in where.node_selector:
            found.append(_node(where, entry.name or where.node_selector[HOSTNAME_LABEL], entry, defaults))
        else:
            selector = ",".join(f"{name}={value}" for name, value in where.node_selector.items())
            found += _nodes(selector, where, entry.name or "k8s", defaults, entry)
    return found


def _node(where: Kubernetes, name: str, entry: _Entry | None, defaults: Defaults, gpus: int = 1) -> Host:
    """Return one node; its pod asks for one GPU, or for all where all are measured."""
    if not where.image:
        raise UsageError("--hosts", "a pod needs an image with rocmend in it.", next_step="Name it: --image IMAGE.")
    made = _host(entry or _Entry(where), defaults, name)
    count = gpus if made.gpus == "all" else max(1, len(made.gpus.split(",")))
    resources = where.resources if GPU in where.resources else {**where.resources, GPU: str(count)}
    # in a pod the GPUs that it was given are numbered from 0
    numbers = ",".join(map(str, range(count))) if made.gpus else ""
    env = {"ROCMEND_HOME": "/tmp/rocmend", **made.env}  # noqa: S108  the pod's own; an image's HOME may not be writable
    return msgspec.structs.replace(
        made, name=name, where=msgspec.structs.replace(where, resources=resources), env=env, gpus=numbers
    )


def _nodes(selector: str, where: Kubernetes, name: str, defaults: Defaults, entry: _Entry | None = None) -> list[Host]:
    """Return the nodes with a GPU that carry the labels."""
    if selector and not all(_LABEL.fullmatch(one) for one in selector.split(",")):
        raise UsageError("--hosts", f"{selector[:80]!r} is no selector of nodes.", next_step="Write k8s:LABEL=VALUE.")
    http = connect(where)
    cluster = Cluster(http, where.namespace)
    try:
        nodes = cluster.nodes(selector)
    except ApiFault as fault:
        raise UsageError(
            "--hosts",
            f"the cluster does not list its nodes: {fault}.",
            next_step=f"Name each in a file: node_selector = {{'{HOSTNAME_LABEL}' = 'NODE'}}.",
        ) from fault
    except Unreachable as error:
        raise UsageError("--hosts", f"the cluster can't be reached: {error}.", next_step="Check KUBECONFIG.") from error
    finally:
        cluster.close()
    found = []
    for node in nodes:
        labels, gpus = _labels(node), _gpus(node)
        if gpus and not (node.get("spec") or {}).get("unschedulable") and HOSTNAME_LABEL in labels:
            own = msgspec.structs.replace(
                where, node_selector={**where.node_selector, HOSTNAME_LABEL: labels[HOSTNAME_LABEL]}
            )
            found.append(_node(own, f"{name}/{labels[HOSTNAME_LABEL]}", entry, defaults, gpus))
    if not found:
        raise UsageError(
            "--hosts",
            f"no node that takes pods has {GPU}{f' and the labels {selector}' if selector else ''}.",
            next_step="Check `kubectl get nodes -L amd.com/gpu.family`, and that the device plugin runs.",
        )
    return found


def _labels(node: dict[str, Any]) -> dict[str, str]:
    labels = (node.get("metadata") or {}).get("labels")
    return {str(name): str(value) for name, value in labels.items()} if isinstance(labels, dict) else {}


def _gpus(node: dict[str, Any]) -> int:
    text = str(((node.get("status") or {}).get("allocatable") or {}).get(GPU, "0"))
    return int(text) if text.isdecimal() and len(text) < 4 else 0
