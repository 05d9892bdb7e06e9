//! The queue of approval questions that are answered outside of the AI client: with `lockhouse approvals` over the
//! control socket, or at the terminal of `lockhouse run`.

use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use lockhouse_audit::{LocalUser, ProvenPresence};
use lockhouse_messages::{
    Approval, ApprovalEvent, ApprovalQuestion, ApproverAnswer, ApproverDecision, ChallengeRequest,
    KeyChallenge, Presence, WatcherRole,
};
use tokio::sync::{mpsc, oneshot};

use super::outcome::{ApprovalRefusal, PromptOutcome};
use super::presence::{ApprovalSubject, PresenceError, PresenceVerifier};

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
    /// The control socket. Contains the Unix user whose process answered; `None` before the answer, or if the user is unknown.
    Local(Option<LocalUser>, Option<ProvenPresence>),
    Terminal(Option<ProvenPresence>),
}

impl AnswerChannel {
    pub(super) fn as_str(&self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Local(..) => "local",
            Self::Terminal(_) => "terminal",
        }
    }

    /// Returns how the answer has proven that a person is there. `None` if no proof was required.
    pub(super) fn presence(&self) -> Option<&ProvenPresence> {
        match self {
            Self::Client => None,
            Self::Local(_, presence) | Self::Terminal(presence) => presence.as_ref(),
        }
    }

    /// Returns the Unix user whose process answered. `None` if the answer came through the AI client, if the user is
    /// unknown, or if there is no answer yet.
    pub(super) fn peer(&self) -> Option<LocalUser> {
        match self {
            Self::Client => None,
            Self::Local(peer, _) => *peer,
            Self::Terminal(_) => Some(LocalUser::current()),
        }
    }
}

/// How a watcher (a connection that can answer approval questions outside of the AI client) is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatcherKind {
    /// The watcher is connected over the control socket. Contains the Unix user at the other end, if known.
    Socket(Option<LocalUser>),
    /// The watcher is the terminal in which this process runs.
    Terminal,
}

/// Why the supervisor rejects an answer to an approval question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    #[error("it was answered already, and the first answer counts")]
    Answered,
    #[error("this question is closed: it timed out, or its execution has ended")]
    Closed,
    #[error("there is no question with this number")]
    Unknown,
    #[error("the digest does not match this question: read the question again")]
    OtherDigest,
    #[error("this scope is not offered for this question")]
    Scope,
    #[error("this connection only observes")]
    Observer,
    #[error(transparent)]
    Presence(#[from] PresenceError),
}

/// The queue of pending approval questions, with the connected watchers that can answer them. Clones refer to the same
/// queue.
#[derive(Clone, Debug, Default)]
pub struct ApprovalQueue {
    state: Arc<Mutex<State>>,
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
}

#[derive(Debug)]
struct OpenQuestion {
    /// The message that asks this question, as sent to each watcher.
    ask: Arc<ApprovalEvent>,
    digest: String,
    scopes: Vec<Approval>,
    presence: Presence,
    answer: oneshot::Sender<(PromptOutcome, AnswerChannel)>,
}

impl State {
    /// Sends a message to all watchers. Disconnects watchers with too many unread messages.
    fn broadcast(&mut self, message: &Arc<ApprovalEvent>) {
        self.watchers.retain(|_, watcher| watcher.messages.try_send(message.clone()).is_ok());
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

impl ApprovalQueue {
    pub(super) fn new(presence: Arc<PresenceVerifier>) -> Self {
        Self { state: Arc::default(), presence }
    }

    /// Whether any approver is connected, so that questions can be answered outside of the AI client.
    pub(super) fn has_approvers(&self) -> bool {
        self.state.lock().watchers.values().any(|watcher| watcher.role == WatcherRole::Approver)
    }

    /// Sends a question to all watchers and waits for the first valid answer. Returns the outcome, and the channel
    /// through which the answer came; `None` if no valid answer arrives within `patience`. Watchers that connect
    /// meanwhile receive the question too.
    pub(super) async fn ask(
        &self,
        ask: ApprovalQuestion,
        patience: Duration,
    ) -> Option<(PromptOutcome, AnswerChannel)> {
        let (answer, answered) = oneshot::channel();
        let withdrawn = {
            let mut state = self.state.lock();
            state.last += 1;
            let id = state.last;
            let (digest, scopes) = (ask.digest.clone(), ask.scopes.clone());
            let presence = ask.presence;
            let ask = Arc::new(ApprovalEvent::Ask(Box::new(ApprovalQuestion { id, ..ask })));
            state.broadcast(&ask);
            state.open.insert(id, OpenQuestion { ask, digest, scopes, presence, answer });
            OpenQuestionGuard { queue: self, id }
        };
        let answered = tokio::time::timeout(patience, answered).await;
        drop(withdrawn);
        answered.ok()?.ok()
    }

    /// Registers a watcher and sends it all pending questions.
    pub fn watch(&self, kind: WatcherKind, role: WatcherRole) -> Watcher {
        let (sender, messages) = mpsc::channel(UNREAD_MESSAGES_MAX);
        let mut state = self.state.lock();
        for open in state.open.values() {
            let _ = sender.try_send(open.ask.clone());
        }
        state.last += 1;
        let number = state.last;
        state.watchers.insert(number, ConnectedWatcher { messages: sender, role });
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

/// A watcher: a connection that receives approval questions and can answer them. Dropping the value disconnects the
/// watcher.
#[derive(Debug)]
pub struct Watcher {
    queue: ApprovalQueue,
    number: u64,
    kind: WatcherKind,
    messages: mpsc::Receiver<Arc<ApprovalEvent>>,
}

impl Watcher {
    /// Waits for the next message to the watcher. Returns `None` if the watcher was disconnected because it had too
    /// many unread messages.
    pub async fn next(&mut self) -> Option<Arc<ApprovalEvent>> {
        self.messages.recv().await
    }

    /// Changes what the watcher does with questions from now on.
    pub fn set_role(&self, role: WatcherRole) {
        if let Some(watcher) = self.queue.state.lock().watchers.get_mut(&self.number) {
            watcher.role = role;
        }
    }

    /// Applies the watcher's answer to a pending question.
    ///
    /// # Errors
    /// Fails if the watcher is no approver, if the question is closed or unknown, if the digest does not match the
    /// question, if the question does not offer the scope, or if the answer approves without the required proof of presence.
    pub fn answer(&self, answer: &ApproverAnswer) -> Result<(), AnswerError> {
        let mut state = self.queue.state.lock();
        let required = self.check(&state, answer.id, &answer.digest, answer.scope)?;
        let peer = match self.kind {
            WatcherKind::Socket(person) => person,
            WatcherKind::Terminal => Some(LocalUser::current()),
        };
        let (outcome, presence) = match answer.decision {
            ApproverDecision::Approve => {
                let subject = subject(answer.id, &answer.digest, answer.scope);
                let proven = self.queue.presence.verify(&subject, required, answer.proof.as_ref(), peer)?;
                (PromptOutcome::Approved(answer.scope), proven)
            }
            ApproverDecision::Decline => (PromptOutcome::Refused(ApprovalRefusal::Declined), None),
        };
        let channel = match self.kind {
            WatcherKind::Socket(person) => AnswerChannel::Local(person, presence),
            WatcherKind::Terminal => AnswerChannel::Terminal(presence),
        };
        let open = state.close(answer.id, AnswerError::Answered).ok_or(AnswerError::Closed)?;
        open.answer.send((outcome, channel)).map_err(|_| AnswerError::Closed)
    }

    /// Returns what a key must sign for an answer that approves a pending question.
    ///
    /// # Errors
    /// As for [`Self::answer`], and if no key is registered.
    pub fn challenge(&self, request: &ChallengeRequest) -> Result<KeyChallenge, AnswerError> {
        self.check(&self.queue.state.lock(), request.id, &request.digest, request.scope)?;
        let subject = subject(request.id, &request.digest, request.scope);
        Ok(self.queue.presence.challenge(subject, request.port)?)
    }

    /// Checks that this watcher may answer, and that the question is pending, has this digest and offers the scope. Returns
    /// what an approval must prove.
    fn check(&self, state: &State, id: u64, digest: &str, scope: Approval) -> Result<Presence, AnswerError> {
        let is_approver = |watcher: &ConnectedWatcher| watcher.role == WatcherRole::Approver;
        if !state.watchers.get(&self.number).is_some_and(is_approver) {
            return Err(AnswerError::Observer);
        }
        let Some(open) = state.open.get(&id) else {
            let closed = state.closed.iter().find(|(closed, _)| *closed == id);
            return Err(closed.map_or(AnswerError::Unknown, |(_, error)| *error));
        };
        if open.digest != digest {
            return Err(AnswerError::OtherDigest);
        }
        if !open.scopes.contains(&scope) {
            return Err(AnswerError::Scope);
        }
        Ok(open.presence)
    }
}

fn subject(question: u64, digest: &str, scope: Approval) -> ApprovalSubject {
    ApprovalSubject::Calls { question, digest: digest.to_owned(), scope }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.queue.state.lock().watchers.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask() -> ApprovalQuestion {
        ApprovalQuestion {
            id: 0,
            digest: "d1".into(),
            execution: String::new(),
            client: None,
            seconds: 1.0,
            text: String::new(),
            scopes_text: String::new(),
            scopes: vec![Approval::Once, Approval::Execution],
            calls: Vec::new(),
            diff: None,
            presence: Presence::None,
        }
    }

    fn answer(id: u64, digest: &str, scope: Approval) -> ApproverAnswer {
        ApproverAnswer { id, digest: digest.into(), decision: ApproverDecision::Approve, scope, proof: None }
    }

    const LONG: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn the_first_valid_answer_counts_and_every_other_is_refused() {
        let queue = ApprovalQueue::default();
        assert!(!queue.has_approvers());
        let (mut first, second) = (
            queue.watch(WatcherKind::Socket(None), WatcherRole::Approver),
            queue.watch(WatcherKind::Terminal, WatcherRole::Approver),
        );
        let asking = tokio::spawn({
            let queue = queue.clone();
            async move { queue.ask(ask(), LONG).await }
        });
        let Some(ApprovalEvent::Ask(shown)) = first.next().await.as_deref().cloned() else {
            panic!("no question")
        };
        let id = shown.id;
        for (invalid_answer, error) in [
            (answer(id, "d2", Approval::Once), AnswerError::OtherDigest),
            (answer(id, "", Approval::Once), AnswerError::OtherDigest),
            (answer(id, "d1", Approval::Always), AnswerError::Scope),
            (answer(id + 7, "d1", Approval::Once), AnswerError::Unknown),
        ] {
            assert_eq!(first.answer(&invalid_answer), Err(error), "{invalid_answer:?}");
        }
        assert_eq!(second.answer(&answer(id, "d1", Approval::Execution)), Ok(()));
        assert_eq!(first.answer(&answer(id, "d1", Approval::Once)), Err(AnswerError::Answered));
        let outcome = asking.await.expect("one");
        assert_eq!(
            outcome,
            Some((PromptOutcome::Approved(Approval::Execution), AnswerChannel::Terminal(None)))
        );
        assert_eq!(first.next().await.as_deref(), Some(&ApprovalEvent::Gone(id)));
        drop((first, second));
        assert!(!queue.has_approvers());
    }

    #[tokio::test]
    async fn a_closed_question_accepts_no_answer() {
        let queue = ApprovalQueue::default();
        assert_eq!(queue.ask(ask(), Duration::from_millis(1)).await, None);
        let watcher = queue.watch(WatcherKind::Socket(None), WatcherRole::Approver);
        assert_eq!(watcher.answer(&answer(1, "d1", Approval::Once)), Err(AnswerError::Closed));
        // A watcher who connects late receives the pending questions, and is notified when one is closed.
        let mut late = {
            let asking = queue.ask(ask(), LONG);
            tokio::pin!(asking);
            assert!(futures_util::poll!(&mut asking).is_pending());
            queue.watch(WatcherKind::Socket(None), WatcherRole::Approver)
        };
        assert!(matches!(late.next().await.as_deref(), Some(ApprovalEvent::Ask(_))));
        assert!(matches!(late.next().await.as_deref(), Some(ApprovalEvent::Gone(_))));
    }

    #[tokio::test]
    async fn an_observer_sees_questions_and_is_no_approver() {
        let queue = ApprovalQueue::default();
        let mut observer = queue.watch(WatcherKind::Socket(None), WatcherRole::Observer);
        assert!(!queue.has_approvers());
        let asking = queue.ask(ask(), LONG);
        tokio::pin!(asking);
        assert!(futures_util::poll!(&mut asking).is_pending());
        let Some(ApprovalEvent::Ask(shown)) = observer.next().await.as_deref().cloned() else {
            panic!("no question")
        };
        let approval = answer(shown.id, "d1", Approval::Once);
        assert_eq!(observer.answer(&approval), Err(AnswerError::Observer));
        observer.set_role(WatcherRole::Approver);
        assert!(queue.has_approvers());
        assert_eq!(observer.answer(&approval), Ok(()), "control: as an approver");
        observer.set_role(WatcherRole::Observer);
        assert!(!queue.has_approvers());
    }
}
