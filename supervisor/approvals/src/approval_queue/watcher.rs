//! A watcher: a connection that receives approval questions and can answer them.

use std::sync::Arc;

use lockhouse_audit::LocalUser;
use lockhouse_messages::{
    Approval, ApprovalEvent, ApproverAnswer, ApproverDecision, ChallengeRequest, KeyChallenge, WatcherRole,
};
use lockhouse_policies::{Policy, RoleKind};
use tokio::sync::mpsc;

use super::{
    AnswerChannel, ApprovalQueue, ConnectedWatcher, LocalAnswer, OpenQuestion, State, TakenAnswer,
    WatcherKind,
};
use crate::answer_error::{AnswerError, REASON_CHARS_MAX};
use crate::approver::Approver;
use crate::outcome::{ApprovalRefusal, PromptOutcome};
use crate::presence::ApprovalSubject;

/// A watcher: a connection that receives approval questions and can answer them. Dropping the value disconnects the
/// watcher.
#[derive(Debug)]
pub struct Watcher {
    pub(super) queue: ApprovalQueue,
    pub(super) number: u64,
    pub(super) kind: WatcherKind,
    pub(super) messages: mpsc::Receiver<Arc<ApprovalEvent>>,
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

    /// Returns whom the kernel reports at the other end of the watcher's connection.
    pub fn approver(&self) -> Approver {
        match &self.kind {
            WatcherKind::Socket(approver) => approver.clone(),
            WatcherKind::Terminal => Approver::Owner(Some(LocalUser::current())),
        }
    }

    /// Applies an answer to a pending question. `approver` is who answers: [`Self::approver`], or a person whose credential
    /// came with the answer.
    ///
    /// # Errors
    /// Fails if the watcher is no approver, if the question is closed or unknown, if the digest does not match the
    /// question, if the question does not offer the scope, if the answer of this person does not count, or if the answer
    /// approves without the required proof of presence.
    pub fn answer(&self, answer: &ApproverAnswer, approver: Approver) -> Result<(), AnswerError> {
        let policy = self.queue.policy();
        let mut state = self.queue.state.lock();
        let open = self.check(&state, answer.id, &answer.digest, answer.scope)?;
        let (outcome, presence) = match answer.decision {
            ApproverDecision::Approve => {
                check_approver(open, answer, &approver, &policy)?;
                let subject = subject(answer.id, &answer.digest, answer.scope);
                // What another account than this process's may do is decided by its roles, if it has any.
                let by = approver.name().is_none().then(|| approver.user()).flatten();
                let (required, proof) = (open.presence, answer.proof.as_ref());
                let proven = self.queue.presence.verify(&subject, required, proof, by)?;
                let scope = if answer.break_glass.is_some() { Approval::Once } else { answer.scope };
                (PromptOutcome::Approved(scope), proven)
            }
            ApproverDecision::Decline if !open.eligibility.is_for(&approver, &policy) => {
                return Err(AnswerError::Role);
            }
            ApproverDecision::Decline => (PromptOutcome::Refused(ApprovalRefusal::Declined), None),
        };
        let channel = match self.kind {
            WatcherKind::Socket(_) => AnswerChannel::Local(Some(Box::new(LocalAnswer {
                user: approver.user(),
                approver: approver.name().cloned(),
                presence,
                break_glass: answer.break_glass.clone(),
            }))),
            WatcherKind::Terminal => AnswerChannel::Terminal(presence),
        };
        let open = state.close(answer.id, AnswerError::Answered).ok_or(AnswerError::Closed)?;
        open.answer.send(TakenAnswer { outcome, channel, approver }).map_err(|_| AnswerError::Closed)
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
    /// the question.
    fn check<'s>(
        &self,
        state: &'s State,
        id: u64,
        digest: &str,
        scope: Approval,
    ) -> Result<&'s OpenQuestion, AnswerError> {
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
        Ok(open)
    }
}

/// Checks whether an approval of this person counts.
fn check_approver(
    open: &OpenQuestion,
    answer: &ApproverAnswer,
    approver: &Approver,
    policy: &Policy,
) -> Result<(), AnswerError> {
    // Such an answer changes the policy.
    let may_change = approver.name().is_none_or(|person| policy.has_role(person, RoleKind::Policy));
    if answer.scope == Approval::Always && !may_change {
        return Err(AnswerError::Scope);
    }
    match &answer.break_glass {
        None => open.eligibility.check(approver, policy),
        Some(reason) if reason.trim().is_empty() || reason.chars().count() > REASON_CHARS_MAX => {
            Err(AnswerError::Reason)
        }
        Some(_) => open.eligibility.check_break_glass(approver, policy),
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
