"""The page shows a model's reply while the model still writes it."""

import asyncio
import threading
from contextlib import contextmanager

import pytest
from playwright.sync_api import expect
from rig_chat_page import ChatServed, ChatWindow

from bridle.testing import FakeAnthropic


@contextmanager
def vendor(replies):
    """A fake vendor that serves in a thread; its address."""
    started, over = threading.Event(), threading.Event()
    server = FakeAnthropic(replies)

    async def serve():
        async with server:
            started.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    started.wait()
    try:
        yield server.url
    finally:
        over.set()
        thread.join()


@pytest.fixture
def slow_model(tmp_path, monkeypatch):
    """A chat whose model stops in the middle of its second sentence, and never goes on."""
    reply = {"text": "You have a quiet day. After that you", "pause": 0.05, "silent": True}
    with vendor([reply]) as url:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key-" + "a" * 30)
        flags = ("--messages-a-minute", "0", "--model", "anthropic/claude-test")
        served = ChatServed(tmp_path / "chat", *flags).start()
        yield served
        served.stop()


def test_the_first_sentence_is_shown_while_the_model_still_writes(browser, slow_model):
    me = ChatWindow(browser, slow_model).sign_in("ana")
    me.say("how is my day?")
    answer = me.log.locator(".line.assistant").last
    expect(answer).to_contain_text("You have a quiet day.")
    expect(answer).to_contain_class("waiting")
    me.context.close()
