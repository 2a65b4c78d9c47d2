"""The whole list in its order: every trap, what became of retired ids, and what no trap can decide.

The order of the modules is the order of the report; within a module it is the order of its table.
"""

from __future__ import annotations

from collections.abc import Mapping

from cpersona_cli.traps import (
    advisory,
    database,
    database_calibration,
    database_file,
    database_path,
    database_place,
    database_schema,
    identity,
    identity_files,
    identity_policy,
    live,
    names,
    names_api,
    names_unread,
    names_url,
    names_values,
    network,
    network_proxy,
    network_remote,
    network_server,
    recall,
    recall_boundary,
    recall_dates,
    recall_rows,
    registration,
    registration_env,
    registration_files,
    registration_scope,
    start,
    transport,
    vectors,
    vectors_fit,
    vectors_stored,
    version,
    version_shared,
    waivers,
)
from cpersona_cli.traps.model import Trap

#: Every trap. An id is permanent: it is never renamed and never used again.
ALL: tuple[Trap, ...] = (
    *names.TRAPS,
    *names_url.TRAPS,
    *names_api.TRAPS,
    *names_values.TRAPS,
    *names_unread.TRAPS,
    *network.TRAPS,
    *network_proxy.TRAPS,
    *network_server.TRAPS,
    *network_remote.TRAPS,
    *live.TRAPS,
    *vectors_fit.ENDPOINT_TRAPS,
    *advisory.TRAPS,
    *database.TRAPS,
    *database_path.TRAPS,
    *database_file.TRAPS,
    *database_place.TRAPS,
    *database_schema.TRAPS,
    *database_calibration.TRAPS,
    *vectors.TRAPS,
    *vectors_stored.TRAPS,
    *vectors_fit.TRAPS,
    *identity.TRAPS,
    *identity_policy.TRAPS,
    *identity_files.TRAPS,
    *recall.TRAPS,
    *recall_boundary.TRAPS,
    *recall_rows.TRAPS,
    *recall_dates.TRAPS,
    *registration_files.TRAPS,
    *registration_scope.TRAPS,
    *registration.TRAPS,
    *registration_env.TRAPS,
    *version.TRAPS,
    *version_shared.TRAPS,
    *transport.TRAPS,
    *start.TRAPS,
    *waivers.TRAPS,
)

#: Ids of former releases that are no traps any more, and why.
RETIRED: Mapping[str, str] = {}
