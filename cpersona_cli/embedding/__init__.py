"""The one embedding client: it sends what the server would send, and names what came back."""

from __future__ import annotations
