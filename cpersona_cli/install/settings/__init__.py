"""Every variable of the server: what it means, and what it comes to in an environment."""

from __future__ import annotations
