"""What stands in the vectors' places, read and measured: each defect a search cannot make good by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from cpersona_cli.record import record
from cpersona_cli.store.model import Census, Defect, Flaw, Form, Group
from cpersona_cli.text import plural, safe
from cpersona_cli.traps.model import (
    CannotTellError,
    Detect,
    Facts,
    Finding,
    Judged,
    Needs,
    Repair,
    Severity,
    SkipError,
    Trap,
)
from cpersona_cli.traps.shell import move, tool
from cpersona_cli.traps.subject import readable

#: The tables that recall by meaning reads, and what a row of each is called.
NOUNS = {"memories": ("memory", "memories"), "episodes": ("episode", "episodes")}

_SHOWN_IDS = 10
_BLOCKS = ("record_blocks", "record_block_vectors")


def rows_of(counts: Iterable[tuple[str, int]]) -> str:
    """``10 memories and 1 episode``, of rows by table."""
    by_table: dict[str, int] = {}
    for table, rows in counts:
        by_table[table] = by_table.get(table, 0) + rows
    parts = [
        plural(rows, *NOUNS.get(table, (f"row of {table}", f"rows of {table}"))) for table, rows in by_table.items()
    ]
    return " and ".join(parts) or "nothing"


def reembed(facts: Facts, prose: str, *options: str) -> Repair:
    """Make vectors anew: the sentence, and the command, with the endpoint under examination where there is one."""
    current = facts.current
    if isinstance(current, Judged):
        path, chosen = current.path, current.options
    else:
        path = facts.database.path
        chosen = next((judged.options for judged in facts.fits if judged.path == path), ())
    return Repair(prose=prose, commands=tool("reembed", path, facts.machine, *chosen, *options))


def counted(facts: Facts, *parts: str) -> Census:
    """The census of the database under examination.

    Raises ``SkipError`` where its vectors were not looked at, ``CannotTellError`` where time did not allow for one of
    the ``parts``: tables, ``contents``, ``indexes``.
    """
    readable(facts)
    census = facts.database.census
    if census is None:
        raise SkipError("the stored vectors were not read (cpersona-cli dimension does)")
    missed = [part for part in parts if part in census.unmeasured]
    if missed:
        raise CannotTellError(f"{', '.join(missed)} could not be counted in time")
    return census


def _complete(census: Census) -> str:
    contents = census.contents
    return "" if contents.complete else f", of {contents.looked:,} looked at ({contents.total:,} in all)"


def flaws(census: Census, *defects: Defect) -> Sequence[Flaw]:
    """What was found of some defects in memories and episodes."""
    return [flaw for flaw in census.contents.flaws if flaw.defect in defects and flaw.table in NOUNS]


@record(kw_only=True)
class _Defective:
    """The words for one kind of defect."""

    name: str
    title: str
    defects: tuple[Defect, ...]
    said: str
    expected: str
    costs: str
    severity: Severity = Severity.FAULT
    rows: tuple[str, ...] = ()
    prose: str = "re-embed these rows"


def _ids(found: Sequence[Flaw]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (f"{flaw.table} {flaw.defect}", ", ".join(map(str, flaw.ids[:_SHOWN_IDS]))) for flaw in found if flaw.ids
    )


def _defective(kind: _Defective) -> Detect:
    def detect(facts: Facts) -> Iterator[Finding]:
        census = counted(facts, *NOUNS)
        found = flaws(census, *kind.defects)
        if found:
            rows = rows_of((flaw.table, flaw.rows) for flaw in found)
            ids = [str(number) for flaw in found for number in flaw.ids][:_SHOWN_IDS]
            yield Finding(
                about=f"{found[0].table}.embedding",
                measured=f"{rows} {kind.said}{_complete(census)}" + (f": id {', '.join(ids)}" if ids else ""),
                repair=reembed(facts, kind.prose, "--only", "damaged"),
                evidence=_ids(found),
            )
        elif census.contents.total and not census.contents.looked:
            raise CannotTellError("the vectors could not be read in time")

    return detect


_FORMS = {
    Form.TEXT: "text where a vector should be",
    Form.EMPTY: "a vector without a single number",
    Form.ODD: "a vector of a length that is no whole number of 32-bit floats",
}


def misshapen(census: Census) -> Sequence[Group]:
    """Rows of memories and episodes in whose vector's place stands something else than a vector or nothing."""
    return [group for group in census.of(*NOUNS) if group.form in _FORMS]


def unreadable(census: Census, facts: Facts) -> Iterator[Finding]:
    """One finding for all rows that ``misshapen`` tells."""
    wrong = misshapen(census)
    if wrong:
        parts = [
            f"{rows_of((g.table, g.rows) for g in wrong if g.form is form)} with {said}"
            for form, said in _FORMS.items()
            if any(g.form is form for g in wrong)
        ]
        yield Finding(
            about=f"{wrong[0].table}.embedding",
            measured=", ".join(parts),
            repair=reembed(facts, "re-embed these rows", "--only", "damaged"),
        )


def _stored_widths(census: Census) -> Sequence[int]:
    widths = list(census.widths())
    if not widths:
        raise SkipError("no vectors")
    return widths


def stale_blocks(census: Census) -> Sequence[Group]:
    """Blocks whose bits or bytes are of a width that no memory and no episode has."""
    widths = _stored_widths(census)
    bits = {-(-width // 8) * 8 for width in widths}
    return [
        group
        for group in census.of(*_BLOCKS)
        if group.width is not None and group.width not in (bits if group.table == "record_blocks" else set(widths))
    ]


def _derived(find: Callable[[Census], Sequence[Group]], noun: str, prose: str, *tables: str) -> Detect:
    def detect(facts: Facts) -> Iterator[Finding]:
        census = counted(facts, *NOUNS, *tables)
        old = find(census)
        if old:
            # bits and bytes of one block stand in two tables
            table = old[0].table
            rows = sum(group.rows for group in old if group.table == table)
            has = " or ".join(dict.fromkeys(str(group.width) for group in old if group.table == table))
            yield Finding(
                about=table,
                measured=f"{plural(rows, noun)} of {has} dimensions, and the memories have "
                + " or ".join(map(str, census.widths())),
                repair=reembed(facts, prose),
            )

    return detect


def stale_nodes(census: Census) -> Sequence[Group]:
    """Nodes of a width that no memory and no episode has."""
    widths = _stored_widths(census)
    return [group for group in census.of("record_nodes") if group.width is not None and group.width not in widths]


def _stale_index(facts: Facts) -> Iterator[Finding]:
    census = counted(facts, *NOUNS, "indexes")
    widths = _stored_widths(census)
    for index in census.indexes:
        if index.width is None or index.width in widths or index.width in {-(-width // 8) * 8 for width in widths}:
            continue
        path = census.path.with_name(index.name) if not index.name.startswith(".") else f"{census.path}{index.name}"
        yield Finding(
            about=safe(index.name),
            measured=f"{path} was built from vectors of {index.width} dimensions, and the memories have "
            + " or ".join(map(str, widths)),
            repair=Repair(
                prose="move it aside; the server then reads the database itself, which is slower and right",
                commands=(move(path, f"{path}.old", facts.machine),),
            ),
        )


_SOURCE = "vector.py of 2.6.14: the scan skips rows of another width; blobs are raw little-endian 32-bit floats"

_DEFECTIVE = (
    _Defective(
        name="encoding",
        title="Vectors in another encoding",
        defects=(Defect.BIG_ENDIAN, Defect.FLOAT64, Defect.QUARTER_WIDTH),
        said="hold vectors that are numbers only when read otherwise (big-endian, 64-bit, or base64 taken for numbers)",
        expected="raw little-endian 32-bit floats",
        costs="they are skipped by a search, or found by chance; another program wrote them",
    ),
    _Defective(
        name="not-finite",
        title="Vectors with numbers that are none",
        defects=(Defect.NON_FINITE,),
        said="have a vector that holds NaN or an infinity",
        expected="finite numbers",
        costs="they cannot be found by meaning, and can disturb the order of what is found",
        rows=("D7",),
    ),
    _Defective(
        name="zero",
        title="Vectors that are all zeros",
        defects=(Defect.ZERO,),
        said="have a vector of nothing but zeros",
        expected="a direction for every memory",
        costs="they are like nothing, so they cannot be found by meaning, and the server counts them as embedded",
    ),
    _Defective(
        name="not-unit",
        title="Vectors that are not of length one",
        defects=(Defect.NOT_UNIT,),
        said="have a vector whose length is not one (by more than 0.001)",
        expected="length one: the server compares by the plain product",
        costs="long vectors win over better answers, and thresholds mean something else for each",
        severity=Severity.WARNING,
        prose="turn normalisation on in the embedding server, then re-embed these rows",
    ),
)


def _of(kind: _Defective) -> Trap:
    return Trap(
        id=f"vectors.{kind.name}",
        title=kind.title,
        severity=kind.severity,
        needs=Needs.DATABASE,
        detect=_defective(kind),
        expected=kind.expected,
        costs=kind.costs,
        repair=f"{kind.prose}: only those that are damaged",
        source=_SOURCE,
        rows=kind.rows,
    )


TRAPS = (
    Trap(
        id="vectors.unreadable",
        title="Something else stands where a vector should be",
        severity=Severity.FAULT,
        needs=Needs.DATABASE,
        detect=lambda facts: unreadable(counted(facts, *NOUNS), facts),
        expected="a blob of 32-bit floats, or nothing",
        costs="these rows cannot be found by meaning, and are not counted among those that wait for a vector",
        repair="re-embed these rows",
        source=_SOURCE,
    ),
    *map(_of, _DEFECTIVE),
    Trap(
        id="vectors.blocks-width",
        title="Blocks of an earlier model",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_derived(stale_blocks, "block", "re-embed, which removes them; the server builds them anew", *_BLOCKS),
        expected="blocks of the width of the vectors",
        costs="passages of these records cannot be found; the server takes the blocks for current, and its own repair "
        "leaves them",
        repair="re-embed, which removes them",
        source="measured on 2.6.14: blocks are taken for current by their label alone, never by their width",
        since="2.6.0",
    ),
    Trap(
        id="vectors.nodes-width",
        title="Nodes of an earlier model",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_derived(
            stale_nodes, "node", "re-embed, which removes them; the server builds them anew", "record_nodes"
        ),
        expected="nodes of the width of the vectors",
        costs="the passages quoted from these records are not chosen by the question",
        repair="re-embed, which removes them",
        source="nodes.py of 2.6.14: the label decides whether a node is current",
        since="2.6.0",
    ),
    Trap(
        id="vectors.stale-index",
        title="An index file of an earlier model",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_stale_index,
        expected="index files built from the present vectors",
        costs="it is built for nothing at best; a server before 2.6.11 may answer from it with vectors that are gone",
        repair="move it aside",
        source="vector_index.py of 2.6.14 compares the width of a question with that of the file; measured on 2.5.12: "
        "its file goes on answering",
    ),
)
