"""How recall searches, ranks and cuts, how it calibrates itself, and how much ``reconstruct`` returns."""

from __future__ import annotations

from cpersona_cli.install.settings.model import Earlier, Invalid, Kind, Setting
from cpersona_cli.install.settings.rows import choice, integer, number, strict_before, switch, unbounded_before

RECALL: tuple[Setting, ...] = (
    choice(
        "CPERSONA_RECALL_MODE",
        "how the lists of hits become one",
        ("rrf", "rsf", "cascade"),
        earlier=(
            Earlier(
                until="2.6.11",
                kind=Kind.EXACT,
                invalid=Invalid.UNCHECKED,
                empty_is_unset=False,
                effect="recall runs as cascade",
            ),
        ),
    ),
    choice(
        "CPERSONA_RECALL_PRECISION",
        "where the quality gate sits between missing memories and admitting strangers",
        ("strict", "balanced", "lenient"),
        "balanced",
        earlier=(
            Earlier(
                until="2.5.12",
                kind=Kind.LOWER,
                invalid=Invalid.UNCHECKED,
                empty_is_unset=False,
                effect="the gate sits as for balanced",
            ),
        ),
    ),
    integer(
        "CPERSONA_MAX_MEMORIES",
        "how many of the newest rows are ranked by meaning: a window, not a limit on storage",
        10000,
        low=1,
        earlier=(unbounded_before("2.6.11"), strict_before("2.5.0")),
    ),
    integer("CPERSONA_VECTOR_REACH", "rows ranked beyond that window, when larger than it", 0, floor=0, since="2.5.12"),
    integer(
        "CPERSONA_VECTOR_FAR_LIMIT", "hits kept from beyond; 0 is the call's own limit", 0, floor=0, since="2.5.12"
    ),
    integer("CPERSONA_VECTOR_SCAN_CHUNK_ROWS", "rows read at a time", 512, floor=1, since="2.5.12"),
    integer(
        "CPERSONA_VECTOR_INDEX_MAX_EXCLUDED_IDS",
        "rows without a vector the index file may name; with more it is not built",
        10000,
        floor=0,
        since="2.5.12",
    ),
    integer("CPERSONA_RECALL_LIBRARY_MAX_LIMIT", "rows one call may ask for", 10000, floor=1, since="2.5.12"),
    integer("CPERSONA_RECALL_DEPTH_FLOOR", "hits taken from each list at the least", 0, floor=0, since="2.6.0"),
    switch("CPERSONA_RECALL_PROPAGATION_SEAT", "one more row, near to the first", default=False, since="2.6.0"),
    switch("CPERSONA_FAR_SEATS_ENABLED", "two more rows from beyond the window", default=False, since="2.6.2"),
    Setting(
        name="CPERSONA_CUE_COARSE_ENABLED",
        kind=Kind.TRISTATE,
        default="auto",
        invalid=Invalid.OFF,
        since="2.6.2",
        earlier=(Earlier(until="2.6.4", kind=Kind.TRUE_ONLY, default="false", empty_is_unset=False),),
        note="search the rest of a named period through the coarse index; 1, yes and on count as off",
    ),
    integer("CPERSONA_RECALL_PREVIEW_CHARS", "characters shown of a long memory; 0 shows all", 500, since="2.5.0"),
    integer("CPERSONA_RECALL_EXCERPT_CHARS", "characters of matching passages beside it", 800, since="2.6.0"),
    integer("CPERSONA_RECALL_CUE_TIME_LIMIT_MS", "milliseconds for widening a period", 1000, floor=0, since="2.6.0"),
    integer("CPERSONA_RRF_K", "the constant of reciprocal rank fusion", 60, floor=1),
    number("CPERSONA_RRF_THRESHOLD_FACTOR", "factor on the similarity threshold before fusion (rrf and rsf)", 0.5),
    switch("CPERSONA_AUTOCUT_ENABLED", "cut the list at its widest gap", default=True),
    number("CPERSONA_AUTOCUT_MIN_GAP_RATIO", "gap that counts, as a part of the best score", 0.15),
    integer("CPERSONA_AUTOCUT_MIN_RESULTS", "shorter lists are not cut", 3, floor=2),
)

RANKING: tuple[Setting, ...] = (
    switch("CPERSONA_CONFIDENCE_ENABLED", "return a confidence beside each hit", default=False),
    choice(
        "CPERSONA_CONFIDENCE_ORDERING",
        "whether confidence orders and gates the hits (legacy) or not",
        ("fusion", "legacy"),
        since="2.6.0",
    ),
    number("CPERSONA_COSINE_FLOOR", "similarity that counts as none", 0.2),
    number("CPERSONA_COSINE_CEIL", "similarity that counts as full", 0.75),
    number("CPERSONA_DECAY_RATE", "how fast confidence falls with age, per hour", 0.005),
    number("CPERSONA_DECAY_FLOOR", "what it does not fall below", 0.3),
    number("CPERSONA_DECAY_CEIL", "the highest that recalls may raise that floor to", 0.5),
    number("CPERSONA_RECALL_BOOST", "how much recalls raise the floor (times the logarithm of their number)", 0.02),
    number("CPERSONA_BOOST_DECAY_RATE", "how fast that protection fades, per hour", 0.002),
    number("CPERSONA_MIN_TIME_RANGE_HOURS", "shortest age range of a store; a younger one counts as that old", 24.0),
    number("CPERSONA_REFERENCE_HOURS", "age range from which the decay is slowed down", 168.0),
    number("CPERSONA_RESOLVED_DECAY_FACTOR", "factor for resolved memories", 0.3),
    number("CPERSONA_RECENT_RECALL_PENALTY", "factor for what was just recalled", 0.7),
    number("CPERSONA_RECENT_RECALL_WINDOW_MIN", "minutes that count as just now", 5.0),
    switch(
        "CPERSONA_EPISODE_PENALTY_ENABLED",
        "weaken every memory older than the last episode",
        default=False,
        earlier=(Earlier(until="2.6.0a7", default="true"),),
    ),
    number("CPERSONA_EPISODE_DECAY_RATE", "how fast it weakens, per hour before that episode", 0.01),
    number("CPERSONA_EPISODE_DECAY_FLOOR", "the factor it does not fall below", 0.5),
    number(
        "CPERSONA_PRIOR_FAR_WEIGHT", "weight of hits from beyond the window", 1.0, floor=0, ceiling=1, since="2.6.0"
    ),
    number("CPERSONA_PRIOR_AGE_RATE", "how fast age lowers the final order; 0 not at all", 0.0, floor=0, since="2.6.0"),
    number("CPERSONA_PRIOR_AGE_FLOOR", "the weight age does not go below", 0.3, floor=0, ceiling=1, since="2.6.0"),
    choice(
        "CPERSONA_PRIOR_AGE_ANCHOR", "age counted from the newest row, or from now", ("newest", "now"), since="2.6.0"
    ),
)

CALIBRATION: tuple[Setting, ...] = (
    switch("CPERSONA_AUTO_CALIBRATE", "calibrate at each start", default=False),
    switch("CPERSONA_CALIBRATE_ON_MODEL_CHANGE", "calibrate when the vectors' width changed", default=True),
    integer("CPERSONA_CALIBRATE_SAMPLE_SIZE", "rows looked at", 200),
    integer(
        "CPERSONA_CALIBRATE_MAX_SAMPLE",
        "rows a call may ask for",
        5000,
        floor=1,
        earlier=(Earlier(until="2.5.12", default="2000"), strict_before("2.5.0")),
    ),
    choice(
        "CPERSONA_CALIBRATE_METHOD",
        "how the threshold is found",
        ("separation", "percentile", "zscore"),
        earlier=(
            Earlier(
                until="2.6.11",
                kind=Kind.EXACT,
                invalid=Invalid.UNCHECKED,
                empty_is_unset=False,
                effect="every calibration that names no method fails",
            ),
        ),
    ),
    number(
        "CPERSONA_CALIBRATE_PERCENTILE",
        "for percentile: a fraction up to 1, or a percentage up to 100",
        0.95,
        above=0,
        high=100,
        earlier=(unbounded_before("2.6.11"), strict_before("2.5.0")),
    ),
    number("CPERSONA_CALIBRATE_Z_FACTOR", "for zscore: deviations above the mean", 1.0),
    number("CPERSONA_CALIBRATE_FLOOR", "the threshold does not go below", 0.05),
    number("CPERSONA_CALIBRATE_TEMPORAL_WINDOW_MIN", "minutes that make two rows neighbours", 30.0),
    switch("CPERSONA_FUSED_GATE_ENABLED", "calibrate the gate after fusion too", default=True),
    integer("CPERSONA_FUSED_GATE_SAMPLE_QUERIES", "trial recalls per draw", 40, floor=1),
    integer("CPERSONA_FUSED_GATE_CALIBRATION_DRAWS", "draws whose median is used", 5, floor=1, since="2.5.5"),
    number(
        "CPERSONA_FUSED_GATE_BETA",
        "weight of keeping strangers out",
        "1.0",
        derived="2.0, 1.0 or 0.5 for CPERSONA_RECALL_PRECISION strict, balanced or lenient",
        earlier=(Earlier(until="2.5.0", invalid=Invalid.REFUSES),),
    ),
)

RECONSTRUCT: tuple[Setting, ...] = (
    integer("CPERSONA_RECONSTRUCT_MAX_COUNT", "items a call may ask for", 10, floor=1, since="2.6.0"),
    integer(
        "CPERSONA_RECONSTRUCT_DEFAULT_COUNT",
        "items when the call names no number; above the maximum the server refuses to start",
        10,
        derived="the smaller of 10 and CPERSONA_RECONSTRUCT_MAX_COUNT",
        floor=1,
        since="2.6.0",
        earlier=(Earlier(until="2.6.11", fallback="10"),),
    ),
    Setting(
        name="CPERSONA_RECONSTRUCT_FORCED_COUNT",
        kind=Kind.OPTIONAL_INT,
        invalid=Invalid.IGNORED,
        floor=1,
        since="2.6.0",
        earlier=(Earlier(until="2.6.11", invalid=Invalid.DEFAULT, fallback="1"),),
        note="items whatever the call says; above the maximum the server refuses to start",
    ),
    integer("CPERSONA_RECONSTRUCT_TOP_K", "hits taken from each list", 20, floor=1, since="2.6.0"),
    integer("CPERSONA_RECONSTRUCT_MAX_HOPS", "steps along associations", 2, floor=0, since="2.6.0"),
    integer("CPERSONA_RECONSTRUCT_MAX_EVIDENCE", "rows gathered", 40, floor=1, since="2.6.0"),
    integer("CPERSONA_RECONSTRUCT_ADJACENCY_SECONDS", "seconds that make one moment", 60, floor=0, since="2.6.0"),
    integer("CPERSONA_RECONSTRUCT_QUOTE_CHARS", "characters quoted of an item", 800, floor=0, since="2.6.0"),
    integer("CPERSONA_RECONSTRUCT_FULL_QUOTES", "items quoted at that length", 5, floor=0, since="2.6.4"),
    integer(
        "CPERSONA_RECONSTRUCT_TAIL_QUOTE_CHARS",
        "characters quoted of the later ones; 0, or more than of the first, and the server refuses to start",
        400,
        derived="the smaller of 400 and CPERSONA_RECONSTRUCT_QUOTE_CHARS (400 before 2.6.11)",
        floor=0,
        since="2.6.4",
    ),
    choice(
        "CPERSONA_RECONSTRUCT_SEQUENCE",
        "the order in which the budget is spent",
        ("items", "evidence", "whole"),
        since="2.6.5",
    ),
    integer(
        "CPERSONA_RECONSTRUCT_MAX_BUDGET",
        "characters a call may ask for; below one preview the server refuses to start",
        20000,
        derived="the larger of 20000 and CPERSONA_RECALL_PREVIEW_CHARS (20000 before 2.6.11)",
        since="2.6.0",
    ),
    integer(
        "CPERSONA_RECONSTRUCT_DEFAULT_BUDGET",
        "characters when the call names no number; below one preview or above the maximum the server refuses to start",
        4000,
        derived="4000 or one preview if larger, at most the maximum (4000 before 2.6.11)",
        since="2.6.0",
    ),
    Setting(
        name="CPERSONA_RECONSTRUCT_FORCED_BUDGET",
        kind=Kind.OPTIONAL_INT,
        invalid=Invalid.IGNORED,
        since="2.6.0",
        earlier=(Earlier(until="2.6.11", invalid=Invalid.DEFAULT, fallback="CPERSONA_RECONSTRUCT_DEFAULT_BUDGET"),),
        note="characters whatever the call says; below one preview or above the maximum the server refuses to start",
    ),
)
