"""Servers and clients over HTTP: transport names, tokens, addresses, headers, proxies."""

from __future__ import annotations

import pytest
from support.trap_facts import Graded
from support.traps import docker, everything, facts

from cpersona_cli.install.model import Launch, LaunchKind
from cpersona_cli.traps.model import Facts

SECRET = "tok-0123456789abcdef"
TOKEN = {"CPERSONA_AUTH_TOKEN": SECRET}
HTTP = {"CPERSONA_DB_PATH": "/home/u/c.db", "CPERSONA_TRANSPORT": "streamable-http"}
PROXY = Launch(
    kind=LaunchKind.PROXY,
    package="cpersona",
    program="python",
    words=("python", "-m", "cpersona.proxy_stdio"),
)
REMOTE = Launch(kind=LaunchKind.REMOTE, words=())
ACL = {"CPERSONA_ACL_FILE": "/a.json"}


def process(env: dict[str, str] | None = None, **more: str) -> Facts:
    """A server that a container, a unit or a CI step starts from its own environment."""
    return facts({**HTTP, **(env or {}), **more}, client="env")


def remote(url: str = "http://127.0.0.1:8402/mcp", client: str = "claude-code", **fields: object) -> Facts:
    headers = fields.pop("headers", {"Authorization": f"Bearer {SECRET}"})
    return facts(client=client, launch=REMOTE, transport="http", url=url, headers=headers, **fields)  # type: ignore[arg-type]


def proxy(env: dict[str, str] | None = None) -> Facts:
    return facts({**TOKEN, **(env or {})}, launch=PROXY)


def named(value: str, client: str = "claude-code") -> Facts:
    return facts({"CPERSONA_TRANSPORT": value}, client=client)


UNKNOWN, STDIO, TOKENLESS = "transport.unknown", "transport.http-for-stdio", "transport.no-token"
BAD, ADDRESS, HEADER = "transport.bad-token", "transport.address", "transport.no-header"

CASES = (
    Graded(UNKNOWN, "http", named("http"), says=("'http'", '"CPERSONA_TRANSPORT": "stdio"'), severity="fault"),
    Graded(UNKNOWN, "sse", named("sse"), severity="fault"),
    Graded(UNKNOWN, "empty", named(""), says="set and empty", severity="fault"),
    Graded(UNKNOWN, "capitals", named("STDIO")),
    Graded(UNKNOWN, "underscore in a process", named("streamable_http", "env"), says="streamable-http"),
    Graded(UNKNOWN, "stdio", named("stdio"), "pass"),
    Graded(UNKNOWN, "streamable-http", named("streamable-http", "env"), "pass"),
    Graded(UNKNOWN, "unset", facts(), "pass"),
    Graded(UNKNOWN, "cannot be told", named("${X}"), "pass"),
    Graded(UNKNOWN, "a server started elsewhere", remote(), "skipped"),
    Graded(STDIO, "set in the entry", facts(HTTP), says="waits on its stdout", severity="fault"),
    Graded(
        STDIO,
        "the image's default",
        facts(launch=docker(package="cpersona")),
        says='"-e", "CPERSONA_TRANSPORT=stdio"',
        severity="fault",
    ),
    Graded(
        STDIO,
        "the image told otherwise",
        facts(launch=docker({"CPERSONA_TRANSPORT": "stdio"}, package="cpersona")),
        "skipped",
    ),
    Graded(STDIO, "a process by itself", process(), "pass"),
    Graded(STDIO, "stdio", facts(), "skipped"),
    Graded(TOKENLESS, "none", process(), says=("neither", "token_urlsafe"), severity="fault"),
    Graded(TOKENLESS, "a token", process(TOKEN), "pass"),
    Graded(TOKENLESS, "an access table", process(ACL), "pass"),
    Graded(TOKENLESS, "allowed", process(CPERSONA_ALLOW_UNAUTHENTICATED_HTTP="True"), "pass"),
    Graded(TOKENLESS, "not allowed by 1", process(CPERSONA_ALLOW_UNAUTHENTICATED_HTTP="1"), severity="fault"),
    Graded(TOKENLESS, "over stdio", facts(), "skipped"),
    Graded(TOKENLESS, "the transport is wrong already", facts(HTTP), "skipped"),
    Graded(
        BAD, "the end of a line", process(CPERSONA_AUTH_TOKEN=f"{SECRET}\n"), says="21 characters", severity="fault"
    ),
    Graded(BAD, "quotation marks", process(CPERSONA_AUTH_TOKEN=f'"{SECRET}"'), says="quotation marks"),
    Graded(BAD, "beyond ASCII", process(CPERSONA_AUTH_TOKEN=f"{SECRET}é"), says="beyond ASCII"),
    Graded(BAD, "a control character", process(CPERSONA_AUTH_TOKEN=f"a\x07{SECRET}"), says="control character"),
    Graded(BAD, "a space", process(CPERSONA_AUTH_TOKEN=f"a {SECRET}"), says="holds a space"),
    Graded(BAD, "in the proxy", facts({"CPERSONA_AUTH_TOKEN": f"{SECRET} "}, launch=PROXY), says="white space"),
    Graded(BAD, "sound", process(TOKEN), "pass"),
    Graded(BAD, "none", process(), "pass"),
    Graded(BAD, "over stdio", facts({"CPERSONA_AUTH_TOKEN": f"{SECRET}\n"}), "skipped"),
    Graded(BAD, "a server started elsewhere", remote(), "skipped"),
    Graded("transport.token-ignored", "both", process({**TOKEN, **ACL}), says="both set", severity="warning"),
    Graded("transport.token-ignored", "the table alone", process(ACL), "pass"),
    Graded("transport.token-ignored", "the token alone", process(TOKEN), "pass"),
    Graded(
        "transport.token-ignored",
        "a release without access tables",
        facts({**HTTP, **TOKEN, **ACL}, client="env", version="2.4.41"),
        "pass",
    ),
    Graded(
        ADDRESS,
        "no path",
        remote("http://127.0.0.1:8402"),
        says=("path is empty", "http://127.0.0.1:8402/mcp"),
        severity="fault",
    ),
    Graded(ADDRESS, "the wrong path", remote("https://memory.example/sse"), says="https://memory.example/mcp"),
    Graded(
        ADDRESS,
        "the port of earlier images",
        remote("http://localhost:8400/mcp"),
        says=("8400 was", "http://localhost:8402/mcp"),
    ),
    Graded(
        ADDRESS, "the embedding server", remote("http://[::1]:8401/embed"), says=("8401 is", "http://[::1]:8402/mcp")
    ),
    Graded(ADDRESS, "its own MCP port", remote("http://127.0.0.1:8403/mcp"), says="8403 is"),
    Graded(
        ADDRESS,
        "in the proxy",
        proxy({"CPERSONA_REMOTE_URL": "http://10.0.0.5:8402/"}),
        says="http://10.0.0.5:8402/mcp",
    ),
    Graded(ADDRESS, "the proxy's default", proxy(), "pass"),
    Graded(ADDRESS, "right", remote(), "pass"),
    Graded(ADDRESS, "a trailing slash", remote("http://127.0.0.1:8402/mcp/"), "pass"),
    Graded(ADDRESS, "behind a path of another name", remote("https://gate.example/team/memory"), "pass"),
    Graded(ADDRESS, "another port on another host", remote("http://10.0.0.5:8400/mcp"), "pass"),
    Graded(ADDRESS, "not an address", remote("http://[broken"), "pass"),
    Graded(ADDRESS, "a placeholder", remote("${URL}"), "pass"),
    Graded(ADDRESS, "started by the client", facts(), "skipped"),
    Graded(HEADER, "none", remote(headers={}), says=("no Authorization", "unless the server"), severity="warning"),
    Graded(HEADER, "none, and perhaps a login", remote("https://m.example/mcp", headers={}), severity="hint"),
    Graded(
        HEADER,
        "Codex reads no headers",
        remote(client="codex", headers={}, fields={"headers": {"Authorization": f"Bearer {SECRET}"}}),
        says=("'headers', which Codex does not read", "bearer_token_env_var"),
        severity="fault",
    ),
    Graded(
        HEADER,
        "Claude Code reads no http_headers",
        remote(headers={}, fields={"http_headers": {"Authorization": f"Bearer {SECRET}"}}),
        says="'http_headers', which Claude Code does not read",
        severity="fault",
    ),
    Graded(HEADER, "no Bearer", remote(headers={"Authorization": SECRET}), says="“Bearer ”", severity="fault"),
    Graded(
        HEADER, "Codex by variable", remote(client="codex", headers={}, fields={"bearer_token_env_var": "T"}), "pass"
    ),
    Graded(HEADER, "Codex by http_headers", remote(client="codex"), "pass"),
    Graded(HEADER, "small letters", remote(headers={"authorization": f"bearer {SECRET}"}), "pass"),
    Graded(HEADER, "started by the client", facts(), "skipped"),
    Graded(HEADER, "the proxy", proxy(), "skipped"),
    Graded(
        "transport.oauth-alone",
        "no table",
        process(TOKEN, CPERSONA_OAUTH_RESOURCE="https://m.example/mcp"),
        says="CPERSONA_OAUTH_RESOURCE without",
        severity="warning",
    ),
    Graded("transport.oauth-alone", "a table", process(ACL, CPERSONA_OAUTH_RESOURCE="https://m.example/mcp"), "pass"),
    Graded("transport.oauth-alone", "no OAuth", process(TOKEN), "pass"),
    Graded("transport.port", "too high", process(TOKEN, CPERSONA_HTTP_PORT="84020"), says="84020", severity="fault"),
    Graded("transport.port", "negative", process(TOKEN, CPERSONA_HTTP_PORT="-1"), severity="fault"),
    Graded("transport.port", "the last one", process(TOKEN, CPERSONA_HTTP_PORT="65535"), "pass"),
    Graded("transport.port", "unset", process(TOKEN), "pass"),
    Graded("transport.port", "over stdio", facts({"CPERSONA_HTTP_PORT": "84020"}), "skipped"),
    Graded(
        "transport.proxied",
        "the default address",
        proxy({"HTTP_PROXY": f"http://u:{SECRET}@proxy:3128"}),
        says=("HTTP_PROXY sends http://localhost:8402/mcp to http://proxy:3128", "localhost,127.0.0.1"),
        severity="fault",
    ),
    Graded(
        "transport.proxied",
        "what is excepted stays excepted",
        proxy({"HTTP_PROXY": "http://proxy:3128", "NO_PROXY": "example.com"}),
        says="example.com,localhost,127.0.0.1",
    ),
    Graded(
        "transport.proxied",
        "excepted",
        proxy({"HTTP_PROXY": "http://proxy:3128", "NO_PROXY": "localhost,127.0.0.1"}),
        "pass",
    ),
    Graded(
        "transport.proxied",
        "a proxy of no known kind",
        proxy({"HTTP_PROXY": "ftp://proxy:3128"}),
        says="does not start",
    ),
    Graded(
        "transport.proxied",
        "a server on another host",
        proxy({"HTTP_PROXY": "http://proxy:3128", "CPERSONA_REMOTE_URL": "http://10.0.0.5:8402/mcp"}),
        "pass",
    ),
    Graded("transport.proxied", "no proxy", proxy(), "pass"),
    Graded("transport.proxied", "not the stdio proxy", facts({"HTTP_PROXY": "http://proxy:3128"}), "skipped"),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_transport(case: Graded) -> None:
    for finding in case.check():
        assert SECRET not in everything(finding)
