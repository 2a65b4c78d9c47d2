"""The pipeline against a server on a real socket that answers well."""

from __future__ import annotations

from support.endpoints_small import serving
from support.fetching import ListSink, fetched, many, right

from cpersona_cli.rebuild.sameness import CANARY


def test_every_row_gets_the_vector_of_its_text() -> None:
    some, sink = many(1000), ListSink()
    with serving() as server:
        result = fetched(server, some, sink)
    assert (result.reason, result.detail, result.interrupted) == ("", "", False)
    assert result.counts.add_up
    assert (result.counts.planned, result.counts.done) == (1000, 1000)
    assert right(sink, some)
    assert result.requests == len(server.calls)
    sent = [text for call in server.calls for text in call.texts if text != CANARY]
    assert sorted(sent) == sorted(row.text for row in some)
    assert max(len(call.texts) for call in server.calls) == 32


def test_no_rows_are_no_fault() -> None:
    with serving() as server:
        result = fetched(server, [], ListSink())
    assert result.counts.planned == 0
    assert result.reason == ""
