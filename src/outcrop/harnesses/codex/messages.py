"""Prompts, answers, reasoning and injected texts of a rollout.

A prompt stands in both streams; what the program itself puts into user-role messages is told apart block by block.
"""

from __future__ import annotations

from typing import Any

from outcrop.harnesses.codex.fold import CAP, ITEMS, SCREEN, Fold, Handler, some
from outcrop.harnesses.codex.records import (
    ABORTED_TAG,
    SHELL_TAG,
    injected,
    message_images,
    prompt_text,
    squeezed,
    string,
    texts,
    user_blocks,
    user_shell,
)
from outcrop.harnesses.content import content_text
from outcrop.harnesses.json_values import objects
from outcrop.harnesses.outcomes import Outcome
from outcrop.ids import text_digest
from outcrop.model import ENCRYPTED_PLACEHOLDER, Amend, End, Event, EventType, Fact, Item

_CIPHER = "gAAAA"
"""How every ciphertext of the service begins."""


def _message(fold: Fold, p: dict[str, Any], time: int | None) -> Outcome:
    role, content = p.get("role"), p.get("content")
    if role == "assistant":
        parts = texts(content)
        return assistant(fold, ITEMS, parts, string(p, "phase"), time) if parts else "empty message"
    if role in ("developer", "system"):
        items = [fold.system(text, time) for text in texts(content)]
        return [*items] if items else "empty message"
    if role != "user":
        return None
    words, notes = user_blocks(content)
    found: list[Item] = []
    asked: list[str] = []
    for text in words:
        if injected(text, fold.memory.envelopes):
            found += _injected(fold, text, time)
        else:
            asked.append(text)
    if asked or notes:
        prompt = _prompt(fold, ITEMS, "\n".join(asked), notes, time)
        if isinstance(prompt, str):
            return found or prompt
        found += prompt
    return found or "empty message"


def _user_message(fold: Fold, p: dict[str, Any], time: int | None) -> Outcome:
    m = fold.memory
    text = p.get("message")
    if not isinstance(text, str):
        return None
    notes = message_images(p)
    if not text.strip() and not notes:
        return "empty message"
    if string(p, "kind") not in ("", "plain") or injected(text, False):
        return fold.spoken(SCREEN, EventType.SYSTEM, [text], time)
    label: list[Item] = []
    if not m.labelled and not m.copying and text.strip():
        m.labelled = True
        label.append(Fact("label", prompt_text(text)))
    prompt = _prompt(fold, SCREEN, text, notes, time)
    if isinstance(prompt, str):
        return label or prompt
    return [*prompt, *label]


def _prompt(fold: Fold, stream: str, raw: str, notes: list[str], time: int | None) -> list[Item] | str:
    """A real prompt: the mirror of a known one, the opener of a turn, or a word in the middle of one."""
    m = fold.memory
    text = prompt_text(raw)
    digest = text_digest(squeezed(text))
    tag = text_digest(text)
    partner = fold.take(stream, f"{EventType.USER_INPUT}:{digest}")
    if partner is not None:
        if stream == SCREEN and partner[1] != tag and text.strip():
            return [Amend(partner[0], {"text": text})]
        return "mirrors a prompt"
    if stream == ITEMS and m.after_abort and digest == m.first_prompt:
        return "repeats the first prompt after an abort"
    m.first_prompt = m.first_prompt or digest
    if m.turn is None or m.ended or (m.opened and not m.tasks):
        fold.enter(None, _opener_key(fold, digest))
    opens, m.opened = not m.opened, True
    key = fold.key(f"{EventType.USER_INPUT}:{digest}")
    fold.wait(stream, f"{EventType.USER_INPUT}:{digest}", key, tag)
    event = fold.event(key, EventType.USER_INPUT, text if text.strip() else "\n".join(notes), time)
    event.opens = opens
    event.settles = opens and not m.tasks
    event.extra = {"images": notes} if notes else None
    return [event]


def _opener_key(fold: Fold, digest: str) -> str:
    m = fold.memory
    m.opened_turns += 1
    if digest not in m.openers and len(m.openers) >= CAP:
        return f"{digest}.+{m.opened_turns}"
    count = m.openers.get(digest, 0)
    m.openers[digest] = count + 1
    return f"{digest}.{count}"


def _injected(fold: Fold, text: str, time: int | None) -> list[Item]:
    head = text.lstrip()
    m = fold.memory
    if head.startswith(ABORTED_TAG):
        event = fold.mark("aborted_text", EventType.RUNTIME, text, time)
        if not m.ended and m.opened:
            event.ends = End.INTERRUPTED
        m.after_abort = True
        return [event]
    shell = user_shell(head) if head.startswith(SHELL_TAG) else None
    if shell is None:
        return [fold.system(text, time)]
    command, result = shell
    key = fold.key(f"user_shell:{text_digest(text)}")
    call = fold.event(key, EventType.TOOL_CALL, "", time, tool="shell", arguments={"command": command})
    answer = fold.event(f"{key}:out", EventType.TOOL_RESPONSE, result.text, time, tool="shell")
    answer.exit_code, answer.is_error = result.exit_code, result.is_error
    for event in (call, answer):
        event.by_user, event.generator = True, None
    return [call, answer]


def _agent_message(fold: Fold, p: dict[str, Any], time: int | None) -> Outcome:
    """Words between agents: the task of a child is its prompt."""
    text = content_text(p.get("content"))
    blobs = [string(block, "encrypted_content") for block in objects(p.get("content"))]
    text = text or "\n".join(blob for blob in blobs if blob and not blob.startswith(_CIPHER))
    if not text and not any(blobs):
        return None
    if text and fold.memory.agent_path and p.get("recipient") == fold.memory.agent_path:
        return _prompt(fold, ITEMS, text, [], time)
    event = fold.system(text or "[encrypted message omitted]", time)
    event.extra = some(p, "author", "recipient", *(() if text else ("content",)))
    return [event]


def _screen_answer(fold: Fold, p: dict[str, Any], time: int | None) -> Outcome:
    text = string(p, "message")
    return assistant(fold, SCREEN, [text], string(p, "phase"), time) if text.strip() else "empty message"


def _review(fold: Fold, p: dict[str, Any], time: int | None) -> Outcome:
    found = p.get("review_output")
    if not isinstance(found, dict):
        return [fold.mark("review", EventType.RUNTIME, "review ended", time)]
    lines = [string(found, "overall_explanation")]
    lines += [f"{string(one, 'title')}\n{string(one, 'body')}" for one in objects(found.get("findings"))]
    spoken = assistant(fold, SCREEN, ["\n\n".join(filter(str.strip, lines))], "", time)
    if isinstance(spoken, list):
        for item in spoken:
            if isinstance(item, Event):
                item.extra = {"review": found}
    return spoken


def _plan(fold: Fold, p: dict[str, Any], time: int | None) -> Outcome:
    item = p.get("item")
    text = string(item, "text") if isinstance(item, dict) else ""
    if not isinstance(item, dict) or string(item, "type").lower() != "plan" or not text.strip():
        return "mirrors a response item"
    spoken = assistant(fold, SCREEN, [text], "", time)
    if isinstance(spoken, list):
        for event in spoken:
            if isinstance(event, Event):
                event.extra = {"plan": True}
    return spoken


def assistant(fold: Fold, stream: str, parts: list[str], phase: str, time: int | None) -> list[Item] | str:
    """Visible words of the model from one record; those of the commentary phase are never a final answer."""
    m = fold.memory
    fold.act()
    partial = phase == "commentary"
    m.answered = m.answered or not partial
    spoken = fold.spoken(stream, EventType.ASSISTANT_RESPONSE, parts, time, phase)
    digest = text_digest(squeezed("".join(parts)))
    if isinstance(spoken, str):
        if m.said and m.said[1] == digest:
            m.said[2] = partial or (not phase and m.said[2])
        return spoken
    for item in spoken:
        if isinstance(item, Event):
            item.partial, item.model = partial, m.model
            if phase:
                item.extra = {"phase": phase}
        elif isinstance(item, Amend) and phase:
            item.changes = {"partial": partial, "extra": {"phase": phase}}
        if not isinstance(item, Fact):
            m.said = [item.key, digest, partial]
    return spoken


def _screen_reasoning(fold: Fold, p: dict[str, Any], time: int | None) -> Outcome:
    text = string(p, "text")
    fold.act()
    return fold.spoken(SCREEN, EventType.REASONING, [text], time) if text.strip() else "empty reasoning"


def _reasoning(fold: Fold, p: dict[str, Any], time: int | None) -> Outcome:
    fold.act()
    cipher = string(p, "encrypted_content")
    body, summary = texts(p.get("content")), texts(p.get("summary"))
    if not body and not summary:
        if not cipher:
            return "empty reasoning"
        key = fold.key(f"reasoning:{text_digest(cipher)}")
        extra = {"encrypted_content": cipher}
        return [fold.event(key, EventType.REASONING, ENCRYPTED_PLACEHOLDER, time, extra=extra)]
    spoken = fold.spoken(ITEMS, EventType.REASONING, body + summary, time, cipher and "cipher")
    if not cipher or isinstance(spoken, str):
        return spoken
    last = spoken[-1]
    if isinstance(last, Event):
        last.extra = {"encrypted_content": cipher}
    elif isinstance(last, Amend):
        last.changes = {"extra": {"encrypted_content": cipher}}
    return spoken


HANDLERS: dict[tuple[str, str | None], Handler] = {
    ("response_item", "message"): _message,
    ("response_item", "reasoning"): _reasoning,
    ("response_item", "agent_message"): _agent_message,
    ("inter_agent_communication", None): _agent_message,
    ("event_msg", "user_message"): _user_message,
    ("event_msg", "agent_message"): _screen_answer,
    ("event_msg", "agent_reasoning"): _screen_reasoning,
    ("event_msg", "agent_reasoning_raw_content"): _screen_reasoning,
    ("event_msg", "exited_review_mode"): _review,
    ("event_msg", "item_completed"): _plan,
}
