//! Calls in flight on one connection and their callers: finds whom a server's question or progress notification is
//! for.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;

use lockhouse_policies::{CallTarget, ClientName};
use lockhouse_protocol::{ExecutionId, ServerName};
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use serde_json::Value;
use tokio::sync::{Notify, watch};

use super::direct_request::DirectRequest;
use crate::ai_client::{AiClient, ForwardedNotification, OpenQuestions};

/// The run or AI client that makes a call of an upstream server.
#[derive(Clone, Debug)]
pub struct Caller {
    pub execution: ExecutionId,
    /// The name by which the AI client calls itself; `None` at the command line.
    pub client: Option<ClientName>,
    /// The AI client that can be asked questions; `None` without one, as with `lockhouse run`.
    pub ai_client: Option<AiClient>,
    /// Open questions to users on behalf of this caller.
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

/// A call in flight.
#[derive(Debug)]
struct InFlightCall {
    caller: Caller,
    label: String,
    token: Option<ProgressToken>,
    /// The number of progress notifications that the server has sent for this call.
    progress: watch::Sender<u64>,
    /// Notified when the server asks for input that no user can give.
    unanswerable: Arc<Notify>,
}

/// Registers a call as in flight until it is dropped.
#[derive(Debug)]
pub(super) struct CallRegistration {
    number: u64,
    callers: InFlightCalls,
    pub(super) progress: watch::Receiver<u64>,
    pub(super) unanswerable: Arc<Notify>,
}

/// The caller that a server's request is for, if the request does not name a call.
pub(super) enum RequestOrigin {
    /// All calls in flight belong to one execution.
    One(Caller),
    /// No call is in flight, or several executions have one.
    Unclear,
}

impl InFlightCalls {
    pub(super) fn register(
        &self,
        server: &ServerName,
        item: &CallTarget,
        caller: &Caller,
    ) -> CallRegistration {
        let (progress, seen) = watch::channel(0);
        let unanswerable = Arc::new(Notify::new());
        let mut state = self.state();
        state.last += 1;
        let number = state.last;
        let label = format!("{server}.{item}");
        let call = InFlightCall {
            caller: caller.clone(),
            label,
            token: None,
            progress,
            unanswerable: unanswerable.clone(),
        };
        state.calls.insert(number, call);
        CallRegistration { number, callers: self.clone(), progress: seen, unanswerable }
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

    /// Fails the call in flight if there is only one: its server asks for input that no user can give.
    pub(super) fn fail_only_call(&self) {
        let state = self.state();
        if let (1, Some(call)) = (state.calls.len(), state.calls.values().next()) {
            call.unanswerable.notify_one();
        }
    }

    /// Forwards a progress notification to the caller with its progress token.
    pub(super) fn progress(&self, notification: ProgressNotificationParam, message: &str) {
        let state = self.state();
        let token = &notification.progress_token;
        let Some(call) = state.calls.values().find(|call| call.token.as_ref() == Some(token)) else { return };
        call.progress.send_modify(|count| *count += 1);
        if let Some(ai_client) = &call.caller.ai_client {
            if call.caller.direct.is_some() {
                ai_client.forward(ForwardedNotification::Progress(notification));
                return;
            }
            let separator = if message.is_empty() { "" } else { ": " };
            ai_client.send_progress(format!("{}{separator}{message}", call.label));
        }
    }

    /// Forwards a log message of the server, which names no call, if all calls in flight belong to one direct caller.
    pub(super) fn log(&self, line: Value) {
        if let RequestOrigin::One(Caller { ai_client: Some(ai_client), direct: Some(_), .. }) =
            self.request_origin()
        {
            ai_client.forward(ForwardedNotification::Log(line));
        }
    }

    fn state(&self) -> MutexGuard<'_, Registry> {
        self.0.lock()
    }
}

impl CallRegistration {
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
