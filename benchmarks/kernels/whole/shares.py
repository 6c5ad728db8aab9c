"""Which topics each GPU measures, so that all are done at about the same time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

START_S = 8.0
"""A process for a topic and rank, until it measures."""
UNKNOWN_S = 0.5
"""A bench whose time is not known."""


def costs(topics: Sequence[str], result: Mapping[str, Any] | None) -> dict[str, float]:
    """Return the seconds of each topic, by those of an earlier result's rows."""
    rows = result["results"] if result else []
    found = {}
    for topic in topics:
        mine = [row for row in rows if row.get("topic") == topic]
        ranks = {row["rank"] for row in mine} or {1, 2}
        found[topic] = sum(row.get("seconds", UNKNOWN_S) for row in mine) + START_S * len(ranks)
    return found


def shares(topics: Sequence[str], count: int, result: Mapping[str, Any] | None) -> list[list[str]]:
    """Return the topics of each GPU, in the order given: the longest first, each to who has least.

    Args:
        topics: By importance.
        count: Of GPUs.
        result: An earlier one, for its seconds; None where there is none.
    """
    seconds = costs(topics, result)
    found: list[list[str]] = [[] for _ in range(min(count, len(topics)))]
    for topic in sorted(topics, key=lambda one: -seconds[one]):
        min(found, key=lambda mine: sum(seconds[one] for one in mine)).append(topic)
    return [sorted(mine, key=list(topics).index) for mine in found]


def lacking(result: Mapping[str, Any] | None, wanted: Sequence[str]) -> list[str]:
    """Return which benches, by OP/NAME, a result has no time of."""
    rows = result["results"] if result else []
    timed = {f"{row['op']}/{row['name']}" for row in rows if row["gate"]["ok"] and "ours" in row}
    return [one for one in wanted if one not in timed]


def filled(result: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result with what another has in the place of what failed or was not measured."""
    fresh = {(row["op"], row["name"]): row for row in more["results"] if row["gate"]["ok"] and "ours" in row}
    rows = [row if "ours" in row else fresh.get((row["op"], row["name"]), row) for row in result["results"]]
    there = {(row["op"], row["name"]) for row in rows}
    rows += [row for key, row in fresh.items() if key not in there]
    there |= set(fresh)
    missed = [one for one in result["not_measured"] if tuple(one.split("/", 1)) not in there]
    return {**result, "results": rows, "not_measured": missed}
