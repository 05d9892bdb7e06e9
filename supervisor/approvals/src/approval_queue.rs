//! The queue of approval questions that are answered outside of the AI client: with `lockhouse approvals` over the
//! control socket, or at the terminal of `lockhouse run`.

#[cfg(test)]
mod tests;
mod watcher;

use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use lockhouse_audit::{LocalUser, ProvenPresence};
use lockhouse_messages::{Approval, ApprovalEvent, ApprovalQuestion, Presence, WatcherRole};
use lockhouse_policies::{ClientName, Policy};
use tokio::sync::{mpsc, oneshot};

pub use watcher::Watcher;

use super::answer_error::AnswerError;
use super::approver::{Approver, Eligibility};
use super::outcome::PromptOutcome;
use super::presence::PresenceVerifier;

/// Maximum number of unread messages of one watcher (a connection that can answer approval questions). A
/// watcher that would have more is disconnected.
const UNREAD_MESSAGES_MAX: usize = 2_048;
/// Maximum number of closed questions that are remembered, so that a late answer is rejected with the right reason.
const CLOSED_MAX: usize = 200;

/// The channel through which an approval question is asked and answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AnswerChannel {
    /// MCP elicitation: the AI client asks its user.
    Client,
    /// The control socket. `None` before the answer.
    Local(Option<Box<LocalAnswer>>),
    Terminal(Option<ProvenPresence>),
}

/// What is recorded of an answer over the control socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LocalAnswer {
    /// The Unix user whose process answered; `None` if unknown.
    pub(super) user: Option<LocalUser>,
    /// The name of a person with roles.
    pub(super) approver: Option<ClientName>,
    pub(super) presence: Option<ProvenPresence>,
    /// Why the person approved alone what requires more.
    pub(super) break_glass: Option<String>,
}

impl AnswerChannel {
    pub(super) fn as_str(&self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Local(_) => "local",
            Self::Terminal(_) => "terminal",
        }
    }

    /// Returns how the answer has proven that a person is there. `None` if no proof was required.
    pub(super) fn presence(&self) -> Option<&ProvenPresence> {
        match self {
            Self::Client | Self::Local(None) => None,
            Self::Local(Some(answer)) => answer.presence.as_ref(),
            Self::Terminal(presence) => presence.as_ref(),
        }
    }

    /// Returns the Unix user whose process answered. `None` if the answer came through the AI client, if the user is
    /// unknown, or if there is no answer yet.
    pub(super) fn peer(&self) -> Option<LocalUser> {
        match self {
            Self::Client => None,
            Self::Local(answer) => answer.as_ref().and_then(|answer| answer.user),
            Self::Terminal(_) => Some(LocalUser::current()),
        }
    }

    /// Returns what is recorded of an answer over the control socket.
    pub(super) fn local_answer(&self) -> Option<&LocalAnswer> {
        match self {
            Self::Local(answer) => answer.as_deref(),
            Self::Client | Self::Terminal(_) => None,
        }
    }
}

/// An answer that was taken.
#[derive(Debug)]
pub(super) struct TakenAnswer {
    pub(super) outcome: PromptOutcome,
    pub(super) channel: AnswerChannel,
    pub(super) approver: Approver,
}

/// How a watcher (a connection that can answer approval questions outside of the AI client) is connected.
#[derive(Clone, Debug)]
pub enum WatcherKind {
    /// The watcher is connected over the control socket. Contains whom the kernel reports at the other end.
    Socket(Approver),
    /// The watcher is the terminal in which this process runs.
    Terminal,
}

/// The queue of pending approval questions, with the connected watchers that can answer them. Clones refer to the same
/// queue.
#[derive(Clone, Debug, Default)]
pub struct ApprovalQueue {
    state: Arc<Mutex<State>>,
    /// The newest policy, whose roles decide who may approve. `None` until it is known: then only owners may.
    policy: Arc<Mutex<Option<Arc<Policy>>>>,
    presence: Arc<PresenceVerifier>,
}

#[derive(Debug, Default)]
struct State {
    /// The number most recently assigned to a question or a watcher. Both use the same sequence.
    last: u64,
    open: BTreeMap<u64, OpenQuestion>,
    /// The most recently closed questions: the number of each, with the error that a late answer to it gets.
    closed: VecDeque<(u64, AnswerError)>,
    watchers: BTreeMap<u64, ConnectedWatcher>,
}

#[derive(Debug)]
struct ConnectedWatcher {
    messages: mpsc::Sender<Arc<ApprovalEvent>>,
    role: WatcherRole,
    /// The person with roles who watches. `None` if the watcher sees all questions.
    person: Option<Approver>,
}

#[derive(Debug)]
struct OpenQuestion {
    /// The message that asks this question, as sent to each watcher.
    ask: Arc<ApprovalEvent>,
    digest: String,
    scopes: Vec<Approval>,
    presence: Presence,
    eligibility: Eligibility,
    answer: oneshot::Sender<TakenAnswer>,
}

impl State {
    /// Sends a message to all watchers. Disconnects watchers with too many unread messages.
    fn broadcast(&mut self, message: &Arc<ApprovalEvent>) {
        self.watchers.retain(|_, watcher| watcher.messages.try_send(message.clone()).is_ok());
    }

    /// Sends a question to the watchers that may see it.
    fn broadcast_question(&mut self, open: &OpenQuestion, policy: &Policy) {
        self.watchers.retain(|_, watcher| {
            !open.is_shown_to(watcher, policy) || watcher.messages.try_send(open.ask.clone()).is_ok()
        });
    }

    /// Removes a pending question, returns it, and tells all watchers that it is closed. A later answer to it is
    /// rejected with `error`. Returns `None` if the question was not pending.
    fn close(&mut self, id: u64, error: AnswerError) -> Option<OpenQuestion> {
        let open = self.open.remove(&id)?;
        self.closed.push_back((id, error));
        if self.closed.len() > CLOSED_MAX {
            self.closed.pop_front();
        }
        self.broadcast(&Arc::new(ApprovalEvent::Gone(id)));
        Some(open)
    }
}

impl OpenQuestion {
    fn is_shown_to(&self, watcher: &ConnectedWatcher, policy: &Policy) -> bool {
        watcher.person.as_ref().is_none_or(|person| self.eligibility.is_for(person, policy))
    }
}

impl ApprovalQueue {
    pub(super) fn new(presence: Arc<PresenceVerifier>) -> Self {
        Self { presence, ..Self::default() }
    }

    /// Sets the newest policy, whose roles decide from now on who may approve.
    pub fn set_policy(&self, policy: Arc<Policy>) {
        *self.policy.lock() = Some(policy);
    }

    pub(super) fn policy(&self) -> Arc<Policy> {
        self.policy.lock().clone().unwrap_or_else(|| Arc::new(Policy::empty()))
    }

    /// Whether any approver is connected, so that questions can be answered outside of the AI client.
    pub(super) fn has_approvers(&self) -> bool {
        self.state.lock().watchers.values().any(|watcher| watcher.role == WatcherRole::Approver)
    }

    /// Sends a question to all watchers that may see it and waits for the first valid answer; `None` if none arrives within
    /// `patience`. Watchers that connect meanwhile receive the question too.
    pub(super) async fn ask(
        &self,
        ask: ApprovalQuestion,
        eligibility: Eligibility,
        patience: Duration,
    ) -> Option<TakenAnswer> {
        let policy = self.policy();
        let (answer, answered) = oneshot::channel();
        let withdrawn = {
            let mut state = self.state.lock();
            state.last += 1;
            let id = state.last;
            let (digest, scopes) = (ask.digest.clone(), ask.scopes.clone());
            let presence = ask.presence;
            let ask = Arc::new(ApprovalEvent::Ask(Box::new(ApprovalQuestion { id, ..ask })));
            let open = OpenQuestion { ask, digest, scopes, presence, eligibility, answer };
            state.broadcast_question(&open, &policy);
            state.open.insert(id, open);
            OpenQuestionGuard { queue: self, id }
        };
        let answered = tokio::time::timeout(patience, answered).await;
        drop(withdrawn);
        answered.ok()?.ok()
    }

    /// Registers a watcher and sends it all pending questions.
    pub fn watch(&self, kind: WatcherKind, role: WatcherRole) -> Watcher {
        let (sender, messages) = mpsc::channel(UNREAD_MESSAGES_MAX);
        let person = match &kind {
            WatcherKind::Socket(person @ Approver::Person { .. }) => Some(person.clone()),
            WatcherKind::Socket(Approver::Owner(_)) | WatcherKind::Terminal => None,
        };
        let (watcher, policy) = (ConnectedWatcher { messages: sender, role, person }, self.policy());
        let mut state = self.state.lock();
        for open in state.open.values().filter(|open| open.is_shown_to(&watcher, &policy)) {
            let _ = watcher.messages.try_send(open.ask.clone());
        }
        state.last += 1;
        let number = state.last;
        state.watchers.insert(number, watcher);
        Watcher { queue: self.clone(), number, kind, messages }
    }
}

/// Keeps an approval question pending. Dropping the guard closes the question if it was not answered, also when the
/// future that waits for the answer is dropped.
struct OpenQuestionGuard<'a> {
    queue: &'a ApprovalQueue,
    id: u64,
}

impl Drop for OpenQuestionGuard<'_> {
    fn drop(&mut self) {
        let _ = self.queue.state.lock().close(self.id, AnswerError::Closed);
    }
}
