"""Every parser of a machine's text takes time that grows with the text and no faster."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import pkgutil
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rocmend.core.errors import RocmendError
from rocmend.machine import parse
from rocmend.machine.parse.kernel_log import CLASSES, classify, relevant_lines

SIZE = 1_000_000
LIMIT_S = 2.0
UNITS = ("a", " ", "0", "(", "=", '"', "a=", "0:", "a ", "/", ".", "\t", "-a")


def parsers() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public function of ``machine.parse`` whose first parameter is a text."""
    for module in pkgutil.iter_modules(parse.__path__):
        members = vars(importlib.import_module(f"{parse.__name__}.{module.name}"))
        for name, function in members.items():
            if (
                name.startswith("_")
                or not inspect.isfunction(function)
                or function.__module__.rpartition(".")[2] != module.name
            ):
                continue
            first, *others = inspect.signature(function).parameters.values()
            plain = all(item.annotation in {"str", "int"} or item.default is not item.empty for item in others)
            if first.annotation in {"str", "str | None", "bytes"} and plain:
                yield f"{module.name}.{name}", function


PARSERS = dict(parsers())


def feed(function: Callable[..., Any], text: str) -> float:
    first, *others = inspect.signature(function).parameters.values()
    more = [1 if item.annotation == "int" else "file" for item in others if item.default is item.empty]
    before = time.process_time()
    with contextlib.suppress(RocmendError, ValueError):
        function(text.encode() if first.annotation == "bytes" else text, *more)
    return time.process_time() - before


@pytest.mark.parametrize("name", PARSERS)
def test_a_line_of_a_million_characters_is_parsed_in_time(name: str) -> None:
    for unit in UNITS:
        took = feed(PARSERS[name], unit * (SIZE // len(unit)))
        assert took < LIMIT_S, (name, unit, took)


def test_the_parsers_were_found() -> None:
    assert len(PARSERS) > 25
    assert "kernel_log.classify" in PARSERS


@pytest.mark.parametrize("item", CLASSES, ids=lambda item: item.id)
def test_a_class_of_kernel_lines_takes_no_time_on_a_line_made_of_its_own_words(item: Any) -> None:
    example = item.examples[0]
    for unit in (*example.lower().split(), example[: len(example) // 2] + " "):
        text = unit * (SIZE // 10 // len(unit))
        before = time.process_time()
        classify(text)
        relevant_lines(text)
        assert time.process_time() - before < LIMIT_S, (item.id, unit)
