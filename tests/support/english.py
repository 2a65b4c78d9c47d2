"""What is left in English in a text that is to be Japanese."""

from __future__ import annotations

import re

#: What is no sentence of ours: code, addresses, settings, options, ids, commands on lines of their own, numbers' units.
_NAMES = re.compile(
    r"`[^`\n]+`|https?://\S+|cpersona-cli(?: [a-z-]+)?(?: --\S+(?: [\w/.:][\w/.:-]*)?)*|--[a-z-]+|\b[0-9a-f]{12}\b"
    r"|[A-Z_]{4,}=\S+|(?:unset )?[A-Z]+_[A-Z_]+|\b[\w-]+[._][\w.-]+\b"
)
#: The names of products, and the words of the server and of the protocol that an agent or a user meets as they are.
_KNOWN = frozenset({
    "advisory", "agent", "api", "base", "Claude", "Code", "CPersona", "cpersona", "false", "fault", "healthy",
    "hint", "HTTP", "http", "https", "JSON", "none", "NUL", "null", "preview", "Python", "reason", "scope",
    "search", "session", "severity", "stdio", "true", "unknown", "URL", "user", "WSL", "yes",
})  # fmt: skip


def left(text: str, *foreign: str | re.Pattern[str]) -> list[str]:
    """The English words in ``text`` that are neither names nor part of what others wrote (``foreign``, frames).

    What others wrote may be broken over lines.
    """
    patterns = (words.pattern if isinstance(words, re.Pattern) else re.escape(words) for words in foreign)
    for pattern in sorted(patterns, key=len, reverse=True):
        text = re.sub(pattern.replace("\\ ", " ").replace(" ", r"\s+"), " ", text)
    own = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("│"))
    return [word for word in re.findall(r"[A-Za-z]{2,}", _NAMES.sub(" ", own)) if word not in _KNOWN]
