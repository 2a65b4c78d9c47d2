"""Claude.ai exports: an array of conversations, each a list of messages made of typed blocks."""

from __future__ import annotations

from collections.abc import Iterator

from cpersona_cli.history.draft import Draft
from cpersona_cli.history.model import Conversation, Format, Reader, Role, Unread
from cpersona_cli.history.texts import digest
from cpersona_cli.history.times import Clock
from cpersona_cli.history.tree import latest, way
from cpersona_cli.history.values import Object, each, items, kind_of, mapping, word
from cpersona_cli.text import safe

#: What of one attached file becomes part of the message it came with, in characters.
ATTACHMENT = 16_000

CUT = "attachments cut"

_BLOCKS = {
    "thinking": "thoughts",
    "redacted_thinking": "thoughts",
    "tool_use": "calls of tools",
    "tool_result": "results of tools",
    "image": "images",
}
_ROLES = {"human": Role.USER, "assistant": Role.ASSISTANT}

# What the export has in the place of a block that it could not write as text.
_PLACEHOLDER = "This block is not supported on your current device yet."

# The message that every first one answers, and that no export holds.
_ROOT = "00000000-0000-4000-8000-000000000000"


def reader() -> Reader:
    """A reader of this format."""
    return each(_conversation)


def _conversation(found: Object, clock: Clock) -> Conversation | Unread:
    value = found.value
    messages = value.get("chat_messages")
    if not isinstance(messages, list):
        seen = f"is {kind_of(messages)}" if "chat_messages" in value else "is missing"
        return Unread(where=found.where, reason=f'it has no messages: "chat_messages" {seen}')
    draft = Draft(Format.CLAUDE, found.where, clock)
    sound = [message for message in messages if isinstance(message, dict)]
    if len(sound) < len(messages):
        draft.left_out["damaged messages"] = len(messages) - len(sound)
    name = word(value.get("uuid")) or digest(*(word(message.get("uuid")) for message in sound))
    for message in _order(sound, value.get("current_leaf_message_uuid"), draft):
        _add(draft, name, message)
    return draft.done(
        name,
        created=value.get("created_at"),
        updated=value.get("updated_at"),
        title=value.get("name"),
        summary=value.get("summary"),
        model=safe(word(value.get("model"))),
    )


def _order(messages: list[dict[str, object]], end: object, draft: Draft) -> list[dict[str, object]]:
    """The messages of the way shown last, where they tell what they answer and some answers are edits; else all."""
    by_name = {word(message.get("uuid")): message for message in messages}
    parents = {name: word(message.get("parent_message_uuid")) or None for name, message in by_name.items()}
    told = all("parent_message_uuid" in message for message in messages)
    if not told or "" in by_name or len(set(parents.values())) == len(messages):
        return messages
    if not isinstance(end, str) or end not in parents:
        times = {name: draft.clock.read(message.get("created_at")).at for name, message in by_name.items()}
        end = latest(parents, times)
    taken = way(parents, end or "", roots=(_ROOT,))
    draft.branches = taken.branches
    draft.remarks.extend(taken.remarks)
    if len(taken.ids) < len(by_name):
        draft.left_out["messages on other branches"] = len(by_name) - len(taken.ids)
    return [by_name[name] for name in taken.ids]


def _add(draft: Draft, conversation: str, message: dict[str, object]) -> None:
    role = _ROLES.get(word(message.get("sender")))
    if role is None:
        draft.left_out["messages of unknown senders"] += 1
        return
    texts = [_said(draft, message), *_attached(draft, message)]
    text = "\n\n".join(text for text in texts if text)
    name = word(message.get("uuid")) or digest(conversation, role, str(message.get("created_at")), text)
    draft.add(name, role, text, draft.time(message.get("created_at"), message.get("updated_at")))


def _said(draft: Draft, message: dict[str, object]) -> str:
    """The text blocks. The field ``text`` also holds thoughts and placeholders: only without any known block."""
    texts: list[str] = []
    known = False
    for block in items(message.get("content")):
        kind = word(mapping(block).get("type"))
        if kind == "text":
            texts.append(word(mapping(block).get("text")))
        else:
            draft.left_out[_BLOCKS.get(kind) or f"blocks of the unknown type {safe(kind, 40) or '(none)'}"] += 1
        known = known or kind == "text" or kind in _BLOCKS
    if not known:
        texts = [word(message.get("text")).replace(f"```\n{_PLACEHOLDER}\n```", "").replace(_PLACEHOLDER, "")]
    return draft.text("\n\n".join(text for text in texts if text.strip()))


def _attached(draft: Draft, message: dict[str, object]) -> Iterator[str]:
    """The texts of attached files, each under a line with its name, at most ``ATTACHMENT`` characters of each."""
    for attachment in items(message.get("attachments")):
        text = draft.text(mapping(attachment).get("extracted_content"))
        if not text:
            draft.left_out["attachments without text"] += 1
            continue
        if len(text) > ATTACHMENT:
            draft.altered[CUT] += 1
            left = f"[{len(text) - ATTACHMENT:,} more characters of this file left out]"
            text = f"{text[:ATTACHMENT].rstrip()}\n{left}"
        name = safe(word(mapping(attachment).get("file_name")), 200) or "without a name"
        yield f"[attached file: {name}]\n{text}"
    files = len(items(message.get("files")))
    if files:
        draft.left_out["files without text"] += files
