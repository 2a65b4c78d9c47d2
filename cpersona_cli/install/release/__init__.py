"""Which release of the server a registration would start, and the Python that would run it."""

from __future__ import annotations
