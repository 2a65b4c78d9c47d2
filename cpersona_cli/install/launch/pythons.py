"""Commands that start the server with Python: uv, pipx, an installed script, an interpreter."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cpersona_cli.install.launch.options import leading, names
from cpersona_cli.install.launch.requirement import requirement
from cpersona_cli.install.launch.understand import Site, follow, package_of, stem
from cpersona_cli.install.model import Launch, LaunchKind
from cpersona_cli.record import replace

#: Options of uvx, ``uv tool run``, ``uv run`` and uv itself that take a value (uv 0.13).
_UV_VALUED = names(
    "--from --with --with-editable --with-requirements --constraints --constraint --build-constraints"
    " --build-constraint --overrides --override --env-file --python-platform --torch-backend --index --default-index"
    " --index-url --extra-index-url --find-links --index-strategy --keyring-provider --upgrade-package --upgrade-group"
    " --resolution --prerelease --prerelease-package --fork-strategy --exclude-newer --exclude-newer-package"
    " --no-sources-package --reinstall-package --link-mode --config-setting --config-settings --config-settings-package"
    " --no-build-isolation-package --no-build-package --no-binary-package --refresh-package --cache-dir --python"
    " --python-preference --color --directory --project --config-file --allow-insecure-host --extra --no-extra --group"
    " --no-group --only-group --package -w -c -b -i -f -P -C -p"
)
#: Options of uvx, ``uv tool run``, ``uv run`` and uv itself that take a value (uv 0.13).
_UV_VALUED = frozenset(
    [
        "--from",
        "--with",
        "--with-editable",
        "--with-requirements",
        "--constraints",
        "--constraint",
        "--build-constraints",
        "--build-constraint",
        "--overrides",
        "--override",
        "--env-file",
        "--python-platform",
        "--torch-backend",
        "--index",
        "--default-index",
        "--index-url",
        "--extra-index-url",
        "--find-links",
        "--index-strategy",
        "--keyring-provider",
        "--upgrade-package",
        "--upgrade-group",
        "--resolution",
        "--prerelease",
        "--prerelease-package",
        "--fork-strategy",
        "--exclude-newer",
        "--exclude-newer-package",
        "--no-sources-package",
        "--reinstall-package",
        "--link-mode",
        "--config-setting",
        "--config-settings",
        "--config-settings-package",
        "--no-build-isolation-package",
        "--no-build-package",
        "--no-binary-package",
        "--refresh-package",
        "--cache-dir",
        "--python",
        "--python-preference",
        "--color",
        "--directory",
        "--project",
        "--config-file",
        "--allow-insecure-host",
        "--extra",
        "--no-extra",
        "--group",
        "--no-group",
        "--only-group",
        "--package",
        "-w",
        "-c",
        "-b",
        "-i",
        "-f",
        "-P",
        "-C",
        "-p",
    ]
)
_UV_FRESH = ("--refresh", "--refresh-package", "--upgrade", "-U", "--upgrade-package", "-P", "--reinstall")
_PIPX_VALUED = names("--spec --python --pip-args --index-url -i --with --backend --path")


def script(words: Sequence[str], site: Site) -> Launch:
    del site
    package = package_of(stem(words[0]))
    return Launch(kind=LaunchKind.SCRIPT, package=package, program=words[0], leftover=tuple(words[1:]))


def uvx(words: Sequence[str], site: Site) -> Launch | None:
    options = leading(words[1:], valued=_UV_VALUED)
    if not options.rest:
        return None
    chosen = options.last("--from")
    command, *rest = options.rest
    wanted = requirement(command)
    beside = tuple(part.strip() for value in options.all("--with", "-w") for part in value.split(",") if part.strip())
    latest = requirement(chosen or command).latest
    launch = Launch(
        kind=LaunchKind.UVX,
        program=words[0],
        requirement=chosen or command,
        python=options.last("--python", "-p"),
        env_files=options.all("--env-file"),
        beside=beside,
        fresh=latest or options.has(*_UV_FRESH),
        cwd=options.last("--directory"),
        leftover=tuple(rest),
        unclear=_uv_unclear(options.has("--with-requirements", "--constraints", "-c", "--overrides")),
    )
    if chosen:
        return _within_uv(launch, options.rest, site, source=chosen)
    if package_of(wanted.name):
        return replace(launch, package=package_of(wanted.name))
    return _within_uv(launch, options.rest, site, source="")


def _within_uv(launch: Launch, words: Sequence[str], site: Site, *, source: str) -> Launch | None:
    """A command run in an environment that uv makes: the server's script, or a Python with the server's module."""
    inner = follow(words, site)
    if not inner.package:
        return None
    named = [part for part in (source, *launch.beside) if requirement(part).name == inner.package]
    kind = LaunchKind.PROXY if inner.kind is LaunchKind.PROXY else LaunchKind.UVX
    return replace(
        launch,
        kind=kind,
        package=inner.package,
        requirement=named[0] if named else source,
        leftover=inner.leftover,
        variables=inner.variables,
        unclear=(*launch.unclear, *inner.unclear),
        beside=tuple(part for part in launch.beside if part not in named[:1]),
    )


def _uv_unclear(files: bool) -> tuple[str, ...]:
    return ("requirement or constraint files named on the command line may choose another release",) if files else ()


def uv(words: Sequence[str], site: Site) -> Launch | None:
    glob = leading(words[1:], valued=_UV_VALUED)
    folder = {"cwd": glob.last("--directory"), "project": glob.last("--project")}
    if glob.rest[:2] in {("tool", "run"), ("tool", "uvx")} or glob.rest[:1] == ("x",):
        skip = 2 if glob.rest[0] == "tool" else 1
        found = uvx([words[0], *glob.rest[skip:]], site)
        return found and replace(found, cwd=found.cwd or folder["cwd"])
    if glob.rest[:1] != ("run",):
        return None
    options = leading(glob.rest[1:], valued=_UV_VALUED, stop=("-m", "--module", "-s", "--script"))
    rest = list(options.rest)
    if rest[:1] in (["-m"], ["--module"]):
        rest = ["python", "-m", *rest[1:]]
    elif rest[:1] in (["-s"], ["--script"]):
        rest = ["python", *rest[1:]]
    beside = tuple(part.strip() for value in options.all("--with", "-w") for part in value.split(",") if part.strip())
    cwd = options.last("--directory") or folder["cwd"]
    launch = Launch(
        kind=LaunchKind.UVX,
        program=words[0],
        python=options.last("--python", "-p"),
        env_files=options.all("--env-file"),
        beside=beside,
        fresh=options.has(*_UV_FRESH),
        cwd=cwd,
        project="" if options.has("--no-project") else options.last("--project") or folder["project"] or cwd or ".",
        unclear=_uv_unclear(options.has("--with-requirements")),
    )
    return _within_uv(launch, rest, site, source="")


def pipx(words: Sequence[str], site: Site) -> Launch | None:
    options = leading(words[1:], valued=_PIPX_VALUED)
    if options.rest[:1] != ("run",):
        return None
    options = leading(options.rest[1:], valued=_PIPX_VALUED)
    if not options.rest:
        return None
    spec = options.last("--spec")
    wanted = requirement(spec or options.rest[0])
    command = requirement(options.rest[0]).name
    package = package_of(command) or package_of(wanted.name if command == wanted.name else "")
    if not package:
        inner = follow(options.rest, site)
        if not inner.package or package_of(wanted.name) != inner.package:
            return None
        package = inner.package
    return Launch(
        kind=LaunchKind.PIPX,
        package=package,
        program=words[0],
        requirement=spec or options.rest[0],
        python=options.last("--python"),
        fresh=options.has("--no-cache"),
        leftover=tuple(options.rest[1:]),
    )


def python(words: Sequence[str], site: Site) -> Launch | None:
    rest = list(words[1:])
    if stem(words[0]) in {"py", "pyw"}:  # the Windows launcher: ``py -3.12 -m cpersona``
        while rest and re.match(r"^-(?:\d|V:)", rest[0]):
            rest.pop(0)
    options = leading(rest, valued=("-W", "-X", "-c", "-m", "--check-hash-based-pycs"), final=("-c", "-m"))
    launch = Launch(kind=LaunchKind.MODULE, program=words[0], python=words[0])
    if options.has("-c"):
        code = options.last("-c")
        server = re.search(r"\bcpersona\s*\.\s*(?:server|__main__)\b|\bfrom\s+cpersona\s+import\b", code)
        said = "the server is started by Python code on the command line, which may set anything first"
        return replace(launch, package="cpersona", unclear=(said,)) if server else None
    if options.has("-m"):
        return _by_module(replace(launch, leftover=options.rest), options.last("-m"), site)
    if not options.rest:
        return None
    return _by_file(launch, options.rest)


def _by_module(launch: Launch, module: str, site: Site) -> Launch | None:
    if module in {"cpersona", "cpersona.__main__", "cpersona.server"}:
        return replace(launch, package="cpersona")
    if module == "cpersona.proxy_stdio":
        return replace(launch, kind=LaunchKind.PROXY, package="cpersona")
    if module.partition(".")[0] == "cembedding":
        return replace(launch, package="cembedding")
    if module in {"uv", "pipx"}:
        return follow((module, *launch.leftover), site)
    return None


def _by_file(launch: Launch, words: Sequence[str]) -> Launch | None:
    parts = [part.lower() for part in re.split(r"[/\\]", words[0])]
    folder = parts[-2] if len(parts) > 1 else ""
    launch = replace(launch, leftover=tuple(words[1:]))
    if folder in {"bin", "scripts"} and package_of(stem(words[0]).removesuffix(".py").removesuffix("-script")):
        return replace(launch, package=package_of(stem(words[0]).removesuffix(".py").removesuffix("-script")))
    if folder in {"cpersona", "cembedding"} and parts[-1] in {"server.py", "__main__.py"}:
        return replace(launch, package=package_of(folder))
    if folder == "cpersona" and parts[-1] == "proxy_stdio.py":
        return replace(launch, kind=LaunchKind.PROXY, package="cpersona")
    if parts[-1] == "cpersona" and folder != "bin":  # a folder with ``__main__.py``
        return replace(launch, package="cpersona")
    return None
