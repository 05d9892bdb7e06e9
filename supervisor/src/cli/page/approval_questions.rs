//! The pending questions about calls that require approval, in all Lockhouse processes of this user. While a page is
//! open, this process is one of their watchers: an approver, as `lockhouse approvals` is, if a person with an open page
//! may answer, and otherwise an observer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use lockhouse_messages::{
    ApprovalEvent, ApprovalInput, ApprovalQuestion, ApproverAnswer, ApproverDecision, ChallengeRequest,
    KeyChallenge, Presence, WatcherRole,
};
use lockhouse_page::{ActionError, ErrorCode, Section, Sections, text};
use nix::unistd::geteuid;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};

use super::{AFTER_LAST_PAGE, wait_for_no_page};
use crate::cli::approvals::password::{self, PasswordSubject};
use crate::cli::approvals::supervisors;
use crate::cli::approvals::terminal_prompt::{ApproverReply, SupervisorEvent};
use crate::cli::approvals::{ANSWERS_MAX, EVENTS_MAX};

/// Maximum number of questions on the page. Further ones appear when others are closed.
const SHOWN_MAX: usize = 100;
/// Maximum number of questions that are stored. Further ones are ignored, and time out.
const STORED_MAX: usize = 1_000;
/// Maximum time for a supervisor to accept or reject an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a supervisor refused an answer, in its own words.
struct RefusedAnswer(String);

/// The process id of a supervisor, and the number of its question.
type QuestionKey = (u32, u64);

/// The pending questions. Clones share them.
#[derive(Clone, Default)]
pub(super) struct ApprovalQuestions(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The supervisors that send their questions to this process.
    watched: BTreeSet<u32>,
    pending: BTreeMap<QuestionKey, PageQuestion>,
    /// Receivers of the outcomes of answers that were sent.
    outcomes: BTreeMap<QuestionKey, oneshot::Sender<Result<(), RefusedAnswer>>>,
    /// Receivers of what keys must sign.
    challenges: BTreeMap<QuestionKey, oneshot::Sender<Result<KeyChallenge, RefusedAnswer>>>,
    /// Where answers are sent. `None` while no page is open.
    answers: Option<mpsc::Sender<ApproverReply>>,
}

struct PageQuestion {
    question: Box<ApprovalQuestion>,
    asked: SystemTime,
}

impl ApprovalQuestions {
    /// Follows the questions of all supervisors while pages are open. Never returns.
    pub(super) async fn follow(&self, sections: &Sections) {
        let mut open_pages = sections.open_pages();
        loop {
            if open_pages.wait_for(|count| *count > 0).await.is_err() {
                return;
            }
            let (events, mut received_events) = mpsc::channel(EVENTS_MAX);
            let (answers, to_send) = mpsc::channel(ANSWERS_MAX);
            let role = watch::Sender::new(WatcherRole::Observer);
            *self.0.lock() = State { answers: Some(answers), ..State::default() };
            self.publish(sections);
            let receiving = async {
                while let Some(event) = received_events.recv().await {
                    self.0.lock().handle(event);
                    self.publish(sections);
                }
            };
            tokio::select! {
                () = receiving => {}
                () = set_role(&role, sections.approver_pages()) => {}
                () = supervisors::watch(events, to_send, role.subscribe()) => {}
                () = wait_for_no_page(&mut open_pages, AFTER_LAST_PAGE) => {}
            }
            *self.0.lock() = State::default();
            self.publish(sections);
        }
    }

    fn publish(&self, sections: &Sections) {
        sections.set(Section::Approvals, self.0.lock().to_json());
    }

    /// Returns what a key must sign for an approval.
    ///
    /// # Errors
    /// As for [`Self::answer`].
    pub(super) async fn challenge(
        &self,
        supervisor: u32,
        request: ChallengeRequest,
    ) -> Result<Value, ActionError> {
        let key = (supervisor, request.id);
        let failed = || ActionError::new(ErrorCode::Failed, "the Lockhouse process did not answer");
        let challenge = self.0.lock().request_challenge(supervisor, request)?;
        let challenge = tokio::time::timeout(ANSWER_TIMEOUT, challenge).await;
        self.0.lock().challenges.remove(&key);
        match challenge.map_err(|_| failed())?.map_err(|_| failed())? {
            Ok(challenge) => Ok(json!(challenge)),
            Err(RefusedAnswer(reason)) => Err(ActionError::new(ErrorCode::Refused, reason)),
        }
    }

    /// Sends an answer, and waits until the supervisor has accepted it.
    ///
    /// # Errors
    /// [`ErrorCode::Stale`] if the question is closed or another one; [`ErrorCode::Refused`] if the supervisor rejects
    /// the answer.
    pub(super) async fn answer(&self, supervisor: u32, answer: ApproverAnswer) -> Result<Value, ActionError> {
        let key = (supervisor, answer.id);
        let for_password = self.0.lock().needs_password(supervisor, &answer);
        if let Some(question) = for_password {
            return approve_with_password(supervisor, &question, &answer).await;
        }
        let outcome = self.0.lock().send(supervisor, answer)?;
        let closed =
            || ActionError::new(ErrorCode::Failed, "the Lockhouse process did not confirm the answer");
        let outcome = tokio::time::timeout(ANSWER_TIMEOUT, outcome).await;
        self.0.lock().outcomes.remove(&key);
        match outcome.map_err(|_| closed())?.map_err(|_| closed())? {
            Ok(()) => Ok(json!({"result": "taken"})),
            Err(RefusedAnswer(reason)) => Err(ActionError::new(ErrorCode::Refused, reason)),
        }
    }
}

/// Lets polkit ask for the person's password, and approves the question then.
async fn approve_with_password(
    supervisor: u32,
    question: &ApprovalQuestion,
    answer: &ApproverAnswer,
) -> Result<Value, ActionError> {
    let subject = PasswordSubject::Calls { process: supervisor, question, scope: answer.scope };
    approve_on_desktop(subject, "lockhouse approvals").await
}

/// Lets polkit ask for the person's password for something. `command` is that which asks in a terminal.
pub(super) async fn approve_on_desktop(
    subject: PasswordSubject<'_>,
    command: &str,
) -> Result<Value, ActionError> {
    let failed = |message: String| ActionError::new(ErrorCode::Failed, message);
    if !password::has_polkit() {
        return Err(failed(format!("this needs your password: approve it with `{command}` in a terminal")));
    }
    let approved = password::approve_on_desktop(subject).await;
    approved.map(|()| json!({"result": "taken"})).map_err(|error| failed(error.to_string()))
}

/// Makes this process an approver while a page of somebody is open who may answer, and an observer otherwise. Never returns.
async fn set_role(role: &watch::Sender<WatcherRole>, mut pages: watch::Receiver<usize>) {
    loop {
        if pages.wait_for(|count| *count > 0).await.is_err() {
            return;
        }
        role.send_replace(WatcherRole::Approver);
        wait_for_no_page(&mut pages, AFTER_LAST_PAGE).await;
        role.send_replace(WatcherRole::Observer);
    }
}

impl State {
    fn handle(&mut self, SupervisorEvent { supervisor, message }: SupervisorEvent) {
        match message {
            Some(ApprovalEvent::Watching) => {
                self.watched.insert(supervisor);
            }
            Some(ApprovalEvent::Ask(question)) => {
                let key = (supervisor, question.id);
                if self.pending.len() < STORED_MAX || self.pending.contains_key(&key) {
                    let asked = SystemTime::now();
                    self.pending.insert(key, PageQuestion { question, asked });
                }
            }
            Some(ApprovalEvent::Gone(id)) => drop(self.pending.remove(&(supervisor, id))),
            Some(ApprovalEvent::Taken(id)) => self.report((supervisor, id), Ok(())),
            Some(ApprovalEvent::Challenge { id, challenge }) => {
                if let Some(receiver) = self.challenges.remove(&(supervisor, id)) {
                    let _ = receiver.send(Ok(challenge));
                }
            }
            Some(ApprovalEvent::Refused { id: Some(id), reason }) => {
                match self.challenges.remove(&(supervisor, id)) {
                    Some(receiver) => drop(receiver.send(Err(RefusedAnswer(reason)))),
                    None => self.report((supervisor, id), Err(RefusedAnswer(reason))),
                }
            }
            Some(ApprovalEvent::Refused { id: None, reason }) => {
                tracing::warn!("process {supervisor} rejected a message of the page: {reason}");
            }
            None => {
                self.watched.remove(&supervisor);
                self.pending.retain(|(owner, _), _| *owner != supervisor);
                self.outcomes.retain(|(owner, _), _| *owner != supervisor);
                self.challenges.retain(|(owner, _), _| *owner != supervisor);
            }
        }
    }

    fn report(&mut self, key: QuestionKey, outcome: Result<(), RefusedAnswer>) {
        if let Some(receiver) = self.outcomes.remove(&key) {
            let _ = receiver.send(outcome);
        }
    }

    fn send(
        &mut self,
        supervisor: u32,
        answer: ApproverAnswer,
    ) -> Result<oneshot::Receiver<Result<(), RefusedAnswer>>, ActionError> {
        let key = (supervisor, answer.id);
        self.check_pending(key, &answer.digest)?;
        if self.outcomes.contains_key(&key) {
            return Err(ActionError::new(
                ErrorCode::Refused,
                "another page answers this question at this moment",
            ));
        }
        let (sender, outcome) = oneshot::channel();
        self.reply(ApproverReply::answer(supervisor, answer))?;
        self.outcomes.insert(key, sender);
        Ok(outcome)
    }

    /// Asks the supervisor what a key must sign.
    fn request_challenge(
        &mut self,
        supervisor: u32,
        request: ChallengeRequest,
    ) -> Result<oneshot::Receiver<Result<KeyChallenge, RefusedAnswer>>, ActionError> {
        let question = request.id;
        self.check_pending((supervisor, question), &request.digest)?;
        let (sender, challenge) = oneshot::channel();
        self.reply(ApproverReply { supervisor, question, input: ApprovalInput::Challenge(request) })?;
        self.challenges.insert((supervisor, question), sender);
        Ok(challenge)
    }

    fn reply(&self, reply: ApproverReply) -> Result<(), ActionError> {
        let no_page = || ActionError::new(ErrorCode::Stale, "no page is open");
        let sent = self.answers.as_ref().ok_or_else(no_page)?.try_send(reply);
        sent.map_err(|_| ActionError::new(ErrorCode::TooMany, "too many answers at one time: try again"))
    }

    /// Checks that a question is pending and has this digest.
    fn check_pending(&self, key: QuestionKey, digest: &str) -> Result<&PageQuestion, ActionError> {
        let stale = |message: &str| ActionError::new(ErrorCode::Stale, message);
        let pending = self.pending.get(&key).ok_or_else(|| {
            stale("this question is closed: it was answered elsewhere, it timed out, or its run has ended")
        })?;
        if pending.question.digest != digest {
            return Err(stale("this is another question than the one that was shown; nothing was answered"));
        }
        Ok(pending)
    }

    /// Returns the question of an answer that needs a password.
    fn needs_password(&self, supervisor: u32, answer: &ApproverAnswer) -> Option<Box<ApprovalQuestion>> {
        let approves = answer.decision == ApproverDecision::Approve && answer.proof.is_none();
        let pending = self.check_pending((supervisor, answer.id), &answer.digest).ok()?;
        let is_password = pending.question.presence == Presence::Password && !geteuid().is_root();
        (approves && is_password).then(|| pending.question.clone())
    }

    fn to_json(&self) -> Value {
        let mut oldest: Vec<(&QuestionKey, &PageQuestion)> = self.pending.iter().collect();
        oldest.sort_by_key(|(key, pending)| (pending.asked, **key));
        let questions =
            oldest.into_iter().take(SHOWN_MAX).map(|((supervisor, _), pending)| pending.to_json(*supervisor));
        json!({"watching": self.watched.len(), "questions": questions.collect::<Value>()})
    }
}

impl PageQuestion {
    fn to_json(&self, supervisor: u32) -> Value {
        let time = |time: SystemTime| humantime::format_rfc3339_millis(time).to_string();
        let ApprovalQuestion {
            id,
            digest,
            execution,
            client,
            seconds,
            text: prompt,
            scopes_text,
            scopes,
            calls,
            diff,
            presence,
            required,
            roles,
        } = &*self.question;
        let wait = Duration::try_from_secs_f64(*seconds).unwrap_or_default();
        json!({
            "supervisor": supervisor, "id": id, "digest": digest, "execution": execution,
            "client": client.as_deref().map(text::name), "asked": time(self.asked),
            "expires": self.asked.checked_add(wait).map(time), "text": prompt, "scopes_text": scopes_text,
            "scopes": scopes, "diff": diff, "calls": calls, "presence": presence, "required": required,
            "roles": roles,
        })
    }
}
