"""Is OpenTelemetry wanted, and where do its spans go? Costs nothing where it is not.

It is on where somebody asks for it (`telemetry=True`, or a tracer provider of their own), where a
provider is configured in this process, or where the environment names an exporter (`OTEL_…`).
Nothing of OpenTelemetry is imported before that is known. What spans say is in telemetry_spans.py.
"""

import logging
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bridle.distribution import install_hint
from bridle.errors import ConfigError
from bridle.protocols.store import Store

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

log = logging.getLogger(__name__)

NAMED = (  # each of them says where spans are to go
    "OTEL_TRACES_EXPORTER",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
)
_EXPORT = (
    "Install one with OpenTelemetry's SDK (pip install opentelemetry-sdk "
    "opentelemetry-exporter-otlp-proto-http), or configure a tracer provider before the engine."
)
_made: "list[TracerProvider]" = []  # the one that was made of the environment, for all engines


def traced_store(
    store: Store, wanted: Any, environ: Mapping[str, str], *, content: bool = False
) -> Store:
    """Return the store, or one that also sends spans of what is written. Raise `ConfigError`.

    `wanted` is True, False, a tracer provider, or None: if the process has one, or the environment
    names an exporter.
    """
    if wanted is False or (wanted is None and not (_is_loaded() or is_named(environ))):
        return store
    provider = _provider(wanted, environ)
    if provider is None:
        return store
    from bridle.runtime.telemetry_spans import TracedStore

    return TracedStore(store, provider, content=content)


def is_named(environ: Mapping[str, str]) -> bool:
    """Does the environment say where spans are to go?"""
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    if environ.get("OTEL_TRACES_EXPORTER", "").lower() == "none":
        return False
    return any(environ.get(name) for name in NAMED)


def _is_loaded() -> bool:
    return "opentelemetry.trace" in sys.modules


def _provider(wanted: Any, environ: Mapping[str, str]) -> "TracerProvider | None":
    """Who makes the spans; None where nobody can be found and nobody insists."""
    if wanted not in (None, True):
        return _checked(wanted)
    try:
        from opentelemetry.trace import ProxyTracerProvider, get_tracer_provider
    except ImportError as lacking:
        if wanted is None:
            return None  # the environment is for other programs, too
        raise ConfigError(
            "telemetry needs OpenTelemetry's API", lacking, hint=install_hint("telemetry")
        ) from None
    found = get_tracer_provider()
    if not isinstance(found, ProxyTracerProvider):
        return found
    if wanted is None and not is_named(environ):
        return None
    try:
        return _from_environment(environ)
    except ConfigError as error:
        if wanted is True:
            raise
        alone = isinstance(error.cause, ImportError)  # no SDK: it was not meant for us
        log.log(logging.DEBUG if alone else logging.WARNING, "no telemetry: %s", error.message)
        return None


def _checked(given: Any) -> "TracerProvider":
    if not callable(getattr(given, "get_tracer", None)):
        raise ConfigError(
            f"telemetry is a {type(given).__name__}",
            hint="Say True or False, or hand in a tracer provider of OpenTelemetry.",
        )
    provider: TracerProvider = given
    return provider


def _from_environment(environ: Mapping[str, str]) -> "TracerProvider":
    """A provider of our own, which leaves the process's alone. Raise `ConfigError`."""
    if _made:
        return _made[0]
    try:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider as Provider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as lacking:
        raise ConfigError(
            "telemetry is wanted, and nothing here sends spans", lacking, hint=_EXPORT
        ) from None
    exporters = _exporters(environ)
    named = {} if environ.get("OTEL_SERVICE_NAME") else {"service.name": "bridle"}
    provider = Provider(resource=Resource.create(named))
    for exporter in exporters:
        provider.add_span_processor(BatchSpanProcessor(exporter))
    _made.append(provider)
    return provider


def _exporters(environ: Mapping[str, str]) -> list[Any]:
    """Those that the environment names, by OpenTelemetry's own rules; OTLP where it names none."""
    from importlib.metadata import entry_points

    known = {one.name: one for one in entry_points(group="opentelemetry_traces_exporter")}
    found = []
    for name in (environ.get("OTEL_TRACES_EXPORTER") or "otlp").split(","):
        entry = next(
            (known[one] for one in _spellings(name.strip(), environ) if one in known), None
        )
        if entry is None:
            raise ConfigError(f"there is no exporter {name.strip()!r} for spans", hint=_EXPORT)
        found.append(entry.load()())
    return found


def _spellings(name: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    if name != "otlp":
        return (name,)
    how = environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    both = ("otlp_proto_http", "otlp_proto_grpc")
    return (*(both[::-1] if how == "grpc" else both), "otlp")
