"""Words on their way out: near spellings, home as ``~``, secrets removed, foreign text made safe."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from json.encoder import encode_basestring, encode_basestring_ascii
from urllib.parse import urlsplit, urlunsplit

#: Text that came from a file, a process or a server is cut at this many characters when shown.
FOREIGN_LIMIT = 300

# C0 and C1 controls, bidirectional marks, and separators that some terminals treat as a line end.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")

# What a shell is given as bytes: what is unsafe, and the bytes of a name that is no UTF-8.
_UNPRINTABLE = re.compile(f"{_UNSAFE.pattern}|[\udc80-\udcff]")

# A user name and password in an address so malformed that its parts cannot be told by the rules.
_USERINFO = re.compile(r"^((?:[^/@]*?/{1,3})?)[^/]*@")


def distance(left: str, right: str, limit: int = 3) -> int:
    """Levenshtein distance between two words, or ``limit + 1`` when it is larger than ``limit``."""
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        previous, row[0] = row[0], i
        for j, b in enumerate(right, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (a != b))
        if min(row) > limit:
            return limit + 1
    return min(row[-1], limit + 1)


def nearest(word: str, candidates: Iterable[str], limit: int = 2) -> str | None:
    """The candidate closest to ``word`` within ``limit`` edits, upper and lower case counting as equal; else None.

    Of a short word half of the letters must stay: any two of them are within two edits.
    """
    limit = min(limit, len(word) // 2)
    best: tuple[int, str] | None = None
    for candidate in candidates:
        edits = distance(word.lower(), candidate.lower(), limit)
        if edits <= limit and (best is None or (edits, candidate) < best):
            best = (edits, candidate)
    return best[1] if best else None


def safe(text: str, limit: int = FOREIGN_LIMIT) -> str:
    r"""Foreign text as one harmless line: controls and direction marks become ``\x..`` escapes, the end is cut."""
    clean = _UNSAFE.sub(lambda m: m.group().encode("unicode_escape").decode(), text)
    clean = clean.encode("utf-8", "backslashreplace").decode()
    return clean if len(clean) <= limit else f"{clean[: limit - 1]}…"


def quoted(word: str) -> str:
    """``word`` as one argument of a POSIX shell: on one line and without controls, whatever it holds."""
    import shlex  # noqa: PLC0415 - not on the way to a server

    if not _UNPRINTABLE.search(word):
        return shlex.quote(word)
    plain = word.replace("\\", "\\\\").replace("'", "\\'")
    escaped = _UNPRINTABLE.sub(lambda m: "".join(f"\\x{byte:02x}" for byte in os.fsencode(m.group())), plain)
    return f"$'{escaped}'"


def tilde(text: str, home: str) -> str:
    """``text`` with the home directory written as ``~``, wherever it stands at the start of a path."""
    if len(home) < 2:
        return text
    pattern = re.escape(home.rstrip("/\\")) + r"(?=$|[/\\:'\"\s,;)])"
    return re.sub(rf"(?<![\w./\\-]){pattern}", "~", text)


def secret(value: str) -> str:
    """What may be said of a secret: that it is set, and how long it is."""
    return f"set ({len(value)} characters)" if value else "empty"


def bare_url(url: str) -> str:
    """``url`` without user name, password, query and fragment, all of which may carry secrets."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return _USERINFO.sub(r"\1", re.split("[?#]", url, maxsplit=1)[0])
    host = parts.netloc.rpartition("@")[2]
    return _USERINFO.sub(r"\1", urlunsplit((parts.scheme, host, parts.path, "", "")))


# What people write where a key or token is asked for and none is needed. Hiding these words would hide nothing and
# spoil the sentences, addresses and commands they stand in.
_NO_SECRETS = frozenset({
    "anything", "claude", "cpersona", "cembedding", "default", "dummy", "empty", "false", "fake", "http", "https",
    "infinity", "key", "local", "localai", "localhost", "lm-studio", "lmstudio", "llama", "llama.cpp", "memory",
    "no-key", "none", "not-needed", "null", "ollama", "openai", "placeholder", "stdio", "test", "token", "true",
    "unused", "vllm", "xinference",
})  # fmt: skip


def redact(text: str, secrets: Iterable[str]) -> str:
    """``text`` with each secret removed by value, also in its escaped (``repr``, JSON) forms, longest first.

    Words that stand for "no key" (``ollama``, ``none``) are no secrets, nor is anything shorter than four characters.
    """
    for form in _forms(tuple(secrets)):
        if form in text:
            text = text.replace(form, f"[{len(form)} characters removed]")
    return text


@lru_cache(maxsize=8)
def _forms(secrets: tuple[str, ...]) -> Sequence[str]:
    """Every spelling under which the secrets may appear, the longest first."""
    hidden = {value for value in secrets if value.strip().lower() not in _NO_SECRETS}
    forms = {
        form
        for value in hidden
        for form in (
            value,
            value.strip(),
            repr(value)[1:-1],
            encode_basestring(value)[1:-1],
            encode_basestring_ascii(value)[1:-1],
        )
        if len(form) >= 4
    }
    return sorted(forms, key=len, reverse=True)


def plural(count: int, noun: str, many: str = "") -> str:
    """``1 fault``, ``2 faults``; ``many`` is the irregular plural."""
    return f"{count} {noun if count == 1 else many or noun + 's'}"


def percent(part: int, whole: int) -> str:
    """A share that is 0 only of nothing and 100 only of all."""
    if not whole or part in {0, whole}:
        return "100 %" if whole and part else "0 %"
    return f"{min(99.9, max(0.1, 100 * part / whole)):.{0 if 1 <= 100 * part / whole <= 99 else 1}f} %"
