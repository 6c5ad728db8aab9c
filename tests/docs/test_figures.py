"""Each figure of the README, and of what it calls proven, is on the page cited beside it, and so are its conditions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

TOP = Path(__file__).parents[2]
README = TOP / "README.md"
PROVEN = TOP / "docs" / "explanation" / "what-is-proven.md"
SPEED = TOP / "docs" / "reference" / "mlx-speed.md"
UNITS = "tok/s|%|ms|µs|GB/s|TB/s|TFLOPS|MB|GB|MiB|GiB|\N{MULTIPLICATION SIGN}|times"
NUMBER = r"(?<![\w.,/-])\d[\d,]*(?:\.\d+)?"
FIGURE = re.compile(rf"({NUMBER})(?: to ({NUMBER}))?\s?({UNITS})(?!\w)")
LINK = re.compile(r"\]\(([^)#:\s]+\.md)(?:#[\w-]*)?\)")
CONDITIONS = (r"\bOn (?:NVIDIA|AMD) (\w+)", r"\bprompt of (\d+) tokens", r"\bthen (\d+) generated")
"""What a page that measured says at its head; whoever cites a figure of it has to name the same."""


def figures(text: str) -> Iterator[tuple[str, str]]:
    for found in FIGURE.finditer(text):
        yield from ((number, found[3]) for number in (found[1], found[2]) if number)


def in_tables(text: str) -> Iterator[tuple[str, str]]:
    """Yield the numbers that have their unit from the head of their column."""
    head: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")] if line.startswith("|") else []
        head = head if cells and head else cells
        for cell, title in zip(cells, head, strict=False):
            if (unit := re.search(rf"(?:^|[ ,(])({UNITS})(?:$|[ )])", title)) and re.fullmatch(NUMBER, cell):
                yield cell, unit[1]


def is_rounded(claimed: str, measured: str) -> bool:
    """Return whether a number is another one, rounded to as many decimals as are given."""
    decimals = len(claimed.partition(".")[2])
    claim, real = (float(number.replace(",", "")) for number in (claimed, measured))
    return abs(claim - real) <= 0.5 / 10.0**decimals + 1e-9


def missing(cited: list[tuple[str, str]], block: str, page: str) -> list[str]:
    """Return the figures that a page lacks, and the conditions of the page that the block around them lacks."""
    there = {*figures(page), *in_tables(page)}
    lost = [
        f"{number} {unit}"
        for number, unit in cited
        if not any(unit == other and is_rounded(number, measured) for measured, other in there)
    ]
    named = (re.search(pattern, page.partition("\n|")[0]) for pattern in CONDITIONS)
    return lost + [word[0] for word in named if word and not re.search(rf"\b{word[1]}\b", block)]


class Claim(NamedTuple):
    """A figure or a range, the paragraph or list item around it, and the page linked nearest to it."""

    figures: list[tuple[str, str]]
    block: str
    page: Path | None


def claims(page: Path) -> Iterator[Claim]:
    """Yield those of a page. Where a block links nothing, the link before it in the section is the nearest."""
    text = re.sub(r"<!-- output of the program -->\n```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    last: Path | None = None
    for block in re.split(r"\n\s*\n|\n(?=\s*[*-] |#+ |```\w)", text):
        links = [(link.start(), page.parent / link[1]) for link in LINK.finditer(block)]
        for found in FIGURE.finditer(block):
            _, near = min((abs(at - found.start()), path) for at, path in links) if links else (0, last)
            yield Claim(list(figures(found[0])), block, near)
        last = links[-1][1] if links else None if block.startswith("#") else last


CLAIMS = [
    *claims(README),
    *(claim for claim in claims(PROVEN) if LINK.search(claim.block)),  # without one it is itself the source
]


def test_there_are_figures() -> None:
    assert {unit for claim in CLAIMS for _, unit in claim.figures} >= {"MB", "GB", "times"}


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: " ".join(claim.figures[-1]))
def test_a_figure_is_on_the_page_cited_beside_it(claim: Claim) -> None:
    assert claim.page is not None, f"no page is cited for {claim.figures}"
    assert missing(claim.figures, claim.block, claim.page.read_text()) == [], claim.page.relative_to(TOP)


PAGE = """On NVIDIA H200, 2026-11-22: a prompt of 512 tokens, then 128 generated ones, at 4,206 GB/s.

| model | rocmend, tok/s | times | share |
|---|--:|--:|--:|
| a | 913.5 | 3.14 | 9% |
"""


@pytest.mark.parametrize(
    ("block", "lost"),
    [
        ("H200, 512 and 128: 914 tok/s, 3.1 times, 9 % at 4,206 GB/s", []),
        ("H200, 512 and 128: 915 tok/s", ["915 tok/s"]),
        ("H200, 512 and 128: 3.14 to 4.2 times", ["4.2 times"]),
        ("H200, 512 and 128: 913.5 ms", ["913.5 ms"]),
        ("512 and 1280: 914 tok/s", ["On NVIDIA H200", "then 128 generated"]),
        ("H200, 512, 128: 23 tok/s of 914 %", ["23 tok/s", "914 %"]),
    ],
)
def test_what_is_missed(block: str, lost: list[str]) -> None:
    assert missing(list(figures(block)), block, PAGE) == lost


def speeds() -> dict[tuple[str, str], tuple[str, str, str]]:
    """Return tok/s here, tok/s of MLX and how many times that is, by model and kind, with nothing in the cache."""
    rows = (line.strip("| ").split(" | ") for line in SPEED.read_text().splitlines() if line.startswith("| "))
    return {(row[0], row[2]): (row[3], row[4], row[5]) for row in rows if row[1] == "0"}


def test_ranges_are_those_of_all_models() -> None:
    text = " ".join(PROVEN.read_text().split())
    assert "nothing in the cache before it" in text
    for words, kind in (("prompts ran at", "prompt"), ("generation at", "generation")):
        told = re.search(rf"{words} ([\d.]+) to ([\d.]+) times", text)
        assert told is not None
        times = sorted((speed[2] for (_, of), speed in speeds().items() if of == kind), key=float)
        assert is_rounded(told[1], times[0]), kind
        assert is_rounded(told[2], times[-1]), kind


def test_the_table_of_mlx_is_that_of_all_figures() -> None:
    page = (TOP / "docs" / "explanation" / "mlx.md").read_text()
    table = page.partition("| model | prompt, tok/s |")[2].partition("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    assert {row[0].lower() for row in rows} == {model for model, _ in speeds()}
    for row in rows:
        measured = (*speeds()[row[0].lower(), "prompt"], *speeds()[row[0].lower(), "generation"])
        assert all(map(is_rounded, row[1:], measured)), row


def test_as_many_targets_are_compiled_for_as_is_told() -> None:
    kept = msgspec.json.decode((TOP / "docs" / "reference" / "kernels-compiled.json").read_bytes())
    targets = {row[kept["columns"].index("target")] for row in kept["rows"]}
    names = ("seven", "eight", "nine", "ten", "eleven", "twelve")
    for page in (README, PROVEN):
        told = re.search(r"for (\w+) gfx targets", " ".join(page.read_text().split()))
        assert told is not None, page.name
        assert told[1] == names[len(targets) - 7], page.name


def test_as_many_cases_were_executed_as_machine_code_as_is_told() -> None:
    kept = msgspec.json.decode((TOP / "src" / "rocmend" / "kernels" / "data" / "runs.json").read_bytes())
    runs = [run for run in kept if run["rung"] == "emulated"]
    told = re.search(
        r"\*emulated\*: ([\d,]+) of ([\d,]+) runs of cases, of all (\d+) ops on (\w+) of them",
        " ".join(PROVEN.read_text().split()),
    )
    assert told is not None
    passed, count = (f"{sum(run[name] for run in runs):,}" for name in ("passed", "count"))
    targets = ("six", "seven", "eight", "nine", "ten", "eleven")[len({run["target"] for run in runs}) - 6]
    assert told.groups() == (passed, count, str(len({run["op"] for run in runs})), targets)
