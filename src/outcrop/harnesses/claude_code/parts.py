"""Parts of Claude Code records, as pure functions: times, usage, tool results, attachments, system notices.

Everything here takes what a record holds, of whatever type, and says what of it is known. Nothing here has state.
"""

from __future__ import annotations

import re
from datetime import UTC
from typing import Any

from outcrop.harnesses.content import content_text
from outcrop.harnesses.moments import iso_ms, number_ms

MODEL_STOPS = frozenset({"end_turn", "stop_sequence", "max_tokens", "refusal", "model_context_window_exceeded"})
"""Stop reasons with which a message is the model's last word."""

SILENT_ATTACHMENTS = frozenset(
    {
        "agent_listing_delta",
        "budget_usd",
        "command_permissions",
        "companion_intro",
        "context_efficiency",
        "deferred_tools_delta",
        "hook_success",
        "mcp_instructions_delta",
        "output_style",
        "output_token_usage",
        "plan_mode_exit",
        "skill_listing",
        "task_reminder",
        "todo_reminder",
        "token_usage",
        "verify_plan_reminder",
    }
)
"""Housekeeping that is repeated by the hundred and says nothing about the work."""

# fmt: off
TOLD_ATTACHMENTS = frozenset({
    "agent_mention", "already_read_file", "async_hook_response", "auto_mode", "auto_mode_exit",
    "compact_file_reference", "critical_system_reminder", "date_change", "diagnostics", "directory", "dynamic_skill",
    "edited_image_file", "edited_text_file", "file", "hook_additional_context", "hook_blocking_error", "hook_cancelled",
    "hook_error", "hook_error_during_execution", "hook_non_blocking_error", "hook_permission_decision",
    "hook_stopped_continuation", "hook_system_message", "invoked_skills", "mcp_resource", "nested_memory",
    "opened_file_in_ide", "pdf_reference", "plan_file_reference", "plan_mode", "plan_mode_reentry", "relevant_memories",
    "selected_lines_in_ide", "structured_output", "task_status", "team_context", "teammate_mailbox", "todo",
    "ultrathink_effort",
})
# fmt: on

_RESULT_FIELDS = (
    "filePath",
    "agentId",
    "agentType",
    "persistedOutputPath",
    "persistedOutputSize",
    "interrupted",
    "durationMs",
    "durationSeconds",
    "totalDurationMs",
    "totalTokens",
    "totalToolUseCount",
    "status",
    "backgroundTaskId",
    "backgroundedByUser",
    "assistantAutoBackgrounded",
    "isImage",
    "numFiles",
    "truncated",
    "userModified",
    "code",
    "bytes",
    "returnCodeInterpretation",
    "taskId",
    "outputFile",
    "commandName",
    "worktreePath",
    "worktreeBranch",
    "gitOperation",
)
_USAGE_FIELDS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
_EXIT = re.compile(r"Exit code (-?\d{1,10})\b")
_DENIED = "The user doesn't want to "


def time_ms(value: Any) -> int | None:
    """UTC ms of an ISO text (without a zone: UTC) or, cut, of a number of seconds or milliseconds."""
    return iso_ms(value, UTC) if isinstance(value, str) else number_ms(value, int)


def usage_of(message: dict[str, Any]) -> dict[str, Any] | None:
    """Token counts of an API message under the provider's names; what is zero is left out."""
    usage = message.get("usage")
    if not isinstance(usage, dict):
        return None
    kept = {name: usage[name] for name in _USAGE_FIELDS if usage.get(name)}
    split = usage.get("cache_creation")
    if isinstance(split, dict) and split.get("ephemeral_1h_input_tokens"):
        kept["ephemeral_1h_input_tokens"] = split["ephemeral_1h_input_tokens"]
    server = usage.get("server_tool_use")
    if isinstance(server, dict) and any(server.values()):
        kept["server_tool_use"] = server
    return kept or None


def result_extra(result: Any) -> dict[str, Any] | None:
    """What only `toolUseResult` knows; its texts repeat the content, the call or a file as it was before."""
    if not isinstance(result, dict):
        return None
    kept = {name: result[name] for name in _RESULT_FIELDS if result.get(name) not in (None, False, "", [])}
    patch = result.get("structuredPatch")
    if isinstance(patch, list) and patch:
        kept["patch"] = _patch_counts(patch)
    task = result.get("task")
    if isinstance(task, dict):
        kept.update({name: task[name] for name in ("task_id", "task_type", "status") if task.get(name)})
    if isinstance(result.get("usage"), dict):
        kept["usage_total"] = usage_of(result)
    return kept or None


def exit_code(text: str, tool: str | None, result: Any, failed: bool) -> int | None:
    """The exit code that the text or a field states; 0 only for a shell run that ended and reports no failure."""
    if text.startswith("Exit code "):
        found = _EXIT.match(text)
        return int(found[1]) if found else None
    if not isinstance(result, dict):
        return None
    for holder in (result, result.get("task")):
        if isinstance(holder, dict):
            stated = holder.get("exitCode")
            if isinstance(stated, int) and not isinstance(stated, bool):
                return stated
    ended = isinstance(result.get("stdout"), str) and not result.get("interrupted") and not failed
    # An interpretation stands for a code other than 0, which is not recorded; a background run has not ended.
    unclear = result.get("returnCodeInterpretation") or result.get("backgroundTaskId")
    return 0 if tool == "Bash" and ended and not unclear else None


def is_denied(text: str) -> bool:
    """Whether the person refused the call."""
    return text.startswith(_DENIED)


def attachment_text(attachment: dict[str, Any]) -> str:
    """An attachment as a line that names it, and its text."""
    kind = attachment.get("type")
    for name in ("filename", "path", "displayPath", "planFilePath", "hookName", "taskId", "uri"):
        value = attachment.get(name)
        if isinstance(value, str) and value:
            head = f"{kind}: {value}"
            break
    else:
        head = str(kind)
    for name in (
        "content",
        "snippet",
        "text",
        "prompt",
        "blockingError",
        "stderr",
        "planContent",
        "description",
        "newDate",
    ):
        body = _deep_text(attachment.get(name))
        if body:
            return f"{head}\n{body}"
    return head


def system_text(record: dict[str, Any], subtype: str) -> str:
    """A system notice as it reads: its content, or its kind with the number or the error that it tells."""
    content = record.get("content")
    if isinstance(content, str) and content:
        return content
    if subtype == "api_error":
        return f"API error{_error_text(record.get('error'))}, attempt {record.get('retryAttempt', '?')}"
    if subtype == "turn_duration":
        return f"turn took {record.get('durationMs', '?')} ms"
    return subtype.replace("_", " ")


def _error_text(error: Any) -> str:
    if not isinstance(error, dict):
        return f": {error}" if isinstance(error, str) else ""
    inner = error.get("error")
    message = error.get("message") or (inner.get("message") if isinstance(inner, dict) else None)
    status = f" {error['status']}" if error.get("status") else ""
    return f"{status}: {message}" if isinstance(message, str) else status


def _patch_counts(patch: list[Any]) -> dict[str, int]:
    lines = [line for hunk in patch for line in _hunk_lines(hunk)]
    return {
        "hunks": len(patch),
        "added": sum(line.startswith("+") for line in lines),
        "removed": sum(line.startswith("-") for line in lines),
    }


def _hunk_lines(hunk: Any) -> list[str]:
    lines = hunk.get("lines") if isinstance(hunk, dict) else None
    return [line for line in lines if isinstance(line, str)] if isinstance(lines, list) else []


def _deep_text(value: Any) -> str:
    """Text of a value that may be text, blocks, or an object with the text somewhere below `content` or `file`."""
    if isinstance(value, dict):
        for name in ("content", "file", "text", "blockingError"):
            if name in value:
                return _deep_text(value[name])
        return ""
    return content_text(value)
