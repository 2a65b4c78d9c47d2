"""Commands that start the server inside a container: docker, podman, compose."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from cpersona_cli.install.launch import compose
from cpersona_cli.install.launch.options import Options, leading, names
from cpersona_cli.install.launch.understand import Site, follow, package_of
from cpersona_cli.install.model import Launch, LaunchKind, Place, Variable
from cpersona_cli.record import replace

#: Options of the engine itself, in front of the subcommand, that take a value.
_ENGINE_VALUED = (
    "--context", "-c", "--config", "--host", "-H", "--log-level", "-l", "--tlscacert", "--tlscert", "--tlskey",
    "--connection", "--url", "--root", "--runroot", "--namespace", "-n",
)  # fmt: skip
#: Long options of ``run`` and ``exec`` that take no value; all others do.
_FLAGS = names(
    "--detach --disable-content-trust --init --interactive --no-healthcheck --oom-kill-disable --privileged"
    " --publish-all --quiet --read-only --rm --sig-proxy --tty --use-api-socket --help --env-host --replace"
    " --http-proxy --no-hosts --no-hostname --rmi --tls-verify --systemd --latest --no-TTY --no-deps"
    " --service-ports --use-aliases --build --remove-orphans --quiet-pull --quiet-build"
)
_SHORT_VALUED = ("-e", "-v", "-p", "-w", "-u", "-h", "-l", "-m", "-c", "-a")
_COMPOSE_VALUED = ("-f", "--file", "-p", "--project-name", "--project-directory", "--profile", "--env-file", "--ansi",
                   "--parallel", "--progress")  # fmt: skip
_UP_VALUED = ("--scale", "--timeout", "-t", "--pull", "--exit-code-from", "--attach", "--no-attach", "--wait-timeout")
_OFF = ("false", "0", "no")


def engine(words: Sequence[str], site: Site) -> Launch | None:
    """``docker`` or ``podman``: run, exec, start and compose."""
    before = leading(words[1:], valued=_ENGINE_VALUED)
    rest = list(before.rest)
    if rest[:1] == ["container"]:
        rest.pop(0)
    if rest[:1] == ["compose"]:
        return composed([f"{words[0]} compose", *rest[1:]], site, program=words[0])
    if rest[:1] == ["start"]:
        options = leading(rest[1:], valued=("--detach-keys", "--checkpoint", "--checkpoint-dir"))
        said = "the container was made earlier: its image, variables and mounts are not in this command"
        return Launch(
            kind=LaunchKind.DOCKER,
            program=words[0],
            inside="container",
            interactive=options.has("-i", "--interactive"),
            unclear=(said,),
        )
    if rest[:1] not in (["run"], ["exec"]):
        return None
    options = leading(rest[1:], valued=_SHORT_VALUED, flags=_FLAGS)
    if not options.rest:
        return None
    launch = _containers_options(options, words[0])
    target, *inner = options.rest
    if rest[0] == "exec":
        said = f"the container {target} was made earlier: its image, variables and mounts are not in this command"
        return _with_words(replace(launch, unclear=(said, *launch.unclear)), inner, site)
    entry = options.last("--entrypoint")
    launch = replace(launch, image=target, package=package_of_image(target))
    return _with_words(launch, [entry, *inner] if entry else inner, site)


def package_of_image(image: str) -> Literal["", "cpersona", "cembedding"]:
    """The server an image is named after: ``ghcr.io/x/cpersona:2.6`` holds CPersona."""
    name = re.split(r"[:@]", image.rsplit("/", 1)[-1], maxsplit=1)[0].lower()
    return next((package_of(word) for word in ("cpersona", "cembedding") if word in name), "")


def tag(image: str) -> str:
    """The tag of an image name, empty when it has none; a digest is no tag."""
    return image.split("@", 1)[0].rsplit("/", 1)[-1].partition(":")[2]


def mount(text: str) -> tuple[str, str] | None:
    r"""A ``-v`` text as (host, container); None for a volume without a name. ``C:\x:/data`` is understood."""
    parts = re.match(r"^((?:[A-Za-z]:[/\\])?[^:]*):([^:]+)(?::[^:]*)?$", text)
    return (parts.group(1), parts.group(2)) if parts and parts.group(1) else None


def _mount_fields(text: str) -> tuple[str, str] | None:
    fields = dict(part.partition("=")[::2] for part in text.split(","))
    source = fields.get("source") or fields.get("src") or ""
    target = fields.get("target") or fields.get("destination") or fields.get("dst") or ""
    return (source, target) if source and target and fields.get("type", "volume") in {"bind", "volume"} else None


def _containers_options(options: Options, program: str) -> Launch:
    carried = []
    passed = []
    for text in options.all("-e", "--env"):
        name, equals, value = text.partition("=")
        if equals:
            carried.append(Variable(name, value, Place(words="-e on the command line"), f"{program_name(program)} -e"))
        else:
            passed.append(name)
    mounts = [mount(text) for text in options.all("-v", "--volume")]
    mounts += [_mount_fields(text) for text in options.all("--mount")]
    asked = [value for name, value in options.pairs if name in {"-i", "--interactive"}]
    unclear = []
    if options.has("--volumes-from"):
        unclear.append("mounts are taken over from another container")
    if options.has("--env-host"):
        unclear.append("podman hands on the whole environment of the client")
    return Launch(
        kind=LaunchKind.DOCKER,
        program=program,
        variables=tuple(carried),
        passed=tuple(passed),
        env_files=options.all("--env-file"),
        mounts=tuple(pair for pair in mounts if pair),
        interactive=bool(asked) and (asked[-1] or "true") not in _OFF,
        network_host=options.last("--network", "--net") == "host",
        inside="container",
        cwd=options.last("-w", "--workdir"),
        unclear=tuple(unclear),
    )


def program_name(word: str) -> str:
    r"""``docker`` of ``C:\\...\\docker.exe``."""
    return re.split(r"[/\\]", word)[-1].removesuffix(".exe")


def _with_words(launch: Launch, words: Sequence[str], site: Site) -> Launch:
    """``launch`` with the command that runs inside the container."""
    inner = follow(words, replace(site, elsewhere=True))
    if not inner.package:
        return replace(launch, leftover=tuple(words))
    return replace(
        launch,
        package=inner.package,
        kind=LaunchKind.PROXY if inner.kind is LaunchKind.PROXY else launch.kind,
        requirement=inner.requirement,
        variables=(*launch.variables, *inner.variables),
        cwd=inner.cwd or launch.cwd,
        leftover=inner.leftover,
        unclear=(*launch.unclear, *inner.unclear),
    )


def composed(words: Sequence[str], site: Site, *, program: str = "") -> Launch | None:
    """``docker compose`` or ``docker-compose``: what the files say of the service, under what the words say."""
    before = leading(words[1:], valued=_COMPOSE_VALUED)
    if before.rest[:1] not in {("run",), ("exec",), ("up",), ("start",)}:
        return None
    verb = before.rest[0]
    if verb in {"run", "exec"}:
        options = leading(before.rest[1:], valued=_SHORT_VALUED, flags=_FLAGS)
        service = options.rest[0] if options.rest else ""
        inner = list(options.rest[1:])
    else:
        options = leading(before.rest[1:], valued=_UP_VALUED)
        service = options.rest[0] if len(options.rest) == 1 else ""
        inner = []
    folder = site.base / before.last("--project-directory") if before.has("--project-directory") else site.base
    files = [site.base / name for name in before.all("-f", "--file")] or _default_files(folder)
    launch = _containers_options(options, program or words[0])
    unclear = list(launch.unclear)
    if not files:
        unclear.append(f"no compose file in {folder}, where the client would look for it")
    if verb in {"up", "start"}:
        unclear.append(f"`compose {verb}` does not connect the client to the service's stdin and stdout")
    declared = Launch(kind=LaunchKind.COMPOSE)
    for file in files:
        declared = _merged(declared, _from_file(file, service, folder if before.has("--project-directory") else None))
    merged = _merged(declared, replace(launch, kind=LaunchKind.COMPOSE, unclear=tuple(unclear)))
    switched_off = options.last("-i", "--interactive") in _OFF
    merged = replace(
        merged,
        program=program or words[0],
        inside="container",
        interactive=verb in {"run", "exec"} and not switched_off,
        package=merged.package or package_of_image(service),
    )
    entry = options.last("--entrypoint")
    return _with_words(merged, [entry, *inner] if entry else inner, site)


def _default_files(folder: Path) -> list[Path]:
    for name in compose.NAMES:
        try:
            if (folder / name).is_file():
                override = [folder / f"{name.rsplit('.', 1)[0]}.override.{kind}" for kind in ("yaml", "yml")]
                return [folder / name, *(path for path in override if path.is_file())]
        except (OSError, ValueError):
            return []
    return []


def _merged(under: Launch, over: Launch) -> Launch:
    """Two layers of one launch; what ``over`` says wins because it stands later."""
    return replace(
        over,
        image=over.image or under.image,
        package=over.package or under.package,
        variables=(*under.variables, *over.variables),
        passed=(*under.passed, *over.passed),
        env_files=(*under.env_files, *over.env_files),
        mounts=(*under.mounts, *over.mounts),
        network_host=over.network_host or under.network_host,
        cwd=over.cwd or under.cwd,
        unclear=(*under.unclear, *over.unclear),
    )


def _from_file(file: Path, service: str, folder: Path | None) -> Launch:
    """What one compose file says of ``service``; without a name, of the only service that holds CPersona."""
    tree, unclear = compose.read(file)
    services = tree.get("services") if tree else None
    named = services.value if services and isinstance(services.value, dict) else {}
    if not service:
        held = [n for n, node in named.items() if package_of_image(_text(node, "image") or n) == "cpersona"]
        service = held[0] if len(held) == 1 else ""
    found = named.get(service)
    if found is None:
        said = f"{file} has no service {service!r}" if service else f"{file} does not say which service is meant"
        return Launch(kind=LaunchKind.COMPOSE, unclear=(*unclear, *((said,) if tree else ())))
    base = folder or file.parent
    carried, passed = _environment(found.get("environment"), file)
    return Launch(
        kind=LaunchKind.COMPOSE,
        image=_text(found, "image"),
        package=package_of_image(_text(found, "image") or service),
        variables=carried,
        passed=passed,
        env_files=tuple(str(base / text) for text in _env_files(found.get("env_file"))),
        mounts=_volumes(found.get("volumes"), base),
        network_host=_text(found, "network_mode") == "host",
        cwd=_text(found, "working_dir"),
        unclear=(*unclear, *(f"{file} extends another service" for _ in [0] if found.get("extends"))),
    )


def _text(node: compose.Node, name: str) -> str:
    found = node.get(name)
    return found.text if found else ""


def _environment(node: compose.Node | None, file: Path) -> tuple[tuple[Variable, ...], tuple[str, ...]]:
    """``environment`` as a mapping or a list; a name without value is handed on from the shell of compose."""
    carried = []
    passed = []
    if node and isinstance(node.value, dict):
        for name, value in node.value.items():
            if value.value is None:
                passed.append(name)
            else:
                carried.append(Variable(name, value.text, Place(file, value.line), "compose environment"))
    elif node and isinstance(node.value, list):
        for item in node.value:
            name, equals, text = item.text.partition("=")
            if equals:
                carried.append(Variable(name, text, Place(file, item.line), "compose environment"))
            elif name:
                passed.append(name)
    return tuple(carried), tuple(passed)


def _env_files(node: compose.Node | None) -> list[str]:
    if node is None or node.value is None:
        return []
    items = node.value if isinstance(node.value, list) else [node]
    return [text for item in items if (text := item.text or _text(item, "path"))]


def _volumes(node: compose.Node | None, base: Path) -> tuple[tuple[str, str], ...]:
    """Mounts; a source that starts with ``.`` is a folder beside the compose file, a bare word a named volume."""
    found = []
    for item in node.value if node and isinstance(node.value, list) else []:
        pair = mount(item.text) if item.text else None
        if isinstance(item.value, dict) and _text(item, "source") and _text(item, "target"):
            pair = (_text(item, "source"), _text(item, "target"))
        if pair:
            source, target = pair
            found.append((str(base / source) if source.startswith(".") else source, target))
    return tuple(found)
