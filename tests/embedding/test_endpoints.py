from __future__ import annotations

import pytest
from support.environments import block

from cpersona_cli.embedding.endpoints import client_variables, configured
from cpersona_cli.embedding.model import Endpoint
from cpersona_cli.install.settings.effective import effective


def made(**variables: str) -> Endpoint:
    environment = block(variables)
    return configured(effective(environment, "2.6.14"), environment)


URL, API = "http://127.0.0.1:8401/embed", "http://127.0.0.1:11434/v1/embeddings"


@pytest.mark.parametrize(
    ("variables", "mode", "url", "key"),
    [
        ({}, "none", "", ""),
        ({"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": URL}, "http", URL, ""),
        ({"EMBEDDING_MODE": "http", "EMBEDDING_HTTP_URL": URL}, "http", URL, ""),
        ({"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_API_URL": API}, "http", "", ""),
        ({"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_API_KEY": "sk-1"}, "http", "", ""),
        ({"CPERSONA_EMBEDDING_MODE": "api"}, "api", "https://api.openai.com/v1/embeddings", ""),
        (
            {
                "CPERSONA_EMBEDDING_MODE": "api",
                "CPERSONA_EMBEDDING_API_URL": API,
                "CPERSONA_EMBEDDING_API_KEY": " sk-1\n",
            },
            "api",
            API,
            " sk-1\n",
        ),
        ({"CPERSONA_EMBEDDING_MODE": "HTTP", "CPERSONA_EMBEDDING_URL": URL}, "HTTP", URL, ""),
        ({"CPERSONA_EMBEDDING_MODE": "ollama"}, "ollama", "", ""),
    ],
)
def test_what_the_server_would_call(variables: dict[str, str], mode: str, url: str, key: str) -> None:
    endpoint = made(**variables)
    assert (endpoint.mode, endpoint.url, endpoint.key) == (mode, url, key)


@pytest.mark.parametrize(("text", "seconds"), [(None, 30.0), ("5", 5.0), ("0", 0.0), ("-1", -1.0), ("soon", 30.0)])
def test_the_timeout(text: str | None, seconds: float) -> None:
    variables = {} if text is None else {"CPERSONA_EMBEDDING_TIMEOUT_SECS": text}
    assert made(**variables).timeout == seconds


def test_the_model_is_kept_as_a_label_in_every_mode() -> None:
    assert made().model == "text-embedding-3-small"
    assert made(CPERSONA_EMBEDDING_MODEL="bge-m3", CPERSONA_EMBEDDING_MODE="http").model == "bge-m3"


def test_what_the_http_client_reads_for_itself() -> None:
    known = {"HTTP_PROXY": "p", "https_proxy": "q", "NO_PROXY": "r", "SSL_CERT_FILE": "c", "SSL_CERT_DIR": "d"}
    assert client_variables({**known, "HOME": "/home/u", "PROXY": "x", "OPENAI_API_KEY": "sk"}) == known
    assert made(ALL_PROXY="socks5://x").environment == {"ALL_PROXY": "socks5://x"}


def test_a_model_is_named_only_where_somebody_named_it() -> None:
    assert not made(CPERSONA_EMBEDDING_MODE="http").named
    assert not made(CPERSONA_EMBEDDING_MODEL="").named
    assert made(CPERSONA_EMBEDDING_MODEL="m").named
    assert made(EMBEDDING_MODEL="m").named
