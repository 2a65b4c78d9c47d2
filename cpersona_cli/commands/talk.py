"""What is asked of the user before and during a change, and what is taken for granted where nobody is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cpersona_cli.commands.errors import UsageError
from cpersona_cli.commands.workplace import asking
from cpersona_cli.embedding.model import Endpoint
from cpersona_cli.install.proxies import is_loopback
from cpersona_cli.rebuild.judgement import Judgement, Verdict
from cpersona_cli.rebuild.model import Progress
from cpersona_cli.report import reembed as page
from cpersona_cli.report.model import Section
from cpersona_cli.report.output import show
from cpersona_cli.report.progress import Teller


@dataclass(slots=True)
class Talk:
    """A conversation: ``yes`` answers everything, ``home`` is written as ``~`` in what is shown."""

    teller: Teller
    home: str
    yes: bool
    _waited_for: tuple[str, ...] = ()

    def ask(self, question: str) -> bool | None:
        """Whether the answer is a typed yes; None where nobody is there to ask."""
        ask = asking()
        if ask is None:
            return None
        self.teller.clear()
        return ask(question) == "yes"

    def consent(self, endpoint: Endpoint, what: str) -> None:
        """Stored texts leave this computer only when the user says so. Raises ``UsageError``."""
        where = f"{what} would be sent to {endpoint.address}"
        if not (is_loopback(endpoint.url) or self.yes or self.ask(f"{where}. Type yes to allow it:")):
            raise UsageError(f"{where}, which is not this computer; add --yes to allow it")

    def confirm(self, what: str) -> None:
        """Have something that changes files confirmed. Raises ``UsageError``."""
        if self.yes:
            return
        agreed = self.ask(f"{what} Type yes:")
        if agreed is None:
            raise UsageError(f"{what[:1].lower()}{what[1:-1]}, and nobody is here to confirm it; add --yes")
        if not agreed:
            raise UsageError("not confirmed; nothing was changed")

    def plan(self, sections: Sequence[Section], question: str, sends: str = "") -> None:
        """Show a plan and have it confirmed. Raises ``UsageError`` where it is not.

        ``sends`` says which texts would go to which other computer.
        """
        if self.yes:
            return
        if asking() is None:
            sent = f", and to send {sends}" if sends else ""
            raise UsageError(
                f"nobody is here to confirm the plan; look at it with --dry-run, then add --yes to carry it out{sent}"
            )
        self.teller.clear()
        show(sections, self.home)
        if not self.ask(f"{question} Type yes:"):
            raise UsageError("the plan was not confirmed; nothing was changed")

    def better(self, judgement: Judgement) -> bool:
        """Whether to switch; asked only where search got worse and somebody is there."""
        if judgement.verdict is not Verdict.WORSE or self.yes or asking() is None:
            return True
        self.teller.clear()
        show([page.judgement_section(judgement)], self.home)
        return bool(self.ask("Search gets worse on these memories. Switch all the same? Type yes:"))

    def wait(self, names: tuple[str, ...]) -> bool:
        """Whether somebody is there who can end what has the database open."""
        if asking() is None:
            return False
        if names != self._waited_for:
            self._waited_for = names
            self.teller.note(f"the database is open in {', '.join(names)}; quit that, and the switch follows by itself")
        self.teller.tell(Progress(phase="waiting until nobody has the database open", done=0, total=0))
        return True

    def stopping(self) -> None:
        """The first signal came."""
        self.teller.soon("stopping when what is on its way has arrived; once more to stop at once")
