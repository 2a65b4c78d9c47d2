"""What is sent to measure an endpoint: texts that no cache has seen, a long passage, and pairs that belong together.

Nothing here is anybody's memory. Every text but the anchors carries the run's nonce, so that neither a cache of the
server nor one of a gateway can answer in the place of the model.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence

from cpersona_cli.embedding.meaning import cosine
from cpersona_cli.record import record

#: Sentences about the same thing in other words. They share the words that carry the meaning, so that a model of
#: words and a model of sentences both find each text's partner among all the others.
ANCHORS: tuple[tuple[str, str], ...] = (
    ("The grey cat is asleep on the warm sofa.", "A cat is asleep on the sofa, grey and warm."),
    ("Bread needs forty minutes in a hot oven.", "Leave the bread in the hot oven for forty minutes."),
    ("The first train to the coast leaves at seven.", "At seven the first train leaves for the coast."),
    ("The backup failed because the disk was full.", "A full disk is why the backup failed."),
    ("Her daughter plays violin in the school orchestra.", "The school orchestra has her daughter on violin."),
)

_GARDEN = [
    "garden",
    "soil",
    "seed",
    "water",
    "root",
    "leaf",
    "stem",
    "bloom",
    "petal",
    "thorn",
    "hedge",
    "orchard",
    "apple",
    "pear",
    "plum",
    "cherry",
    "barrow",
    "spade",
    "rake",
    "fence",
    "gate",
    "path",
    "gravel",
    "moss",
    "fern",
    "ivy",
    "compost",
    "rain",
    "frost",
    "spring",
    "summer",
    "autumn",
]
_HARBOUR = [
    "harbour",
    "crane",
    "vessel",
    "anchor",
    "cargo",
    "tide",
    "pilot",
    "buoy",
    "mast",
    "hull",
    "rope",
    "deck",
    "pier",
    "gull",
    "storm",
    "compass",
]
_KITCHEN = [
    "kitchen",
    "kettle",
    "spoon",
    "flour",
    "butter",
    "oven",
    "pepper",
    "salt",
    "onion",
    "knife",
    "plate",
    "bowl",
    "sugar",
    "lemon",
    "stove",
    "cup",
]


def nonce() -> str:
    """A word that no text of an earlier run holds."""
    return secrets.token_hex(4)


def fresh(word: str) -> tuple[str, str, str, str]:
    """Four different texts: plain ASCII, accented, CJK, and with emoji."""
    return (
        f"Note {word}: the ladder stands behind the shed.",
        f"Żółta łódź płynie, où l’été s’achève à côté du château; Größe {word}.",
        f"図書館の窓から港の灯りが見える。{word}",
        f"🚲 up the hill, 🌧️ all the way, then 🍲 {word}",
    )


def single(word: str, number: int) -> str:
    """One short ASCII text, another one for each ``number``."""
    return f"Call {number} of {word}: which shelf holds the lamp oil?"


def batch(word: str, count: int, known: Sequence[str] = ()) -> tuple[list[str], list[int]]:
    """``count`` different short texts with ``known`` spread among them, and where those stand."""
    texts = [f"Line {number} of {word}: {_GARDEN[number % len(_GARDEN)]} {number * 37}" for number in range(count)]
    places = [count * number // max(1, len(known)) for number in range(len(known))] if count >= len(known) else []
    for place, text in zip(places, known, strict=False):
        texts[place] = text
    return texts, places


def twins(word: str, words: int) -> tuple[str, str]:
    """Two passages that agree in their first ``words`` words and end differently: a server that cuts sees no twin."""
    head = passage(word, words)
    return f"{head} {' '.join(_HARBOUR)}.", f"{head} {' '.join(_KITCHEN)}."


def passage(word: str, words: int) -> str:
    """``words`` words in an order that does not repeat within a few hundred."""
    size = len(_GARDEN)
    listed = (_GARDEN[(number * 7 + number * number // size) % size] for number in range(words))
    return f"{word} {' '.join(listed)}"


def padded(word: str, count: int, size: int) -> list[str]:
    """``count`` texts that are ``size`` bytes together and few tokens: spaces make the body large, not the work."""
    texts = [single(word, 1000 + number) for number in range(count)]
    each = size // count
    return [text + " " * max(0, each - len(text)) for text in texts]


@record
class Separation:
    """How far apart a model keeps related and unrelated texts (cosines).

    ``nearest`` of ``of`` anchor texts have their own partner as the nearest of all the others.
    """

    related: float
    strangers: float
    closest_stranger: float
    nearest: int
    of: int

    @property
    def weak(self) -> bool:
        """Whether more than two partners are missed, where chance would miss nearly all."""
        return self.nearest < self.of - 2


def anchor_texts() -> list[str]:
    """The anchors as one list; partners stand next to each other."""
    return [text for pair in ANCHORS for text in pair]


def separation(vectors: Sequence[Sequence[float]]) -> Separation:
    """How the vectors of ``anchor_texts()`` lie to each other."""
    count = len(vectors)
    table = [[cosine(vectors[row], vectors[column]) for column in range(count)] for row in range(count)]
    related = [table[row][row ^ 1] for row in range(count)]
    strangers = [table[row][column] for row in range(count) for column in range(count) if column not in {row, row ^ 1}]
    nearest = sum(
        all(table[row][row ^ 1] > table[row][column] for column in range(count) if column not in {row, row ^ 1})
        for row in range(count)
    )
    return Separation(
        related=math.fsum(related) / count,
        strangers=math.fsum(strangers) / len(strangers),
        closest_stranger=max(strangers),
        nearest=nearest,
        of=count,
    )
