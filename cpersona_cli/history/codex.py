"""Codex rollouts: one record a line, in every grammar the program has had since 2025.

The oldest files are one object, then came lines without an envelope, then lines of time, type and payload. In these one
message may stand as what the model was sent (``response_item``), as what was shown (``event_msg``) and as a finished
item, in any order, or in only one of the three. A message is counted once, however often it stands there, and what the
program put beside the user's words is left out.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from cpersona_cli.history.draft import Draft
from cpersona_cli.history.lines import Line, Lines
from cpersona_cli.history.model import Conversation, Format, Reader, Role, Unread
from cpersona_cli.history.talk import AGAIN, Said, Talk
from cpersona_cli.history.texts import digest
from cpersona_cli.history.times import Clock
from cpersona_cli.history.values import items, mapping, objects, word
from cpersona_cli.record import replace
from cpersona_cli.text import safe

_CONTEXT = "context messages of the program"
_COPIES = "second copies of messages"
_THOUGHTS = "thoughts"
_CALLS, _RESULTS = "calls of tools", "results of tools"

# What the program sends in the user's name begins so. Of other texts that are one element and nothing else it is
# assumed only where there is no record of the user's having typed it.
_PUT_BESIDE = re.compile(
    r"<(?:additional_context|app-context|apps_instructions|codex_internal_context|collaboration_mode"
    r"|context_window|environment_context|environments_instructions|external_links|goal_context|hook_prompt"
    r"|internal_model_context|multi_agent_mode|permissions instructions|personality_spec|plugins_instructions"
    r"|recommended_plugins|rollout_budget|skill|skills_instructions|subagent_notification|token_budget|turn_aborted"
    r"|user_action|user_instructions|user_shell_command)\b"
    r"|# AGENTS\.md instructions|You are `/root`"
)
_ELEMENT = re.compile(r"<([a-zA-Z][\w-]*)(?:\s[^>]*)?>.*</\1>", re.DOTALL)
_IMAGE_TAG = re.compile(r"<image\b[^>]*>|</image>")
_IDE, _REQUEST = "# Context from my IDE setup:", "## My request for Codex:"

_ITEMS = {
    "reasoning": _THOUGHTS,
    "function_call": _CALLS,
    "custom_tool_call": _CALLS,
    "local_shell_call": _CALLS,
    "tool_search_call": _CALLS,
    "web_search_call": _CALLS,
    "image_generation_call": _CALLS,
    "function_call_output": _RESULTS,
    "custom_tool_call_output": _RESULTS,
    "tool_search_output": _RESULTS,
    "agent_reasoning": _THOUGHTS,
    "agent_reasoning_raw_content": _THOUGHTS,
}
_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT}
_FINISHED = {"usermessage": Role.USER, "agentmessage": Role.ASSISTANT}
_TEXTS = ("input_text", "output_text", "text", "Text")

# Where a message may stand.
_SENT, _SHOWN, _DONE = "sent", "shown", "done"


def reader() -> Reader:
    """A reader of this format, which knows again what a session has from an earlier one."""
    return _Codex()


class _Codex:
    def __init__(self) -> None:
        self.sessions: dict[str, array[int]] = {}

    def __call__(self, stream: BinaryIO, where: str, clock: Clock) -> Iterator[Conversation | Unread]:
        rollout = _Rollout(self, where, clock)
        head = _Head(stream)
        if head.first.strip() == b"{":  # the oldest form, over many lines
            for found in objects(head, where):  # type: ignore[arg-type]
                if isinstance(found, Unread):
                    yield found
                else:
                    rollout.take(found.value)
            yield rollout.ended()
            return
        lines = Lines(head, where)  # type: ignore[arg-type]
        for line in lines:
            if isinstance(line, Line):
                rollout.take(line.value)
            else:
                yield line
        rollout.talk.ended(lines)
        yield rollout.ended()
        lines.close()


class _Head:
    """A stream whose first line can be looked at."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.kept = stream.read(2**16)
        self.first = self.kept.split(b"\n", 1)[0]

    def read(self, size: int = -1) -> bytes:
        kept, self.kept = self.kept, b""
        return kept or self.stream.read(size)


@dataclass(slots=True, eq=False)
class _Message:
    role: Role
    text: str
    key: str
    time: object
    element: bool
    places: set[str] = field(default_factory=set)


class _Rollout:
    """One file while it is read: one session."""

    def __init__(self, known: _Codex, where: str, clock: Clock) -> None:
        self.known = known
        self.talk = Talk(Draft(Format.CODEX, where, clock))
        self.draft = self.talk.draft
        self.messages: list[_Message] = []
        self.alike: dict[tuple[Role, str], list[_Message]] = {}
        self.counts: Counter[tuple[Role, str, str]] = Counter()
        self.meta: dict[str, object] | None = None
        self.title, self.model = "", ""

    def take(self, value: dict[str, object]) -> None:
        """One line, of any grammar."""
        payload = value.get("payload")
        if "session" in value and isinstance(value.get("items"), list):
            self._begun(mapping(value.get("session")))
            for item in items(value.get("items")):
                self._sent(mapping(item), mapping(item).get("timestamp"))
        elif isinstance(payload, dict):
            self._enveloped(word(value.get("type")), payload, value.get("timestamp"))
        elif "type" in value:
            self._sent(value, value.get("timestamp"))
        elif "id" in value:
            self._begun(value)
        else:
            self._count(word(value.get("record_type")))

    def _count(self, kind: str) -> None:
        self.draft.left_out[f"{safe(kind, 40)} records" if kind else "records without a type"] += 1

    def _begun(self, meta: dict[str, object]) -> None:
        # a copy of an earlier session's talk has that session's own record within it
        if self.meta is None:
            self.meta = meta

    def _enveloped(self, kind: str, payload: dict[str, object], stamp: object) -> None:
        if kind == "session_meta":
            self._begun(mapping(payload.get("meta")) or payload)
        elif kind == "response_item":
            self._sent(payload, stamp)
        elif kind == "event_msg":
            self._shown(payload, stamp)
        elif kind == "turn_context":
            self.model = safe(word(payload.get("model")), 100) or self.model
        elif kind == "compacted":
            self.draft.left_out["summaries of earlier talk"] += 1
        else:
            self._count(kind)

    def _sent(self, item: dict[str, object], stamp: object) -> None:
        kind = word(item.get("type"))
        if kind != "message":
            self._other(kind)
        elif (role := _ROLES.get(word(item.get("role")))) is None:
            self.draft.left_out["instructions of the program"] += 1
        else:
            self._message(role, item.get("content"), item.get("phase"), stamp, _SENT)

    def _shown(self, event: dict[str, object], stamp: object) -> None:
        kind = word(event.get("type"))
        if kind in ("user_message", "agent_message"):
            role = Role.USER if kind == "user_message" else Role.ASSISTANT
            self._message(role, event.get("message"), event.get("phase"), stamp, _SHOWN)
        elif kind == "item_completed":
            item = mapping(event.get("item"))
            finished = _FINISHED.get(word(item.get("type")).lower())
            if finished is None:
                self._count(kind)
            else:
                content = item.get("content", item.get("text"))
                self._message(finished, content, item.get("phase"), stamp, _DONE)
        elif kind == "thread_name_updated":
            self.title = word(event.get("thread_name"))
        elif kind == "thread_rolled_back":
            self._take_back(event.get("num_turns"))
        else:
            self._other(kind)

    def _other(self, kind: str) -> None:
        if kind in _ITEMS:
            self.draft.left_out[_ITEMS[kind]] += 1
        else:
            self._count(kind)

    def _message(self, role: Role, content: object, phase: object, stamp: object, place: str) -> None:
        texts = [text for text in self._texts(content) if text]
        if role is Role.USER:
            texts = [own for text in texts if (own := self._own(text))]
        if role is Role.USER and place == _SENT and len(texts) > 1:
            typed = [text for text in texts if not _ELEMENT.fullmatch(text)]
            if len(typed) < len(texts):
                self.draft.left_out[_CONTEXT] += len(texts) - len(typed)
            texts = typed
        if not texts:
            return
        text = "\n\n".join(texts)
        if phase == "commentary":
            self.draft.left_out["progress messages"] += 1
            return
        key = "".join(text.split())
        alike = self.alike.setdefault((role, key), [])
        nth = self.counts[role, key, place]
        self.counts[role, key, place] += 1
        if nth < len(alike):
            alike[nth].places.add(place)
            self.draft.left_out[_COPIES] += 1
            return
        if not self.talk.grow(text):
            for kept in (self.messages, self.alike, self.counts):
                kept.clear()
            return
        element = place == _SENT and role is Role.USER and _ELEMENT.fullmatch(text) is not None
        message = _Message(role, text, key, stamp, element, {place})
        alike.append(message)
        self.messages.append(message)

    def _texts(self, content: object) -> Iterator[str]:
        if isinstance(content, str):
            yield self.draft.text(content)
        for part in items(content):
            kind = word(mapping(part).get("type"))
            if kind in _TEXTS:
                yield self.draft.text(mapping(part).get("text"))
            else:
                image = "image" in kind.lower()
                self.draft.left_out["images" if image else f"parts of the type {safe(kind, 40) or '(none)'}"] += 1

    def _own(self, text: str) -> str:
        """What of a text in the user's name is the user's."""
        if text.startswith(_IDE):
            self.draft.left_out[_CONTEXT] += 1
            return text.partition(_REQUEST)[2].strip()
        if _PUT_BESIDE.match(text):
            self.draft.left_out[_CONTEXT] += 1
            return ""
        return "" if _IMAGE_TAG.fullmatch(text) else text

    def _take_back(self, count: object) -> None:
        """The user went back: the last ``count`` prompts and what followed from them are no talk any more."""
        turns = count if isinstance(count, int) else 0
        prompts = [at for at, message in enumerate(self.messages) if message.role is Role.USER and not message.element]
        if turns < 1 or not prompts:
            return
        gone = self.messages[prompts[-min(turns, len(prompts))] :]
        del self.messages[-len(gone) :]
        for message in reversed(gone):
            self.alike[message.role, message.key].pop()
            for place in message.places:
                self.counts[message.role, message.key, place] -= 1
        self.draft.left_out["messages on other branches"] += len(gone)
        self.draft.branches += 1

    def ended(self) -> Conversation | Unread:
        """The session, without what an earlier one had already."""
        meta = self.meta or {}
        messages = list(self._once(self.messages))
        name = word(meta.get("id")) or word(meta.get("session_id"))
        name = name or digest("codex", *(f"{message.time} {message.key}" for message in messages[:1]))
        told = array("q", (hash((message.role, message.key)) for message in messages))
        before = self.known.sessions.get(name) or self.known.sessions.get(word(meta.get("forked_from_id")))
        again = _common(before, told) if before else 0
        if len(told) > len(self.known.sessions.get(name, ())):
            self.known.sessions[name] = told
        nth: Counter[tuple[Role, str]] = Counter()
        for at, message in enumerate(messages):
            nth[message.role, message.key] += 1
            number = str(nth[message.role, message.key])
            if at >= again:
                own = digest(name, message.role, message.key, number)
                self.talk.said.append(Said(own, message.role, [message.text], message.time))
        if again:
            self.draft.left_out[AGAIN] += again
        done = self.talk.done(name, title=self.title, created=meta.get("timestamp"), model=self.model)
        if isinstance(done, Conversation) and _of_program(meta):
            left_out = {**done.left_out, "messages of sub-agents": len(done.turns)}
            return replace(done, turns=(), left_out=left_out, passed_over="the talk of a sub-agent")
        return done

    def _once(self, messages: list[_Message]) -> Iterator[_Message]:
        """Without the copies that differ in how they were put together, and without what the program typed."""
        start = 0
        for end in range(1, len(messages) + 1):
            if end < len(messages) and messages[end].role is messages[start].role:
                continue
            run = messages[start:end]
            start = end
            sent = [message for message in run if message.places == {_SENT}]
            other = [message for message in run if _SENT not in message.places]
            for message in run:
                if message.element and message.places == {_SENT}:
                    self.draft.left_out[_CONTEXT] += 1
                elif _copy(message, sent, other):
                    self.draft.left_out[_COPIES] += 1
                else:
                    yield message


def _copy(message: _Message, sent: list[_Message], other: list[_Message]) -> bool:
    """Whether a message of one side's run is another of it, but sent with something around it, or shown in parts."""
    if message.role is Role.USER:
        return message in sent and any(
            message.key.endswith(one.key) or message.key.startswith(one.key) for one in other
        )
    return message in other and any(one.key == "".join(part.key for part in other) for one in sent)


def _common(before: array[int], told: array[int]) -> int:
    """How many messages both begin with."""
    for at, (one, other) in enumerate(zip(before, told, strict=False)):
        if one != other:
            return at
    return min(len(before), len(told))


def _of_program(meta: dict[str, object]) -> bool:
    """Whether a session was not begun by the user, but by the program or another session."""
    source = mapping(meta.get("source"))
    return (
        "subagent" in source
        or "internal" in source
        or meta.get("thread_source") in ("subagent", "memory_consolidation")
    )
