"""What the server will tell the agent about its memory, word for word, and what it will not say."""

from __future__ import annotations
