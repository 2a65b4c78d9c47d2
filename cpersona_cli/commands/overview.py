"""``cpersona-cli`` alone: what stands on this machine, and the command to begin with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cpersona_cli.commands import options
from cpersona_cli.commands.options import Job

if TYPE_CHECKING:
    from cpersona_cli.report.model import Report

#: Commands by the question each answers, in the order in which people meet them.
QUESTIONS = (
    ("doctor", "is memory configured so that it works?"),
    ("probe", "what answers at the embedding endpoint?"),
    ("dimension", "do the stored vectors still fit?"),
    ("reembed", "rebuild every vector, and lose none"),
    ("advisory-preview", "what will the agent be told?"),
    ("backfill", "bring old conversations in"),
    ("traps", "what does a finding mean?"),
    ("demo", "watch it find and mend faults, on a scratch memory"),
)


def overview() -> Job:
    """Look at what is there, without the network, and judge nothing."""
    preferences = options.settle(options.output_flags(chosen=None, json=False, color=None), None)
    return Job(options.output(preferences, ()), _look)


def _look() -> Report:
    from cpersona_cli.install.machine import this_machine  # noqa: PLC0415 - not for a usage error
    from cpersona_cli.report import inventory  # noqa: PLC0415
    from cpersona_cli.report.model import Report, Section  # noqa: PLC0415
    from cpersona_cli.traps.gather import Selection, gather  # noqa: PLC0415

    machine = this_machine()
    facts = gather(Selection(before_first_start=True), machine)
    found = [section for section in inventory.sections(facts) if not section.verbosity]
    if not found:
        looked = len({looked.client for looked in facts.discovery.looked})
        nothing = f"no registration of CPersona was found in the files of {looked} clients"
        found = [Section(title="registrations", rows=[("none", nothing, "")], verbosity=0)]
    there = [(name, what, "") for name, what in QUESTIONS]
    return Report(
        command="",
        gate=False,
        sections=[*found, Section(title="commands", rows=there, verbosity=0)],
        notes=facts.unfinished,
        payload=inventory.payload(facts),
        next_command="cpersona-cli doctor",
        home=str(machine.home),
        secrets=inventory.secrets(facts),
    )
