"""Conformance, second half: what a provider makes of failures, and how it lets go.

Each case is a function of a setting; its docstring is the promise that it checks.
"""

import asyncio
import traceback
from typing import Any

from bridle.errors import AgentError
from bridle.events import TextDelta, ToolCallReady, TraceEvent
from bridle.messages import ToolCall
from bridle.testing.bench import KEY, Setting, expect, first_words, heard, joined, listen, same

# status → kind, and whether another try may work
STATUSES: dict[int, tuple[str, bool]] = {
    400: ("invalid", False),
    401: ("invalid", False),
    403: ("invalid", False),
    404: ("invalid", False),
    413: ("invalid", False),
    429: ("rate_limit", True),
    500: ("agent", True),
    503: ("agent", True),
    529: ("agent", True),
}


async def a_status_is_a_typed_error(setting: Setting) -> None:
    """An HTTP error is an AgentError of its kind, with status and the vendor's own words."""
    for status, (kind, retryable) in STATUSES.items():
        fault = {"status": status, "message": "the vendor's own words"}
        error = (await heard(setting, {"error": fault})).failure
        same(f"kind and retryable of {status}", (error.kind, error.retryable), (kind, retryable))
        same("the status", error.status, status)
        expect("the vendor's own words" in str(error), f"{status}: the vendor's words are lost")


async def retry_after_is_kept(setting: Setting) -> None:
    """How long the vendor asks to wait is on the error."""
    for status in (429, 503):
        fault = {"status": status, "message": "slowly", "retry_after": 7}
        error = (await heard(setting, {"error": fault})).failure
        same(f"retry_after of {status}", error.retry_after, 7)


async def a_page_from_between_is_a_typed_error(setting: Setting) -> None:
    """An error page of a proxy is judged by its status."""
    fault = {"status": 502, "body": "<html><h1>Bad Gateway</h1></html>"}
    error = (await heard(setting, {"error": fault})).failure
    same("kind and retryable", (error.kind, error.retryable), ("agent", True))


async def a_closed_connection_is_a_network_error(setting: Setting) -> None:
    """A server that hangs up without a word: another try may work."""
    error = (await heard(setting, {"error": {"kind": "network"}})).failure
    same("kind and retryable", (error.kind, error.retryable), ("network", True))


async def a_cut_stream_is_retryable(setting: Setting) -> None:
    """A stream that ends early is a typed error that says so, never a reply."""
    said = await heard(setting, {"text": "half a reply", "cut": True})
    same("kind and retryable", (said.failure.kind, said.failure.retryable), ("network", True))
    same("what came before", joined(said.of(TextDelta)), "half a reply")


async def a_stream_cut_at_any_byte_is_retryable(setting: Setting) -> None:
    """Wherever the cut falls, it is the same error, and no half call is ever ready."""
    call = {"name": "read", "arguments": {"path": "a"}, "id": "one"}
    reply = {"text": "a b", "calls": [call]}
    for size in range(0, 400, 13):
        said = await heard(setting, {**reply, "cut_at": size})
        error = said.failure
        same(f"the error at byte {size}", (error.kind, error.retryable), ("network", True))
        whole = [event.call.arguments for event in said.of(ToolCallReady)]
        expect(whole in ([], [{"path": "a"}]), f"a half call was ready at byte {size}")


async def an_error_in_the_stream_is_typed(setting: Setting) -> None:
    """An error that comes after the first words is raised, and those words were told."""
    fault = {"status": 529, "type": "overloaded_error", "message": "too busy"}
    said = await heard(setting, {"text": "well", "error": fault})
    same("what came before", joined(said.of(TextDelta)), "well")
    expect("too busy" in str(said.failure), "the vendor's words are lost")


async def a_broken_event_is_traced(setting: Setting) -> None:
    """An event that does not parse is a parse_error trace, and the reply goes on."""
    reply: dict[str, Any] = {"thinking": "hm", "text": "all the same", "broken": '{"type": "te'}
    said = await heard(setting, reply)
    kinds = [event.kind for event in said.of(TraceEvent)]
    expect("parse_error" in kinds, f"no parse_error among the traces {kinds}")
    same("the text", said.message.content, "all the same")


async def broken_arguments_are_never_ready(setting: Setting) -> None:
    """A call whose arguments do not parse is not run on a guess, and not lost: it is broken."""
    text = '{"command": "rm -rf'
    broken = {"name": "shell", "id": "one", "text": text}
    whole = ToolCall("two", "read", {"path": "a"})
    good = {"name": whole.name, "id": whole.id, "arguments": whole.arguments}
    for reply in ({"calls": [broken]}, {"text": "so", "calls": [broken, good]}):
        said = await heard(setting, reply)
        calls = said.message.tool_calls
        same("the broken call", calls[:1], (ToolCall("one", "shell", {}, text),))
        same("the ready calls", [event.call for event in said.of(ToolCallReady)], list(calls[1:]))
        same("the calls beside it", calls[1:], (whole,)[: len(calls) - 1])
        same("the stop reason", said.done.stop_reason, "tool_use")
        kinds = [event.kind for event in said.of(TraceEvent)]
        same("the traces", kinds, ["parse_error"])
    cut = {"calls": [good, broken], "stop_reason": "max_tokens"}
    said = await heard(setting, cut)
    same("the stop reason of a reply that was cut off", said.done.stop_reason, "max_tokens")
    kept = (whole, ToolCall("one", "shell", {}, text))
    same("the calls of a reply that was cut off in one", said.message.tool_calls, kept)


async def a_line_without_end_is_a_typed_error(setting: Setting) -> None:
    """100 MB in one line: an error, long before the memory is full."""
    async with setting({"text": "hi", "huge": 100 * 2**20}) as stage:
        said = await listen(stage.provider)
        expect(isinstance(said.failure, AgentError), "the endless line was no error")


async def a_provider_works_after_an_error(setting: Setting) -> None:
    """A failure leaves nothing behind."""
    script: list[dict[str, Any]] = [{"error": {"status": 500}}, {"text": "x", "cut": True}]
    async with setting(*script, {"text": "fine"}) as stage:
        for _ in script:
            expect(isinstance((await listen(stage.provider)).failure, AgentError), "no error came")
        same("the reply after", (await listen(stage.provider)).message.content, "fine")


async def closing_ends_the_request(setting: Setting) -> None:
    """Closing the generator in the middle closes the connection: the server sees it."""
    async with setting({"text": "one two three", "silent": True}, "next") as stage:
        await first_words(stage)
        await stage.disconnected()
        same("the next reply", (await listen(stage.provider)).message.content, "next")


async def cancelling_ends_the_request(setting: Setting) -> None:
    """A cancelled task ends its request at once: before the first byte, and in the middle."""
    waiting = {"error": {"kind": "timeout"}}
    for script in ({"text": "one two", "silent": True}, waiting):
        async with setting(script) as stage:
            task = asyncio.create_task(listen(stage.provider))
            await stage.asked()
            task.cancel()
            await asyncio.wait([task])
            expect(task.cancelled(), "the cancellation was swallowed")
            await stage.disconnected()


async def the_key_is_in_no_error(setting: Setting) -> None:
    """Not in the text, nor in the hint, nor in a traceback, even if the vendor repeats it."""
    said = f"Incorrect API key provided: {KEY}. You can find your key elsewhere."
    for fault in ({"status": 401, "message": said}, {"status": 502, "body": f"<p>{said}</p>"}):
        error = (await heard(setting, {"error": fault})).failure
        shown = "".join(traceback.format_exception(error)) + repr(error) + error.hint
        expect(KEY not in shown, f"the key is in the error: {error}")
    async with setting("hi") as stage:
        expect(KEY not in repr(stage.provider), "the key is in the provider's repr")
        expect(KEY not in repr(stage.provider.info), "the key is in the provider's info")


CASES = (
    a_status_is_a_typed_error,
    retry_after_is_kept,
    a_page_from_between_is_a_typed_error,
    a_closed_connection_is_a_network_error,
    a_cut_stream_is_retryable,
    a_stream_cut_at_any_byte_is_retryable,
    an_error_in_the_stream_is_typed,
    a_broken_event_is_traced,
    broken_arguments_are_never_ready,
    a_line_without_end_is_a_typed_error,
    a_provider_works_after_an_error,
    closing_ends_the_request,
    cancelling_ends_the_request,
    the_key_is_in_no_error,
)
