"""Old conversations: read from the exports people have, and brought in without harming the memories that are there."""

from __future__ import annotations
