"""A text file as rules read it: by its kind, with the place of everything."""

from __future__ import annotations

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
            raise DataError(path, "is no text: it holds zero bytes.", next_step="Save it as UTF-8.")
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
        return tuple(self._commands())

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
                blanked = " " * step.body_start + step.body
                yield from shell.script(blanked, step.body_start, len(blanked)).commands
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
            held = [one for one in self.commands if one.statement[0] <= start <= one.statement[1]]
            if held and all(one.alone and not one.settled for one in held) and end <= held[0].statement[1]:
                return self.lines.covering(*held[0].statement)
        return None

    def _of_command(self, start: int, end: int) -> Line | None:
        for command in self.cmake:
            whole = self.lines.covering(command.start, command.end)
            if whole.start <= start and end <= whole.end:
                return None if command.settled or command.name in _BLOCKS else whole
        return None

    def _of_statement(self, start: int, end: int) -> Line | None:
        for statement in self.make:
            if statement.start <= start and end <= statement.end:
                plain = statement.what is not make.What.DIRECTIVE and not statement.settled and not statement.fixed
                return self.lines.covering(statement.start, statement.end) if plain else None
        return None
