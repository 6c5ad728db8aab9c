"""Stands between rocmend and a local attempt, so that nothing of the attempt outlives either of them.

A script of its own, run as ``python -I -S warden.py CONTROL STATUS``; it imports nothing of ours and starts in a few
milliseconds. It is the subreaper of the attempt: whatever the attempt starts, daemons included, stays its descendant.
When its control pipe ends, because rocmend closed it or was killed, it kills all of them and leaves.

An attempt may kill or stop its parent. So the warden has a guard, its own parent, which runs this script too: it
continues a warden that was stopped, and ends what is left of the attempt where the warden was killed.

The first line on the control pipe is the request; then single bytes: ``T`` asks all processes to end, ``K`` kills them,
``S`` kills what is left once the main process is over. Replies are JSON lines on the status pipe.

Sources: https://man7.org/linux/man-pages/man2/PR_SET_CHILD_SUBREAPER.2const.html,
https://man7.org/linux/man-pages/man2/PR_SET_PDEATHSIG.2const.html
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import json
import os
import resource
import select
import signal
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
KILL_S = 2.0
"""Seconds after which a killed process counts as stuck in the kernel."""

MOST_STOPS = 50
"""A warden that was stopped this often is given up."""

_PAUSE_S = 0.005
_LEAST_TURNS = 40  # of looking and killing, so that a pause of our own does not make a survivor of a process
_libc = ctypes.CDLL(None, use_errno=True)


def descendants(root: int) -> list[tuple[int, str]]:
    """Return the living descendants of a process with their states, parents first."""
    children: dict[int, list[tuple[int, str]]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208  pathlib would double the time that this script needs to start
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                fields = file.read().rpartition(b")")[2].split()
                children.setdefault(int(fields[1]), []).append((int(name), fields[0].decode()))
    found: list[tuple[int, str]] = []
    waiting = [root]
    while waiting:
        for pid, state in children.get(waiting.pop(), ()):
            waiting.append(pid)
            if state not in "ZX":
                found.append((pid, state))
    return found


def threads_of(user: int) -> int:
    """Return how many threads a user has, which is what the kernel counts as processes."""
    count = 0
    for name in os.listdir("/proc"):  # noqa: PTH208  as above
        if name.isdigit():
            with contextlib.suppress(OSError):
                if os.stat(f"/proc/{name}").st_uid == user:  # noqa: PTH116  as above
                    count += len(os.listdir(f"/proc/{name}/task"))  # noqa: PTH208  as above
    return count


def _limit(kind: int, most: int) -> None:
    """Lower a limit of this process; 0 leaves it."""
    hard = resource.getrlimit(kind)[1]
    if most and (hard == resource.RLIM_INFINITY or most < hard):
        resource.setrlimit(kind, (most, most))


def signal_all(pids: list[int], *signals: signal.Signals) -> None:
    """Send signals to processes, those that are gone left out."""
    for sig in signals:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, sig)


class Warden:
    """Starts the main process, reaps, and ends what it is told to end."""

    def __init__(self, control: int, status: int) -> None:
        self.control = control
        self.status = status
        self.main = -1
        self.buffer = b""

    def say(self, message: dict[str, object]) -> None:
        """Write a reply; nobody may be there to read it."""
        with contextlib.suppress(OSError):
            os.write(self.status, json.dumps(message).encode() + b"\n")

    def read_request(self) -> dict[str, object] | None:
        """Return the request, or None where the control pipe ended first."""
        while b"\n" not in self.buffer:
            data = os.read(self.control, 1 << 16)
            if not data:
                return None
            self.buffer += data
        line, _, self.buffer = self.buffer.partition(b"\n")
        request: dict[str, object] = json.loads(line)
        return request

    def start(self, request: dict[str, object]) -> bool:
        """Fork and execute the main process; return whether it runs."""
        argv: list[str] = request["argv"]  # type: ignore[assignment]
        env: dict[str, str] = request["env"]  # type: ignore[assignment]
        error_read, error_write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(error_read)
            try:
                self.become(request)
                os.execvpe(argv[0], argv, env)  # noqa: S606  no shell is what we want
            except BaseException as error:  # noqa: BLE001  any failure before the program runs is to be told
                number = error.errno if isinstance(error, OSError) else None
                os.write(error_write, json.dumps([number, f"{type(error).__name__}: {error}"]).encode())
            finally:
                os._exit(127)
        self.main = pid
        os.close(error_write)
        for descriptor in request["descriptors"]:  # type: ignore[attr-defined]
            os.close(descriptor)
        failure = os.read(error_read, 4096)
        os.close(error_read)
        if failure:
            os.waitpid(pid, 0)
            number, text = json.loads(failure)
            self.say({"failed": text, "errno": number})
            return False
        self.say({"pid": pid, "warden": os.getpid()})
        return True

    def become(self, request: dict[str, object]) -> None:
        """In the child: a session of its own, its limits, folder and descriptors."""
        os.setsid()
        _libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() == 1:  # the warden went before the line above
            os._exit(127)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        memory: int = request["memory_bytes"]  # type: ignore[assignment]
        if memory:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        _limit(resource.RLIMIT_FSIZE, request["file_bytes"])  # type: ignore[arg-type]
        if request["processes"]:
            _limit(resource.RLIMIT_NPROC, threads_of(os.getuid()) + request["processes"])  # type: ignore[operator]
        if request["core"] is False:
            resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        if request["cwd"]:
            os.chdir(str(request["cwd"]))
        descriptors: list[int] = request["descriptors"]  # type: ignore[assignment]
        stdin, stdout, stderr, *kept = descriptors
        for target, descriptor in enumerate((stdin, stdout, stderr)):
            os.dup2(descriptor, target)
        for descriptor in (stdin, stdout, stderr, self.control, self.status):
            if descriptor > 2:
                os.close(descriptor)
        for descriptor in kept:
            os.set_inheritable(descriptor, True)

    def reap(self) -> None:
        """Reap every child that is over, and tell of the main one."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.main:
                self.say({"exit": status, "max_rss_bytes": usage.ru_maxrss * 1024})

    def kill_all(self) -> dict[str, object]:
        """Kill every descendant; return how many there were, and pid, state and wait of those that would not end."""
        deadline = time.monotonic() + KILL_S
        found: set[int] = set()
        for turn in itertools.count():
            self.reap()
            left = descendants(os.getpid())
            if not left:
                self.reap()
                return {"settled": [], "found": len(found)}
            if time.monotonic() > deadline and turn >= _LEAST_TURNS:
                return {"settled": [[pid, state, wchan(pid)] for pid, state in left], "found": len(found)}
            pids = [pid for pid, _ in left]
            found.update(pids)
            if len(pids) > 1:
                signal_all(pids, signal.SIGSTOP)  # so that none can fork while its turn has not come
            signal_all(pids, signal.SIGKILL)
            time.sleep(_PAUSE_S)
        return {}

    def run(self) -> None:
        """Serve until the control pipe ends; then leave nothing behind."""
        wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        request = self.read_request()
        if request is None or not self.start(request):
            return
        commands = self.buffer
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        poll.register(wake_read, select.POLLIN)
        while True:
            for command in commands.decode():
                if command == "T":
                    signal_all([pid for pid, _ in descendants(os.getpid())], signal.SIGTERM, signal.SIGCONT)
                elif command in "KS":
                    self.say(self.kill_all())
            self.reap()
            ready = {descriptor for descriptor, _ in poll.poll()}
            if wake_read in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(wake_read, 4096)
            commands = b""
            if self.control in ready:
                commands = os.read(self.control, 64)
                if not commands:
                    self.kill_all()
                    return


def wchan(pid: int) -> str:
    """Return the kernel function that a process waits in, empty where it may not be read."""
    try:
        with open(f"/proc/{pid}/wchan", encoding="ascii", errors="replace") as file:  # noqa: PTH123  as above
            return file.read().strip().strip("0")
    except OSError:
        return ""


def guard(warden: int, status: int) -> None:
    """Wait for the warden; continue it where it is stopped, do its work where it is killed.

    Args:
        warden: Our child.
        status: The status pipe.
    """
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208  as above
        if int(name) not in {0, 1, 2, status}:  # the attempt's pipes are to end when it does
            with contextlib.suppress(OSError):
                os.close(int(name))
    own = Warden(-1, status)
    for stops in itertools.count(1):
        code = os.waitpid(warden, os.WUNTRACED)[1]
        if not os.WIFSTOPPED(code):
            break
        if stops == 1:
            own.say({"stopped": warden})
        os.kill(warden, signal.SIGCONT if stops < MOST_STOPS else signal.SIGKILL)
    if code:
        own.say({"ended": code, **own.kill_all()})


def main() -> None:
    """Become a subreaper that no terminal signal reaches, and serve, under a guard."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    control, status = int(sys.argv[1]), int(sys.argv[2])
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    warden = os.fork()
    if warden:
        guard(warden, status)
    else:
        _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # a child does not inherit it
        Warden(control, status).run()
    os._exit(0)  # rocmend waits for it, and Python's own tidying up would take longer than all the rest


if __name__ == "__main__":
    main()
