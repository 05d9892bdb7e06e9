//! Groups the calls of an execution that wait for approval into prompts, and sends one prompt at a time to an approver.

mod first_answer;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lockhouse_audit::{ApprovalAnswer, CallSubject, LocalUser};
use lockhouse_policies::{ApprovalRequirement, PendingCall, PermittedCall};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use super::approval_queue::AnswerChannel;
use super::approval_request::{ApprovalRequest, RefusalKey};
use super::outcome::{ApprovalRefusal, PROMPTS_MAX, PromptOutcome};
use super::policy_change::PolicyChange;
use super::prompt::Prompt;
use super::prompt_limits::{ARGUMENT_CHARS_MAX, ARGUMENT_CHARS_MIN};
use super::refusal_backoff::IN_A_ROW_MAX;
use super::{Approval, ExecutionContext, policy_change};

/// Maximum number of calls in one approval prompt; further calls go into the next prompt.
/// Bound: approvals and questions.
const CALLS_MAX: usize = 50;
/// Time without a further call after which the prompt for the waiting calls is sent.
const QUIET_PERIOD: Duration = Duration::from_millis(40);
/// Maximum time from the arrival of the first call of a prompt until the prompt is sent.
const GATHER_MAX: Duration = Duration::from_millis(250);

/// The decision about a call that waits for approval: the permitted call with the scope of the approval, or the
/// refusal.
type Verdict = Result<(PermittedCall, Approval), ApprovalRefusal>;

/// A call that waits for approval, and the channel for the decision about it.
#[derive(Debug)]
pub(super) struct QueuedRequest {
    pub(super) request: ApprovalRequest,
    pub(super) verdict: oneshot::Sender<Verdict>,
}

/// The task that requests approvals for one execution. The task ends with the execution.
pub(super) struct ApprovalBatcher {
    context: Arc<ExecutionContext>,
    /// Number of prompts that were created for this execution.
    prompts: u32,
    /// Number of consecutive refused questions about each tool in this execution. An approval resets the number of
    /// its tool.
    refusal_counts: HashMap<RefusalKey, u32>,
}

impl ApprovalBatcher {
    pub(super) fn new(context: Arc<ExecutionContext>) -> Self {
        Self { context, prompts: 0, refusal_counts: HashMap::new() }
    }

    /// Receives calls that wait for approval and decides about them, until the execution ends.
    pub(super) async fn run(mut self, mut incoming: mpsc::Receiver<QueuedRequest>) {
        let approvers = self.context.approvers.clone();
        let mut waiting = VecDeque::new();
        loop {
            if waiting.is_empty() {
                let Some(first) = incoming.recv().await else { return };
                waiting.push_back(first);
                // A call that needs no question does not wait for further calls.
                self.settle_without_asking(&mut waiting);
                if waiting.is_empty() {
                    continue;
                }
            }
            gather(&mut incoming, &mut waiting).await;
            // While this task waits for the permit, approvers may refuse other questions of the same AI client, and a
            // pause may begin.
            let _permit = approvers.refusal_tracker().acquire_question_permit(self.context.owner()).await;
            self.settle_without_asking(&mut waiting);
            // Sorts the calls into the order in which the program made them.
            waiting.make_contiguous().sort_by_key(|waiting| waiting.request.call);
            let size = batch_size(&waiting);
            let batch: Vec<QueuedRequest> = waiting.drain(..size).collect();
            if !batch.is_empty() {
                self.ask_person(batch).await;
            }
        }
    }

    /// Decides about the waiting calls that need no question: calls that an earlier answer covers, calls that
    /// must be refused without asking, and calls whose caller no longer waits.
    fn settle_without_asking(&self, waiting: &mut VecDeque<QueuedRequest>) {
        for QueuedRequest { request, verdict } in std::mem::take(waiting) {
            if verdict.is_closed() {
                continue;
            }
            let granted = self.context.grants.lock().approval_for(&request.pending);
            if let Some(how) = granted {
                drop(verdict.send(request.into_permitted().map(|permitted| (permitted, how))));
            } else if let Some(refusal) = self.refusal_without_asking(&request) {
                // The call is refused even if the audit record cannot be written.
                let _ = self.record(&request, PromptOutcome::Refused(refusal.clone()).as_str(), None);
                drop(verdict.send(Err(refusal)));
            } else {
                waiting.push_back(QueuedRequest { request, verdict });
            }
        }
    }

    /// Returns the reason for which a call is refused without asking an approver; `None` if an approver must be asked.
    fn refusal_without_asking(&self, call: &ApprovalRequest) -> Option<ApprovalRefusal> {
        if let Some(hidden) = &call.hidden {
            return Some(ApprovalRefusal::Hidden(hidden.clone()));
        }
        if self.refusal_counts.get(&call.refusal_key()).is_some_and(|count| *count >= IN_A_ROW_MAX) {
            return Some(ApprovalRefusal::Final);
        }
        self.context
            .approvers
            .refusal_tracker()
            .current_pause(self.context.owner())
            .map(ApprovalRefusal::Paused)
    }

    /// Updates the counters of refusals with the outcome of an approval prompt. `was_put` tells whether the
    /// prompt was sent to an approver.
    fn count_outcome(&mut self, calls: &[ApprovalRequest], outcome: &PromptOutcome, was_put: bool) {
        let (refusals, owner) = (self.context.approvers.refusal_tracker(), self.context.owner());
        let tools: BTreeSet<RefusalKey> = calls.iter().map(ApprovalRequest::refusal_key).collect();
        match outcome {
            PromptOutcome::Approved(_) => {
                refusals.record_approval(owner);
                self.refusal_counts.retain(|tool, _| !tools.contains(tool));
            }
            PromptOutcome::Refused(refusal)
                if refusal.is_persons_refusal() || was_put && self.was_abandoned_by_program(refusal) =>
            {
                refusals.record_refusal(owner);
                tools.into_iter().for_each(|tool| *self.refusal_counts.entry(tool).or_default() += 1);
            }
            PromptOutcome::Refused(_) => {}
        }
    }

    /// Whether a question has no answer because the program or its AI client ended the execution. Such a question
    /// counts as refused, so that a program that is run again and again cannot repeat the same question without
    /// limit.
    fn was_abandoned_by_program(&self, refusal: &ApprovalRefusal) -> bool {
        *refusal == ApprovalRefusal::Abandoned && !self.context.is_cancelled.load(Ordering::Acquire)
    }

    /// Asks an approver about a group of calls, and sends the decision to the caller of each.
    async fn ask_person(&mut self, batch: Vec<QueuedRequest>) {
        let (calls, mut verdicts): (Vec<_>, Vec<_>) =
            batch.into_iter().map(|waiting| (waiting.request, waiting.verdict)).unzip();
        let (mut channel, mut satisfied) = (None, ApprovalRequirement::default());
        let outcome = if self.prompts < PROMPTS_MAX {
            self.prompts += 1;
            let pending: Vec<&PendingCall> = calls.iter().map(|call| &call.pending).collect();
            // The policy applies to all AI clients, so AI clients with limited rights must neither see nor change it.
            let policy = self.context.approvers.policy_file().filter(|_| !self.context.owner().is_limited());
            let change = policy.and_then(|file| policy_change::propose(file, &pending));
            let required = self.context.approvers.presence().level();
            let prompt = Prompt::new(&calls, &self.context.code, change, required);
            satisfied = prompt.satisfied();
            let outcome = tokio::select! {
                outcome = self.await_answer(&calls, &prompt, &mut channel) => outcome,
                () = all_receivers_closed(&mut verdicts) => PromptOutcome::Refused(ApprovalRefusal::Abandoned),
            };
            match (outcome, &prompt.change) {
                (PromptOutcome::Approved(Approval::Always), Some(change)) => {
                    PromptOutcome::Approved(self.change_policy(change, &calls, channel.as_ref()).await)
                }
                (outcome, _) => outcome,
            }
        } else {
            PromptOutcome::Refused(ApprovalRefusal::TooMany)
        };
        self.count_outcome(&calls, &outcome, channel.is_some());
        if let PromptOutcome::Approved(scope) = outcome {
            calls.iter().for_each(|call| self.context.grants.lock().add(scope, &call.pending, satisfied));
        }
        for (call, verdict) in calls.into_iter().zip(verdicts) {
            // The audit record of the approval is written before the call is sent. If it cannot be written, the call is
            // not made.
            let recorded = self.record(&call, outcome.as_str(), channel.as_ref());
            let decision = match (&outcome, recorded) {
                (PromptOutcome::Refused(refusal), _) => Err(refusal.clone()),
                (PromptOutcome::Approved(_), Err(refusal)) => Err(refusal),
                (PromptOutcome::Approved(scope), Ok(())) => {
                    call.into_permitted().map(|permitted| (permitted, *scope))
                }
            };
            let _ = verdict.send(decision);
        }
    }

    /// Changes the policy as an approver has decided. The change is recorded first; without a record, the answer approves
    /// only the calls of its prompt.
    async fn change_policy(
        &self,
        change: &PolicyChange,
        calls: &[ApprovalRequest],
        channel: Option<&AnswerChannel>,
    ) -> Approval {
        let by = channel.and_then(AnswerChannel::peer).unwrap_or_else(LocalUser::current);
        let names =
            calls.iter().map(|call| format!("{}.{}", call.pending.server(), call.pending.item().as_str()));
        let names: BTreeSet<String> = names.collect();
        let action = format!("allow {}", names.into_iter().collect::<Vec<_>>().join(", "));
        let edit = change.edit(&action, channel.and_then(AnswerChannel::presence));
        let pending = match self.context.audit.begin_change(edit, by) {
            Ok(pending) => pending,
            Err(error) => {
                tracing::error!("the call was approved once, and the policy stays as it was: {error}");
                return Approval::Once;
            }
        };
        match change.apply() {
            Ok(()) => pending.done(),
            Err(error) => {
                tracing::warn!("the call was approved once, and the policy stays as it was: {error}");
                pending.failed(&error.to_string());
                return Approval::Once;
            }
        }
        tracing::info!("an approver changed the policy:\n{}", change.diff);
        self.context.approvers.await_reload().await;
        Approval::Always
    }

    /// Writes an audit record about a call that requires approval: that an approver was asked (`outcome` is
    /// `asked`), or how the approval ended.
    fn record(
        &self,
        call: &ApprovalRequest,
        outcome: &str,
        channel: Option<&AnswerChannel>,
    ) -> Result<(), ApprovalRefusal> {
        let (server, item) = (call.pending.server(), call.pending.item());
        let (client, id) = (self.context.channel.client(), call.id);
        let line = call.line;
        let subject =
            CallSubject { execution: self.context.id(), call: call.call, id, client, server, item, line };
        let local = channel.and_then(AnswerChannel::local_answer);
        let answer = ApprovalAnswer {
            through: channel.map(AnswerChannel::as_str),
            by: channel.and_then(AnswerChannel::peer),
            presence: channel.and_then(AnswerChannel::presence),
            approver: local.and_then(|answer| answer.approver.as_ref()),
            break_glass: local.and_then(|answer| answer.break_glass.as_deref()),
        };
        self.context.audit.approval(subject, &call.digest.to_hex(), answer, outcome).map_err(|error| {
            tracing::error!("{error}");
            ApprovalRefusal::Unrecorded(error.to_string())
        })
    }
}

/// Returns how many of the waiting calls the next approval prompt shows, beginning with the first call. The prompt
/// has space for the arguments of each of these calls. The number is at least 1 if a call waits.
fn batch_size(waiting: &VecDeque<QueuedRequest>) -> usize {
    let mut needed = 0;
    let fits = |(index, waiting): &(usize, &QueuedRequest)| {
        needed = needed.max(waiting.request.chars_needed);
        let alone = waiting.request.needs_own_prompt();
        *index == 0 || !alone && needed <= (ARGUMENT_CHARS_MAX / (index + 1)).max(ARGUMENT_CHARS_MIN)
    };
    let first_alone = waiting.front().is_some_and(|first| first.request.needs_own_prompt());
    let most = if first_alone { 1 } else { CALLS_MAX };
    waiting.iter().take(most).enumerate().take_while(fits).count()
}

/// Receives further calls that arrive shortly after the first one, so that one approval prompt can show them
/// together.
async fn gather(incoming: &mut mpsc::Receiver<QueuedRequest>, waiting: &mut VecDeque<QueuedRequest>) {
    let end = Instant::now() + GATHER_MAX;
    while waiting.len() < CALLS_MAX {
        let quiet = (Instant::now() + QUIET_PERIOD).min(end);
        match timeout_at(quiet, incoming.recv()).await {
            Ok(Some(next)) => waiting.push_back(next),
            _ => return,
        }
    }
}

/// Completes when the receivers of all these decisions are closed, so that no call waits for a decision any more.
async fn all_receivers_closed(verdicts: &mut [oneshot::Sender<Verdict>]) {
    for verdict in verdicts {
        verdict.closed().await;
    }
}
