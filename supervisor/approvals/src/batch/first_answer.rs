//! Sends a prompt to the user of the AI client and to the approvers on this machine, and waits for the first answer. An AI
//! client that declines at once has probably shown the prompt to no person.

use std::pin::pin;
use std::time::Duration;

use lockhouse_messages::{Answer, QuestionKind};
use lockhouse_policies::Call;
use lockhouse_run_channel::RunChannel;
use tokio::time::Instant;

use super::ApprovalBatcher;
use crate::approval_queue::{AnswerChannel, TakenAnswer};
use crate::approval_request::ApprovalRequest;
use crate::approver::Eligibility;
use crate::outcome::{ApprovalRefusal, PromptOutcome};
use crate::prompt::Prompt;
use crate::{Approval, ApproverKind, elicitation_form};

/// The outcome in the record of an approval after which more people must approve.
const APPROVED_IN_PART: &str = "approved in part";
/// Minimum time in which a person can decline an approval question. If an AI client declines faster, it probably
/// asked no person.
const DECLINE_AT_ONCE: Duration = Duration::from_secs(1);

impl ApprovalBatcher {
    /// Sends the prompt to the user of the AI client and, at the same time, to the watchers: users who run `lockhouse
    /// approvals` on this machine, or will do so because they get a notice. Omits the user if the AI client does not support
    /// forms or the configuration permits only watchers to answer. Waits for the first answer. Stores in `channel` where the
    /// prompt was answered, or where it was sent if there is no answer.
    pub(super) async fn await_answer(
        &self,
        calls: &[ApprovalRequest],
        prompt: &Prompt,
        channel: &mut Option<AnswerChannel>,
    ) -> PromptOutcome {
        let approvers = &self.context.approvers;
        let asks_client = approvers.approver_kind(prompt) == ApproverKind::Any;
        let client =
            Some(&self.context.channel).filter(|client| asks_client && client.supports(QuestionKind::Form));
        let can_answer = approvers.can_answer();
        let asked = [client.map(|_| AnswerChannel::Client), can_answer.then_some(AnswerChannel::Local(None))];
        for asked in asked.into_iter().flatten() {
            if let Err(refusal) = calls.iter().try_for_each(|call| self.record(call, "asked", Some(&asked))) {
                channel.get_or_insert(asked);
                return PromptOutcome::Refused(refusal);
            }
            channel.get_or_insert(asked);
        }
        let mut of_watchers = pin!(self.ask_watchers(calls, prompt));
        let of_client = async {
            match client {
                Some(client) => self.ask_client(client, prompt).await,
                None => Err(ApprovalRefusal::NoApprover(None)),
            }
        };
        let first = tokio::select! {
            answer = of_client => Some(answer),
            outcome = &mut of_watchers, if can_answer => {
                let (outcome, used_channel) = outcome;
                *channel = used_channel.or(channel.take());
                return outcome;
            }
        };
        match first {
            Some(Ok(outcome)) => {
                *channel = Some(AnswerChannel::Client);
                outcome
            }
            Some(Err(refusal)) if !can_answer => {
                if refusal == ApprovalRefusal::DeclinedAtOnce {
                    // For the operator, since the model cannot change it.
                    tracing::warn!(
                        "the AI client declined an approval question at once, and may not have asked its user; to answer \
                         on this machine, set `through = \"local\"` under `[approvals]` and run `lockhouse approvals`"
                    );
                }
                if matches!(refusal, ApprovalRefusal::NoApprover(_)) {
                    *channel = None;
                }
                PromptOutcome::Refused(refusal)
            }
            _ => {
                *channel = Some(AnswerChannel::Local(None));
                let (outcome, used_channel) = of_watchers.await;
                *channel = used_channel.or(channel.take());
                outcome
            }
        }
    }

    /// Asks the user of the AI client. Fails if the client could not ask its user, or declined so quickly that it
    /// probably did not ask. [`Self::await_answer`] ignores such a failure if watchers were asked too.
    async fn ask_client(
        &self,
        client: &RunChannel,
        prompt: &Prompt,
    ) -> Result<PromptOutcome, ApprovalRefusal> {
        let asked = Instant::now();
        let question = elicitation_form::build_question(prompt);
        match client.ask_unrecorded(question, self.context.approvers.answer_timeout()).await {
            Ok(Answer::Decline | Answer::Cancel) if asked.elapsed() < DECLINE_AT_ONCE => {
                Err(ApprovalRefusal::DeclinedAtOnce)
            }
            Ok(answer) => Ok(elicitation_form::parse_answer(answer, &prompt.scopes())),
            Err(why) => Err(ApprovalRefusal::NoApprover(Some(why))),
        }
    }

    /// Asks the watchers on this machine until as many people have approved the calls as are required. Returns the outcome, and
    /// the channel of the watcher who answered last.
    async fn ask_watchers(
        &self,
        calls: &[ApprovalRequest],
        prompt: &Prompt,
    ) -> (PromptOutcome, Option<AnswerChannel>) {
        let approvers = &self.context.approvers;
        // Also if the policy has no roles yet: it may have them before the answer.
        let about: Vec<Call> = calls.iter().map(|call| call.pending.call().clone()).collect();
        let roles = approvers.queue().policy().approving_roles(&about);
        let mut eligibility = Eligibility::new(prompt.requirement, self.context.channel.principal(), about);
        let expires = prompt.requirement.expires_seconds.map(|seconds| Duration::from_secs(seconds.into()));
        let wait = approvers.answer_timeout();
        let mut left = expires.map_or(wait, |expires| expires.min(wait));
        let end = Instant::now() + left;
        let mut scope = Approval::Always;
        loop {
            let question = prompt.to_question(&self.context.channel, left, &eligibility, roles.clone());
            let Some(answer) = approvers.queue().ask(question, eligibility.clone(), left).await else {
                return (PromptOutcome::Refused(ApprovalRefusal::TimedOut), None);
            };
            let TakenAnswer { outcome, channel, approver } = answer;
            let PromptOutcome::Approved(of_answer) = outcome else { return (outcome, Some(channel)) };
            scope = scope.min(of_answer);
            let is_alone = channel.local_answer().is_some_and(|answer| answer.break_glass.is_some());
            if is_alone || eligibility.add(approver, &approvers.queue().policy()) {
                return (PromptOutcome::Approved(scope), Some(channel));
            }
            let record = |call| self.record(call, APPROVED_IN_PART, Some(&channel));
            if let Err(refusal) = calls.iter().try_for_each(record) {
                return (PromptOutcome::Refused(refusal), Some(channel));
            }
            left = end.saturating_duration_since(Instant::now());
        }
    }
}
