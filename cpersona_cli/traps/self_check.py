"""Why a healthy answer of the server's own checks is not enough, and what was made of each reason."""

from __future__ import annotations

from cpersona_cli.traps.model import Uncheckable

UNCHECKABLE = (
    Uncheckable(
        row="J2",
        title="the status healthy does not mean that embedding works",
        why="a property of the server's check; the endpoint must be asked",
        command="cpersona-cli probe",
    ),
    Uncheckable(
        row="J3",
        title="the report-only check never asks the endpoint",
        why="a property of the server's check; the endpoint must be asked",
        command="cpersona-cli probe",
    ),
    Uncheckable(
        row="J4",
        title="a missing URL is reported as an unreachable server",
        why="a property of the server's advisory; names.url-missing finds the cause",
        command="cpersona-cli advisory-preview",
    ),
    Uncheckable(
        row="J6",
        title="no check of the server looks at names, files, proxies, agent ids or other clients",
        why="the reason for this tool; the other rows of the catalogue are these checks",
        command="cpersona-cli doctor",
    ),
    Uncheckable(
        row="J7",
        title="“cpersona doctor” starts a server where this tool is not installed",
        why="a property of how this tool is started: only its own JSON document proves that it ran",
        command="cpersona-cli doctor --json",
    ),
)
