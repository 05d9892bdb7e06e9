//! The calls in flight on one connection to an upstream server. Finds the run that a question or a progress notification
//! of the server is for.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockhouse_policies::CallTarget;
use lockhouse_protocol::ServerName;
use lockhouse_run_channel::{ForwardedNotification, RunChannel};
use parking_lot::Mutex;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use serde_json::Value;
use tokio::sync::Notify;

/// The calls in flight on one connection. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct InFlightCalls(Arc<Mutex<Registry>>);

#[derive(Debug, Default)]
struct Registry {
    last: u64,
    calls: BTreeMap<u64, InFlightCall>,
}

/// A call to an upstream server that is not answered yet.
#[derive(Debug)]
struct InFlightCall {
    channel: RunChannel,
    item: CallTarget,
    token: Option<ProgressToken>,
    signals: Arc<CallSignals>,
}

/// Signals to the request of one call.
#[derive(Debug, Default)]
struct CallSignals {
    /// Notified when the server has sent a progress notification for the call.
    progressed: Notify,
    /// Notified when the server asks for input that no user can give. This makes the call fail.
    unanswerable: Notify,
}

/// Guard that registers a call as in flight. Dropping it removes the call.
#[derive(Debug)]
pub(super) struct CallRegistration {
    number: u64,
    calls: InFlightCalls,
    signals: Arc<CallSignals>,
}

impl InFlightCalls {
    pub(super) fn register(&self, item: &CallTarget, channel: &RunChannel) -> CallRegistration {
        let signals = Arc::<CallSignals>::default();
        let mut registry = self.0.lock();
        registry.last += 1;
        let number = registry.last;
        let (channel, item) = (channel.clone(), item.clone());
        let call = InFlightCall { channel, item, token: None, signals: signals.clone() };
        registry.calls.insert(number, call);
        CallRegistration { number, calls: self.clone(), signals }
    }

    /// Returns the run for which a request of the server, such as a question, is meant. The request names no call:
    /// returns `None` if no call is in flight, or if the calls in flight belong to several runs.
    pub(super) fn requested_run(&self) -> Option<RunChannel> {
        let registry = self.0.lock();
        let mut channels = registry.calls.values().map(|call| &call.channel);
        let first = channels.next()?;
        channels.all(|other| other.execution() == first.execution()).then(|| first.clone())
    }

    /// Fails the call in flight because its server asks for input that no user can give. Does nothing if several calls
    /// are in flight, since the server does not say which call needs the input.
    pub(super) fn fail_only_call(&self) {
        let registry = self.0.lock();
        if let (1, Some(call)) = (registry.calls.len(), registry.calls.values().next()) {
            call.signals.unanswerable.notify_one();
        }
    }

    /// Forwards a progress notification of a server to the AI client of the call that has the notification's progress
    /// token, and signals the progress to the call. If submitted code made the call, the AI client gets `message` as a
    /// progress message of the run instead. Drops the notification if no call in flight has this token.
    pub(super) fn progress(
        &self,
        server: &ServerName,
        notification: ProgressNotificationParam,
        message: &str,
    ) {
        let registry = self.0.lock();
        let token = &notification.progress_token;
        let Some(call) = registry.calls.values().find(|call| call.token.as_ref() == Some(token)) else {
            return;
        };
        call.signals.progressed.notify_one();
        if call.channel.is_direct() {
            let notification = serde_json::to_value(notification).unwrap_or_default();
            call.channel.forward(ForwardedNotification::Progress(notification));
            return;
        }
        let separator = if message.is_empty() { "" } else { ": " };
        call.channel.send_progress(format!("{server}.{}{separator}{message}", call.item));
    }

    /// Forwards a log message of the server to the AI client that uses the server directly. A log message names no
    /// call, so the message is dropped unless all calls in flight belong to one run.
    pub(super) fn log(&self, line: Value) {
        if let Some(channel) = self.requested_run().filter(RunChannel::is_direct) {
            channel.forward(ForwardedNotification::Log(line));
        }
    }
}

impl CallRegistration {
    /// Waits until the server has sent a progress notification for this call. Cancel-safe.
    pub(super) async fn progressed(&self) {
        self.signals.progressed.notified().await;
    }

    /// Waits until the server asks for input that no user can give. Cancel-safe.
    pub(super) async fn unanswerable(&self) {
        self.signals.unanswerable.notified().await;
    }

    /// Sets the token with which the server refers to this call in progress notifications.
    pub(super) fn set_progress_token(&self, token: ProgressToken) {
        if let Some(call) = self.calls.0.lock().calls.get_mut(&self.number) {
            call.token = Some(token);
        }
    }
}

impl Drop for CallRegistration {
    fn drop(&mut self) {
        self.calls.0.lock().calls.remove(&self.number);
    }
}
