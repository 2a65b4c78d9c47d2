"""From the settings of a registration to the endpoint its server would call."""

from __future__ import annotations

from collections.abc import Mapping

from cpersona_cli.embedding.model import Endpoint, Mode
from cpersona_cli.install.model import Environment
from cpersona_cli.install.settings.effective import Settings

MODE = "CPERSONA_EMBEDDING_MODE"
URL = "CPERSONA_EMBEDDING_URL"
API_URL = "CPERSONA_EMBEDDING_API_URL"
KEY = "CPERSONA_EMBEDDING_API_KEY"
MODEL = "CPERSONA_EMBEDDING_MODEL"
TIMEOUT = "CPERSONA_EMBEDDING_TIMEOUT_SECS"

#: What the server's HTTP client reads for itself, beside every ``*_proxy``.
_CERTIFICATES = frozenset({"SSL_CERT_FILE", "SSL_CERT_DIR", "REQUEST_METHOD"})


def configured(settings: Settings, environment: Environment) -> Endpoint:
    """The endpoint as configured, nothing corrected; in mode http the key is left out and the model only a label."""
    written = settings[MODE]
    mode = written.text or "" if written.invalid else str(written)
    api = mode == Mode.API
    timeout = settings[TIMEOUT].value
    return Endpoint(
        mode=mode,
        url=str(settings[API_URL if api else URL]),
        key=str(settings[KEY]) if api else "",
        model=str(settings[MODEL]),
        timeout=float(timeout) if isinstance(timeout, int | float) else 30.0,
        environment=client_variables({name: value.text for name, value in environment.values.items()}),
        named=settings[MODEL].given,
    )


def client_variables(environment: Mapping[str, str]) -> Mapping[str, str]:
    """The variables among ``environment`` that decide over proxies and certificates."""
    return {
        name: text for name, text in environment.items() if name in _CERTIFICATES or name.lower().endswith("_proxy")
    }
