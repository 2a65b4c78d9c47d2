"""Our own words, for where no server can be asked; never shown as the server's.

The rule is that of the server's own health module (2.6.14): mode none is a hint at once, two failures in a row are a
fault, one success ends it. The words are in ``texts``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cpersona_cli.advisory.model import Call, Event, Recall
from cpersona_cli.advisory.texts import Language, Sort, reason, runbook

#: Failures in a row from which the agent is told, and callers that are remembered as told.
THRESHOLD, CAP = 2, 256
#: The literal key that counts as none.
_NO_KEY = "transport"

_EVIDENCE_OF_NONE = "mode=none / no embedding backend configured"


@dataclass(slots=True, kw_only=True)
class Rule:
    """The state of one process and whom it has told."""

    mode: str
    shared: bool
    enabled: bool
    language: Language = "en"
    state: str = "unknown"
    failures: int = 0
    evidence: str = ""
    misconfigured: bool = False
    told: dict[str, None] = field(default_factory=dict)
    told_anybody: bool = False

    def recalls(self, events: Iterable[Event]) -> tuple[Recall, ...]:
        """Each event in turn; one that would be measured counts as given."""
        return tuple(self._recall(number, event) for number, event in enumerate(events, 1))

    def _recall(self, number: int, event: Event) -> Recall:
        if event.word == "check":
            if self.mode != "none":
                self._failed(event)
            return Recall(number=number, word="check", key=event.key, state=self.state)
        call = None
        if self.mode == "none":
            self.state = "hint"
        elif event.word != "idle":
            call = Call(attempted=event.attempted, ok=event.ok, error=None if event.ok else event.error)
            if not event.ok:
                self._failed(event)
            elif event.attempted:
                self._succeeded()
        advisory = self._advisory(event.key)
        text = None if advisory is None else json.dumps(advisory, ensure_ascii=False)
        return Recall(number=number, word=event.word, key=event.key, call=call, state=self.state, text=text)

    def _succeeded(self) -> None:
        self.state, self.failures, self.evidence = "healthy", 0, ""
        self.told.clear()
        self.told_anybody = False

    def _failed(self, event: Event) -> None:
        self.failures += 1
        self.misconfigured = not event.attempted
        self.evidence = event.error or self.evidence
        if self.failures >= THRESHOLD:
            if self.state != "fault":
                self.told.clear()
                self.told_anybody = False
            self.state = "fault"

    def _advisory(self, key: str) -> Mapping[str, object] | None:
        if not self.enabled or self.state in {"unknown", "healthy"}:
            return None
        key = key.strip()
        declared = key not in {"", _NO_KEY}
        if declared:
            full = key not in self.told
            self.told[key] = None
            while len(self.told) > CAP:
                self.told.pop(next(iter(self.told)))
        else:
            full = not self.told_anybody or (self.shared and self.state == "fault")
            self.told_anybody = True
        sort: Sort = "hint" if self.state == "hint" else "config" if self.misconfigured else "fault"
        evidence = _EVIDENCE_OF_NONE if sort == "hint" else self.evidence
        return {
            "degraded": True,
            "severity": "hint" if sort == "hint" else "fault",
            "reason": reason(sort, self.language),
            "evidence": evidence or None,
            "runbook": runbook(sort, evidence, full=full, language=self.language),
            "advisory_scope": "session" if declared or not self.shared else "process",
            "source": "own",
        }
