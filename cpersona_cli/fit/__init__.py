"""Whether stored vectors still fit the endpoint that answers: told by measurement, never by a name alone."""

from __future__ import annotations
