"""Every variable that matters to CPersona, joined from its groups, and the look-ups others need.

Measured on the released packages of CPersona 2.4.41 to 2.6.14 and CEmbedding 0.9.1; the tests compare it with the
installed server.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from cpersona_cli.install.settings import table_embedding, table_foreign, table_recall, table_storage
from cpersona_cli.install.settings.model import Reader, Setting

#: The groups in the order of the documentation; inside a group a row stands after those its default follows from.
GROUPS: tuple[tuple[str, tuple[Setting, ...]], ...] = (
    ("Embedding", table_embedding.ROWS),
    ("Storage and background work", table_storage.STORAGE),
    ("Transport, access and operation", table_storage.TRANSPORT),
    ("Writing", table_storage.WRITES),
    ("Recall", table_recall.RECALL),
    ("Ranking", table_recall.RANKING),
    ("Calibration", table_recall.CALIBRATION),
    ("Reconstruct", table_recall.RECONSTRUCT),
    ("Agent plugin", table_foreign.PLUGIN),
    ("HTTP client", table_foreign.SYSTEM),
    ("Embedding server", table_foreign.EMBEDDING_SERVER),
    ("Names nobody reads", table_foreign.NOBODY),
)

SETTINGS: tuple[Setting, ...] = tuple(setting for _, rows in GROUPS for setting in rows)

#: By own name (not by alias).
BY_NAME: Mapping[str, Setting] = MappingProxyType({setting.name: setting for setting in SETTINGS})

#: Every alias of a server's setting, with the setting.
BY_ALIAS: Mapping[str, Setting] = MappingProxyType(
    {alias: setting for setting in SETTINGS for alias in setting.aliases if setting.reader is Reader.SERVER}
)

_SECRET_WORDS = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)


def is_secret(name: str) -> bool:
    """Whether the value of a variable must never be shown: by the table, or by what an unknown name says."""
    setting = BY_NAME.get(name)
    return bool(_SECRET_WORDS.search(name)) if setting is None else setting.secret
