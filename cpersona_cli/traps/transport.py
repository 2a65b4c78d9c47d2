"""Servers reached over HTTP: tokens, addresses, proxies, and entries that expect another transport."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

from cpersona_cli.install.model import LaunchKind, Registration
from cpersona_cli.install.proxies import ProxyError, exceptions, is_loopback, proxy_for
from cpersona_cli.install.settings.effective import Effective
from cpersona_cli.text import bare_url, plural
from cpersona_cli.traps.model import Facts, Finding, Needs, Repair, Severity, SkipError, Target, Trap
from cpersona_cli.traps.repairs import set_variable
from cpersona_cli.traps.subject import server

_HTTP = "streamable-http"
_TOKEN = "CPERSONA_AUTH_TOKEN"  # noqa: S105 - the variable's name
_NEW_TOKEN = 'python3 -c "import secrets; print(secrets.token_urlsafe(32))"'  # noqa: S105 - a command

#: Where each client keeps the bearer token of a remote server.
_HEADER = {
    "codex": 'bearer_token_env_var = "CPERSONA_AUTH_TOKEN"',
    "vscode": '"headers": {"Authorization": "Bearer ${input:cpersona-token}"}',
    "cursor": '"headers": {"Authorization": "Bearer ${env:CPERSONA_AUTH_TOKEN}"}',
    "windsurf": '"headers": {"Authorization": "Bearer ${env:CPERSONA_AUTH_TOKEN}"}',
    "claude-code": '"headers": {"Authorization": "Bearer ${CPERSONA_AUTH_TOKEN}"}',
}


def _transport(target: Target) -> Effective:
    return target.settings["CPERSONA_TRANSPORT"]


def _serves_http(facts: Facts) -> Target:
    """The target, when it starts a server that listens on HTTP."""
    target = server(facts)
    if _transport(target).value != _HTTP:
        raise SkipError("the server speaks stdio")
    return target


def _expects_stdio(registration: Registration) -> bool:
    """Whether a client waits for an answer on stdout: not for a process or a service that stands by itself."""
    return registration.transport == "stdio" and registration.launch.kind not in {
        LaunchKind.PROCESS,
        LaunchKind.COMPOSE,
    }


def _unknown_transport(facts: Facts) -> Iterator[Finding]:
    target = server(facts)
    setting = _transport(target)
    if setting.text is not None and setting.text not in {"stdio", _HTTP} and not setting.unresolved:
        right = "stdio" if _expects_stdio(target.registration) else _HTTP
        yield Finding(
            about=setting.setting.name,
            place=setting.place,
            measured=f"CPERSONA_TRANSPORT={setting.text!r}" + ("" if setting.text else ", set and empty"),
            repair=set_variable(target.registration, setting.setting.name, right, at=setting.place),
        )


def _http_for_stdio(facts: Facts) -> Iterator[Finding]:
    target = _serves_http(facts)
    if not _expects_stdio(target.registration):
        return
    setting = _transport(target)
    place = setting.place if setting.place.file else target.registration.place
    yield Finding(
        about=setting.setting.name,
        place=place,
        measured=f"the client starts the server and waits on its stdout; its transport is {_HTTP} ({setting.origin})",
        repair=set_variable(
            target.registration, setting.setting.name, "stdio", at=setting.place if setting.place.file else None
        ),
    )


def _no_token(facts: Facts) -> Iterator[Finding]:
    target = _serves_http(facts)
    if _expects_stdio(target.registration):
        raise SkipError("its transport is wrong to begin with")
    settings = target.settings
    allowed = (settings["CPERSONA_ALLOW_UNAUTHENTICATED_HTTP"].text or "").lower() == "true"
    if settings[_TOKEN].text or settings["CPERSONA_ACL_FILE"].given or allowed:
        return
    setting = set_variable(target.registration, _TOKEN, "THE TOKEN")
    yield Finding(
        about=_TOKEN,
        place=target.registration.env_place or target.registration.place,
        measured=f"CPERSONA_TRANSPORT={_HTTP}, and neither {_TOKEN} nor CPERSONA_ACL_FILE",
        repair=Repair(
            prose=f"make a token with the command, then {setting.prose}",
            commands=(_NEW_TOKEN,),
            edit=setting.edit,
            place=setting.place,
        ),
    )


def _bad_token(facts: Facts) -> Iterator[Finding]:
    target = facts.target
    kind = target.registration.launch.kind
    if kind is not LaunchKind.PROXY and (kind is LaunchKind.REMOTE or _transport(target).value != _HTTP):
        raise SkipError("no token is used over stdio")
    setting = target.settings[_TOKEN]
    why = "" if setting.unresolved else _unpresentable(setting.text or "")
    if why:
        yield Finding(
            about=_TOKEN,
            place=setting.place,
            measured=f"{_TOKEN} ({plural(len(setting.text or ''), 'character')}) {why}",
            repair=Repair(
                prose=f"in {setting.place}, write the token without it; this makes a new one:",
                commands=(_NEW_TOKEN,),
                place=setting.place,
            ),
        )


def _unpresentable(token: str) -> str:
    """Why no HTTP header can carry ``token`` as it stands, or an empty string."""
    if token != token.strip():
        return "begins or ends with white space, often the end of a line"
    if len(token) > 1 and token[0] == token[-1] and token[0] in "\"'":
        return "stands in quotation marks that belong to it"
    if not token.isascii():
        return "holds characters beyond ASCII"
    if not token.isprintable():
        return "holds a control character"
    return "holds a space" if " " in token else ""


def _token_ignored(facts: Facts) -> Iterator[Finding]:
    target = _serves_http(facts)
    token, acl = target.settings[_TOKEN], target.settings["CPERSONA_ACL_FILE"]
    if token.text and acl.given:
        yield Finding(
            about=_TOKEN,
            place=token.place,
            measured=f"{_TOKEN} and CPERSONA_ACL_FILE are both set",
            repair=Repair(
                prose=f"list the token as a client in {acl.text}, then remove {_TOKEN}",
                edit='{"client_id": "NAME", "token": "${NAME_TOKEN}", "grants": {"*": "read-write"}}',
                place=acl.place,
            ),
        )


def _address(facts: Facts) -> Iterator[Finding]:
    target = facts.target
    registration = target.registration
    if registration.launch.kind is LaunchKind.PROXY:
        setting = target.settings["CPERSONA_REMOTE_URL"]
        url, place, name = str(setting), setting.place if setting.given else registration.place, setting.setting.name
    elif registration.transport == "http":
        url, place, name = registration.url, registration.place, "url"
    else:
        raise SkipError("the client starts the server itself")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return  # placeholders and broken addresses have traps of their own
    if not parts.netloc or "${" in url:
        return
    wrong = []
    if parts.path.rstrip("/") != "/mcp" and parts.path in {"", "/", "/sse", "/embed", "/messages"}:
        wrong.append(f"the path is {parts.path or 'empty'}")
    if is_loopback(url) and port in {8400, 8401, 8403}:
        wrong.append(
            {8400: "8400 was the port of earlier images", 8401: "8401 is the embedding server's port"}.get(
                port, "8403 is the embedding server's own MCP port"
            )
        )
    if wrong:
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
        shown = 8402 if is_loopback(url) and port in {8400, 8401, 8403} else port
        right = urlunsplit((parts.scheme, f"{host}:{shown}" if shown else host, "/mcp", "", ""))
        yield Finding(
            about=name,
            place=place,
            measured=f"{bare_url(url)}: {', '.join(wrong)}",
            repair=Repair(prose=f"in {place}, write this address", edit=right, place=place),
        )


def _without_header(registration: Registration) -> Severity:
    """A server on another host may offer a login of its own; one on this computer hardly does."""
    return Severity.WARNING if is_loopback(registration.url) else Severity.HINT


def _no_header(facts: Facts) -> Iterator[Finding]:
    registration = facts.target.registration
    if registration.transport != "http" or registration.launch.kind is LaunchKind.PROXY:
        raise SkipError("the client starts the server itself")
    codex = registration.client == "codex"
    fields = registration.fields
    sent = {name.lower(): value for name, value in registration.headers.items()}
    wrong_key = next(
        (key for key in (("headers",) if codex else ("http_headers", "bearer_token_env_var")) if key in fields), ""
    )
    edit = _HEADER.get(registration.client, '"headers": {"Authorization": "Bearer THE TOKEN"}')
    value = sent.get("authorization", "")
    if (codex and isinstance(fields.get("bearer_token_env_var"), str)) or (value and not wrong_key):
        if value and not value.lower().startswith("bearer "):
            measured = "the Authorization header does not begin with “Bearer ”"
        else:
            return
    elif wrong_key:
        measured = f"the token stands under {wrong_key!r}, which {registration.client_title} does not read"
    else:
        measured = "the entry sends no Authorization header"
    yield Finding(
        about="Authorization",
        place=registration.place,
        measured=measured,
        severity=None if wrong_key or value else _without_header(registration),
        depends="" if wrong_key or value else "unless the server was told to run without a token, or offers a login",
        repair=Repair(prose=f"in {registration.place}, add", edit=edit, place=registration.place),
    )


def _oauth(facts: Facts) -> Iterator[Finding]:
    target = _serves_http(facts)
    given = [target.settings[n] for n in target.settings.values if n.startswith("CPERSONA_OAUTH_")]
    used = [setting for setting in given if setting.given]
    if used and not target.settings["CPERSONA_ACL_FILE"].given:
        yield Finding(
            about="CPERSONA_OAUTH_*",
            place=used[0].place,
            measured=f"{', '.join(s.name for s in used)} without CPERSONA_ACL_FILE",
            repair=set_variable(target.registration, "CPERSONA_ACL_FILE", "/absolute/path/acl.json"),
        )


def _port(facts: Facts) -> Iterator[Finding]:
    target = _serves_http(facts)
    setting = target.settings["CPERSONA_HTTP_PORT"]
    if isinstance(setting.value, int) and not 0 <= setting.value <= 65535:
        yield Finding(
            about=setting.setting.name,
            place=setting.place,
            measured=f"{setting.name}={setting.text}",
            repair=set_variable(target.registration, setting.setting.name, "8402", at=setting.place),
        )


def _proxied(facts: Facts) -> Iterator[Finding]:
    target = facts.target
    if target.registration.launch.kind is not LaunchKind.PROXY:
        raise SkipError("not the stdio proxy")
    setting = target.settings["CPERSONA_REMOTE_URL"]
    url = str(setting)
    environment = {name: value.text for name, value in target.environment.values.items()}
    try:
        proxy = proxy_for(url, environment)
    except ProxyError as error:
        measured = f"{error.name} cannot be used ({error}), so the proxy process does not start"
    else:
        if proxy is None or not is_loopback(url):
            return
        measured = f"{proxy.name} sends {bare_url(url)} to {bare_url(proxy.url)}"
    hosts = ",".join(dict.fromkeys((*exceptions(environment), "localhost", "127.0.0.1")))
    yield Finding(
        about="NO_PROXY",
        place=target.registration.env_place or target.registration.place,
        measured=measured,
        repair=set_variable(target.registration, "NO_PROXY", hosts),
    )


TRAPS = (
    Trap(
        id="transport.unknown",
        title="The transport has a name the server does not know",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_unknown_transport,
        expected="stdio or streamable-http, exactly; or unset, which means stdio",
        costs="the server refuses to start",
        repair="write stdio or streamable-http, or remove the variable",
        source="config.validate_transport; an empty value is refused too",
        rows=("I4",),
    ),
    Trap(
        id="transport.http-for-stdio",
        title="The client waits on stdout, the server listens on HTTP",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_http_for_stdio,
        expected="CPERSONA_TRANSPORT=stdio in an entry that starts the server; the container image's default is HTTP",
        costs="the server refuses to start without a token, and with one the client never gets an answer",
        repair="set CPERSONA_TRANSPORT=stdio",
        source="the image's compose file; config.transport",
        rows=("I10",),
    ),
    Trap(
        id="transport.no-token",
        title="HTTP without a token",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_no_token,
        expected="CPERSONA_AUTH_TOKEN or CPERSONA_ACL_FILE, on the loopback address too",
        costs="the server refuses to start",
        repair="set CPERSONA_AUTH_TOKEN",
        source="server._assert_safe_http_bind",
        rows=("I1",),
    ),
    Trap(
        id="transport.bad-token",
        title="No header can carry the token",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_bad_token,
        expected="printable ASCII without spaces and without quotation marks around it",
        costs="every request is answered with 401, for ever",
        repair="write the token without the extra characters",
        source="measured: the token is compared as it stands, headers arrive stripped",
        rows=("I2",),
    ),
    Trap(
        id="transport.token-ignored",
        title="The token is ignored beside an access table",
        severity=Severity.WARNING,
        needs=Needs.REGISTRATION,
        detect=_token_ignored,
        expected="tokens listed in the access table",
        costs="clients that send this token get 401",
        repair="list the token as a client in the access table",
        source="server.main: with CPERSONA_ACL_FILE, credentials come from that file alone",
        rows=("I3",),
        since="2.5",
    ),
    Trap(
        id="transport.address",
        title="The address is not where the server listens",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_address,
        expected="http://HOST:8402/mcp",
        costs="every request is answered with 404, or by another server",
        repair="write the address with /mcp and the right port",
        source="server._build_http_app; proxy_stdio.REMOTE_URL",
        rows=("I5",),
    ),
    Trap(
        id="transport.no-header",
        title="The client sends no token",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_no_header,
        expected="Authorization: Bearer TOKEN, in the client's own spelling",
        costs="every request is answered with 401",
        repair="Codex: bearer_token_env_var or http_headers; the others: headers",
        source="the clients' documentation",
        rows=("I6",),
    ),
    Trap(
        id="transport.oauth-alone",
        title="OAuth settings without an access table",
        severity=Severity.WARNING,
        needs=Needs.REGISTRATION,
        detect=_oauth,
        expected="CPERSONA_ACL_FILE beside CPERSONA_OAUTH_*",
        costs="tokens of the identity provider are not verified, and nobody gets in by them",
        repair="write an access table and set CPERSONA_ACL_FILE",
        source="config: verification needs a grant table to provision against",
        rows=("I7",),
        since="2.5",
    ),
    Trap(
        id="transport.port",
        title="The port does not exist",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_port,
        expected="0 to 65535",
        costs="the server opens and changes the database, and then stops",
        repair="set CPERSONA_HTTP_PORT=8402 or remove it",
        source="measured: OverflowError when it binds",
        rows=("I8",),
    ),
    Trap(
        id="transport.proxied",
        title="A web proxy stands between the stdio proxy and the server",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_proxied,
        expected="NO_PROXY=localhost,127.0.0.1 where a proxy is set",
        costs="requests to this computer go to the web proxy and come back as 403 or 502",
        repair="set NO_PROXY in the entry",
        source="proxy_stdio uses httpx, which follows the environment",
        rows=("I9",),
    ),
)
