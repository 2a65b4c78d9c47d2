"""What is installed and how it is configured: client files, environments, settings, versions, live servers."""

from __future__ import annotations
