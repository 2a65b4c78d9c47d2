"""The writing side of a store: the files of a job, and the one transaction that brings its vectors in."""

from __future__ import annotations
