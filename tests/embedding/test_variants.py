from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.model import Endpoint, Mode
from cpersona_cli.embedding.variants import root, same_host, variants, with_name

TOP = "http://127.0.0.1:1234"


def made(mode: Mode, url: str, kind: Kind, **fields: object) -> list[tuple[str, str]]:
    endpoint = Endpoint(mode=mode, url=url, **fields)  # type: ignore[arg-type]
    return [(variant.endpoint.mode, variant.endpoint.url) for variant in variants(endpoint, kind)]


@pytest.mark.parametrize(
    ("mode", "path", "first"),
    [
        (Mode.API, "/v1/embeddings/", (Mode.API, "/v1/embeddings")),
        (Mode.API, "/v1/embeddings/embeddings", (Mode.API, "/v1/embeddings")),
        (Mode.API, "/v1/v1/embeddings", (Mode.API, "/v1/embeddings")),
        (Mode.API, "/v1", (Mode.API, "/v1/embeddings")),
        (Mode.API, "/api/v1", (Mode.API, "/api/v1/embeddings")),
        (Mode.API, "", (Mode.API, "/embeddings")),
        (Mode.HTTP, "/embed/", (Mode.HTTP, "/embed")),
        (Mode.HTTP, "/embed/embed", (Mode.HTTP, "/embed")),
        (Mode.HTTP, "", (Mode.HTTP, "/embed")),
        (Mode.HTTP, "/embed", (Mode.API, "/v1/embeddings")),
        (Mode.HTTP, "/v1/embeddings", (Mode.API, "/v1/embeddings")),
        (Mode.HTTP, "/api/embed", (Mode.API, "/v1/embeddings")),
    ],
)
def test_the_likeliest_path_comes_first(mode: Mode, path: str, first: tuple[str, str]) -> None:
    expected_mode, expected_path = first
    assert made(mode, TOP + path, Kind.ROUTE_NOT_FOUND)[0] == (expected_mode, TOP + expected_path)


def test_a_query_and_a_user_stay() -> None:
    urls = [url for _, url in made(Mode.API, "http://u:p@h:1/v1?k=1", Kind.ROUTE_NOT_FOUND)]
    assert urls[0] == "http://u:p@h:1/v1/embeddings?k=1"


def test_no_key_is_lent_to_another_contract() -> None:
    endpoint = Endpoint(mode=Mode.API, url=f"{TOP}/v1/embeddings", key="sk-secret")
    for variant in variants(endpoint, Kind.WRONG_CONTRACT):
        assert variant.endpoint.key == ("sk-secret" if variant.endpoint.mode == Mode.API else "")
    for variant in variants(Endpoint(mode=Mode.HTTP, url=f"{TOP}/embed", key="left"), Kind.WRONG_CONTRACT):
        assert variant.endpoint.key == ("left" if variant.endpoint.mode == Mode.HTTP else "")


@pytest.mark.parametrize(
    ("host", "others"),
    [
        ("localhost", ["127.0.0.1", "[::1]"]),
        ("127.0.0.1", ["localhost"]),
        ("0.0.0.0", ["127.0.0.1"]),
        ("[::1]", ["127.0.0.1"]),
        ("embeddings.example.org", []),
    ],
)
def test_other_names_of_this_computer(host: str, others: list[str]) -> None:
    found = made(Mode.HTTP, f"http://{host}:8401/embed", Kind.REFUSED)
    assert found == [(Mode.HTTP, f"http://{other}:8401/embed") for other in others]


@pytest.mark.parametrize(
    ("kind", "key", "tried"), [(Kind.CONFIG_CREDENTIAL, "sk-1234\n", 1), (Kind.CONFIG_CREDENTIAL, "ключ", 0)]
)
def test_only_white_space_is_taken_from_a_key(kind: Kind, key: str, tried: int) -> None:
    assert len(made(Mode.API, f"{TOP}/v1/embeddings", kind, key=key)) == tried


@pytest.mark.parametrize("kind", [Kind.AUTH, Kind.QUOTA, Kind.LOADING, Kind.ZERO_VECTOR])
def test_nothing_is_tried_where_nothing_can_help(kind: Kind) -> None:
    assert made(Mode.HTTP, f"{TOP}/embed/", kind) == []


@pytest.mark.parametrize("url", ["", "no url", "http://", "http://h:99999999/embed", "http://[::1/embed"])
def test_a_url_that_cannot_be_taken_apart_has_no_variants(url: str) -> None:
    assert made(Mode.HTTP, url, Kind.ROUTE_NOT_FOUND) == []


def test_the_proxies_are_left_out_and_the_certificates_stay() -> None:
    environment = {"HTTP_PROXY": "http://p:1", "no_proxy": "x", "SSL_CERT_FILE": "/c.pem"}
    endpoint = Endpoint(mode=Mode.HTTP, url=f"{TOP}/embed", environment=environment)
    first = next(variants(endpoint, Kind.PROXY, proxied=True))
    assert first.endpoint.environment == {"SSL_CERT_FILE": "/c.pem"}
    assert not list(variants(endpoint, Kind.PROXY))


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("http://localhost:1/a", "http://127.0.0.1:1/b", True),
        ("http://localhost:1/a", "http://127.0.0.1:2/a", False),
        ("http://h/a", "http://h:80/b", True),
        ("https://h/a", "http://h/a", False),
        ("https://h:1/a", "http://h:1/a", True),
        ("http://h/a", "http://i/a", False),
        ("http://h/a", "nonsense", False),
    ],
)
def test_one_host(left: str, right: str, *, same: bool) -> None:
    assert same_host(left, right) is same


@pytest.mark.parametrize(
    ("path", "top"),
    [("/embed", ""), ("/v1/embeddings", ""), ("/x/v1/embeddings/", "/x"), ("/api/embed", ""), ("/other", "/other")],
)
def test_root(path: str, top: str) -> None:
    assert root(path) == top


def test_a_name_keeps_port_and_user() -> None:
    assert with_name("http://u:p@localhost:8/e?q#f", "127.0.0.1") == "http://u:p@127.0.0.1:8/e?q#f"


SEGMENTS = st.lists(st.sampled_from(["v1", "embed", "embeddings", "api", "x"]), max_size=5)


@given(st.sampled_from([Mode.HTTP, Mode.API]), SEGMENTS, st.sampled_from(list(Kind)), st.booleans())
def test_every_variant_stays_on_the_host(mode: Mode, parts: list[str], kind: Kind, slash: bool) -> None:
    url = f"http://localhost:7/{'/'.join(parts)}{'/' if slash else ''}"
    for variant in variants(Endpoint(mode=mode, url=url), kind, proxied=True):
        assert same_host(url, variant.endpoint.url)
        assert variant.changed


@pytest.mark.parametrize(
    ("mode", "url", "tried"),
    [
        (Mode.HTTP, "https://127.0.0.1:8401/embed", ["http://127.0.0.1:8401/embed"]),
        (Mode.API, "https://127.0.0.1:8401/v1/embeddings", []),
        (Mode.HTTP, "https://u:p@127.0.0.1:8401/embed", []),
        (Mode.HTTP, "https://127.0.0.1:8401/embed?token=x", []),
        (Mode.HTTP, "https://example.org/embed", []),
    ],
)
def test_encryption_is_left_out_only_where_nothing_is_secret(mode: Mode, url: str, tried: list[str]) -> None:
    assert [other for _, other in made(mode, url, Kind.TLS)] == tried
