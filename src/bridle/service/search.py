"""Looks around: files of a workspace by a few letters, words in all sessions, what a rule covers.

Nothing is changed and nothing is taken up. Everything that blocks runs in a thread.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from heapq import nsmallest
from time import monotonic

from msgspec.structs import replace

from bridle.engine.grants import covered_calls
from bridle.errors import ConfigError
from bridle.messages import ToolCall
from bridle.policy import parse_rule
from bridle.protocols.session_errors import BadRequest
from bridle.protocols.session_values import FilePaths, RulePreview, SearchHit, SearchHits
from bridle.runtime.dry_run import past_calls
from bridle.service.engine_pool import previous_run
from bridle.service.open_sessions import OpenSessions
from bridle.service.workspace_scope import WorkspaceScope
from bridle.stores.search import search
from bridle.stores.session_index import log_entries, read_entries
from bridle.workspace.ignore import FileTree
from bridle.workspace.text import one_line
from bridle.workspace.workspace import Workspace

_FILES, _HITS = 200, 200  # at the most
_ENTRIES = 50_000  # names of a workspace that are looked at
_LETTERS = 100  # of a query
_SECONDS = 2.0  # that a workspace is looked through; what was found until then is shown
Rank = tuple[int, int, int]


class Looking:
    """Looks for things."""

    def __init__(self, ground: WorkspaceScope, holding: OpenSessions) -> None:
        self._ground = ground
        self._holding = holding

    async def files(self, session_id: str, query: str, limit: int) -> FilePaths:
        """Files of the session's workspace whose names have these letters, in this order."""
        most = min(max(1, limit), _FILES)
        session = self._holding.get_open(session_id)
        root = session.workspace if session is not None else ""
        return await asyncio.to_thread(self._files, session_id, root, query[:_LETTERS], most)

    async def workspace_files(self, workspace: str, query: str, limit: int) -> FilePaths:
        """The same before there is a session. Raise `UnknownWorkspace`."""
        root = self._ground.workspace(workspace)
        most = min(max(1, limit), _FILES)
        return await asyncio.to_thread(_matching, root, query[:_LETTERS], most)

    async def preview_rule(self, session_id: str, rule: str) -> RulePreview:
        """Past calls that a rule would have covered. Raise `BadRequest` for what is no rule."""
        return await asyncio.to_thread(self._previewed, session_id, rule)

    async def search(self, words: str, limit: int) -> SearchHits:
        """Where the words stand, the newest session first. Raise `BadRequest` for none."""
        if not words.strip():
            raise BadRequest("there is nothing to look for", hint="Say some words: ?q=…")
        return await asyncio.to_thread(self._found, words, min(max(1, limit), _HITS))

    def _files(self, session_id: str, root: str, query: str, limit: int) -> FilePaths:
        self._ground.known(session_id)
        root = root or previous_run(self._ground, session_id).workspace
        return _matching(root, query, limit)

    def _previewed(self, session_id: str, rule: str) -> RulePreview:
        _, head = self._ground.known(session_id)
        try:
            read = replace(parse_rule(rule), where=head.workspace)
        except ConfigError as error:
            raise BadRequest(error.message, hint=error.hint) from None
        past = past_calls(session_id, self._ground.folder)
        return RulePreview(tuple(_words(call) for call in covered_calls(read, past)))

    def _found(self, words: str, limit: int) -> SearchHits:
        heads = {one.id: one for one in read_entries(log_entries(self._ground.folder.folder))}
        ours = [one.id for one in heads.values() if self._ground.allows(one.workspace)]
        hits = search(self._ground.folder, words, sessions=set(ours), limit=limit)
        return SearchHits(
            tuple(
                SearchHit(one.session_id, one.seq, heads[one.session_id].title, one.text, one.kind)
                for one in hits
            )
        )


def _matching(root: str, query: str, limit: int) -> FilePaths:
    every = FileTree(Workspace(root), most=_ENTRIES)
    ranked = _ranked(every, fuzzy(query), monotonic() + _SECONDS)
    return FilePaths(tuple(path for _, path in nsmallest(limit, ranked)))


def fuzzy(query: str) -> Callable[[str], Rank | None]:
    """How well a path fits these letters: the lower the better; None where it does not."""
    letters = "".join(query.casefold().split())
    words = query.casefold().strip()

    def rank(path: str) -> Rank | None:
        low = path.casefold()
        if not letters:
            return path.count("/"), len(path), 0
        name = low.rpartition("/")[2]
        if words in name:
            return 0 if name.startswith(words) else 1, len(path), 0
        if words in low:
            return 2, len(path), 0
        length = _stretch(name, letters) or _stretch(low, letters)
        return (3, length, len(path)) if length else None

    return rank


def _stretch(text: str, letters: str) -> int:
    """How long the first stretch with these letters in this order is; 0: there is none.

    Each letter is taken where it comes next, so that no text is gone through twice.
    """
    start = at = text.find(letters[0])
    for letter in letters[1:]:
        if at < 0:
            return 0
        at = text.find(letter, at + 1)
    return at + 1 - start if at >= 0 else 0


def _ranked(
    paths: Iterable[str], wanted: Callable[[str], Rank | None], end: float
) -> Iterator[tuple[Rank, str]]:
    for path in paths:
        if (place := wanted(path)) is not None:
            yield place, path
        if monotonic() > end:
            return


def _words(call: ToolCall) -> str:
    given = call.arguments
    about = given.get("command") or given.get("path") or given.get("pattern") or given or ""
    return one_line(f"{call.name} {about}".strip(), 200)
