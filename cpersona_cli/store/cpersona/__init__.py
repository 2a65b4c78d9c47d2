"""The store of the CPersona server, schema 13 to 21: counted, read and sampled."""

from __future__ import annotations
