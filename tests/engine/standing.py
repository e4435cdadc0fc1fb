"""What stands around a call in tests: hooks, a undo and a policy engine that do as they are told.

They keep their promises; what they say is up to the test.
"""

from bridle.events import FileChange, FilesChanged
from bridle.protocols.hooks import HookResult


class SaidHooks:
    """Hooks that say what a test has written down, and remember what they were told."""

    def __init__(self, **said):
        self.said = said
        self.heard = []

    def handles(self, moment):
        return moment in self.said

    async def run(self, event):
        self.heard.append(event)
        found = self.said[event.moment]
        if isinstance(found, list):
            found = found.pop(0) if found else HookResult()
        if isinstance(found, BaseException):
            raise found
        return found(event) if callable(found) else found


class Ledger:
    """A undo that writes down what it was asked to keep."""

    def __init__(self, story=None, fails=""):
        self.story = [] if story is None else story
        self.fails = fails

    def record_turn(self, session_id, turn):
        self.story.append(("keep", turn))
        return _Kept(self, turn)


class _Kept:
    def __init__(self, ledger, turn):
        self.ledger, self.turn = ledger, turn

    async def before(self, call):
        if self.ledger.fails == "before":
            raise OSError("the disk is full")
        self.ledger.story.append(("before", call.id))

    async def after(self, call):
        if self.ledger.fails == "after":
            raise OSError("the disk is full")
        self.ledger.story.append(("after", call.id))
        return FilesChanged(self.turn, call.id, (FileChange("a.txt"),))


class Opinion:
    """A policy engine (A5) that says what a test has given it."""

    def __init__(self, said):
        self.said = said
        self.asked = []

    async def evaluate(self, tool, arguments):
        self.asked.append((tool.name, dict(arguments)))
        if isinstance(self.said, BaseException):
            raise self.said
        return self.said(tool, arguments) if callable(self.said) else self.said
