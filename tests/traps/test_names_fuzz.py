"""No trap of the group may fail, whatever an environment holds; and none may show a secret."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.cases_names import API, API_URL, GOOD, KEY, MODE, MODEL, REMOTE, URL
from support.traps import CLIENTS, MACHINE, UVX, all_traps, docker, everything, facts, outcome

from cpersona_cli.install.model import Launch, LaunchKind, Place, Variable
from cpersona_cli.install.settings.table import BY_NAME, SETTINGS, is_secret
from cpersona_cli.record import replace

NAMES = tuple(sorted({name for row in SETTINGS for name in row.names}))
OURS = tuple(sorted(trap for trap in all_traps() if trap.startswith("names.")))

#: Text as a broken file may bring it: controls, direction marks, lone surrogates, other scripts' digits and spaces.
anything = st.text(st.characters(), max_size=30)

near_names = st.one_of(
    st.sampled_from(NAMES),
    st.sampled_from(NAMES).flatmap(lambda n: st.integers(0, len(n) - 1).map(lambda i: n[:i] + n[i + 1 :])),
    st.sampled_from(NAMES).map(str.lower),
    st.builds(lambda n, tail: n + tail, st.sampled_from(NAMES), anything),
    anything,
)
near_values = st.one_of(
    st.sampled_from(
        (
            "",
            "none",
            "http",
            "api",
            "HTTP",
            "true",
            "1",
            "yes",
            "0",
            "-1",
            "nan",
            "inf",
            "30s",
            "16k",
            '"x"',
            "'",
            '"',
            "${input:k}",
            "${X}",
            "$X",
            "%X%",
            "<x>",
            "{{x}}",
            "1e999",
            "9" * 400,
            "٣",
            "1_0",
            "stdio",
            "streamable-http",
        )
    ),
    st.builds(
        "{}{}{}{}{}".format,
        st.sampled_from(("http://", "HTTPS://", "http:/", "", " http://", '"http://', "ftp://", "http://u:p@")),
        st.sampled_from(
            ("127.0.0.1", "localhost", "[::1]", "[::1", "::1", "h h", "bücher.example", "api.openai.com", "")
        ),
        st.sampled_from(("", ":8401", ":11434", ":99999", ":84O1", ":", ":-1", ":" + "9" * 5000, ":１")),
        st.sampled_from(("", "/", "/embed", "/embed/", "/v1", "/v1/embeddings", "/api/embed", "/x", "?a=b", "#f")),
        st.sampled_from(("", " ", "\n", "\x00", "'", "\ud800", "\u200b")),
    ),
    anything,
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.lists(anything, max_size=1),
)
environments = st.dictionaries(near_names, near_values, max_size=6)
vital = st.fixed_dictionaries({}, optional=dict.fromkeys((MODE, URL, KEY, API_URL, MODEL), near_values))


def run_all(env: dict[str, object], **more: Any) -> str:
    known = facts(env, **more)
    told = [everything(finding) for trap in OURS for finding in outcome(trap, known)[1]]
    return "\n".join(told)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(
    env=environments,
    also=vital,
    client=st.sampled_from(sorted(CLIENTS)),
    version=st.sampled_from(("2.6.14", "2.6.10", "2.5.12", "2.5.3", "2.4.41", "2.4.20", None, "nonsense")),
    carried=st.booleans(),
)
def test_no_trap_fails(
    env: dict[str, object], also: dict[str, object], client: str, version: str | None, carried: bool
) -> None:
    both = {**env, **also}
    launch = docker(both) if carried else UVX
    stray = tuple(Variable(name, str(raw), Place(Path("/home/u/.zshrc"), 1), "file") for name, raw in env.items())
    run_all({} if carried else both, client=client, version=version, launch=launch, stray=stray)


@pytest.mark.parametrize("name", sorted(name for name in BY_NAME if is_secret(name)))
@pytest.mark.parametrize("form", ["{}", '"{}"', "{}\n", "Bearer {}", "{}é", " {} x"])
@pytest.mark.parametrize("base", [API, GOOD, {}], ids=("api", "http", "none"))
def test_no_secret_is_shown(name: str, form: str, base: dict[str, object]) -> None:
    value = "sk-live-0123456789abcdef"
    stray = (Variable(name, value, Place(Path("/home/u/.zshrc"), 1), "file"),)
    told = run_all({**base, name: form.format(value)}) + run_all({}, stray=stray)
    assert value not in told
    assert value[3:20] not in told


@pytest.mark.parametrize(
    "url", ["http://u:hidden-word@h/embed/", "http://h?token=hidden-word", "'http://u:hidden-word@h"]
)
@pytest.mark.parametrize("mode", ["http", "api", "none"])
def test_no_secret_of_an_address_is_shown(url: str, mode: str) -> None:
    for name in (URL, API_URL, "EMBEDDING_HTTP_URL", "EMBEDDING_API_URL"):
        assert "hidden-word" not in run_all({MODE: mode, KEY: "k", name: url})


def test_registrations_of_other_kinds_are_left_alone() -> None:
    known = facts({}, **REMOTE)
    proxy = facts({}, launch=Launch(kind=LaunchKind.PROXY))
    for trap in OURS:
        assert outcome(trap, known)[1] == ()
        assert outcome(trap, proxy)[1] == ()
    assert outcome("names.mode-none", replace(known, targets=(), current=None))[0] == "skipped"
    assert MACHINE.env["HOME"] == "/home/u"
