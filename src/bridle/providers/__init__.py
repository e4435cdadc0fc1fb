"""Adapters to model APIs.

`anthropic`, `openai_responses` and `openai_chat` are the vendors' APIs. Each has an encoder, which
writes requests and encodes each message once (`encoding_cache`), and a reader, which makes events
of the reply. `wire` sends the bytes (`aiohttp_transport`, `sse`); `sdk` uses the
vendors' own clients instead. `http_errors` makes errors of answers that are not replies.
`retry` wraps any provider: it asks again, or asks another one. `scripted` and `offline` need no
model. `catalogue` knows prices and context windows.
"""
