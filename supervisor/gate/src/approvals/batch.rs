//! Calls that wait for a person: gathered, put to them one prompt at a time, and answered one by one.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lockhouse_audit::Subject;
use lockhouse_policies::{PendingCall, PermittedCall};
use lockhouse_upstream::ai_client::Mode;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use super::candidate::{Candidate, Tool};
use super::desk::Means;
use super::messages::Ask;
use super::outcome::{Outcome, PROMPTS_MAX, Refusal};
use super::prompt::Prompt;
use super::refusals::IN_A_ROW_MAX;
use super::room::{ROOM, ROOM_MIN};
use super::{Approval, Execution, Through, always, form};

/// Calls of one prompt; those beyond it are in the next.
const CALLS_MAX: usize = 50;
/// A prompt is made when nothing more has come for so long,
const QUIET: Duration = Duration::from_millis(40);
/// and at the latest after this.
const GATHER_MAX: Duration = Duration::from_millis(250);

type Verdict = Result<(PermittedCall, Approval), Refusal>;

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
    /// Of each tool, questions that were refused in a row.
    refused: HashMap<Tool, u32>,
}

impl Batches {
    pub(super) fn new(of: Arc<Execution>) -> Self {
        Self { of, prompts: 0, refused: HashMap::new() }
    }

    pub(super) async fn run(mut self, mut asked: mpsc::Receiver<Waiting>) {
        let approvers = self.of.approvers.clone();
        let mut waiting = VecDeque::new();
        loop {
            if waiting.is_empty() {
                let Some(first) = asked.recv().await else { return };
                waiting.push_back(first);
                // What nobody is asked about waits for no other call.
                self.let_go(&mut waiting);
                if waiting.is_empty() {
                    continue;
                }
            }
            gather(&mut asked, &mut waiting).await;
            // Until it is this execution's turn, other questions of the client may be refused, and a pause begin.
            let _turn = approvers.refusals().turn(self.of.owner).await;
            self.let_go(&mut waiting);
            // In the order in which the code made them.
            waiting.make_contiguous().sort_by_key(|waiting| waiting.candidate.call);
            let together = together(&waiting);
            let batch: Vec<Waiting> = waiting.drain(..together).collect();
            if !batch.is_empty() {
                self.ask(batch).await;
            }
        }
    }

    /// Lets those go that the answer to the prompt before was for as well, those that nobody is asked about, and those that
    /// nobody waits for.
    fn let_go(&self, waiting: &mut VecDeque<Waiting>) {
        for Waiting { candidate, verdict } in std::mem::take(waiting) {
            if verdict.is_closed() {
                continue;
            }
            let granted = self.of.grants().find(&candidate.pending);
            if let Some(how) = granted {
                drop(verdict.send(candidate.approved().map(|permitted| (permitted, how))));
            } else if let Some(refusal) = self.unasked(&candidate) {
                // Without its record it is refused as well.
                let _ = self.record(&candidate, Outcome::Refused(refusal.clone()).as_str(), None);
                drop(verdict.send(Err(refusal)));
            } else {
                waiting.push_back(Waiting { candidate, verdict });
            }
        }
    }

    /// Why nobody is asked about a call, if nobody is.
    fn unasked(&self, call: &Candidate) -> Option<Refusal> {
        if let Some(hidden) = &call.hidden {
            return Some(Refusal::Hidden(hidden.clone()));
        }
        if self.refused.get(&call.tool()).is_some_and(|count| *count >= IN_A_ROW_MAX) {
            return Some(Refusal::Final);
        }
        self.of.approvers.refusals().pause(self.of.owner).map(Refusal::Paused)
    }

    /// Counts what a person said to these calls, which were put to somebody or not.
    fn count(&mut self, calls: &[Candidate], outcome: &Outcome, was_put: bool) {
        let (refusals, owner) = (self.of.approvers.refusals(), self.of.owner);
        let tools: BTreeSet<Tool> = calls.iter().map(Candidate::tool).collect();
        match outcome {
            Outcome::Approved(_) => {
                refusals.approved(owner);
                self.refused.retain(|tool, _| !tools.contains(tool));
            }
            Outcome::Refused(refusal) if refusal.is_a_persons() || was_put && self.is_left(refusal) => {
                refusals.refused(owner);
                tools.into_iter().for_each(|tool| *self.refused.entry(tool).or_default() += 1);
            }
            Outcome::Refused(_) => {}
        }
    }

    /// Whether the program or its client left the question: it could be run to ask again and again.
    fn is_left(&self, refusal: &Refusal) -> bool {
        *refusal == Refusal::Abandoned && !self.of.is_cancelled.load(Ordering::Acquire)
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
        self.count(&calls, &outcome, through.is_some());
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

/// How many of the first calls are one table: as many as leave each the room that it needs, and one if that is none.
fn together(waiting: &VecDeque<Waiting>) -> usize {
    let mut needed = 0;
    let fits = |(index, waiting): &(usize, &Waiting)| {
        needed = needed.max(waiting.candidate.room_needed);
        let alone = waiting.candidate.stands_alone();
        *index == 0 || !alone && needed <= (ROOM / (index + 1)).max(ROOM_MIN)
    };
    let first_alone = waiting.front().is_some_and(|first| first.candidate.stands_alone());
    let most = if first_alone { 1 } else { CALLS_MAX };
    waiting.iter().take(most).enumerate().take_while(fits).count()
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
