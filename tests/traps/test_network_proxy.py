from __future__ import annotations

from collections.abc import Mapping

import pytest
from support.traps import MACHINE, Case, docker, facts, outcome
from support.variations import with_packages

from cpersona_cli.record import replace
from cpersona_cli.traps.model import Facts

PROXY = "http://user:hunter2@proxy.example:3128"
TAKES, MISSES = "network.proxy-takes-loopback", "network.no-proxy-misses"
SOCKS, UNUSABLE = "network.socks-proxy", "network.proxy-unusable"


def block(more: Mapping[str, object], url: str = "http://127.0.0.1:8401/embed", **fields: object) -> Facts:
    env = {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": url, **more}
    return facts(env, **fields)  # type: ignore[arg-type]


def shell(more: Mapping[str, str], client: str = "claude-code") -> Facts:
    return block({}, client=client, machine=replace(MACHINE, env={**MACHINE.env, **more}))


CASES = (
    Case(
        TAKES,
        "any spelling",
        block({"http_proxy": PROXY}),
        says=('"NO_PROXY": "localhost,127.0.0.1,::1"', "http_proxy"),
    ),
    Case(TAKES, "every scheme", block({"ALL_PROXY": PROXY})),
    Case(TAKES, "the other scheme", block({"HTTPS_PROXY": PROXY}), "pass"),
    Case(TAKES, "covered", block({"HTTP_PROXY": PROXY, "NO_PROXY": "127.0.0.1"}), "pass"),
    Case(TAKES, "everything covered", block({"HTTP_PROXY": PROXY, "NO_PROXY": "*"}), "pass"),
    Case(TAKES, "other hosts covered", block({"HTTP_PROXY": PROXY, "NO_PROXY": "corp.lan"}), says="corp.lan,localhost"),
    Case(TAKES, "another host", block({"HTTP_PROXY": PROXY}, "http://embed.lan/embed"), "pass"),
    Case(TAKES, "no mode", facts({"HTTP_PROXY": PROXY}), "pass"),
    Case(TAKES, "cannot start anyway", block({"HTTP_PROXY": PROXY, "NO_PROXY": "[::1]"}), "pass"),
    Case(TAKES, "only in the shell", shell({"HTTP_PROXY": PROXY}), says="depends on how the client was started"),
    Case(TAKES, "a shell that Codex does not hand on", shell({"HTTP_PROXY": PROXY}, "codex"), "pass"),
    Case(MISSES, "localhost for 127.0.0.1", block({"HTTP_PROXY": PROXY, "NO_PROXY": "localhost"}), says="line 14"),
    Case(
        MISSES,
        "a range",
        block({"HTTP_PROXY": PROXY, "no_proxy": "127.0.0.0/8, corp.lan"}),
        says=("ranges are not honoured", '"no_proxy": "corp.lan,localhost,127.0.0.1,::1"'),
    ),
    Case(
        MISSES,
        "a range of the local network",
        block({"HTTP_PROXY": PROXY, "NO_PROXY": "192.168.0.0/16"}, "http://192.168.1.9:8401/embed"),
        says="192.168.1.9",
    ),
    Case(MISSES, "a name in a range", block({"HTTP_PROXY": PROXY, "NO_PROXY": "10.0.0.0/8"}, "http://h/embed"), "pass"),
    Case(MISSES, "both names", block({"HTTP_PROXY": PROXY, "NO_PROXY": "localhost,127.0.0.1"}), "pass"),
    Case(
        MISSES,
        "a host with a bracket",
        block({"HTTP_PROXY": PROXY, "NO_PROXY": "localhost"}, "http://a[b/embed"),
        "pass",
    ),
    Case(MISSES, "no proxy", block({"NO_PROXY": "localhost"}), "pass"),
    Case(SOCKS, "all schemes", block({"ALL_PROXY": "socks5://p:1080"}), says="remove ALL_PROXY"),
    Case(SOCKS, "even where covered", block({"https_proxy": "SOCKS5H://p:1080", "NO_PROXY": "127.0.0.1"})),
    Case(SOCKS, "all covered", block({"ALL_PROXY": "socks5://p:1080", "NO_PROXY": "*"}), "pass"),
    Case(SOCKS, "no embedding", facts({"ALL_PROXY": "socks5://p:1080"}), "pass"),
    Case(SOCKS, "a plain proxy", block({"ALL_PROXY": PROXY}), "pass"),
    Case(SOCKS, "the package is there", with_packages(block({"ALL_PROXY": "socks5://p"}), socksio="1.0.0"), "pass"),
    Case(UNUSABLE, "brackets", block({"NO_PROXY": "localhost,[::1]"}), says='"NO_PROXY": "localhost,::1"'),
    Case(UNUSABLE, "a scheme", block({"HTTPS_PROXY": "ftp://user:hunter2@p:21"}), says="HTTPS_PROXY"),
    Case(UNUSABLE, "fine", block({"HTTP_PROXY": PROXY, "NO_PROXY": "::1"}), "pass"),
    Case(UNUSABLE, "no embedding", facts({"NO_PROXY": "[::1]"}), "pass"),
    Case(
        UNUSABLE,
        "in the shell",
        shell({"no_proxy": "[::1]", "HOME": "/home/u"}),
        says=("add to its environment", '"no_proxy": "::1"'),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_proxies(case: Case) -> None:
    for finding in case.check():
        told = repr(finding)
        assert "hunter2" not in told


def test_a_proxy_of_the_entry_itself_is_removed_and_one_of_the_shell_is_outranked() -> None:
    _, (inside,) = outcome(SOCKS, block({"ALL_PROXY": "socks5://p:1080"}))
    assert "remove ALL_PROXY" in inside.repair.prose
    _, (outside,) = outcome(SOCKS, shell({"ALL_PROXY": "socks5://p:1080"}))
    assert outside.repair.edit == '"all_proxy": ""'


def test_a_container_has_its_own_variables() -> None:
    env = {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": "http://127.0.0.1:8401/embed"}
    known = facts(launch=docker(env), machine=replace(MACHINE, env={**MACHINE.env, "HTTP_PROXY": PROXY}))
    assert outcome(TAKES, known) == ("pass", ())
