"""What is measured, and how it is set up."""

from __future__ import annotations

from typing import Any

import msgspec


class Unit(msgspec.Struct, frozen=True):
    """The unit of a figure.

    Attributes:
        name: As it is printed: ``TFLOPS``.
        scale: Work of one run, over its seconds, over this is the figure; 0 where the figure is the time itself.
        better: ``higher`` or ``lower``.
    """

    name: str
    scale: float
    better: str = "higher"

    def figure(self, work: float, seconds: float) -> float:
        """Return the figure of a run.

        Args:
            work: Operations, bytes, tokens … of one run.
            seconds: Its time, above 0.
        """
        return work / seconds / self.scale if self.scale else seconds * 1e3


UNITS = {
    unit.name: unit
    for unit in (
        Unit("TFLOPS", 1e12),
        Unit("TOPS", 1e12),
        Unit("GFLOPS", 1e9),
        Unit("GOPS", 1e9),
        Unit("GB/s", 1e9),
        Unit("tok/s", 1.0),
        Unit("img/s", 1.0),
        Unit("seq/s", 1.0),
        Unit("req/s", 1.0),
        Unit("ms", 0.0, "lower"),
    )
}
"""Units by name. Time in ms is a figure, too: of what is waited for, such as a first token."""


class Case(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is measured.

    Attributes:
        id: Unique in all suites, the suite's name first: ``gemm/bfloat16/4096x4096x4096/nn``.
        suite: The suite's name.
        parameters: What a workload makes it from; JSON values.
        unit: A name of ``UNITS``.
        work: Work of one run in the unit's base: operations, bytes, tokens, images; 0 for times.
        title: What a table calls it; empty for the id.
    """

    id: str
    suite: str
    parameters: dict[str, Any]
    unit: str
    work: float = 0.0
    title: str = ""

    def figure(self, seconds: float) -> float:
        """Return the figure of a run that took so long."""
        return UNITS[self.unit].figure(self.work, seconds)


class Setting(msgspec.Struct, frozen=True, omit_defaults=True):
    """How cases are run. All that differs between two settings stands in their fields.

    Attributes:
        id: ``hipblaslt``; ``default`` where nothing is set.
        env: Variables of the child's environment; None takes one away.
        options: What the suite needs besides: a build, a back end, a mode; JSON values.
        note: What it is for.
    """

    id: str
    env: dict[str, str | None] = {}
    options: dict[str, Any] = {}
    note: str = ""


DEFAULT = Setting("default")
