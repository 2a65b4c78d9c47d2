"""What uv and pip call a requirement: a distribution's name and the releases that will do."""

from __future__ import annotations

import re

from cpersona_cli.install.release.version import key, older
from cpersona_cli.record import record

_NAMED = re.compile(r"^([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[[^\]]*\])?\s*(.*)$", re.DOTALL)
_CLAUSE = re.compile(r"^(===|==|!=|<=|>=|~=|<|>)\s*([^\s,;]+)$")
_WHEEL = re.compile(r"([A-Za-z0-9_.]+)-(\d[^-]*)(?:-[^-/\\]+){2,4}\.whl$|([A-Za-z0-9_.-]+)-(\d[^-/\\]*)\.tar\.gz$")


@record(kw_only=True)
class Requirement:
    """A requirement taken apart.

    ``pin`` is the one release that will do, if there is one; ``clauses`` are (operator, release) pairs; ``latest``
    means ``NAME@latest``; ``source`` is a URL, a path or a repository instead of an index.
    """

    name: str = ""
    pin: str = ""
    clauses: tuple[tuple[str, str], ...] = ()
    latest: bool = False
    source: str = ""

    def allows(self, release: str) -> bool:
        """Whether ``release`` will do; a clause that cannot be read allows everything."""
        if self.pin and key(self.pin) is not None and "*" not in self.pin:
            return key(release) == key(self.pin)
        return all(_allows(operator, bound, release) for operator, bound in self.clauses)


def requirement(text: str) -> Requirement:
    """Read ``cpersona``, ``cpersona@2.6.14``, ``cpersona[x]>=2.6,<3``, a path, a wheel or a repository URL."""
    text = text.strip()
    named = _NAMED.match(text)
    tail = named.group(2).strip() if named else ""
    if named and tail.startswith("@"):
        wanted = tail[1:].strip()
        if wanted == "latest":
            return Requirement(name=normal(named.group(1)), latest=True)
        if key(wanted) is not None:
            return Requirement(name=normal(named.group(1)), pin=wanted, clauses=(("==", wanted),))
        return Requirement(name=normal(named.group(1)), source=wanted)
    if "://" in text or "/" in text or "\\" in text or text.endswith((".whl", ".tar.gz")) or text in {".", ".."}:
        return _from_source(text)
    if not named:
        return Requirement(source=text)
    clauses = []
    for part in tail.split(";", 1)[0].strip("() ").split(","):
        clause = _CLAUSE.match(part.strip())
        if clause:
            clauses.append((clause.group(1), clause.group(2)))
    pins = [bound for operator, bound in clauses if operator in {"==", "==="} and "*" not in bound]
    return Requirement(name=normal(named.group(1)), pin=pins[0] if pins else "", clauses=tuple(clauses))


def normal(name: str) -> str:
    """A distribution's name in its normal form (``CPersona_CLI`` is ``cpersona-cli``)."""
    return re.sub(r"[-_.]+", "-", name).strip("-").lower()


def _from_source(text: str) -> Requirement:
    wheel = _WHEEL.search(text)
    if wheel:
        release = wheel.group(2) or wheel.group(4)
        return Requirement(name=normal(wheel.group(1) or wheel.group(3)), pin=release, source=text)
    path = re.split(r"[#?]", text, maxsplit=1)[0].rstrip("/\\")
    last = re.split(r"[/\\]", path)[-1]
    name, _, reference = last.partition("@")
    pin = reference.removeprefix("v") if key(reference) is not None else ""
    return Requirement(name=normal(name.removesuffix(".git")), pin=pin, source=text)


def _allows(operator: str, bound: str, release: str) -> bool:
    if bound.endswith(".*"):
        stem = bound[:-2]
        same = release == stem or release.startswith(f"{stem}.")
        return same if operator == "==" else not same if operator == "!=" else True
    if key(bound) is None or key(release) is None:
        return True
    below, above, same = older(release, bound), older(bound, release), key(release) == key(bound)
    if operator == "~=":
        stem = bound.rsplit(".", 1)[0]
        return not below and (release == stem or release.startswith(f"{stem}."))
    return {
        "==": same,
        "===": same,
        "!=": not same,
        "<": below,
        ">": above,
        "<=": not above,
        ">=": not below,
    }[operator]
