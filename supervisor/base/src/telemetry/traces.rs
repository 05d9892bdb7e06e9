//! What happens on behalf of one request, as spans of OpenTelemetry. docs/traces.md lists them.
//!
//! The rest of the program opens spans and knows of no names, as with figures. They are told only by a program that is built
//! with the feature `otel`, and only where the environment names a collector; otherwise none of them is ever made. They hold
//! names, numbers and states: no code, no arguments, no results.

#[cfg(feature = "otel")]
mod otel;

use lockhouse_policies::Item;
use lockhouse_protocol::{ExecutionId, ServerName};
use tracing::field::Empty;
use tracing::{Span, Subscriber};
use tracing_subscriber::Layer;
#[cfg(not(feature = "otel"))]
use tracing_subscriber::layer::Identity;
use tracing_subscriber::registry::LookupSpan;

/// What spans are told apart by from what is logged.
pub(super) const TARGET: &str = "lockhouse_traces";
/// Of a name that a client has made up.
const NAME_CHARS_MAX: usize = 80;

/// Which trace something is a part of, in the words of W3C Trace Context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceContext {
    /// `traceparent`
    pub parent: Option<String>,
    /// `tracestate`
    pub state: Option<String>,
}

/// Why no spans are sent to the collector that the environment names.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoTraces {
    #[cfg(not(feature = "otel"))]
    #[error("this program was built without it: build it with --features otel")]
    NotBuilt,
    #[cfg(feature = "otel")]
    #[error(transparent)]
    Exporter(#[from] opentelemetry_otlp::ExporterBuildError),
}

/// Sends spans to the collector that the environment names. Or why not, where it names one.
pub(super) fn layer<S: Subscriber + for<'s> LookupSpan<'s>>() -> Result<Option<impl Layer<S>>, NoTraces> {
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
    Err::<Option<Identity>, _>(NoTraces::NotBuilt)
}

/// Sends what was not sent yet, at the end.
pub fn flush() {
    #[cfg(feature = "otel")]
    otel::flush();
}

/// An AI client calls a tool. What it says of its own trace makes this a part of it.
pub fn asked(tool: &str, context: TraceContext) -> Span {
    let tool: String = tool.chars().take(NAME_CHARS_MAX).collect();
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
    otel::adopt(&span, context);
    #[cfg(not(feature = "otel"))]
    let _ = context;
    span
}

/// It got an error of JSON-RPC.
pub fn answered_with_error(span: &Span, code: i32) {
    span.record("rpc.response.status_code", code.to_string());
    fail(span, &code.to_string());
}

/// A run of code, under the number that the audit log has for it.
pub fn run(execution: ExecutionId, language: &'static str) -> Span {
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

/// How a run ended.
pub fn ended(span: &Span, status: &'static str) {
    span.record("lockhouse.status", status);
    if status != "ok" {
        fail(span, status);
    }
}

/// A part of a run: waiting for a worker, or the time in it.
pub fn part(name: &'static str) -> Span {
    tracing::info_span!(target: TARGET, "part", otel.name = name, otel.kind = "internal")
}

/// A request to a server.
pub fn requested(server: &ServerName, item: &Item) -> Span {
    let (method, tool, prompt) = match item {
        Item::Tool(name) => ("tools/call", Some(name.as_str()), None),
        Item::Prompt(name) => ("prompts/get", None, Some(name.as_str())),
        // Addresses may hold secrets.
        Item::Resource(_) => ("resources/read", None, None),
        Item::List(_) => ("list", None, None),
    };
    let name = tool.or(prompt).map_or_else(|| method.to_owned(), |name| format!("{method} {name}"));
    tracing::info_span!(
        target: TARGET,
        "requested",
        otel.name = name,
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

/// It did not succeed: why, in a word.
pub fn fail(span: &Span, kind: &str) {
    span.record("otel.status_code", "ERROR");
    span.record("error.type", kind);
}

/// What a server is told of the trace that a request to it is a part of.
pub fn context(span: &Span) -> TraceContext {
    #[cfg(feature = "otel")]
    return otel::context(span);
    #[cfg(not(feature = "otel"))]
    {
        let _ = span;
        TraceContext::default()
    }
}
