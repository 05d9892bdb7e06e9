//! On whose behalf calls are in flight on one connection: whom a server can ask, and to whom its progress is shown.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;

use lockhouse_policies::{ClientName, Item};
use lockhouse_protocol::{ExecutionId, ServerName};
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use serde_json::Value;
use tokio::sync::{Notify, watch};

use super::wire::Wire;
use crate::ai_client::{AiClient, OpenQuestions, Passed};

/// Who makes a call.
#[derive(Clone, Debug)]
pub struct Caller {
    pub execution: ExecutionId,
    /// What it calls itself. None at the command line.
    pub client: Option<ClientName>,
    /// None where there is none that could be asked, as with `lockhouse run`.
    pub ai_client: Option<AiClient>,
    /// What people are being asked on its behalf.
    pub questions: OpenQuestions,
    /// Of an AI client that has the server directly, its own call.
    pub wire: Option<Arc<Wire>>,
}

/// The calls in flight on one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Callers(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    last: u64,
    calls: BTreeMap<u64, InFlight>,
}

/// One call.
#[derive(Debug)]
struct InFlight {
    caller: Caller,
    what: String,
    token: Option<ProgressToken>,
    /// Counts the server's notes of progress.
    progress: watch::Sender<u64>,
    /// The server asked for what nobody can give.
    unanswerable: Arc<Notify>,
}

/// A call's place among those in flight. It leaves when this is dropped.
#[derive(Debug)]
pub(super) struct Ticket {
    number: u64,
    callers: Callers,
    pub(super) progress: watch::Receiver<u64>,
    pub(super) unanswerable: Arc<Notify>,
}

/// Whom a server asks that does not say for which call.
pub(super) enum Asking {
    /// All calls in flight are of one execution.
    One(Caller),
    /// There is none, or there are several that could be meant.
    Unclear,
}

impl Callers {
    pub(super) fn enter(&self, server: &ServerName, item: &Item, caller: &Caller) -> Ticket {
        let (progress, seen) = watch::channel(0);
        let unanswerable = Arc::new(Notify::new());
        let mut state = self.state();
        state.last += 1;
        let number = state.last;
        let what = format!("{server}.{item}");
        let call = InFlight {
            caller: caller.clone(),
            what,
            token: None,
            progress,
            unanswerable: unanswerable.clone(),
        };
        state.calls.insert(number, call);
        Ticket { number, callers: self.clone(), progress: seen, unanswerable }
    }

    pub(super) fn asking(&self) -> Asking {
        let state = self.state();
        let mut callers = state.calls.values().map(|call| &call.caller);
        match callers.next() {
            Some(first) if callers.all(|other| other.execution == first.execution) => {
                Asking::One(first.clone())
            }
            _ => Asking::Unclear,
        }
    }

    /// Fails the one call that is in flight, if it is one: what its server asks for nobody can give.
    pub(super) fn fail_the_one(&self) {
        let state = self.state();
        if let (1, Some(call)) = (state.calls.len(), state.calls.values().next()) {
            call.unanswerable.notify_one();
        }
    }

    /// What a server says of how far a call is.
    pub(super) fn progress(&self, told: ProgressNotificationParam, words: &str) {
        let state = self.state();
        let token = &told.progress_token;
        let Some(call) = state.calls.values().find(|call| call.token.as_ref() == Some(token)) else { return };
        call.progress.send_modify(|count| *count += 1);
        if let Some(ai_client) = &call.caller.ai_client {
            if call.caller.wire.is_some() {
                ai_client.pass(Passed::Progress(told));
                return;
            }
            let separator = if words.is_empty() { "" } else { ": " };
            ai_client.progress(format!("{}{separator}{words}", call.what));
        }
    }

    /// A line of a server's log, which does not say for which call it is.
    pub(super) fn log(&self, line: Value) {
        if let Asking::One(Caller { ai_client: Some(ai_client), wire: Some(_), .. }) = self.asking() {
            ai_client.pass(Passed::Log(line));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

impl Ticket {
    /// The call has gone out, and the server names it so in what it says of its progress.
    pub(super) fn sent(&self, token: ProgressToken) {
        if let Some(call) = self.callers.state().calls.get_mut(&self.number) {
            call.token = Some(token);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.callers.state().calls.remove(&self.number);
    }
}
