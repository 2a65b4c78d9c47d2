"""Reading the one JSON document of a run, held to its schema."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator


@cache
def _validator() -> Draft202012Validator:
    schema = json.loads((Path(__file__).parents[1] / "report" / "document.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def document(text: str) -> dict[str, Any]:
    """The document that ``text`` holds; fails when there is more or less than one, or when it breaks the schema."""
    parsed: dict[str, Any] = json.loads(text)
    problems = [
        f"{'/'.join(map(str, error.absolute_path))}: {error.message}" for error in _validator().iter_errors(parsed)
    ]
    assert not problems, problems
    return parsed
