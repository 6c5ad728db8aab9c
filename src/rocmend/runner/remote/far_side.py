"""The small POSIX shell script that runs an attempt on another host, and what it says.

It needs ``sh``, ``setsid``, ``dd``, ``grep`` and ``/proc`` there, nothing of ours. The command gets a session of its
own. The script's standard input is a lifeline: letters on it ask for signals, and when it ends, because the connection
is lost or rocmend was killed, everything that the attempt started is ended over there.

What it has to say it writes to standard error as lines behind a mark that holds a random word, so that they can be cut
out of what the command writes there, wherever they fall.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from rocmend.runner.executor import NotStartedError

ATTEMPT_VARIABLE = "ROCMEND_ATTEMPT"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_COMMON = r"""
members() {
  for d in /proc/[0-9]*; do
    { read -r l < "$d/stat"; } 2>/dev/null || continue
    set -- ${l##*) }
    [ "$4" = "$P" ] && [ "$1" != Z ] && printf '%s ' "${d#/proc/}"
  done
}
targets() {
  [ -n "$P" ] && members
  for f in $(grep -ls -- "ROCMEND_ATTEMPT=$A" /proc/[0-9]*/environ 2>/dev/null); do
    f=${f%/environ}; printf '%s ' "${f#/proc/}"
  done
}
"""

_RUN = r"""
exec 3<&0 4>&2 </dev/null 2>/dev/null
say() { printf '\036%s %s\n' "$M" "$1" >&4; }
printf '\036%s begin\n' "$M"
say begin
say "host $(getconf CLK_TCK || echo 100) $(getconf PAGESIZE || echo 4096)"
command -v setsid >/dev/null || { say "missing setsid"; exit 125; }
@START@
P=$!
say "pid $P"
(
  trap '' HUP PIPE TERM INT
  while read -r c <&3; do
    case $c in
      T) kill -TERM "$P" $(targets);;
      K) kill -KILL "$P" $(targets);;
      S) for p in $(members); do
           s=$(tr '\n' '|' < "/proc/$p/stack") && [ -n "$s" ] && say "stack $p $s"
         done;;
    esac
  done
  kill -TERM "$P" $(targets); sleep 2 >/dev/null; kill -KILL "$P" $(targets)
) >/dev/null &
C=$!
(
  trap '' HUP PIPE TERM INT
  while sleep 1 >/dev/null 4>&- 3<&-; do
    { read -r u _ < /proc/uptime; } || exit
    o= n=0
    for d in /proc/[0-9]*; do
      { read -r l < "$d/stat"; } || continue
      set -- ${l##*) }
      [ "$4" = "$P" ] || continue
      t=$((${12}+${13}+${14}+${15})) q=0 k=0
      for f in "$d"/task/*/schedstat; do
        { read -r _ y _ < "$f"; } || continue
        q=$((q+y)) k=$((k+1)); [ "$k" -lt 64 ] || break
      done
      w=; { read -r w < "$d/wchan"; }
      o="$o ${d#/proc/}:$1:$t:${22}:${18}:$q:$w"
      n=$((n+1)); [ "$n" -lt 32 ] || break
    done
    say "sample $u$o" || exit
  done
) >/dev/null 3<&- &
S=$!
wait "$P"; R=$?
kill -KILL "$S"
n=0
while l=$(targets) && [ -n "$l" ] && [ "$n" -lt 20 ]; do kill -KILL $l; sleep 0.1; n=$((n+1)); done
say "left $l"
say "exit $R"
kill -KILL "$C"
exit "$R"
"""

_END = r"""
P=
kill -TERM $(targets) 2>/dev/null; sleep 1; kill -KILL $(targets) 2>/dev/null; sleep 0.2
printf 'left %s\n' "$(targets)"
"""


def loader(script: bytes) -> str:
    """Return the remote command line that reads so long a script from standard input and runs it.

    It means the same to every login shell, csh and fish included.
    """
    return f"exec /bin/sh -c 'eval \"$(dd bs=1 count={len(script)} 2>/dev/null)\"'"


def run_script(  # noqa: PLR0913  each of them is a different thing the script holds
    *,
    argv: tuple[str, ...],
    env: Mapping[str, str | None],
    cwd: str,
    stdin: bytes,
    attempt: str,
    word: str,
) -> bytes:
    """Return the script that runs a command.

    Args:
        argv: Program and arguments.
        env: Variables added to the environment over there; None takes one away.
        cwd: Working folder; empty for the login's.
        stdin: What the command reads from standard input.
        attempt: The attempt's id, put into the command's environment.
        word: The random word of the mark.

    Raises:
        NotStartedError: A variable's name is none that a shell can set, or the program's begins with a dash.
    """
    if argv[0].startswith("-"):
        raise NotStartedError("ssh", f"the program's name {argv[0]!r} begins with a dash.", next_step="Give its path.")
    lines = []
    for name, value in {**env, ATTEMPT_VARIABLE: attempt}.items():
        if not _NAME.fullmatch(name):
            raise NotStartedError("ssh", f"a shell cannot set a variable named {name!r}.")
        lines.append(f"unset {name}" if value is None else f"export {name}={shlex.quote(value)}")
    if cwd:
        lines.insert(0, f"CDPATH= cd -- {shlex.quote(cwd)} || {{ say nofolder; exit 125; }}")
    lines.append(f"command -v -- {shlex.quote(argv[0])} >/dev/null || {{ say noprogram; exit 127; }}")
    lines.append(f"exec setsid {' '.join(map(shlex.quote, argv))} 2>&4 4>&- 3<&-")
    body = "(\n" + "\n".join(lines) + "\n)"
    if stdin:
        start = f"printf %s {shlex.quote(stdin.decode('utf-8', 'surrogateescape'))} | {body} &"
    else:
        start = f"{body} </dev/null &"
    text = f"A={shlex.quote(attempt)}\nM={shlex.quote(word)}\n" + _COMMON + _RUN.replace("@START@", start)
    return text.encode("utf-8", "surrogateescape")


def end_script(attempt: str) -> bytes:
    """Return the script that ends what is left of an attempt."""
    return f"A={shlex.quote(attempt)}\n{_COMMON}{_END}".encode()
