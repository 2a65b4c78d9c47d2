"""Command-line words told apart: options, their values, and what comes after them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cpersona_cli.record import field, record


@record
class Options:
    """The options in front of the first plain word, as (name, value) pairs, and the words from there on.

    A flag without value has the value None; ``--name=value`` and ``-nvalue`` are taken apart.
    """

    pairs: tuple[tuple[str, str | None], ...] = ()
    rest: tuple[str, ...] = ()
    names: frozenset[str] = field(default_factory=frozenset)

    def all(self, *names: str) -> tuple[str, ...]:
        """Every value given to one of ``names``, in order."""
        return tuple(value for name, value in self.pairs if name in names and value is not None)

    def last(self, *names: str) -> str:
        """The last value given to one of ``names``, or an empty string."""
        return (self.all(*names) or ("",))[-1]

    def has(self, *names: str) -> bool:
        """Whether one of ``names`` is given at all."""
        return not self.names.isdisjoint(names)


def names(text: str) -> frozenset[str]:
    """Option names written as one text, separated by blanks."""
    return frozenset(text.split())


def leading(
    words: Sequence[str],
    *,
    valued: Collection[str] = (),
    flags: Collection[str] | None = None,
    stop: Collection[str] = (),
    final: Collection[str] = (),
) -> Options:
    """Read options up to the first plain word, ``--`` (dropped) or an option in ``stop`` (kept).

    Options in ``valued`` take a value. With ``flags`` given, it is the other way round for long options: all of them
    take a value but those. Clusters of short flags (``-it``) are taken apart; a valued one ends its cluster.
    Nothing behind an option in ``final`` and its value is an option any more (Python's ``-m``).
    """
    pairs: list[tuple[str, str | None]] = []
    index = 0
    while index < len(words):
        word = words[index]
        if pairs and pairs[-1][0] in final:
            break
        if word in stop or not word.startswith("-") or word == "-":
            break
        index += 1
        if word == "--":
            break
        name, equals, value = word.partition("=")
        if word.startswith("--") or (name in valued and equals):
            takes = name in valued if flags is None else name not in flags
            if equals:
                pairs.append((name, value))
            elif takes and index < len(words):
                pairs.append((name, words[index]))
                index += 1
            else:
                pairs.append((name, None))
            continue
        if word in valued and len(word) > 2:  # a long name with one dash, as in ``-Command``
            pairs.append((word, words[index] if index < len(words) else None))
            index += 1
            continue
        for position, letter in enumerate(word[1:], 2):
            short = f"-{letter}"
            if short not in valued:
                off = word[position:].startswith("=")  # ``-i=false``
                pairs.append((short, word[position + 1 :] if off else None))
                if off:
                    break
                continue
            inline = word[position:].removeprefix("=")
            if inline:
                pairs.append((short, inline))
            elif index < len(words):
                pairs.append((short, words[index]))
                index += 1
            break
    return Options(tuple(pairs), tuple(words[index:]), frozenset(name for name, _ in pairs))
