//! An established connection to an upstream server, from the end of its MCP handshake until it is closed.

use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_base::child_stderr::LastLines;
use rmcp::model::{ServerNotification, SubscriptionFilter};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::change_notices::{ChangeNotice, ServerChangeNotices};
use super::connection_status::ShutdownMethod;
use super::in_flight_calls::InFlightCalls;
use super::process::ServerProcess;
use lockhouse_mcp::client::{Client, ConnectionFailure, FailureSignal};

/// How long a connection without a process is kept after its failure, so that requests that wait for answers receive the reason.
const REMOTE_FAILURE_GRACE: Duration = Duration::from_millis(100);
/// How long Lockhouse waits before it subscribes to list changes again after the server ended or refused the
/// subscription.
const SUBSCRIBE_AGAIN: Duration = Duration::from_secs(30);
/// How long closing such a connection may take, including the request that ends the MCP session.
const REMOTE_CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// An established MCP connection to a server, with the process or HTTP transport below it.
pub(super) struct LiveConnection {
    client: Client,
    calls: InFlightCalls,
    /// The task that exchanges MCP messages with the server. It completes when the connection ends.
    conversation: JoinHandle<()>,
    ground: LiveTransport,
    /// Notified when the server announces that its tools have changed.
    changed: Arc<Notify>,
    subscription: Option<JoinHandle<()>>,
}

/// What an MCP connection runs on: a child process, or a server that another service runs.
#[allow(clippy::large_enum_variant, reason = "only one exists for each connection")]
pub(super) enum LiveTransport {
    Process {
        process: ServerProcess,
        /// Signals that the connection to the process has failed, for example because the server exceeded a limit.
        failure_signal: FailureSignal,
        last_lines: LastLines,
    },
    /// HTTP, or the socket of a service.
    Remote(FailureSignal),
}

/// How a connection to an upstream server ended.
pub(super) struct ConnectionEnd {
    /// Which step ended the server's process; `None` for servers without one.
    pub(super) ending: Option<ShutdownMethod>,
    /// The exit status of the server's process if it exited by itself; otherwise `None`.
    pub(super) status: Option<ExitStatus>,
    /// The last lines of the server's standard error with secrets redacted, shown only to users. Empty for
    /// servers without a process.
    pub(super) server_output: String,
}

impl LiveConnection {
    /// Creates the connection after its handshake. `conversation` is the task that exchanges messages with the server.
    pub(super) fn new(
        client: Client,
        calls: InFlightCalls,
        notices: ServerChangeNotices,
        conversation: JoinHandle<()>,
        ground: LiveTransport,
        changed: Arc<Notify>,
    ) -> Self {
        let subscription = subscribe(&client, &changed, notices);
        Self { client, calls, conversation, ground, changed, subscription }
    }

    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }

    pub(super) fn calls(&self) -> InFlightCalls {
        self.calls.clone()
    }

    pub(super) fn changed(&self) -> Arc<Notify> {
        self.changed.clone()
    }

    /// Returns the signal that the connection has failed, or that the server may not answer.
    pub(super) fn failure_signal(&self) -> FailureSignal {
        match &self.ground {
            LiveTransport::Remote(failure_signal) | LiveTransport::Process { failure_signal, .. } => {
                failure_signal.clone()
            }
        }
    }

    /// Waits until the connection ends or fails. Returns the reason; `None` if it is not known.
    pub(super) async fn wait_ended(&mut self) -> Option<ConnectionFailure> {
        match &mut self.ground {
            LiveTransport::Remote(failure_signal) => tokio::select! {
                biased;
                reason = failure_signal.failed() => {
                    // Let the request that noticed the failure receive its error first.
                    let _ = timeout(REMOTE_FAILURE_GRACE, &mut self.conversation).await;
                    Some(reason)
                }
                _ = &mut self.conversation => Some(ConnectionFailure::new("the conversation ended")),
            },
            LiveTransport::Process { process, failure_signal, .. } => tokio::select! {
                biased;
                reason = failure_signal.failed() => Some(reason),
                status = process.wait() => status.map(exit_message).map(ConnectionFailure::new),
                _ = &mut self.conversation => None,
            },
        }
    }

    /// Closes the connection. Over standard input and output, also ends the server's process.
    pub(super) async fn end(self) -> ConnectionEnd {
        if let Some(subscription) = self.subscription {
            subscription.abort();
        }
        self.client.end();
        match self.ground {
            LiveTransport::Remote(_) => {
                // Let the server delete its session.
                if !self.conversation.is_finished() {
                    let _ = timeout(REMOTE_CLOSE_TIMEOUT, self.conversation).await;
                }
                ConnectionEnd { ending: None, status: None, server_output: String::new() }
            }
            LiveTransport::Process { process, last_lines, .. } => {
                let (ending, status) = process.end().await;
                ConnectionEnd { ending: Some(ending), status, server_output: last_lines.error_clause().await }
            }
        }
    }
}

/// Starts a task that subscribes to changes of the server's list of tools, and also of its lists of resources and
/// prompts if AI clients use the server directly. Returns `None` if the server announces no such changes, or if its
/// protocol version is older than 2026-07-28: then it sends its notifications without a subscription.
fn subscribe(client: &Client, changed: &Arc<Notify>, notices: ServerChangeNotices) -> Option<JoinHandle<()>> {
    let info = client.info()?;
    let mut filter = SubscriptionFilter::default();
    let capabilities = &info.capabilities;
    let announced = |announces: Option<bool>| announces.filter(|announces| *announces);
    filter.tools_list_changed = capabilities.tools.as_ref().and_then(|tools| announced(tools.list_changed));
    if notices.is_direct() {
        filter.prompts_list_changed =
            capabilities.prompts.as_ref().and_then(|prompts| announced(prompts.list_changed));
        filter.resources_list_changed =
            capabilities.resources.as_ref().and_then(|resources| announced(resources.list_changed));
    }
    if filter == SubscriptionFilter::default() || !client.is_modern() {
        return None;
    }
    Some(tokio::spawn(follow(client.clone(), filter, changed.clone(), notices)))
}

/// Keeps the subscription to list changes open as long as the connection lasts. If the server ends the subscription,
/// which an HTTP server may do at any time, opens a new one after a pause. Reports changes of the tools to `changed`,
/// and changes of prompts and resources to `notices`.
async fn follow(
    client: Client,
    filter: SubscriptionFilter,
    changed: Arc<Notify>,
    notices: ServerChangeNotices,
) {
    let mut is_first = true;
    while !client.is_closed() {
        if let Ok(mut subscription) = client.listen(filter.clone()).await {
            // Treat changes during the gap between two subscriptions as announced.
            if !std::mem::take(&mut is_first) {
                changed.notify_one();
            }
            while let Some(notification) = subscription.next().await {
                match notification {
                    ServerNotification::PromptListChangedNotification(_) => {
                        notices.send(ChangeNotice::Prompts)
                    }
                    ServerNotification::ResourceListChangedNotification(_) => {
                        notices.send(ChangeNotice::Resources)
                    }
                    _ => changed.notify_one(),
                }
            }
        }
        tokio::time::sleep(SUBSCRIBE_AGAIN).await;
    }
}

pub(super) fn exit_message(status: ExitStatus) -> String {
    format!("it ended ({status})")
}
