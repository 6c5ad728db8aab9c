"""The podman or docker command line: what is asked of it, and what its answers mean."""

from __future__ import annotations

import json
import shutil
from typing import Any

import msgspec

from rocmend.core.supervise import CommandResult, run_command
from rocmend.runner.executor import NotStartedError
from rocmend.runner.remote.container_rules import EngineFacts
from rocmend.runner.remote.owner import LABEL_ATTEMPT, LABEL_OWNER, is_gone, ourselves, parse_owner
from rocmend.runner.spec import Container

ASK_S = 60.0
"""Seconds that a question to the runtime may take."""

PULL_S = 7200.0
"""Seconds that a pull may take: images with ROCm have tens of gigabytes."""

RUNTIMES = ("podman", "docker")

_NO_SERVICE = ("cannot connect to the docker daemon", "is the docker daemon running", "unable to connect to podman")
_NO_ACCESS = ("permission denied while trying to connect",)


class Image(msgspec.Struct, frozen=True):
    """An image that is here.

    Attributes:
        id: Hash of its configuration, by which it is run.
        digest: Hash of its manifest where it has one, else ``id``.
        env: Names of the variables that it sets.
    """

    id: str
    digest: str
    env: frozenset[str] = frozenset()


class State(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the runtime says of a container.

    Attributes:
        running: Its main process runs.
        started: Its main process has ever been started.
        pid: That process's id on the runtime's host; 0 where it does not run.
        code: Its exit status.
        oom_killed: The runtime saw it ended for memory.
        error: Why it could not be started, as the runtime says.
    """

    running: bool
    started: bool
    pid: int
    code: int
    oom_killed: bool
    error: str = ""


def parse_state(value: Any) -> State | None:
    """Return a container's state from what ``inspect`` prints; None where it is not what it should be.

    Source: https://docs.docker.com/reference/api/engine/ (ContainerInspect); podman prints the same fields.
    """
    try:
        state = value[0]["State"]
        began = str(state.get("StartedAt", ""))
        return State(
            running=state.get("Running") is True,
            started=bool(began) and not began.startswith("0001-"),
            pid=int(state.get("Pid", 0)),
            code=int(state.get("ExitCode", 0)),
            oom_killed=state.get("OOMKilled") is True,
            error=str(state.get("Error", "")),
        )
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        return None


def label_of(value: Any, name: str) -> str:
    """Return a container's label from what ``inspect`` prints; empty where it has none."""
    try:
        return str(value[0]["Config"]["Labels"][name])
    except (KeyError, IndexError, TypeError):
        return ""


def repository(name: str) -> str:
    """Return an image's name without tag and digest."""
    name = name.partition("@")[0]
    head, slash, tail = name.rpartition("/")
    return head + slash + tail.partition(":")[0]


def parse_image(value: Any, name: str) -> Image | None:
    """Return an image from what ``image inspect`` prints; None where it is not what it should be.

    Args:
        value: The JSON value printed.
        name: The name that was asked for: of several digests the one of its repository is taken.
    """
    try:
        image = value[0]
        image_id = str(image["Id"])
        pinned = [str(entry) for entry in image.get("RepoDigests") or ()]
        variables = (image.get("Config") or {}).get("Env") or ()
        env = frozenset(str(entry).partition("=")[0] for entry in variables)
    except (KeyError, IndexError, TypeError, AttributeError):
        return None
    if not image_id.startswith("sha256:"):
        image_id = f"sha256:{image_id}"
    ours = [entry for entry in pinned if repository(entry).endswith(repository(name))] or pinned
    digest = ours[0].partition("@")[2] if ours else image_id
    return Image(image_id, digest or image_id, env)


def _at(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


class Engine:
    """A container runtime's command line.

    Args:
        where: The place that an attempt asks for.

    Raises:
        NotStartedError: There is no such program.
    """

    def __init__(self, where: Container) -> None:
        names = RUNTIMES if where.runtime == "auto" else (where.runtime,)
        found = next((name for name in names if shutil.which(name)), None)
        if found is None:
            raise NotStartedError(
                "container",
                f"{' and '.join(names)} not found on this machine.",
                next_step="Install podman (apt install podman, dnf install podman) or docker, or name it in `runtime`.",
            )
        self.program = found
        self.is_podman = found.rpartition("/")[2].startswith("podman")
        self.base = (found, *where.global_args)

    def ask(self, *arguments: str, time_limit_s: float = ASK_S) -> CommandResult:
        """Run a command of the runtime to its end."""
        return run_command((*self.base, *arguments), time_limit_s=time_limit_s)

    def ask_json(self, *arguments: str) -> Any:
        """Return what a command prints as JSON; None where it fails or prints something else.

        Raises:
            NotStartedError: The runtime's service does not run, or we may not use it.
        """
        result = self.ask(*arguments)
        self._require_service(result)
        try:
            return json.loads(result.stdout) if result.ok else None
        except (ValueError, RecursionError):
            return None

    def _require_service(self, result: CommandResult) -> None:
        said = result.stderr.lower()
        if any(text in said for text in _NO_ACCESS):
            raise NotStartedError(
                self.program,
                "this user may not access the docker daemon.",
                next_step="Add the user to the group docker, or use podman, which needs no daemon.",
            )
        if any(text in said for text in _NO_SERVICE):
            raise NotStartedError(
                self.program,
                "its service is not running.",
                next_step="Start it (systemctl start docker), or use podman.",
            )

    def image(self, name: str) -> Image | None:
        """Return an image that is here, by name, by digest, or by ``name@`` an image's id; None where it is not."""
        names = [name]
        if "@" in name:
            names.append(name.partition("@")[2])
        for candidate in names:
            image = parse_image(self.ask_json("image", "inspect", candidate), name)
            if image is not None:
                return image
        return None

    def pull(self, name: str) -> None:
        """Fetch an image.

        Raises:
            NotStartedError: It could not be fetched.
        """
        result = self.ask("pull", "--quiet", name, time_limit_s=PULL_S)
        if not result.ok:
            self._require_service(result)
            said = " ".join(result.stderr.split())[-600:]
            again = f"{self.program} pull {name}"
            raise NotStartedError(
                "container",
                f"the image {name} is not available locally and could not be pulled: {said or result.ending}.",
                next_step=f"Check the name, log in to its registry, or build it; then try `{again}`.",
            )

    def provide(self, where: Container) -> Image:
        """Return the image that is asked for, pulling it where that is allowed.

        Raises:
            NotStartedError: It is not here and cannot be had.
        """
        pinned = "@" in where.image
        image = None if where.pull == "always" and not pinned else self.image(where.image)
        if image is None and where.pull == "never":
            raise NotStartedError(
                "container",
                f"the image {where.image} is not available locally, and pulling is off.",
                next_step=f'Pull it (`{self.program} pull {where.image}`), build it, or set pull = "missing".',
            )
        if image is None:
            self.pull(where.image)
            image = self.image(where.image)
        if image is None:
            raise NotStartedError("container", f"the image {where.image} was pulled but still cannot be found.")
        return image

    def facts(self, *, here: bool) -> EngineFacts:
        """Return what the runtime says of itself and bears on a container's rules.

        Args:
            here: It runs on this machine.
        """
        if not self.is_podman:
            found = self.ask_json("info", "--format", "{{json .}}")
            return EngineFacts(here=here, pids=_at(found, "PidsLimit"))
        found = _at(self.ask_json("info", "--format", "json"), "host")
        controllers = _at(found, "cgroupControllers")
        return EngineFacts(
            here=here,
            rootless_podman=_at(_at(found, "security"), "rootless") is True,
            runtime=str(_at(_at(found, "ociRuntime"), "name") or ""),
            pids="pids" in controllers if isinstance(controllers, list) else None,
        )

    def state(self, name: str) -> State | None:
        """Return a container's state; None where there is no such container."""
        return parse_state(self.ask_json("container", "inspect", name))

    def remove(self, *names: str) -> CommandResult:
        """Kill and remove containers."""
        at_once = ("--time", "0") if self.is_podman else ()
        return self.ask("rm", "--force", *at_once, *names)

    def remove_orphans(self) -> tuple[str, ...]:
        """Remove what a rocmend that is gone left on this machine; return their ids."""
        listed = self.ask("ps", "--all", "--quiet", "--no-trunc", "--filter", f"label={LABEL_ATTEMPT}")
        ids = listed.stdout.split() if listed.ok else []
        here = ourselves()
        gone = []
        for one in ids:
            owner = parse_owner(label_of(self.ask_json("container", "inspect", one), LABEL_OWNER))
            if owner is not None and is_gone(owner, here):
                gone.append(one)
        return tuple(one[:12] for one in gone) if gone and self.remove(*gone).ok else ()
