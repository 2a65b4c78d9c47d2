"""One report, many renderers; the only place that prints."""

from __future__ import annotations
