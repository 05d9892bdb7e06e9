//! Sends one MCP request to an upstream server and returns its answer.

mod timeout_and_cancellation;

use std::time::Duration;

use lockhouse_base::telemetry::traces;
use lockhouse_messages::TraceContext;
use rmcp::model::{ClientCapabilities, ClientRequest, PingRequest, RequestMetaObject};
use tracing::Span;

use super::elicitation_conversion;
use super::in_flight_calls::CallRegistration;
use crate::connection_state::ConnectedServer;
use crate::outgoing_request::OutgoingRequest;
use lockhouse_mcp::ResponseError;
use lockhouse_mcp::client::{Client, ConnectionFailure};
use lockhouse_run_channel::{PausableTimer, RunChannel};
pub(super) use timeout_and_cancellation::CallTimeout;
use timeout_and_cancellation::{WaitLimits, exchange};

const SILENT: &str = "it does not answer any more";

/// Why an MCP request to a server has no result.
#[derive(Debug)]
pub(super) enum RequestError {
    Failed(ResponseError),
    /// The server asked for input that no user can give.
    Unanswerable,
}

impl From<ResponseError> for RequestError {
    fn from(error: ResponseError) -> Self {
        Self::Failed(error)
    }
}

/// Sends a request of Lockhouse itself, such as a ping or a list request, with the timeout `limit`. Returns the result
/// as JSON text.
pub(super) async fn send(
    client: Client,
    request: ClientRequest,
    limit: Duration,
) -> Result<String, ResponseError> {
    let clock = PausableTimer::unpausable(limit);
    let limits = WaitLimits { clock, restarts_on_progress: false, call: None };
    match exchange(&client, OutgoingRequest::Other(Box::new(request)), None, limits).await {
        Ok(raw) => Ok(raw),
        Err(RequestError::Failed(error)) => Err(error),
        Err(RequestError::Unanswerable) => Err(ResponseError::Invalid),
    }
}

/// Pings the server. An error such as "method not found" is an answer, too.
///
/// # Errors
/// Fails if the server has not answered within `limit`, or if the ping cannot be sent.
pub(super) async fn ping(client: Client, limit: Duration) -> Result<(), ConnectionFailure> {
    let ping = ClientRequest::PingRequest(PingRequest::default());
    match send(client, ping, limit).await {
        Ok(_) | Err(ResponseError::Refused(_)) => Ok(()),
        Err(error) => {
            let reason = match error {
                ResponseError::Http(fault) => fault.reason,
                _ => SILENT.to_owned(),
            };
            Err(ConnectionFailure::new(reason))
        }
    }
}

/// Sends a call of the run of `channel`, with the trace context of `span`. Returns the result as JSON text. The timeout
/// pauses while the user is asked a question.
pub(super) async fn send_for(
    channel: &RunChannel,
    call: CallRegistration,
    server: &ConnectedServer,
    request: OutgoingRequest<'_>,
    timeout: CallTimeout,
    span: &Span,
) -> Result<String, RequestError> {
    let clock = channel.questions().timer(timeout.limit);
    let limits = WaitLimits { clock, restarts_on_progress: timeout.restarts_on_progress, call: Some(call) };
    let mut meta = server.client.is_modern().then(|| capabilities_of(channel));
    set_trace_context(span, &mut meta);
    exchange(&server.client, request, meta, limits).await
}

/// Returns the metadata of a request to an upstream server of protocol version 2026-07-28: the capabilities of the
/// run's AI client.
fn capabilities_of(channel: &RunChannel) -> RequestMetaObject {
    use lockhouse_run_channel::QuestionKind::{Form, Sampling, Url};
    let can = |mode| channel.supports(mode);
    let mut capabilities = ClientCapabilities::default();
    capabilities.elicitation = elicitation_conversion::capabilities()
        .elicitation
        .filter(|_| can(Form) || can(Url))
        .map(|mut asks| {
            asks.form = asks.form.filter(|_| can(Form));
            asks.url = asks.url.filter(|_| can(Url));
            asks
        });
    if channel.is_direct() {
        capabilities.sampling = can(Sampling).then(Default::default);
        capabilities.roots = channel.supports_roots().then(Default::default);
    }
    let mut meta = RequestMetaObject::default();
    meta.set_client_capabilities(capabilities);
    meta
}

/// Adds the trace context of `span` to the metadata of a request, if the span has one.
fn set_trace_context(span: &Span, meta: &mut Option<RequestMetaObject>) {
    let Some(TraceContext { traceparent, tracestate }) = traces::trace_context(span) else { return };
    let meta = meta.get_or_insert_default();
    meta.set_traceparent(traceparent);
    if let Some(state) = tracestate {
        meta.set_tracestate(state);
    }
}
