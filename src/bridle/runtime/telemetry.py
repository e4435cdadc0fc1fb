"""Decides whether OpenTelemetry spans are sent, and by which tracer provider.

They are sent if somebody asks for it (`telemetry=True`, or a tracer provider), if this process has
a provider, or if the environment names an exporter (`OTEL_…`). OpenTelemetry is not imported before
that is known. What spans contain is in telemetry_spans.py.
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

VARIABLES = (  # each of them names an exporter
    "OTEL_TRACES_EXPORTER",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
)
_EXPORT = (
    "Install one with OpenTelemetry's SDK (pip install opentelemetry-sdk "
    "opentelemetry-exporter-otlp-proto-http), or configure a tracer provider before the engine."
)
_own_providers: "list[TracerProvider]" = []  # one for all engines, as the environment says


def traced_store(
    store: Store, wanted: Any, environ: Mapping[str, str], *, content: bool = False
) -> Store:
    """Return the store, or one that also sends spans of what is written. Raise `ConfigError`.

    `wanted` is True, False, a tracer provider, or None: if the process has one, or the environment
    names an exporter.
    """
    if wanted is False or (wanted is None and not (_is_loaded() or is_exporter_named(environ))):
        return store
    provider = _provider(wanted, environ)
    if provider is None:
        return store
    from bridle.runtime.telemetry_spans import TracedStore

    return TracedStore(store, provider, content=content)


def is_exporter_named(environ: Mapping[str, str]) -> bool:
    """Does the environment name an exporter?"""
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    if environ.get("OTEL_TRACES_EXPORTER", "").lower() == "none":
        return False
    return any(environ.get(name) for name in VARIABLES)


def _is_loaded() -> bool:
    return "opentelemetry.trace" in sys.modules


def _provider(wanted: Any, environ: Mapping[str, str]) -> "TracerProvider | None":
    """Return the tracer provider; None if there is none and `wanted` does not insist."""
    if wanted not in (None, True):
        return _check_provider(wanted)
    try:
        from opentelemetry.trace import ProxyTracerProvider, get_tracer_provider
    except ImportError as lacking:
        if wanted is None:
            return None  # the environment is for other programs, too
        raise ConfigError(
            "telemetry needs OpenTelemetry's API", lacking, hint=install_hint("telemetry")
        ) from None
    provider = get_tracer_provider()
    if not isinstance(provider, ProxyTracerProvider):
        return provider
    if wanted is None and not is_exporter_named(environ):
        return None
    try:
        return _from_environment(environ)
    except ConfigError as error:
        if wanted is True:
            raise
        alone = isinstance(error.cause, ImportError)  # no SDK: it was not meant for us
        log.log(logging.DEBUG if alone else logging.WARNING, "no telemetry: %s", error.message)
        return None


def _check_provider(given: Any) -> "TracerProvider":
    if not callable(getattr(given, "get_tracer", None)):
        raise ConfigError(
            f"telemetry is a {type(given).__name__}",
            hint="Say True or False, or hand in a tracer provider of OpenTelemetry.",
        )
    provider: TracerProvider = given
    return provider


def _from_environment(environ: Mapping[str, str]) -> "TracerProvider":
    """Return a provider of our own, which is not set for the process. Raise `ConfigError`."""
    if _own_providers:
        return _own_providers[0]
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
    _own_providers.append(provider)
    return provider


def _exporters(environ: Mapping[str, str]) -> list[Any]:
    """Return the exporters that the environment names by OpenTelemetry's rules; OTLP if none."""
    from importlib.metadata import entry_points

    points = {point.name: point for point in entry_points(group="opentelemetry_traces_exporter")}
    exporters = []
    for name in (environ.get("OTEL_TRACES_EXPORTER") or "otlp").split(","):
        names = _entry_names(name.strip(), environ)
        entry = next((points[key] for key in names if key in points), None)
        if entry is None:
            raise ConfigError(f"there is no exporter {name.strip()!r} for spans", hint=_EXPORT)
        exporters.append(entry.load()())
    return exporters


def _entry_names(name: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    if name != "otlp":
        return (name,)
    how = environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    both = ("otlp_proto_http", "otlp_proto_grpc")
    return (*(both[::-1] if how == "grpc" else both), "otlp")
