"""Find files of a workspace, text in all sessions, and past calls that a rule covers."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from heapq import nsmallest
from time import monotonic

from msgspec.structs import replace

from bridle.engine.grants import covered_calls
from bridle.errors import ConfigError
from bridle.messages import ToolCall
from bridle.policy import parse_rule
from bridle.protocols.session_catalog import HeadQuery
from bridle.protocols.session_errors import BadRequest
from bridle.protocols.session_values import FilePaths, RulePreview, SearchHit, SearchHits
from bridle.runtime.dry_run import past_calls
from bridle.service.engine_pool import previous_run
from bridle.service.workspace_scope import WorkspaceScope
from bridle.workspace.ignore import FileTree
from bridle.workspace.text import one_line
from bridle.workspace.workspace import Workspace

_FILES, _HITS = 200, 200  # at the most
_ENTRIES = 50_000  # names of a workspace that are looked at
_LETTERS = 100  # of a query
_SECONDS = 2.0  # that a workspace is looked through; what was found until then is shown
Rank = tuple[int, int, int]


class SessionSearch:
    """Finds files, text and past calls. Changes nothing and opens no session."""

    def __init__(self, scope: WorkspaceScope) -> None:
        self._scope = scope

    async def files(self, session_id: str, workspace: str, query: str, limit: int) -> FilePaths:
        """Return files of a session's workspace, if that is known, or of where it last worked."""
        limit = min(max(1, limit), _FILES)

        def find() -> FilePaths:
            self._scope.session(session_id)
            root = workspace or previous_run(self._scope, session_id).workspace
            return _matching(root, query[:_LETTERS], limit)

        return await asyncio.to_thread(find)

    async def workspace_files(self, workspace: str, query: str, limit: int) -> FilePaths:
        """Return files of a workspace. Raise `UnknownWorkspace`."""
        root = self._scope.workspace(workspace)
        limit = min(max(1, limit), _FILES)
        return await asyncio.to_thread(_matching, root, query[:_LETTERS], limit)

    async def text(self, words: str, limit: int) -> SearchHits:
        """Return where the words occur, the newest session first. Raise `BadRequest` for none."""
        if not words.strip():
            raise BadRequest("there is nothing to search for", hint="Set the text: ?q=…")
        return await asyncio.to_thread(self._text, words, min(max(1, limit), _HITS))

    async def covered_calls(self, session_id: str, rule: str) -> RulePreview:
        """Return past calls that a rule would have covered. Raise `BadRequest` if it is no rule."""
        return await asyncio.to_thread(self._covered_calls, session_id, rule)

    def _text(self, words: str, limit: int) -> SearchHits:
        heads = self._scope.catalog.heads(HeadQuery(workspaces=self._scope.workspaces))
        titles = {head.id: head.title for head in heads}
        matches = self._scope.catalog.search(words, set(titles), limit)
        return SearchHits(
            tuple(
                SearchHit(
                    session_id=match.session_id,
                    seq=match.seq,
                    title=titles[match.session_id],
                    text=match.text,
                    kind=match.kind,
                )
                for match in matches
            )
        )

    def _covered_calls(self, session_id: str, rule: str) -> RulePreview:
        head = self._scope.session(session_id)
        try:
            parsed = replace(parse_rule(rule), where=head.workspace)
        except ConfigError as error:
            raise BadRequest(error.message, hint=error.hint) from None
        past = past_calls(session_id, self._scope.catalog)
        return RulePreview(tuple(_describe(call) for call in covered_calls(parsed, past)))


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


def _describe(call: ToolCall) -> str:
    given = call.arguments
    about = given.get("command") or given.get("path") or given.get("pattern") or given or ""
    return one_line(f"{call.name} {about}".strip(), 200)
