from __future__ import annotations

import pytest

from cpersona_cli.text import bare_url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://u:p@h:1/embed?token=x#f", "http://h:1/embed"),
        ("http://h/a@b", "http://h/a@b"),
        ("'http://u:hidden@h/embed'", "'http://h/embed'"),
        ("u:hidden@h:1/embed", "h:1/embed"),
        ("//u:hidden@h/embed", "//h/embed"),
        ("http://u:hidden@[::1/embed?x", "http://[::1/embed"),
        ("", ""),
    ],
)
def test_an_address_is_shown_without_what_may_be_secret(url: str, shown: str) -> None:
    assert bare_url(url) == shown
