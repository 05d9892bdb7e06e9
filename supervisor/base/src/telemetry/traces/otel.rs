//! Exports spans to a collector by OTLP over HTTP, which the standard OpenTelemetry environment variables configure.

use std::collections::HashMap;
use std::sync::OnceLock;

use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::{Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use super::{TARGET, TraceContext, TracesError};

const TRACEPARENT: &str = "traceparent";
const TRACESTATE: &str = "tracestate";

static PROVIDER: OnceLock<SdkTracerProvider> = OnceLock::new();

/// Creates the layer that exports spans in batches, on a separate thread. Spans that the collector does not accept are
/// lost.
pub(super) fn layer<S: Subscriber + for<'s> LookupSpan<'s>>() -> Result<impl Layer<S>, TracesError> {
    let exporter = SpanExporter::builder().with_http().build()?;
    let mut resource = Resource::builder();
    if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
        resource = resource.with_service_name("lockhouse");
    }
    let resource =
        resource.with_attribute(opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    let provider =
        SdkTracerProvider::builder().with_resource(resource.build()).with_batch_exporter(exporter).build();
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("lockhouse"))
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_level(false)
        .with_tracked_inactivity(false)
        .with_filter(filter_fn(|about| about.is_span() && about.target() == TARGET));
    let _ = PROVIDER.set(provider);
    Ok(layer)
}

pub(super) fn is_installed() -> bool {
    PROVIDER.get().is_some()
}

pub(super) fn flush() {
    if let Some(Err(error)) = PROVIDER.get().map(SdkTracerProvider::shutdown) {
        tracing::warn!("not all traces were sent: {error}");
    }
}

/// Makes the span part of the AI client's trace. Baggage is ignored.
pub(super) fn set_parent(span: &Span, trace_context: TraceContext) {
    let TraceContext { traceparent, tracestate } = trace_context;
    let state = tracestate.map(|state| (TRACESTATE.to_owned(), state));
    let carried: HashMap<String, String> =
        [(TRACEPARENT.to_owned(), traceparent)].into_iter().chain(state).collect();
    // A malformed context is ignored: the span then begins a new trace.
    let _ = span.set_parent(TraceContextPropagator::new().extract(&carried));
}

pub(super) fn trace_context(span: &Span) -> Option<TraceContext> {
    let mut carried = HashMap::new();
    TraceContextPropagator::new().inject_context(&span.context(), &mut carried);
    let traceparent = carried.remove(TRACEPARENT)?;
    Some(TraceContext {
        traceparent,
        tracestate: carried.remove(TRACESTATE).filter(|state| !state.is_empty()),
    })
}
