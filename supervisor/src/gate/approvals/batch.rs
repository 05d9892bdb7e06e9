//! Calls that wait for a person: gathered, put to them one prompt at a time, and answered one by one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_policies::{CallDigest, PendingCall, PermittedCall};
use lockhouse_protocol::{CallId, ExecutionId};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::desk::{Ask, Means};
use super::outcome::{Outcome, PROMPTS_MAX, Refusal};
use super::prompt::Prompt;
use super::{Approval, Execution, Through, always, form};
use crate::ai_client::Mode;
use crate::audit::Subject;
use crate::catalog::Claims;

/// Calls of one prompt; those beyond it are in the next.
const CALLS_MAX: usize = 50;
/// A prompt is made when nothing more has come for so long,
const QUIET: Duration = Duration::from_millis(40);
/// and at the latest after this.
const GATHER_MAX: Duration = Duration::from_millis(250);

type Verdict = Result<(PermittedCall, Approval), Refusal>;

/// One call that a person decides about.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) pending: PendingCall,
    pub(super) line: Option<u32>,
    pub(super) claims: Claims,
    /// Of this call on this occasion.
    pub(super) digest: CallDigest,
    call: CallId,
    /// As the log names it.
    id: Uuid,
    occasion: String,
}

impl Candidate {
    pub(super) fn new(
        (execution, call, id): (ExecutionId, CallId, Uuid),
        pending: PendingCall,
        line: Option<u32>,
        claims: Claims,
    ) -> Self {
        let occasion = format!("{execution}/{}", call.0);
        let digest = pending.digest(&occasion);
        Self { pending, line, claims, digest, call, id, occasion }
    }

    /// The call as it was shown, or one that was approved before it was asked about.
    pub(super) fn approved(self) -> Result<PermittedCall, Refusal> {
        self.pending.approved(&self.occasion, self.digest).map_err(|_| Refusal::Broken)
    }
}

/// A call and whoever waits for it.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) candidate: Candidate,
    pub(super) verdict: oneshot::Sender<Verdict>,
}

/// The task that asks on behalf of one execution. It ends with it.
pub(super) struct Batches {
    of: Arc<Execution>,
    prompts: u32,
}

impl Batches {
    pub(super) fn new(of: Arc<Execution>) -> Self {
        Self { of, prompts: 0 }
    }

    pub(super) async fn run(mut self, mut asked: mpsc::Receiver<Waiting>) {
        let mut waiting = VecDeque::new();
        loop {
            if waiting.is_empty() {
                let Some(first) = asked.recv().await else { return };
                waiting.push_back(first);
            }
            gather(&mut asked, &mut waiting).await;
            self.let_go(&mut waiting);
            let together = waiting.len().min(CALLS_MAX);
            let mut batch: Vec<Waiting> = waiting.drain(..together).collect();
            // In the order in which the code made them.
            batch.sort_by_key(|waiting| waiting.candidate.call);
            if !batch.is_empty() {
                self.ask(batch).await;
            }
        }
    }

    /// Lets those go that the answer to the prompt before was for as well, and those that nobody waits for.
    fn let_go(&self, waiting: &mut VecDeque<Waiting>) {
        for Waiting { candidate, verdict } in std::mem::take(waiting) {
            let granted = self.of.grants().find(&candidate.pending);
            match granted {
                _ if verdict.is_closed() => {}
                Some(how) => drop(verdict.send(candidate.approved().map(|permitted| (permitted, how)))),
                None => waiting.push_back(Waiting { candidate, verdict }),
            }
        }
    }

    /// Puts one prompt to a person, and does with each of its calls what they say.
    async fn ask(&mut self, batch: Vec<Waiting>) {
        let (calls, mut verdicts): (Vec<_>, Vec<_>) =
            batch.into_iter().map(|waiting| (waiting.candidate, waiting.verdict)).unzip();
        let mut through = None;
        let outcome = if self.prompts < PROMPTS_MAX {
            self.prompts += 1;
            let pending: Vec<&PendingCall> = calls.iter().map(|call| &call.pending).collect();
            // The policy is everybody's: who comes through a door with others neither changes nor sees it.
            let policy = self.of.approvers.policy().filter(|_| !self.of.owner.is_limited());
            let change = policy.and_then(|file| always::propose(file, &pending));
            let prompt = Prompt::new(&calls, &self.of.code, change);
            let outcome = tokio::select! {
                outcome = self.answered(&calls, &prompt, &mut through) => outcome,
                () = all_over(&mut verdicts) => Outcome::Refused(Refusal::Abandoned),
            };
            match (outcome, &prompt.change) {
                (Outcome::Approved(Approval::Always), Some(change)) => {
                    Outcome::Approved(self.of.approvers.make(change).await)
                }
                (outcome, _) => outcome,
            }
        } else {
            Outcome::Refused(Refusal::TooMany)
        };
        if let Outcome::Approved(scope) = outcome {
            calls.iter().for_each(|call| self.of.grants().add(scope, &call.pending));
        }
        for (call, verdict) in calls.into_iter().zip(verdicts) {
            // Before the call goes out, and without it there is none.
            let recorded = self.record(&call, outcome.as_str(), through);
            let said = match (&outcome, recorded) {
                (Outcome::Refused(refusal), _) => Err(refusal.clone()),
                (Outcome::Approved(_), Err(refusal)) => Err(refusal),
                (Outcome::Approved(scope), Ok(())) => call.approved().map(|permitted| (permitted, *scope)),
            };
            let _ = verdict.send(said);
        }
    }

    /// What a person says: the one behind the AI client, else whoever watches.
    async fn answered(&self, calls: &[Candidate], prompt: &Prompt, through: &mut Option<Means>) -> Outcome {
        let (caller, approvers) = (&self.of.caller, &self.of.approvers);
        let asks = |means: Means| {
            calls
                .iter()
                .try_for_each(|call| self.record(call, "asked", Some(means)))
                .map_err(Outcome::Refused)
        };
        let mut unable = None;
        let client = caller.ai_client.as_ref().filter(|_| approvers.through() == Through::Any);
        if let Some(client) = client.filter(|client| client.can(Mode::Form)) {
            *through = Some(Means::Client);
            if let Err(unrecorded) = asks(Means::Client) {
                return unrecorded;
            }
            match client.put(form::question(prompt), approvers.wait()).await {
                Ok(answer) => return form::read(answer, &prompt.scopes()),
                Err(why) => unable = Some(why),
            }
        }
        if !approvers.desk().is_watched() {
            *through = None;
            return Outcome::Refused(Refusal::Nobody(unable));
        }
        *through = Some(Means::Local(None));
        if let Err(unrecorded) = asks(Means::Local(None)) {
            return unrecorded;
        }
        let ask = Ask::new(prompt, caller, approvers.wait());
        match approvers.desk().put(ask, approvers.wait()).await {
            Some((outcome, means)) => {
                *through = Some(means);
                outcome
            }
            None => Outcome::Refused(Refusal::TimedOut),
        }
    }

    fn record(&self, call: &Candidate, outcome: &str, through: Option<Means>) -> Result<(), Refusal> {
        let (server, item) = (call.pending.server(), call.pending.item());
        let (client, id) = (self.of.caller.client.as_ref(), call.id);
        let line = call.line;
        let subject = Subject { execution: self.of.id(), call: call.call, id, client, server, item, line };
        let by = (through.map(Means::as_str), through.and_then(Means::person));
        self.of.audit.approval(subject, &call.digest.to_hex(), by, outcome).map_err(|error| {
            tracing::error!("{error}");
            Refusal::Unrecorded(error.to_string())
        })
    }
}

/// Waits for what comes together with what is there.
async fn gather(asked: &mut mpsc::Receiver<Waiting>, waiting: &mut VecDeque<Waiting>) {
    let end = Instant::now() + GATHER_MAX;
    while waiting.len() < CALLS_MAX {
        let quiet = (Instant::now() + QUIET).min(end);
        match timeout_at(quiet, asked.recv()).await {
            Ok(Some(next)) => waiting.push_back(next),
            _ => return,
        }
    }
}

/// When nobody waits for any of these.
async fn all_over(verdicts: &mut [oneshot::Sender<Verdict>]) {
    for verdict in verdicts {
        verdict.closed().await;
    }
}
