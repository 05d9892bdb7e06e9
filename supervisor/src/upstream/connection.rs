//! One connection: the handle that callers have, and the task that holds it.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use lockhouse_policies::PermittedCall;
use lockhouse_protocol::{Failure, FailureCode, ServerName, ToolName};
use rmcp::RoleClient;
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, ErrorCode};
use rmcp::service::{Peer, ServiceError};
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::link::{self, Refusal};
use super::listing::Listing;
use super::request::send;
use super::secrets::Secrets;
use super::transport::TOO_LARGE;
use super::{ServerCommand, result};
use crate::catalog::Tool;

const BACKOFF_MIN: Duration = Duration::from_millis(100);
/// A server that lasted so long is started again without the delay that it had earned before.
const STEADY: Duration = Duration::from_secs(60);
const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// What a start that takes too long gets besides its limit to be ended and told.
const START_MARGIN: Duration = Duration::from_secs(1);
/// Code and the model are not told what a server wrote; a person may look.
const LAST_WORDS_HINT: &str = "; `lockhouse tools list` shows its last words";
/// Characters of a server's error text that are passed on.
const ERROR_CHARS_MAX: usize = 4_000;

/// Where a connection stands.
#[derive(Clone, Debug)]
pub(crate) enum State {
    /// Being started, or started again.
    Connecting,
    /// Usable.
    Connected(Arc<Offer>),
    /// The last attempt failed, for this reason, which is in words of ours alone; another will follow.
    Failed(String),
}

/// A connected server and its tools.
#[derive(Debug)]
pub(crate) struct Offer {
    pub(crate) tools: Vec<Tool>,
    /// What a client that loads all definitions would get of them.
    pub(crate) definitions_bytes: usize,
    /// The answer to a worker's `ListTools`, which only depends on the policy: made once.
    pub(crate) briefs: OnceLock<Vec<u8>>,
    peer: Peer<RoleClient>,
}

impl Offer {
    pub(crate) fn tool(&self, name: &ToolName) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == *name)
    }
}

/// A handle to the task that holds the connection.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    name: ServerName,
    call_timeout: Duration,
    start_timeout: Duration,
    secrets: Secrets,
    state: watch::Receiver<State>,
    closing: CancellationToken,
}

impl Connection {
    /// Starts the task.
    pub(super) fn open(name: ServerName, command: ServerCommand) -> Self {
        let (sender, state) = watch::channel(State::Connecting);
        let closing = CancellationToken::new();
        let (call_timeout, start_timeout) = (command.call_timeout, command.start_timeout);
        let secrets = Secrets::of(&command.environment);
        tokio::spawn(hold(name.clone(), command, secrets.clone(), sender, closing.clone()));
        Self { name, call_timeout, start_timeout, secrets, state, closing }
    }

    pub(crate) fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// Waits while it connects, at most for the start timeout.
    pub(crate) async fn offer(&self) -> Result<Arc<Offer>, Failure> {
        let mut state = self.state.clone();
        let settled = state.wait_for(|state| !matches!(state, State::Connecting));
        let reason = match tokio::time::timeout(self.start_timeout + START_MARGIN, settled).await {
            Ok(Ok(state)) => match &*state {
                State::Connected(offer) => return Ok(offer.clone()),
                State::Failed(reason) => reason.clone(),
                State::Connecting => "it is still starting".into(),
            },
            Ok(Err(_)) => "it was shut down".into(),
            Err(_) => format!("it did not start within {} s", self.start_timeout.as_secs_f32()),
        };
        Err(self.failure(
            FailureCode::UpstreamUnavailable,
            format!("server {} is not available: {reason}", self.name),
        ))
    }

    /// Sends a permitted call. When the caller stops waiting, the upstream is told that it is cancelled.
    pub(crate) async fn call(
        &self,
        offer: &Offer,
        permitted: PermittedCall,
        arguments: Map<String, Value>,
    ) -> Result<Vec<u8>, Failure> {
        let tool = permitted.tool().clone();
        let parameters = CallToolRequestParams::new(tool.as_str().to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(parameters));
        let answer = send(offer.peer.clone(), request, self.call_timeout).await;
        let outcome = answer.map_err(|error| self.told(&error)).and_then(|raw| result::envelope(&raw));
        outcome.map_err(|(code, message)| Failure {
            tool: Some(tool.to_string()),
            ..self.failure(code, message)
        })
    }

    fn told(&self, error: &ServiceError) -> (FailureCode, String) {
        let name = &self.name;
        match error {
            ServiceError::McpError(error) if error.message == TOO_LARGE => (
                FailureCode::ResultTooLarge,
                format!(
                    "the result of server {name} exceeds the limit of one message; ask for less at a time"
                ),
            ),
            ServiceError::McpError(error) => {
                let is_about_arguments = error.code == ErrorCode::INVALID_PARAMS;
                let code =
                    if is_about_arguments { FailureCode::InvalidArguments } else { FailureCode::ToolFailed };
                (code, self.secrets.redact(&error.message).chars().take(ERROR_CHARS_MAX).collect())
            }
            ServiceError::Timeout { .. } => (
                FailureCode::Timeout,
                format!("server {name} did not answer within {} s", self.call_timeout.as_secs_f32()),
            ),
            _ => (
                FailureCode::UpstreamUnavailable,
                format!("server {name} ended during the call; whether the call took effect is not known"),
            ),
        }
    }

    fn failure(&self, code: FailureCode, message: String) -> Failure {
        let retryable = matches!(code, FailureCode::Timeout | FailureCode::UpstreamUnavailable);
        Failure { code, message, server: Some(self.name.to_string()), tool: None, retryable }
    }

    /// Ends the process and waits until it is gone.
    pub(super) async fn close(&self) {
        self.closing.cancel();
        let mut state = self.state.clone();
        while state.changed().await.is_ok() {}
    }
}

/// Keeps a process running and connected: starts it, waits for its end, starts it again.
async fn hold(
    name: ServerName,
    command: ServerCommand,
    secrets: Secrets,
    state: watch::Sender<State>,
    closing: CancellationToken,
) {
    let mut legacy = false;
    let mut backoff = BACKOFF_MIN;
    while !closing.is_cancelled() {
        let begun = Instant::now();
        let started = tokio::select! {
            started = link::start(&name, &command, &secrets, &mut legacy) => started,
            () = closing.cancelled() => return,
        };
        match started {
            Ok((link, Listing { tools, definitions_bytes })) => {
                tracing::info!(server = %name, tools = tools.len(), "connected");
                let offer = Offer { tools, definitions_bytes, briefs: OnceLock::new(), peer: link.peer() };
                state.send_replace(State::Connected(Arc::new(offer)));
                // A caller that comes from then on waits for the next one.
                let over = || drop(state.send_replace(State::Connecting));
                let (how, last_words) = link.until_the_end(&closing, over).await;
                if !closing.is_cancelled() {
                    tracing::warn!(server = %name, "the connection ended: {how}{last_words}");
                }
            }
            Err(Refusal { reason, last_words, .. }) => {
                tracing::warn!(server = %name, "not available: {reason}{last_words}");
                let hint = if last_words.is_empty() { "" } else { LAST_WORDS_HINT };
                state.send_replace(State::Failed(format!("{reason}{hint}")));
            }
        }
        if begun.elapsed() >= STEADY {
            backoff = BACKOFF_MIN;
        }
        tokio::select! {
            () = tokio::time::sleep(backoff) => {}
            () = closing.cancelled() => return,
        }
        backoff = (backoff * 2).min(BACKOFF_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> ServerCommand {
        ServerCommand {
            program: "sh".into(),
            arguments: vec!["-c".into(), script.into()],
            environment: [("TOKEN".to_owned(), "SEKRET-CANARY".to_owned())].into(),
            start_timeout: Duration::from_secs(5),
            call_timeout: Duration::from_secs(5),
            line_bytes_max: 1024,
            ..ServerCommand::default()
        }
    }

    #[tokio::test]
    async fn why_a_server_is_not_available_is_told_without_its_own_words() {
        let name = ServerName::new("h").expect("a name");
        for (script, words) in [
            ("echo bad token: $TOKEN >&2; exit 3", "it ended before it was ready (exit status: 3)"),
            (
                r#"n=0; while read -r line; do
                    printf '{"jsonrpc":"2.0","id":%d,"error":{"code":-5,"message":"%s"}}\n' $n $TOKEN; n=$((n+1))
                done"#,
                "it answered with an error while it started (JSON-RPC code -5)",
            ),
        ] {
            let command = shell(script);
            let secrets = Secrets::of(&command.environment);
            let Err(refusal) = link::start(&name, &command, &secrets, &mut false).await else {
                panic!("no refusal");
            };
            let (reason, last_words) = (refusal.reason, refusal.last_words);
            assert!(reason.starts_with(words) && !reason.contains("TOKEN"), "{reason}");
            assert!(
                last_words.contains("[redacted TOKEN]") && !last_words.contains("CANARY"),
                "{last_words}"
            );
        }
    }
}
