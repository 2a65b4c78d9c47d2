"""Starting registered servers as their clients do, apart from everything that belongs to the user."""

from __future__ import annotations
