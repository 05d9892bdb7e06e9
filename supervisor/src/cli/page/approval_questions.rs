//! The pending questions about calls that require approval, in all Lockhouse processes of this user. While a page is
//! open, this process is one of their watchers: an approver, as `lockhouse approvals` is, if a person with an open page
//! may answer, and otherwise an observer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use lockhouse_messages::{ApprovalEvent, ApprovalQuestion, ApproverAnswer, WatcherRole};
use lockhouse_page::{ActionError, ErrorCode, Section, Sections, text};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};

use super::{AFTER_LAST_PAGE, wait_for_no_page};
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
                () = set_role(&role, sections.administrator_pages()) => {}
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

    /// Sends an answer, and waits until the supervisor has accepted it.
    ///
    /// # Errors
    /// [`ErrorCode::Stale`] if the question is closed or another one; [`ErrorCode::Refused`] if the supervisor rejects
    /// the answer.
    pub(super) async fn answer(&self, supervisor: u32, answer: ApproverAnswer) -> Result<Value, ActionError> {
        let key = (supervisor, answer.id);
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

/// Makes this process an approver while a page of an administrator is open, and an observer otherwise. Never returns.
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
            Some(ApprovalEvent::Refused { id: Some(id), reason }) => {
                self.report((supervisor, id), Err(RefusedAnswer(reason)));
            }
            Some(ApprovalEvent::Refused { id: None, reason }) => {
                tracing::warn!("process {supervisor} rejected a message of the page: {reason}");
            }
            None => {
                self.watched.remove(&supervisor);
                self.pending.retain(|(owner, _), _| *owner != supervisor);
                self.outcomes.retain(|(owner, _), _| *owner != supervisor);
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
        let stale = |message: &str| ActionError::new(ErrorCode::Stale, message);
        let pending = self.pending.get(&key).ok_or_else(|| {
            stale("this question is closed: it was answered elsewhere, it timed out, or its run has ended")
        })?;
        if pending.question.digest != answer.digest {
            return Err(stale("this is another question than the one that was shown; nothing was answered"));
        }
        if self.outcomes.contains_key(&key) {
            return Err(ActionError::new(
                ErrorCode::Refused,
                "another page answers this question at this moment",
            ));
        }
        let Some(answers) = &self.answers else { return Err(stale("no page is open")) };
        let (sender, outcome) = oneshot::channel();
        answers
            .try_send(ApproverReply { supervisor, answer })
            .map_err(|_| ActionError::new(ErrorCode::TooMany, "too many answers at one time: try again"))?;
        self.outcomes.insert(key, sender);
        Ok(outcome)
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
        } = &*self.question;
        let wait = Duration::try_from_secs_f64(*seconds).unwrap_or_default();
        json!({
            "supervisor": supervisor, "id": id, "digest": digest, "execution": execution,
            "client": client.as_deref().map(text::name), "asked": time(self.asked),
            "expires": self.asked.checked_add(wait).map(time), "text": prompt, "scopes_text": scopes_text,
            "scopes": scopes, "diff": diff, "calls": calls,
        })
    }
}
