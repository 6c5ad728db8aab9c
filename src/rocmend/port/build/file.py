"""A text file as rules read it: by its kind, with the place of everything."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property

from rocmend.core.errors import DataError
from rocmend.port.build import cmake, docker, ini, make, shell, tokens, yaml
from rocmend.port.build.dependencies import Dependency, dependencies
from rocmend.port.build.kinds import Kind, Manner, kind_of, manner
from rocmend.port.build.lines import Line, Lines
from rocmend.port.build.settings import Setting, settings

__all__ = ["TextFile"]

_BLOCKS = {"if", "elseif", "else", "endif", "foreach", "endforeach", "while", "endwhile", "function", "endfunction"}
_BLOCKS |= {"macro", "endmacro", "block", "endblock"}
_SCRIPT_KEYS = {"run", "script", "before_script", "after_script", "args", "command", "commands", "install"}


class TextFile:
    """A build file, a list of requirements, a container or workflow file, a script or settings.

    Views of other kinds than the file's own are empty. Places are bytes; a view's text holds one character for each
    byte (``lines.shown`` makes it readable).

    Attributes:
        path: Relative to the project.
        data: The file's bytes.
        kind: None where it is of no known kind, or a project's own file for ROCm: then every view is empty.
        lines: Its lines.

    Raises:
        DataError: It is UTF-16 or holds zero bytes.
    """

    def __init__(self, path: str, data: bytes) -> None:
        if b"\x00" in data[:65536]:
            raise DataError(path, "is not text: it contains NUL bytes.", next_step="Save it as UTF-8.")
        self.path = path
        self.data = data
        self.kind = kind_of(path)
        self.lines = Lines(data)

    @property
    def text(self) -> str:
        """Return the file with one character for each byte."""
        return self.lines.text

    @cached_property
    def cmake(self) -> tuple[cmake.Command, ...]:
        """Return the commands of a CMake file."""
        return cmake.commands(self.text) if self.kind is Kind.CMAKE else ()

    @cached_property
    def make(self) -> tuple[make.Statement, ...]:
        """Return the logical lines of a Makefile."""
        return make.statements(self.text, self.lines.all) if self.kind is Kind.MAKE else ()

    @cached_property
    def instructions(self) -> tuple[docker.Instruction, ...]:
        """Return the instructions of a Dockerfile."""
        return docker.instructions(self.text, self.lines.all) if self.kind is Kind.DOCKERFILE else ()

    @cached_property
    def yaml(self) -> tuple[yaml.Entry, ...]:
        """Return the entries of a YAML file of any use."""
        known = self.kind in {Kind.YAML, Kind.COMPOSE, Kind.CONDA, Kind.WORKFLOW}
        return yaml.entries(self.text, self.lines.all) if known else ()

    @cached_property
    def values(self) -> tuple[tokens.Value, ...]:
        """Return the values of a TOML or JSON file."""
        if self.kind is Kind.TOML:
            return tuple(tokens.toml_values(self.text))
        return tuple(tokens.json_values(self.text)) if self.kind is Kind.JSON else ()

    @cached_property
    def rows(self) -> tuple[ini.Row, ...]:
        """Return the lines of values of an INI file."""
        return ini.rows(self.text, self.lines.all) if self.kind is Kind.INI else ()

    @cached_property
    def commands(self) -> tuple[shell.Command, ...]:
        """Return the shell commands of a script, a Dockerfile's RUN, a recipe or a workflow's step."""
        return tuple(sorted(self._commands(), key=lambda one: one.start))

    def command_at(self, at: int) -> shell.Command | None:
        """Return the innermost shell command that holds a place."""
        number = bisect_right(self._shell_starts, at)
        for command in reversed(self.commands[max(0, number - 64) : number]):  # commands within commands are few
            if command.start <= at < command.end:
                return command
        return None

    @cached_property
    def _shell_starts(self) -> list[int]:
        return [command.start for command in self.commands]

    @cached_property
    def settings(self) -> tuple[Setting, ...]:
        """Return the variables that the file sets, in whatever way its kind sets them."""
        return tuple(settings(self))

    @cached_property
    def dependencies(self) -> tuple[Dependency, ...]:
        """Return the packages that the file asks for, in whatever way its kind does."""
        return tuple(dependencies(self))

    def _commands(self) -> Iterator[shell.Command]:
        text = self.text
        if self.kind is Kind.SHELL:
            yield from shell.script(text, 3 if self.data.startswith(b"\xef\xbb\xbf") else 0, len(text)).commands
        for statement in self.make:
            if statement.what is make.What.RECIPE:
                for one in shell.script(text, statement.value_start, statement.value_end, make=True).commands:
                    yield one._replace(settled=statement.settled)
        for step in self.instructions:
            if step.keyword == "RUN":
                start = step.body_start
                yield from shell.script(self.uncommented, start, start + len(step.body)).commands
        for entry in self.yaml:
            if _SCRIPT_KEYS.intersection(entry.keys[-2:]) and entry.end > entry.start:
                yield from shell.script(text, entry.start, entry.end).commands

    def region(self, start: int, end: int) -> Line | None:
        """Return the whole lines that a condition on ROCm would be put around to change a place.

        None where there can be no such condition, or where one stands already. For a kind that is written beside, and
        so without conditions, the lines themselves.
        """
        if manner(self.kind) is Manner.BESIDE:
            return self.lines.covering(start, end)
        if self.kind is Kind.CMAKE:
            return self._of_command(start, end)
        if self.kind is Kind.MAKE:
            return self._of_statement(start, end)
        if self.kind is Kind.SHELL:
            return self._of_script(start, end)
        return None

    def _of_command(self, start: int, end: int) -> Line | None:
        at = bisect_right(self._command_starts, start) - 1
        # What is inserted before a command stands at its line's first byte, which may come before its name.
        for command in self.cmake[max(at, 0) : at + 2]:
            whole = self.lines.covering(command.start, command.end)
            if whole.start <= start and end <= whole.end:
                return None if command.settled or command.name in _BLOCKS else whole
        return None

    def _of_statement(self, start: int, end: int) -> Line | None:
        at = bisect_right(self._statement_starts, start) - 1
        if at < 0 or end > self.make[at].end:
            return None
        statement = self.make[at]
        plain = statement.what is not make.What.DIRECTIVE and not statement.settled and not statement.fixed
        return self.lines.covering(statement.start, statement.end) if plain else None

    def _of_script(self, start: int, end: int) -> Line | None:
        at = bisect_right(self._script_starts, start) - 1
        if at < 0:
            return None
        (first, last), free = self._script[at]
        return self.lines.covering(first, last) if free and end <= last else None

    @cached_property
    def _command_starts(self) -> list[int]:
        return [command.start for command in self.cmake]

    @cached_property
    def _statement_starts(self) -> list[int]:
        return [statement.start for statement in self.make]

    @cached_property
    def _script(self) -> list[tuple[tuple[int, int], bool]]:
        """Return a script's logical lines, and whether a condition can be put around each."""
        free: dict[tuple[int, int], bool] = {}
        for one in self.commands:
            free[one.statement] = free.get(one.statement, True) and one.alone and not one.settled
        return sorted(free.items())

    @cached_property
    def _script_starts(self) -> list[int]:
        return [statement[0] for statement, _ in self._script]

    @cached_property
    def uncommented(self) -> str:
        """Return a Dockerfile's text with the comment lines within its instructions blanked."""
        parts: list[str] = []
        at = 0
        for step in self.instructions:
            parts += [self.text[at : step.body_start], step.body]
            at = step.body_start + len(step.body)
        return "".join([*parts, self.text[at:]])
