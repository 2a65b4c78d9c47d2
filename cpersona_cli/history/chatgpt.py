"""ChatGPT exports: an array of conversations, each a tree of messages with the one shown last as its end."""

from __future__ import annotations

import datetime as dt
import json
import re

from cpersona_cli.history.draft import Draft
from cpersona_cli.history.model import Conversation, Format, Reader, Role, Unread
from cpersona_cli.history.texts import digest
from cpersona_cli.history.times import Clock
from cpersona_cli.history.tree import latest, way
from cpersona_cli.history.values import Object, each, items, kind_of, mapping, word
from cpersona_cli.text import safe

END_MISSING = "the message it was left at is missing from the file, so its latest one was taken"
MARKS = "citation marks replaced"

# What is no talk, by its content type.
_TYPES = {
    "code": "calls of tools",
    "execution_output": "results of tools",
    "tether_browsing_display": "results of tools",
    "tether_quote": "results of tools",
    "thoughts": "thoughts",
    "reasoning_recap": "thoughts",
    "user_editable_context": "context texts",
    "model_editable_context": "context texts",
    "system_error": "error messages",
}
_PARTS = {
    "image_asset_pointer": "images",
    "audio_asset_pointer": "sound and film recordings",
    "video_container_asset_pointer": "sound and film recordings",
    "real_time_user_audio_video_asset_pointer": "sound and film recordings",
}

# Citations and names of things stand in the text between private characters: a kind, then its values.
_MARK = re.compile("\ue200([^\ue200\ue201]*)\ue201")


def reader() -> Reader:
    """A reader of this format."""
    return each(_conversation)


def _conversation(found: Object, clock: Clock) -> Conversation | Unread:
    value = found.value
    tree = value.get("mapping")
    if not isinstance(tree, dict):
        seen = f"is {kind_of(tree)}" if "mapping" in value else "is missing"
        return Unread(where=found.where, reason=f'it has no messages: "mapping" {seen}')
    name = word(value.get("conversation_id")) or word(value.get("id")) or digest(*sorted(tree))
    draft = Draft(Format.CHATGPT, found.where, clock)
    if value.get("is_do_not_remember") is True:
        return Conversation(
            id=name, format=Format.CHATGPT, where=found.where, passed_over="marked not to be remembered"
        )
    nodes = {key: node for key, node in tree.items() if isinstance(node, dict)}
    if len(nodes) < len(tree):
        draft.left_out["damaged messages"] = len(tree) - len(nodes)
    taken = _way(nodes, value.get("current_node"), draft)
    for key in taken:
        _add(draft, key, mapping(nodes[key].get("message")))
    others = sum(1 for key in nodes.keys() - set(taken) if _reason(mapping(nodes[key].get("message"))) is None)
    if others:
        draft.left_out["messages on other branches"] = others
    slugs = (word(mapping(mapping(nodes[key].get("message")).get("metadata")).get("model_slug")) for key in taken[::-1])
    return draft.done(
        name,
        created=value.get("create_time"),
        updated=value.get("update_time"),
        title=value.get("title"),
        model=safe(next(filter(None, slugs), "") or word(value.get("default_model_slug"))),
    )


def _way(nodes: dict[str, dict[str, object]], end: object, draft: Draft) -> tuple[str, ...]:
    parents = {key: word(node.get("parent")) or None for key, node in nodes.items()}
    if not isinstance(end, str) or end not in nodes:
        if end:
            draft.remarks.append(END_MISSING)
        times = {key: _time(draft, mapping(node.get("message")), count=False) for key, node in nodes.items()}
        end = latest(parents, times)
    if end is None:
        return ()
    taken = way(parents, end)
    draft.branches = taken.branches
    draft.remarks.extend(taken.remarks)
    return taken.ids


def _time(draft: Draft, message: dict[str, object], *, count: bool = True) -> dt.datetime | None:
    values = (message.get("create_time"), message.get("update_time"))
    if count:
        return draft.time(*values)
    return next((time for value in values if (time := draft.clock.read(value).at)), None)


def _reason(message: dict[str, object]) -> str | None:
    """Why a message is no talk; None if it is, empty for the roots of the tree, which hold nothing."""
    role = word(mapping(message.get("author")).get("role"))
    kind = word(mapping(message.get("content")).get("content_type"))
    if not message:
        return ""
    if role not in ("user", "assistant"):
        return {"system": "system messages", "tool": "results of tools"}.get(role, "messages of unknown roles")
    if mapping(message.get("metadata")).get("is_visually_hidden_from_conversation") is True:
        return "hidden messages"
    if word(message.get("recipient")) not in ("", "all"):
        return "calls of tools"
    if word(message.get("channel")) in ("analysis", "commentary"):
        return "thoughts"
    if kind in ("", "text", "multimodal_text"):
        return None
    return _TYPES.get(kind) or f"messages of the unknown type {safe(kind, 40)}"


def _add(draft: Draft, key: str, message: dict[str, object]) -> None:
    reason = _reason(message)
    if reason is not None:
        if reason:
            draft.left_out[reason] += 1
        return
    content = message.get("content")
    parts = items(mapping(content).get("parts")) or [mapping(content).get("text"), content]
    said = "\n".join(text for part in parts if (text := _part(draft, part)))
    said = draft.text(_unmarked(draft, said, mapping(message.get("metadata"))))
    role = Role(word(mapping(message.get("author")).get("role")))
    draft.add(word(message.get("id")) or key, role, said, _time(draft, message))


def _part(draft: Draft, part: object) -> str:
    if isinstance(part, str):
        return part
    kind = word(mapping(part).get("content_type"))
    if kind == "audio_transcription":  # what was said in voice mode
        return word(mapping(part).get("text"))
    if kind not in ("", "text", "multimodal_text"):
        draft.left_out[_PARTS.get(kind) or f"parts of the unknown type {safe(kind, 40)}"] += 1
    return ""


def _unmarked(draft: Draft, text: str, metadata: dict[str, object]) -> str:
    """``text`` with each mark as the reader of the page saw it, or without it."""
    if "\ue200" not in text:
        return text
    shown = {
        word(mapping(reference).get("matched_text")): word(mapping(reference).get("alt"))
        for reference in items(metadata.get("content_references"))
    }

    def replaced(mark: re.Match[str]) -> str:
        draft.altered[MARKS] += 1
        return shown.get(mark.group()) or _entity(*mark.group(1).split("\ue202"))

    return _MARK.sub(replaced, text)


def _entity(kind: str, value: str = "", *_: str) -> str:
    """The name within a mark ``entity``, whose value is an array of its class, its name and more; else nothing."""
    try:
        values = json.loads(value) if kind == "entity" else None
    except (ValueError, RecursionError):
        return ""
    return word((items(values) + [""] * 2)[1])
