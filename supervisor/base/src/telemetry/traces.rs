//! OpenTelemetry spans for the work that one request of an AI client causes. docs/traces.md lists them.
//!
//! Other modules open spans by calling the functions of this module, and do not use names of attributes. Spans are
//! exported only in builds with the feature `otel`, and only if the environment names a collector; otherwise no span is
//! created. Spans contain names, numbers and states, but no code, arguments or results.

#[cfg(feature = "otel")]
mod otel;

use lockhouse_messages::TraceContext;
use lockhouse_policies::CallTarget;
use lockhouse_protocol::{ExecutionId, ServerName};
use tracing::field::Empty;
use tracing::{Span, Subscriber};
use tracing_subscriber::Layer;
#[cfg(not(feature = "otel"))]
use tracing_subscriber::layer::Identity;
use tracing_subscriber::registry::LookupSpan;

/// The target (of the crate `tracing`) of spans, which distinguishes them from log entries.
pub(super) const TARGET: &str = "lockhouse_traces";

/// Why spans are not exported although the environment names a collector.
#[derive(Debug, thiserror::Error)]
pub(super) enum TracesError {
    #[cfg(not(feature = "otel"))]
    #[error("this program was built without it: build it with --features otel")]
    NotBuilt,
    #[cfg(feature = "otel")]
    #[error(transparent)]
    Exporter(#[from] opentelemetry_otlp::ExporterBuildError),
}

/// Returns the layer that exports spans to the collector that the environment names; `None` if the environment names no
/// collector or disables OpenTelemetry.
///
/// # Errors
///
/// [`TracesError`] if the environment names a collector, but spans cannot be exported to it.
pub(super) fn layer<S: Subscriber + for<'s> LookupSpan<'s>>() -> Result<Option<impl Layer<S>>, TracesError> {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_disabled =
        std::env::var("OTEL_SDK_DISABLED").is_ok_and(|value| value.eq_ignore_ascii_case("true"));
    if is_disabled || !(is_set("OTEL_EXPORTER_OTLP_ENDPOINT") || is_set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"))
    {
        return Ok(None);
    }
    #[cfg(feature = "otel")]
    return otel::layer().map(Some);
    #[cfg(not(feature = "otel"))]
    Err::<Option<Identity>, _>(TracesError::NotBuilt)
}

/// Exports the spans that have not been exported yet. Called at the end of the process.
pub fn flush() {
    #[cfg(feature = "otel")]
    otel::flush();
}

/// Returns whether spans are exported.
pub fn are_exported() -> bool {
    #[cfg(feature = "otel")]
    return otel::is_installed();
    #[cfg(not(feature = "otel"))]
    false
}

/// Opens the span of a tool call by an AI client. The caller bounds the name of the tool. The span becomes part of the
/// client's trace if the client sent a trace context.
pub fn tool_call(tool: &str, trace_context: Option<TraceContext>) -> Span {
    // The values are computed only if spans are exported.
    let span = tracing::info_span!(
        target: TARGET,
        "asked",
        otel.name = format!("tools/call {tool}"),
        otel.kind = "server",
        otel.status_code = Empty,
        mcp.method.name = "tools/call",
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = tool,
        rpc.response.status_code = Empty,
        error.type = Empty,
    );
    #[cfg(feature = "otel")]
    if let Some(trace_context) = trace_context {
        otel::set_parent(&span, trace_context);
    }
    #[cfg(not(feature = "otel"))]
    let _ = trace_context;
    span
}

/// Records that the request of the span was answered with a JSON-RPC error, and marks the span as failed.
pub fn record_rpc_error(span: &Span, code: i32) {
    span.record("rpc.response.status_code", code.to_string());
    record_error(span, &code.to_string());
}

/// Opens the span of a run. The span has the same execution ID as the records of the run in the audit log.
pub fn code_run(execution: ExecutionId, language: &'static str) -> Span {
    tracing::info_span!(
        target: TARGET,
        "run_code",
        otel.kind = "internal",
        otel.status_code = Empty,
        lockhouse.execution.id = %execution,
        lockhouse.language = language,
        lockhouse.status = Empty,
        error.type = Empty,
    )
}

/// Records the status of a run that has ended. A status other than `ok` marks the span as failed.
pub fn record_run_status(span: &Span, status: &'static str) {
    span.record("lockhouse.status", status);
    if status != "ok" {
        record_error(span, status);
    }
}

/// Opens the span of one stage of a run: waiting for a worker, or running in it. `name` is the name of the span.
pub fn run_stage(name: &'static str) -> Span {
    tracing::info_span!(target: TARGET, "part", otel.name = name, otel.kind = "internal")
}

/// Opens the span of a request to an upstream server. `item` is the tool, prompt, resource or list that is requested.
pub fn upstream_request(server: &ServerName, item: &CallTarget) -> Span {
    let (method, tool, prompt) = match item {
        CallTarget::Tool(name) => ("tools/call", Some(name.as_str()), None),
        CallTarget::Prompt(name) => ("prompts/get", None, Some(name.as_str())),
        // URIs may contain secrets, so spans do not contain them.
        CallTarget::Resource(_) => ("resources/read", None, None),
        CallTarget::List(_) => ("list", None, None),
    };
    let name = || tool.or(prompt).map_or_else(|| method.to_owned(), |name| format!("{method} {name}"));
    // The values are computed only if spans are exported.
    tracing::info_span!(
        target: TARGET,
        "requested",
        otel.name = name(),
        otel.kind = "client",
        otel.status_code = Empty,
        mcp.method.name = method,
        gen_ai.operation.name = tool.map(|_| "execute_tool"),
        gen_ai.tool.name = tool,
        gen_ai.prompt.name = prompt,
        lockhouse.server = server.as_str(),
        error.type = Empty,
    )
}

/// Marks the span as failed. `kind` is a fixed word for the kind of error, or an error code.
pub fn record_error(span: &Span, kind: &str) {
    span.record("otel.status_code", "ERROR");
    span.record("error.type", kind);
}

/// Returns the trace context of the span, which is sent to an upstream server with a request. `None` if the span is not
/// exported.
pub fn trace_context(span: &Span) -> Option<TraceContext> {
    #[cfg(feature = "otel")]
    return otel::trace_context(span);
    #[cfg(not(feature = "otel"))]
    {
        let _ = span;
        None
    }
}
