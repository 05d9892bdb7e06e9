//! Waits for the answer to an MCP request until the timeout, and sends `notifications/cancelled` if the timeout passes
//! or the caller stops waiting.

use std::time::Duration;

use lockhouse_mcp::ResponseError;
use lockhouse_mcp::client::Client;
use rmcp::model::RequestMetaObject;

use super::RequestError;
use crate::in_flight_calls::CallRegistration;
use crate::outgoing_request::OutgoingRequest;
use lockhouse_run_channel::PausableTimer;

/// The reason that is sent to a server with the cancellation of a request whose timeout has passed.
const TIMED_OUT: &str = "timeout";
/// The reason that is sent to a server with the cancellation of a request about which it asked a question that no
/// user can answer.
const UNANSWERABLE: &str = "nobody can be asked";
/// The reason that is sent to a server with the cancellation of a request for whose answer the caller no longer waits.
const ABANDONED: &str = "the execution ended";

/// The timeout of a call to an upstream server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallTimeout {
    pub(crate) limit: Duration,
    /// Whether the timeout restarts with each progress notification of the server.
    pub(crate) restarts_on_progress: bool,
}

/// The conditions under which Lockhouse stops waiting for an answer: the timeout, or a question of the server that no
/// user can answer.
pub(super) struct WaitLimits {
    pub(super) clock: PausableTimer,
    pub(super) restarts_on_progress: bool,
    /// The call for which the request is sent; `None` for a request of Lockhouse itself.
    pub(super) call: Option<CallRegistration>,
}

impl WaitLimits {
    /// Waits until a condition is met and the request must be given up. Returns the error for the caller, and the
    /// reason that is sent to the server. Cancel-safe.
    async fn reached(&mut self) -> (RequestError, &'static str) {
        let Self { clock, restarts_on_progress, call } = self;
        let Some(call) = call else {
            return (ResponseError::Timeout(clock.expired().await).into(), TIMED_OUT);
        };
        loop {
            tokio::select! {
                limit = clock.expired() => return (ResponseError::Timeout(limit).into(), TIMED_OUT),
                () = call.unanswerable() => return (RequestError::Unanswerable, UNANSWERABLE),
                () = call.progressed(), if *restarts_on_progress => clock.restart(),
            }
        }
    }
}

/// Sends a request and waits for its answer. Returns the result as JSON text. `meta` is additional metadata of the request.
/// If one of `limits` is reached or the caller stops waiting, cancels the request at the server.
pub(super) async fn exchange(
    client: &Client,
    request: OutgoingRequest<'_>,
    meta: Option<RequestMetaObject>,
    mut limits: WaitLimits,
) -> Result<String, RequestError> {
    let mut pending = client.send(|id, meta| request.into_line(id, meta), meta, ABANDONED)?;
    if let Some(call) = &limits.call {
        call.set_progress_token(pending.progress_token());
    }
    tokio::select! {
        biased;
        answer = pending.answer() => Ok(answer?),
        (error, reason) = limits.reached() => {
            pending.cancel(reason);
            Err(error)
        }
    }
}
