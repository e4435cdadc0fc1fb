"""strands: an agent for each run (agents keep their conversation), events streamed.

Its default conversation manager forgets all but the last 40 messages; the one used here keeps the
whole history, as everybody else does.
"""

from typing import Any

import stopwatch

strands: Any
AnthropicModel: Any
NullConversationManager: Any


def load() -> None:
    """Import the library."""
    global strands, AnthropicModel, NullConversationManager
    import strands
    from strands.agent.conversation_manager import NullConversationManager
    from strands.models.anthropic import AnthropicModel


async def open_client(url: str, tool: stopwatch.Tool) -> stopwatch.Opened:
    """One model for all runs."""
    client_args = {"api_key": "k", "base_url": url}
    model = AnthropicModel(client_args=client_args, model_id="bench-model", max_tokens=8192)
    lookup = strands.tool(tool)

    async def run(prompt: str) -> str:
        agent = strands.Agent(
            model=model,
            tools=[lookup],
            callback_handler=None,
            conversation_manager=NullConversationManager(),
        )
        shown, text = 0, ""
        async for event in agent.stream_async(prompt):
            if "data" in event:
                shown += len(event["data"])
            elif "result" in event:
                text = str(event["result"])
        return text

    return run, model.client.close


stopwatch.main(load, open_client)
