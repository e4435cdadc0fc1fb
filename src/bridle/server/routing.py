"""Routes of an API: a function's signature says what it takes, its declaration whom it serves.

The methods of `Routes` turn a function into a Starlette route. The function's parameters are read
from the path, the query, the headers (`Annotated[str, Header("X-Name")]`) and the body (`body`),
and checked by msgspec; `context`, `caller` and `request` are passed as they are. The guard, the
OpenAPI document and the tests read the same declarations.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl

import msgspec
from msgspec import Meta, Struct
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from bridle.protocols.session_values import Role
from bridle.server.middleware import App, Limits, Receive, Scope, Send, read_json
from bridle.server.problems import (
    MEDIA,
    Problem,
    ProblemError,
    encode,
    encode_problem,
    problem,
    problem_error,
)

JSON = "application/json"
LARGEST = 2**53 - 1  # what every client's numbers can hold
_WITH_BODY = ("POST", "PUT", "PATCH", "DELETE")
Handler = TypeVar("Handler", bound=Callable[..., Awaitable[Any]])
_GIVEN = ("context", "caller", "request", "body")
_WHERE = "GET /api/openapi.json describes every address and what it takes."

Sequence = Annotated[int, Meta(ge=0, le=LARGEST)]
Count = Annotated[int, Meta(ge=1, le=1_000)]
Words = Annotated[str, Meta(max_length=1_000)]


class Header(Struct, frozen=True):
    """Marks a parameter that is read from the request header of that name."""

    name: str


IdempotencyKey = Annotated[str, Meta(max_length=200), Header("Idempotency-Key")]


class Declaration(Struct, frozen=True, kw_only=True):
    """What a route promises.

    `role` is what a caller needs; None serves anyone. `refuses` are problem codes besides those
    that every such route can answer with. `answers` is the value of a good answer, if the function
    returns a response; `also` are values of other good answers, by their status. `media` and
    `shape` describe an answer that is not a value of the API; `streams` is the event of an answer
    that can also be asked for as a stream. `is_prompt`: the body may be as large as a prompt.
    `hidden`: not in the OpenAPI document.
    """

    role: Role | None
    tag: str
    status: int = 200
    refuses: tuple[str, ...] = ()
    answers: Any = None
    also: dict[int, Any] = {}
    media: str = JSON
    shape: str = ""
    streams: str = ""
    is_prompt: bool = False
    hidden: bool = False


class Api(Struct, frozen=True):
    """What the routes of one application have in common.

    `authorize` raises `ProblemError` if the caller may not use a route. `problem_of` says what a
    client is told of an error.
    """

    context: Any
    limits: Limits
    authorize: Callable[["ApiRoute", Scope], None]
    problem_of: Callable[[Exception, Scope], tuple[Problem, dict[str, str]]]


class Reply(Struct, frozen=True):
    """A value with another status or more headers than the route's usual ones."""

    value: Any
    status: int = 200
    headers: dict[str, str] = {}


class ApiRoute(Route):
    """A route, its declaration, and how the function's arguments are read from a request."""

    def __init__(
        self,
        method: str,
        path: str,
        handler: Callable[..., Awaitable[Any]],
        declaration: Declaration,
    ) -> None:
        super().__init__(path, _Endpoint(self), methods=[method], name=handler.__name__)
        self.methods = {method}  # Starlette would answer HEAD, too, and open a stream for it
        self.method = method
        self.handler = handler
        self.declaration = declaration
        self.status = declaration.status
        hints = get_type_hints(handler, include_extras=True)
        self.answers = declaration.answers or hints.pop("return", None)
        hints.pop("return", None)
        parameters = inspect.signature(handler).parameters
        self.given = tuple(name for name in _GIVEN if name in parameters)
        self.path_types = {name: hints[name] for name in self.param_convertors if name in hints}
        self.body: Any = hints.get("body")
        self.body_required = "body" in parameters and _is_required(parameters["body"])
        rest = [name for name in hints if name not in (*_GIVEN, *self.path_types)]
        headers = {name: found for name in rest if (found := _header(hints[name]))}
        self.header_titles = headers
        self.header_names = {title.lower(): name for name, title in headers.items()}
        self.headers = _struct(handler, {name: hints[name] for name in headers}, parameters)
        query = {name: hints[name] for name in rest if name not in headers}
        self.query_names = {name.rstrip("_"): name for name in query}
        self.query = _struct(handler, query, parameters)
        self._needs_query = any(_is_required(parameters[name]) for name in query)
        self._decode = msgspec.json.Decoder(self.body).decode if self.body is not None else None

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. An error before the answer begins becomes a problem."""
        api: Api = scope["app"].state.api
        try:
            api.authorize(self, scope)
            content = b""
            if self.method in _WITH_BODY:
                limits = api.limits
                limit = limits.chat_bytes if self.declaration.is_prompt else limits.body_bytes
                read = await read_json(scope, receive, limit, limits.depth)
                if read is None:
                    return  # the client has gone
                content = read
            arguments = self._arguments(api, scope, receive, content)
            response = self._response(await self.handler(**arguments))
        except Exception as error:
            found, headers = api.problem_of(error, scope)
            response = to_response(found, headers)
        await response(scope, receive, send)

    def _arguments(
        self, api: Api, scope: Scope, receive: Receive, content: bytes
    ) -> dict[str, Any]:
        found = {name: scope["path_params"][name] for name in self.path_types}
        for name in self.given:
            if name == "context":
                found[name] = api.context
            elif name == "caller":
                found[name] = scope.get("user")
            elif name == "request":
                found[name] = Request(scope, receive)
            elif content or self.body_required:
                found[name] = self._body(content)
        if scope["query_string"] or self._needs_query:
            self._read_query(scope, found)
        if self.header_names:
            self._read_headers(scope, found)
        return found

    def _body(self, content: bytes) -> Any:
        if not content:
            raise problem_error("invalid_json", "There is no body.", "Send one whole JSON value.")
        assert self._decode is not None
        try:
            return self._decode(content)
        except msgspec.ValidationError as error:
            raise problem_error(
                "invalid_request",
                f"The body does not fit: {error}.",
                "GET /api/openapi.json has the shape of every body.",
            ) from error
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise problem_error(
                "invalid_json", f"The body cannot be read: {error}.", "Send one whole JSON value."
            ) from error

    def _read_query(self, scope: Scope, found: dict[str, Any]) -> None:
        given = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        unknown = next((name for name in given if name not in self.query_names), None)
        if unknown is not None and self.declaration.role is not None:
            known = ", ".join(sorted(self.query_names))
            hint = f"It has these: {known}." if known else "It has none."
            raise problem_error(
                "invalid_request", f"There is no query parameter {unknown[:60]!r}.", hint
            )
        known_ones = {self.query_names[key]: given[key] for key in given if key in self.query_names}
        found.update(_converted(self.query, known_ones, self.query_names))

    def _read_headers(self, scope: Scope, found: dict[str, Any]) -> None:
        given = {}
        for key, value in scope["headers"]:
            name = self.header_names.get(key.decode("latin-1").lower())
            if name is not None:
                given[name] = value.decode("latin-1")
        if given:
            found.update(_converted(self.headers, given, self.header_names))

    def _response(self, found: Any) -> App:
        if isinstance(found, Struct):
            status, headers = self.status, None
            if isinstance(found, Reply):
                found, status, headers = found.value, found.status, found.headers
            return Response(encode(found), status, headers, JSON)
        if found is None:
            return Response(None, 204)
        response: App = found
        return response


class _Endpoint:
    """The route's ASGI application. Starlette treats an object as one, and a function as not."""

    def __init__(self, route: ApiRoute) -> None:
        self._route = route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._route.serve(scope, receive, send)


class Routes(list[ApiRoute]):
    """Routes that belong together, under one tag of the OpenAPI document."""

    def __init__(self, tag: str) -> None:
        super().__init__()
        self._tag = tag

    def get(self, path: str, **declared: Any) -> Callable[[Handler], Handler]:
        """Declare a GET route; `declared` are the fields of `Declaration`."""
        return self._declare("GET", path, declared)

    def post(self, path: str, **declared: Any) -> Callable[[Handler], Handler]:
        """Declare a POST route."""
        return self._declare("POST", path, declared)

    def put(self, path: str, **declared: Any) -> Callable[[Handler], Handler]:
        """Declare a PUT route."""
        return self._declare("PUT", path, declared)

    def patch(self, path: str, **declared: Any) -> Callable[[Handler], Handler]:
        """Declare a PATCH route."""
        return self._declare("PATCH", path, declared)

    def delete(self, path: str, **declared: Any) -> Callable[[Handler], Handler]:
        """Declare a DELETE route."""
        return self._declare("DELETE", path, declared)

    def _declare(
        self, method: str, path: str, declared: dict[str, Any]
    ) -> Callable[[Handler], Handler]:
        def add(handler: Handler) -> Handler:
            declaration = Declaration(tag=self._tag, **declared)
            self.append(ApiRoute(method, path, handler, declaration))
            return handler

        return add


def api_application(routes: Iterable[ApiRoute], api: Api) -> Starlette:
    """A Starlette application with these routes, whose 404s and 405s are problems, too."""

    async def answer(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        found, headers = api.problem_of(_routing_error(request, error), dict(request.scope))
        return to_response(found, headers)

    app = Starlette(routes=list(routes), exception_handlers={HTTPException: answer})
    app.router.redirect_slashes = False
    app.state.api = api
    return app


def to_response(found: Problem, headers: dict[str, str]) -> Response:
    """A problem as a response."""
    return Response(encode_problem(found), found.status, headers, MEDIA)


def free_paths(routes: Iterable[ApiRoute]) -> Callable[[str], bool]:
    """Which paths need no token: those of routes that need no role, or below such a folder."""
    paths = [route.path for route in routes if route.declaration.role is None]
    folders = tuple(path.partition("{")[0] for path in paths if "{" in path)
    exact = frozenset(path for path in paths if "{" not in path)
    return lambda path: path in exact or path.startswith(folders)


def _routing_error(request: Request, error: HTTPException) -> ProblemError:
    """A request that no route takes."""
    if error.status_code != 405:
        return ProblemError(problem("not_found", "There is nothing at this address.", _WHERE))
    scope = dict(request.scope)
    routes = [one for one in request.app.routes if one.matches(scope)[0] is not Match.NONE]
    allowed = ", ".join(sorted({method for one in routes for method in one.methods}))
    found = problem("method_not_allowed", "This address does not take that method.", _WHERE)
    return ProblemError(found, ((b"allow", allowed.encode()),))


def _is_required(parameter: inspect.Parameter) -> bool:
    return parameter.default is inspect.Parameter.empty


def _header(annotation: Any) -> str:
    """The header that a parameter is read from; empty if it is not."""
    if get_origin(annotation) is not Annotated:
        return ""
    found = [one.name for one in get_args(annotation)[1:] if isinstance(one, Header)]
    return found[0] if found else ""


def _struct(handler: Any, types: dict[str, Any], parameters: Any) -> type[Struct]:
    """A struct with these fields, by which msgspec checks them."""
    required = [(name, kind) for name, kind in types.items() if _is_required(parameters[name])]
    optional = [
        (name, kind, parameters[name].default)
        for name, kind in types.items()
        if not _is_required(parameters[name])
    ]
    return msgspec.defstruct(f"{handler.__name__}_parameters", [*required, *optional], frozen=True)


def _converted(kind: type[Struct], given: dict[str, str], names: dict[str, str]) -> dict[str, Any]:
    """The parameters that were given, as the types they are declared with."""
    try:
        found = msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise problem_error("invalid_request", _misfit(str(error), names), _WHERE) from error
    return {name: getattr(found, name) for name in given}


def _misfit(why: str, names: dict[str, str]) -> str:
    """What does not fit, by the name that its sender knows and without patterns."""
    why, _, place = why.partition(" - at `$.")
    wire = {name: key for key, name in names.items()}
    why = why.partition(" matching regex ")[0] + (" of another form" if " matching " in why else "")
    if place:
        name = place.rstrip("`")
        return f"The parameter {wire.get(name, name)} does not fit: {why}."
    return f"The parameters do not fit: {why}."
