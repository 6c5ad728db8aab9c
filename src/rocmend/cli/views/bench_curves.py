"""Speed of language models over the depth of the context."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from rocmend.bench.conclude import TESTS, by_length, depth_of, model_of, test_of
from rocmend.bench.records import Measured
from rocmend.report.document import Axis, Block, Plot, Point, Series

_LEAST_DEPTHS = 2
"""Depths that a curve is drawn through."""


def curves(results: Sequence[Measured]) -> list[Block]:
    """Draw the speed of language models over the depth of the context: a plot for each model and test."""
    tests: dict[tuple[str, str], list[Measured]] = defaultdict(list)
    for result in results:
        if result.figure is not None and (test := test_of(result)):
            tests[model_of(result), test].append(result)
    series: dict[tuple[str, str], dict[str, list[Measured]]] = {}
    for (model, test), some in tests.items():
        for name, chosen in by_length(model, some).items():
            settings = series.setdefault((name, test), defaultdict(list))
            for result in chosen:
                settings[result.setting.id].append(result)
    order = dict.fromkeys(result.setting.id for result in results)  # one setting looks the same in each plot
    plots: list[Block] = []
    for (model, test), settings in series.items():
        if len({depth_of(result) for some in settings.values() for result in some}) < _LEAST_DEPTHS:
            continue
        lines = tuple(
            Series(
                setting,
                tuple(
                    Point(float(depth_of(one)), one.figure or 0.0, f"depth {depth_of(one):,}", one.interval or ())
                    for one in sorted(settings[setting], key=depth_of)
                ),
            )
            for setting in order
            if setting in settings
        )
        caption = f"{model}, {TESTS[test]}"
        plots.append(Plot(Axis("Context depth", "tokens"), Axis("Speed", "tok/s"), lines, caption))
    return plots
