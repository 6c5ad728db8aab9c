"""Linear algebra."""

from __future__ import annotations
