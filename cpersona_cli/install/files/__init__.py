"""Reading what people and programs wrote: JSON, JSONC, TOML and environment files, every value with its place."""

from __future__ import annotations
