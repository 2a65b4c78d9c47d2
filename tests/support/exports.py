"""Exports of chats as their services write them, built from a few words."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: A moment in 2025 that ChatGPT would write, in seconds.
START = 1756000000.0

Value = dict[str, Any]


def gpt_message(name: str, role: str, text: object, at: float | None = START, **more: Any) -> Value:
    """One message of ChatGPT; ``text`` is its one part, or its whole content if that is an object."""
    content = text if isinstance(text, dict) else {"content_type": "text", "parts": [text]}
    message: Value = {"id": name, "author": {"role": role, "name": None, "metadata": {}}, "create_time": at}
    return message | {"content": content, "metadata": {}, "recipient": "all"} | more


def gpt_tree(*messages: Value, root: str = "client-created-root") -> Value:
    """A ``mapping`` in which each message answers the one before it."""
    tree: Value = {root: {"id": root, "message": None, "parent": None, "children": []}}
    before = root
    for message in messages:
        tree[before]["children"].append(message["id"])
        tree[message["id"]] = {"id": message["id"], "message": message, "parent": before, "children": []}
        before = message["id"]
    return tree


def gpt(*messages: Value, name: str = "c1", **more: Any) -> Value:
    """One conversation of ChatGPT."""
    tree = gpt_tree(*messages)
    conversation: Value = {"title": "Deploying", "create_time": START, "update_time": START + 400, "mapping": tree}
    conversation |= {"current_node": next(reversed(tree)), "conversation_id": name, "id": name}
    return conversation | {"default_model_slug": "gpt-5-thinking", "is_do_not_remember": False} | more


def claude_message(
    name: str, sender: str, text: str, at: str | None = "2025-10-04T09:12:33.123456Z", **more: Any
) -> Value:
    """One message of Claude with one text block."""
    message: Value = {"uuid": name, "sender": sender, "text": text, "content": [{"type": "text", "text": text}]}
    return message | {"created_at": at, "updated_at": at, "attachments": [], "files": []} | more


def claude(*messages: Value, name: str = "c1", **more: Any) -> Value:
    """One conversation of Claude."""
    conversation: Value = {"uuid": name, "name": "Tea", "summary": "", "created_at": "2025-10-04T09:12:00.000000Z"}
    conversation |= {"updated_at": "2025-10-04T09:30:00.000000Z", "account": {"uuid": "me"}}
    return conversation | {"chat_messages": list(messages)} | more


def webui_message(
    name: str, role: str, content: object, parent: str | None, at: int = int(START), **more: Any
) -> Value:
    """One message of Open WebUI."""
    message: Value = {"id": name, "parentId": parent, "childrenIds": [], "role": role, "content": content}
    return message | {"timestamp": at} | more


def webui(*messages: Value, name: str = "c1", **more: Any) -> Value:
    """One chat of Open WebUI, as its server exports it."""
    history: Value = {"messages": {message["id"]: message for message in messages}}
    history["currentId"] = messages[-1]["id"] if messages else None
    chat: Value = {"title": "Cats", "models": ["llama3.1:8b"], "history": history, "messages": []}
    row: Value = {"id": name, "user_id": "u", "title": "Cats", "chat": chat}
    return row | {"updated_at": int(START) + 60, "created_at": int(START), "archived": False, "meta": {}} | more


def zipped(path: Path, entries: Mapping[str, object]) -> Path:
    """An archive at ``path``; what is neither bytes nor text becomes JSON."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in entries.items():
            archive.writestr(name, value if isinstance(value, (bytes, str)) else json.dumps(value))
    return path


def stream(value: object) -> io.BytesIO:
    """What a file with ``value`` holds."""
    return io.BytesIO(json.dumps(value).encode())
