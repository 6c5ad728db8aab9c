"""HTML and SVG elements, built so that no text can become markup."""

from __future__ import annotations

import math
from collections.abc import Mapping

from markupsafe import Markup, escape

_NOTHING: Mapping[str, object] = {}


def element(name: str, attributes: Mapping[str, object] = _NOTHING, *children: str) -> Markup:
    """Return an element; attribute values and children that are no markup are escaped.

    Args:
        name: Its name, one of ours.
        attributes: Values by name, one of ours; a number is written with up to three decimals.
        children: What is in it, in order.
    """
    written = "".join(f' {key}="{escape(_value(value))}"' for key, value in attributes.items())
    return Markup(f"<{name}{written}>{''.join(map(escape, children))}</{name}>")  # noqa: S704  escaped above


def drawing(title: str, height: float, *children: str, text: str = "") -> Markup:
    """Return an SVG drawing as wide as its place; x and widths in it are per cent, y and heights pixels.

    Args:
        title: What it shows, for those who do not see it.
        height: Pixels.
        children: What is drawn.
        text: The figures it shows, in words.
    """
    attributes = {"role": "img", "aria-label": f"{title}. {text}" if text else title, "width": "100%", "height": height}
    described = [element("title", {}, title), *([element("desc", {}, text)] if text else [])]
    return element("svg", attributes, *described, *children)


def box(x: float, width: float, y: float, height: float, kind: str) -> Markup:
    """Return a rectangle; x and width in per cent, y and height in pixels."""
    return element("rect", {"x": percent(x), "width": percent(width), "y": y, "height": height, "rx": 2, "class": kind})


def percent(value: float) -> str:
    """Return ``12.345%``."""
    return f"{_value(value)}%"


def share(value: float, whole: float) -> float:
    """Return how many per cent of the whole a value is: 0 to 100, whatever the values are."""
    if not (math.isfinite(value) and math.isfinite(whole)) or whole <= 0:
        return 0.0
    return min(max(100 * value / whole, 0.0), 100.0)


def _value(value: object) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
