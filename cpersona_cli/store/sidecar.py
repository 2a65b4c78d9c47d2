"""The calibration file the server writes beside its database: thresholds per agent and the width they belong to."""

from __future__ import annotations

import json
import math
from pathlib import Path

#: Bytes; a real one has a few hundred.
LIMIT = 1 << 20

_OBJECTS = ("agent_thresholds", "agent_fused_gates", "agent_betas")


def read_calibration(path: Path) -> tuple[dict[str, object] | None, str]:
    """(content, problem) of a calibration file; ``(None, "")`` where there is none. Raises nothing."""
    try:
        if not path.is_file():
            return None, "it is not a regular file" if path.exists() else ""
        with path.open("rb") as file:
            raw = file.read(LIMIT + 1)
    except OSError as error:
        return None, f"it cannot be read: {error.strerror}"
    if len(raw) > LIMIT:
        return None, f"it is longer than {LIMIT >> 20} MiB; the server writes a few hundred bytes"
    if not raw.strip(b"\0 \t\r\n"):
        return None, "it is empty"
    try:
        data = json.loads(raw.decode())
    except UnicodeDecodeError as error:
        return None, f"it is not UTF-8 (byte {error.start})"
    except json.JSONDecodeError as error:
        return None, f"it is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
    except (ValueError, RecursionError):
        return None, "it is not JSON the server could read"
    if not isinstance(data, dict):
        return None, "it holds no JSON object"
    return data, _wrong(data)


def _wrong(data: dict[str, object]) -> str:
    width = data.get("embedding_dim")
    if width is not None and (not isinstance(width, int) or isinstance(width, bool) or width < 1):
        return "embedding_dim is not a number of dimensions"
    for name in ("global_threshold", "global_fused_gate"):
        if data.get(name) is not None and not _number(data[name]):
            return f"{name} is not a number"
    for name in _OBJECTS:
        values = data.get(name)
        if values is not None and not (isinstance(values, dict) and all(_number(v) for v in values.values())):
            return f"{name} is not an object of numbers"
    return ""


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
