//! Calls: a permitted one goes out, and its answer or the reason why there is none comes back.

use std::time::Instant;

use lockhouse_policies::PermittedCall;
use lockhouse_protocol::{Failure, FailureCode};
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, ErrorCode};
use rmcp::service::ServiceError;
use serde_json::{Map, Value};

use super::connection::{Connection, Offer};
use super::http::HttpFault;
use super::request::send;
use super::result;
use super::slots::Slot;
use super::transport::{CUT_OFF, TOO_LARGE};

/// Characters of a server's error text that are passed on.
const ERROR_CHARS_MAX: usize = 4_000;

impl Connection {
    /// Sends a permitted call, whose turn it is. When the caller stops waiting, the upstream is told that it is cancelled.
    pub(crate) async fn call(
        &self,
        offer: &Offer,
        _turn: Slot,
        permitted: PermittedCall,
        arguments: Map<String, Value>,
    ) -> Result<Vec<u8>, Failure> {
        let tool = permitted.tool().clone();
        let parameters = CallToolRequestParams::new(tool.as_str().to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(parameters));
        let sent = Instant::now();
        let answer = send(offer.peer.clone(), request, self.limits.call_timeout).await;
        match &answer {
            Ok(_) => self.signals.note(|status| {
                status.latency = Some(sent.elapsed());
                status.answered += 1;
            }),
            Err(ServiceError::Timeout { .. }) => self.signals.suspect.notify_one(),
            Err(_) => {}
        }
        let outcome = answer.map_err(|error| self.told(&error)).and_then(|raw| result::envelope(&raw));
        outcome.map_err(|(code, message)| Failure {
            tool: Some(tool.to_string()),
            ..self.failure(code, message)
        })
    }

    fn told(&self, error: &ServiceError) -> (FailureCode, String) {
        let name = &self.name;
        if let Some(fault) = HttpFault::in_service(error) {
            return (
                FailureCode::UpstreamUnavailable,
                format!("server {name} is not available: {}", fault.reason),
            );
        }
        match error {
            ServiceError::McpError(error) if error.message == TOO_LARGE => (
                FailureCode::ResultTooLarge,
                format!(
                    "the result of server {name} exceeds the limit of one message; ask for less at a time"
                ),
            ),
            ServiceError::McpError(error) if error.message != CUT_OFF => {
                let is_about_arguments = error.code == ErrorCode::INVALID_PARAMS;
                let code =
                    if is_about_arguments { FailureCode::InvalidArguments } else { FailureCode::ToolFailed };
                (code, self.secrets.redact(&error.message).chars().take(ERROR_CHARS_MAX).collect())
            }
            ServiceError::Timeout { .. } => (
                FailureCode::Timeout,
                format!("server {name} did not answer within {} s", self.limits.call_timeout.as_secs_f32()),
            ),
            _ => (
                FailureCode::UpstreamUnavailable,
                format!("server {name} ended during the call; whether the call took effect is not known"),
            ),
        }
    }
}
