"""Open WebUI exports: an array of chats, as the server keeps them or, in old ones, the inner chat alone."""

from __future__ import annotations

import re

from cpersona_cli.history.draft import Draft
from cpersona_cli.history.model import Conversation, Format, Reader, Role, Unread
from cpersona_cli.history.texts import digest
from cpersona_cli.history.times import Clock
from cpersona_cli.history.tree import latest, way
from cpersona_cli.history.values import Object, each, items, mapping, word
from cpersona_cli.text import safe

END_MISSING = "the message it was left at is missing from the file, so its latest one was taken"

_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT}
_TEXTS = ("text", "input_text", "output_text")

# Thoughts and tools stand within the text, folded.
_FOLDED = re.compile(r'<details\s+type="(reasoning|tool_calls|code_interpreter)"[^>]{0,2000}>')
_FOLDS = {"reasoning": "thoughts", "tool_calls": "calls of tools", "code_interpreter": "calls of tools"}
_END = "</details>"


def reader() -> Reader:
    """A reader of this format."""
    return each(_conversation)


def _conversation(found: Object, clock: Clock) -> Conversation | Unread:
    value = found.value
    chat = mapping(value.get("chat")) or value
    draft = Draft(Format.OPEN_WEBUI, found.where, clock)
    tree = mapping(chat.get("history")).get("messages")
    if isinstance(tree, dict) and tree:
        messages = _way(tree, mapping(chat.get("history")).get("currentId"), draft)
    elif isinstance(chat.get("messages"), list):
        messages = [("", message) for message in items(chat.get("messages"))]
    elif isinstance(tree, dict):
        messages = []
    else:
        return Unread(where=found.where, reason='it has no messages: neither "history" nor "messages" holds any')
    name = word(value.get("id")) or word(chat.get("id"))
    model = ""
    for key, message in messages:
        if isinstance(message, dict):
            _add(draft, name, key, message)
            model = word(message.get("model")) or model
        else:
            draft.left_out["damaged messages"] += 1
    return draft.done(
        name or digest(*(turn.id for turn in draft.turns)),
        created=_first(value.get("created_at"), chat.get("created_at"), chat.get("timestamp")),
        updated=_first(value.get("updated_at"), chat.get("updated_at")),
        title=_first(value.get("title"), chat.get("title")),
        model=safe(model or word(next(iter(items(chat.get("models"))), ""))),
    )


def _first(*values: object) -> object:
    return next((value for value in values if value), None)


def _way(tree: dict[str, object], end: object, draft: Draft) -> list[tuple[str, object]]:
    nodes = {key: mapping(node) for key, node in tree.items()}
    parents = {key: word(node.get("parentId")) or None for key, node in nodes.items()}
    if not isinstance(end, str) or end not in nodes:
        if end:
            draft.remarks.append(END_MISSING)
        times = {key: draft.clock.read(node.get("timestamp")).at for key, node in nodes.items()}
        end = latest(parents, times)
    taken = way(parents, end or "")
    draft.branches = taken.branches
    draft.remarks.extend(taken.remarks)
    others = sum(1 for key in nodes.keys() - set(taken.ids) if word(nodes[key].get("role")) in _ROLES)
    if others:
        draft.left_out["messages on other branches"] = others
    return [(key, tree[key]) for key in taken.ids]


def _add(draft: Draft, conversation: str, key: str, message: dict[str, object]) -> None:
    role = _ROLES.get(word(message.get("role")))
    if role is None:
        known = {"system": "system messages", "tool": "results of tools"}
        draft.left_out[known.get(word(message.get("role")), "messages of unknown roles")] += 1
        return
    said = _said(draft, message.get("content"))
    if not said.strip():
        said = "\n".join(_said(draft, mapping(part).get("content")) for part in items(message.get("output")))
    if role is Role.ASSISTANT:
        said = _unfolded(draft, said)
    files = len(items(message.get("files")))
    if files:
        draft.left_out["files without text"] += files
    text = draft.text(said)
    name = word(message.get("id")) or key or digest(conversation, role, str(message.get("timestamp")), text)
    draft.add(name, role, text, draft.time(message.get("timestamp")))


def _said(draft: Draft, content: object) -> str:
    if isinstance(content, str):
        return content
    texts: list[str] = []
    for part in items(content):
        kind = word(mapping(part).get("type"))
        if kind in _TEXTS:
            texts.append(word(mapping(part).get("text")))
        else:
            draft.left_out[
                "images" if "image" in kind else f"parts of the unknown type {safe(kind, 40) or '(none)'}"
            ] += 1
    return "\n".join(texts)


def _unfolded(draft: Draft, text: str) -> str:
    """``text`` without what is folded away in it; a fold without an end goes to the end (the answer was broken off)."""
    kept: list[str] = []
    here = 0
    while fold := _FOLDED.search(text, here):
        kept.append(text[here : fold.start()])
        draft.left_out[_FOLDS[fold.group(1)]] += 1
        end = text.find(_END, fold.end())
        here = len(text) if end == -1 else end + len(_END)
    return "".join((*kept, text[here:]))
