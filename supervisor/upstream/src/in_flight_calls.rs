//! The calls in flight on one connection to an upstream server. Finds the caller that a question or a progress
//! notification of the server is for.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;

use lockhouse_policies::{CallTarget, ClientName};
use lockhouse_protocol::{ExecutionId, ServerName};
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use serde_json::Value;
use tokio::sync::Notify;

use super::direct_request::DirectRequest;
use crate::ai_client::{AiClient, ForwardedNotification, OpenQuestions};

/// The maker of a call to an upstream server: a run, or an AI client that uses the server directly.
#[derive(Clone, Debug)]
pub struct Caller {
    pub execution: ExecutionId,
    /// The name that the AI client gave itself; `None` if it gave no name, or if the call comes from the command line.
    pub client: Option<ClientName>,
    /// The AI client to which questions and notifications can be sent; `None` if there is none, as with `lockhouse
    /// run`.
    pub ai_client: Option<AiClient>,
    /// Questions to users that were asked for this caller's execution and are not answered yet. They pause its timers.
    pub questions: OpenQuestions,
    /// The request of an AI client that uses the server directly; `None` for calls of submitted code.
    pub direct: Option<Arc<DirectRequest>>,
}

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
    caller: Arc<Caller>,
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
    callers: InFlightCalls,
    signals: Arc<CallSignals>,
}

/// The caller for which a request of the server, such as a question, is meant. The request names no call, so the caller
/// is inferred from the calls in flight.
pub(super) enum RequestOrigin {
    /// This caller made all calls in flight, which belong to one execution.
    One(Arc<Caller>),
    /// The caller is unknown: either no call is in flight, or the calls in flight belong to several executions.
    Unclear,
}

impl InFlightCalls {
    pub(super) fn register(&self, item: &CallTarget, caller: &Arc<Caller>) -> CallRegistration {
        let signals = Arc::<CallSignals>::default();
        let mut state = self.state();
        state.last += 1;
        let number = state.last;
        let (caller, item) = (caller.clone(), item.clone());
        let call = InFlightCall { caller, item, token: None, signals: signals.clone() };
        state.calls.insert(number, call);
        CallRegistration { number, callers: self.clone(), signals }
    }

    pub(super) fn request_origin(&self) -> RequestOrigin {
        let state = self.state();
        let mut callers = state.calls.values().map(|call| &call.caller);
        match callers.next() {
            Some(first) if callers.all(|other| other.execution == first.execution) => {
                RequestOrigin::One(first.clone())
            }
            _ => RequestOrigin::Unclear,
        }
    }

    /// Fails the call in flight because its server asks for input that no user can give. Does nothing if several calls
    /// are in flight, since the server does not say which call needs the input.
    pub(super) fn fail_only_call(&self) {
        let state = self.state();
        if let (1, Some(call)) = (state.calls.len(), state.calls.values().next()) {
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
        let state = self.state();
        let token = &notification.progress_token;
        let Some(call) = state.calls.values().find(|call| call.token.as_ref() == Some(token)) else { return };
        call.signals.progressed.notify_one();
        if let Some(ai_client) = &call.caller.ai_client {
            if call.caller.direct.is_some() {
                let notification = serde_json::to_value(notification).unwrap_or_default();
                ai_client.forward(ForwardedNotification::Progress(notification));
                return;
            }
            let separator = if message.is_empty() { "" } else { ": " };
            ai_client.send_progress(format!("{server}.{}{separator}{message}", call.item));
        }
    }

    /// Forwards a log message of the server to the AI client that uses the server directly. A log message names no
    /// call, so the message is dropped unless all calls in flight belong to one execution.
    pub(super) fn log(&self, line: Value) {
        if let RequestOrigin::One(caller) = self.request_origin()
            && let Caller { ai_client: Some(ai_client), direct: Some(_), .. } = &*caller
        {
            ai_client.forward(ForwardedNotification::Log(line));
        }
    }

    fn state(&self) -> MutexGuard<'_, Registry> {
        self.0.lock()
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
        if let Some(call) = self.callers.state().calls.get_mut(&self.number) {
            call.token = Some(token);
        }
    }
}

impl Drop for CallRegistration {
    fn drop(&mut self) {
        self.callers.state().calls.remove(&self.number);
    }
}
