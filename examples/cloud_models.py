"""Use models in a cloud: bridle sends its requests through the vendor's own async client."""

import asyncio
import os
import sys
import tempfile

import bridle


def bedrock() -> bridle.Provider:
    """Use Amazon Bedrock: `pip install 'anthropic[bedrock]'`. AWS credentials and region apply."""
    from anthropic import AsyncAnthropicBedrock

    return bridle.provider("anthropic/claude-sonnet-5-5", sdk=AsyncAnthropicBedrock())


def vertex() -> bridle.Provider:
    """Use Google Vertex: `pip install 'anthropic[vertex]'`. The token is optional."""
    from anthropic import AsyncAnthropicVertex

    token = os.environ.get("VERTEX_TOKEN")  # as `gcloud auth print-access-token` prints it
    client = AsyncAnthropicVertex(region="eu", project_id="my-project", access_token=token)
    return bridle.provider("anthropic/claude-sonnet-5-5", sdk=client)


def azure() -> bridle.Provider:
    """Use Azure OpenAI: set AZURE_OPENAI_ENDPOINT and AZURE_OPENAI_API_KEY."""
    from openai import AsyncAzureOpenAI

    return bridle.provider(
        "openai/my-deployment", sdk=AsyncAzureOpenAI(api_version="2025-04-01-preview")
    )


async def main(cloud: str) -> None:
    provider = {"bedrock": bedrock, "vertex": vertex, "azure": azure}[cloud]()
    with tempfile.TemporaryDirectory() as state:
        async with bridle.build_engine(provider, tools=[], state=state) as engine:
            result = await engine.run("Say hello.")
            print(result.text if result.ok else result.error)


if __name__ == "__main__":
    if sys.argv[1:]:
        asyncio.run(main(sys.argv[1]))
    else:
        print("usage: cloud_models.py bedrock|vertex|azure")
