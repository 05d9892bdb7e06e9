//! Spans on their way to a collector: OTLP over HTTP, as the standard variables of the environment say.

use std::collections::HashMap;
use std::sync::OnceLock;

use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use rmcp::model::RequestMetaObject;
use tracing::{Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use super::TARGET;

const TRACEPARENT: &str = "traceparent";
const TRACESTATE: &str = "tracestate";

static PROVIDER: OnceLock<SdkTracerProvider> = OnceLock::new();

/// Spans are gathered and sent by a thread of its own, and are lost where a collector does not take them.
pub(super) fn layer<S: Subscriber + for<'s> LookupSpan<'s>>() -> Result<impl Layer<S>, String> {
    let exporter = SpanExporter::builder().with_http().build().map_err(|error| error.to_string())?;
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

pub(super) fn flush() {
    if let Some(Err(error)) = PROVIDER.get().map(SdkTracerProvider::shutdown) {
        tracing::warn!("not all traces were sent: {error}");
    }
}

/// What a client says of its trace. Baggage is nobody's business.
pub(super) fn adopt(span: &Span, meta: &RequestMetaObject) {
    let of = |name: &str, value: Option<&str>| value.map(|value| (name.to_owned(), value.to_owned()));
    let carried: HashMap<String, String> =
        [of(TRACEPARENT, meta.get_traceparent()), of(TRACESTATE, meta.get_tracestate())]
            .into_iter()
            .flatten()
            .collect();
    if !carried.is_empty() {
        // One that is malformed begins a trace of our own.
        let _ = span.set_parent(TraceContextPropagator::new().extract(&carried));
    }
}

pub(super) fn hand_on(span: &Span, meta: &mut Option<RequestMetaObject>) {
    let mut carried = HashMap::new();
    TraceContextPropagator::new().inject_context(&span.context(), &mut carried);
    let Some(parent) = carried.remove(TRACEPARENT) else { return };
    let meta = meta.get_or_insert_default();
    meta.set_traceparent(parent);
    if let Some(state) = carried.remove(TRACESTATE).filter(|state| !state.is_empty()) {
        meta.set_tracestate(state);
    }
}
