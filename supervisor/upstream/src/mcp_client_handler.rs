//! Handles requests and notifications of an upstream server, and announces Lockhouse's client capabilities.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lockhouse_mcp::client::ServerMessages;
use lockhouse_mcp::client::inbound_message::REFUSED_METHOD;
use lockhouse_policies::printable;
use lockhouse_protocol::ServerName;
use rmcp::model::{
    ClientConfig, ClientResult, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorCode, ErrorData,
    Implementation, ProtocolVersion, ServerNotification, ServerRequest,
};
use serde::Serialize;
use tokio::sync::{Notify, watch};

use super::change_notices::{ChangeNotice, ServerChangeNotices};
use super::connection_status::ConnectionStatus;
use super::in_flight_calls::InFlightCalls;
use super::{elicitation_conversion, elicitation_validation};
use lockhouse_run_channel::{Answer, AskError, QuestionKind, RunChannel};

/// Maximum number of characters of a server's progress message that AI clients receive.
const PROGRESS_CHARS_MAX: usize = 200;

/// The message of the error with which Lockhouse answers a server's request that exceeds the size limits.
const UNREAD_REQUEST: &str =
    "the request is larger than 1 MiB, has more than 4,096 JSON values or is nested too deeply";

/// Handles the requests and notifications of one upstream server.
pub(super) struct McpClientHandler {
    name: ServerName,
    calls: InFlightCalls,
    /// Notified when the server announces that its tools have changed.
    changed: Arc<Notify>,
    notices: ServerChangeNotices,
    status: watch::Sender<ConnectionStatus>,
    /// Whether it has been logged that a question of the server was declined. Only the first declined question is
    /// logged, since a server could ask any number of questions.
    decline_logged: AtomicBool,
}

impl McpClientHandler {
    pub(super) fn new(
        name: ServerName,
        calls: InFlightCalls,
        changed: Arc<Notify>,
        notices: ServerChangeNotices,
        status: watch::Sender<ConnectionStatus>,
    ) -> Self {
        Self { name, calls, changed, notices, status, decline_logged: AtomicBool::new(false) }
    }

    /// Returns the run whose user a question of the server is for. From the first question on, calls of one run are made
    /// at a time, so that later questions belong to one run.
    fn asked_run(&self) -> Option<RunChannel> {
        self.status.send_if_modified(|status| !std::mem::replace(&mut status.asks_by_request, true));
        self.calls.requested_run()
    }

    pub(super) fn calls(&self) -> InFlightCalls {
        self.calls.clone()
    }

    pub(super) fn notices(&self) -> ServerChangeNotices {
        self.notices.clone()
    }

    fn decline(&self, why: &str) -> ElicitResult {
        if !self.decline_logged.swap(true, Ordering::Relaxed) {
            tracing::warn!(server = %self.name, "a question of the server was declined: {why}");
        }
        ElicitResult::new(ElicitationAction::Decline)
    }
}

/// Returns the name and version with which Lockhouse introduces itself to upstream servers.
pub(super) fn implementation() -> Implementation {
    Implementation::new("lockhouse", env!("CARGO_PKG_VERSION"))
}

impl McpClientHandler {
    /// Returns the protocol version, the capabilities and the name that the handshake announces.
    pub(super) fn config(&self) -> ClientConfig {
        let mut capabilities = elicitation_conversion::capabilities();
        // Sampling is deprecated. It is offered only to servers with the older handshake that AI clients use
        // directly.
        capabilities.sampling = self.notices.is_direct().then(Default::default);
        ClientConfig::new(capabilities, implementation())
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    /// Handles `elicitation/create`, with which a server of an older protocol version asks the user a question. The
    /// request does not name a call, so the question is declined unless all calls in flight belong to one execution.
    async fn elicit(&self, request: &ElicitRequestParams) -> Result<ElicitResult, ErrorData> {
        let Some(channel) = self.asked_run() else {
            return Ok(self.decline("no call is in flight that it could be for, or several are"));
        };
        let parameters = serde_json::to_string(request).unwrap_or_default();
        let question = match elicitation_validation::elicitation(&self.name, &parameters) {
            Ok(question) => question,
            Err(unfit) => return Ok(self.decline(&unfit.to_string())),
        };
        if !channel.supports(question.kind()) {
            self.calls.fail_only_call();
            return Ok(self.decline("the AI client cannot ask a person"));
        }
        match channel.ask(&self.name, question).await {
            Ok(answer) => Ok(elicitation_conversion::result(answer)),
            Err(unasked) => {
                if unasked == AskError::Unsupported {
                    self.calls.fail_only_call();
                }
                Ok(self.decline(&unasked.to_string()))
            }
        }
    }

    /// Handles `sampling/createMessage`, with which a server of an older protocol version asks for an answer of the AI
    /// client's model. The request is refused unless the AI client uses the server directly and supports sampling.
    async fn sample(&self, request: &impl Serialize) -> Result<ClientResult, ErrorData> {
        let refused = |why: &str| ErrorData::invalid_request(format!("not passed on: {why}"), None);
        let Some(channel) = self.asked_run() else {
            return Err(refused("no call is in flight that it could be for, or several are"));
        };
        if !channel.is_direct() || !channel.supports(QuestionKind::Sampling) {
            return Err(refused("the AI client of this call offers no sampling"));
        }
        let parameters = serde_json::to_string(request).unwrap_or_default();
        let question =
            elicitation_validation::sampling(&parameters).map_err(|unfit| refused(&unfit.to_string()))?;
        match channel.ask(&self.name, question).await {
            Ok(Answer::Accept(Some(message))) => {
                let message = serde_json::from_value(message).map(ClientResult::CreateMessageResult);
                message.map_err(|_| refused("the AI client's answer is no message"))
            }
            Ok(_) => Err(refused("the AI client declined")),
            Err(unasked) => Err(refused(&unasked.to_string())),
        }
    }
}

fn unknown_method(method: impl Into<Cow<'static, str>>) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None)
}

impl ServerMessages for McpClientHandler {
    /// Handles a request of the server. Dropping the future withdraws a question to a person.
    async fn handle_request(&self, request: ServerRequest) -> Result<ClientResult, ErrorData> {
        match request {
            ServerRequest::PingRequest(_) => Ok(ClientResult::empty(())),
            ServerRequest::ElicitRequest(request) => {
                self.elicit(&request.params).await.map(ClientResult::ElicitResult)
            }
            ServerRequest::CreateMessageRequest(request) => self.sample(&request.params).await,
            ServerRequest::ListRootsRequest(_) => Err(unknown_method("roots/list")),
            ServerRequest::CustomRequest(request) if request.method == REFUSED_METHOD => {
                Err(ErrorData::invalid_request(UNREAD_REQUEST, None))
            }
            ServerRequest::CustomRequest(request) => Err(unknown_method(request.method)),
            _ => Err(unknown_method("unknown")),
        }
    }

    fn handle_notification(&self, notification: ServerNotification) {
        match notification {
            ServerNotification::ProgressNotification(progress) => {
                let message = progress.params.message.as_deref().unwrap_or_default();
                let message: String = message.chars().take(PROGRESS_CHARS_MAX).collect();
                self.calls.progress(&self.name, progress.params, &printable(&message));
            }
            ServerNotification::LoggingMessageNotification(line) => {
                self.calls.log(serde_json::to_value(line.params).unwrap_or_default());
            }
            ServerNotification::ResourceUpdatedNotification(updated) => {
                self.notices.send(ChangeNotice::Resource(self.name.clone(), updated.params.uri));
            }
            ServerNotification::ResourceListChangedNotification(_) => {
                self.notices.send(ChangeNotice::Resources)
            }
            ServerNotification::PromptListChangedNotification(_) => self.notices.send(ChangeNotice::Prompts),
            ServerNotification::ToolListChangedNotification(_) => self.changed.notify_one(),
            // Nothing that Lockhouse does depends on the others.
            _ => {}
        }
    }
}
