//! The way of every call: checked, decided, admitted, its turn, recorded, sent.
//!
//! The steps are in this order so that nothing is told of what is not permitted, nobody is asked about what cannot be sent,
//! and nothing is counted, recorded or sent that is refused. [`states`] has a type for each, so that none can be left out.

mod attempt;
mod check;
mod decide;
mod recheck;
mod record;
mod states;

use std::time::{Duration, Instant};

use lockhouse_base::telemetry;
use lockhouse_catalog::Lesson;
use lockhouse_policies::Item;
use lockhouse_protocol::{CallId, Failure, FailureCode, Reply};

use super::arguments::Given;
use super::asked::{Asked, CallRecord, Made};
use super::failures::about;
use super::skills::is_skills;
use super::{Gate, Requester};
use attempt::Attempt;
use states::{CheckedCall, NotSent, OutgoingCall};

pub(super) use record::RecordedCall;

impl Gate {
    /// Makes a call, and records what became of it.
    pub(super) async fn call(
        &self,
        from: &Requester,
        call: CallId,
        asked: &Asked,
        given: Given,
    ) -> (Reply, CallRecord) {
        let started = Instant::now();
        let lesson = from.caller.wire.is_none().then(|| self.lesson(asked, &given)).flatten();
        let reply = match self.try_call(from, call, asked, given).await {
            // Who has the server directly reads its own words.
            Err(failure) if from.caller.wire.is_none() => {
                Err(self.explained(from, call, asked, failure).await)
            }
            reply => reply,
        };
        let outcome = outcome(asked, &reply);
        let (took, bytes) = (started.elapsed(), reply.as_ref().map_or(0, Vec::len));
        let known = self.upstreams.get(&asked.server).is_some() || is_skills(&asked.server);
        telemetry::called(known.then_some(asked.server.as_str()), outcome);
        // What was decided against has its record already.
        if !matches!(outcome, "denied" | "approval_declined" | "rate_limited") {
            self.record_outcome(from, call, asked, outcome, took, bytes);
        }
        if let (Some(lesson), Ok(json)) = (lesson, &reply) {
            lesson.learn(json);
        }
        (reply, CallRecord::new(asked, outcome, took, bytes))
    }

    /// A call whose execution ended before its answer came. Whether one that was sent took effect is not known; one that was not
    /// sent has changed nothing.
    pub fn abandoned(&self, from: &Requester, call: CallId, asked: &Asked, took: Duration) -> CallRecord {
        // What waits for a person was not made.
        if from.approvals.is_waiting(call) {
            return CallRecord::new(asked, FailureCode::ApprovalDeclined.as_str(), took, 0);
        }
        let outcome = if asked.made().is_some() { "unknown" } else { "not_sent" };
        self.record_outcome(from, call, asked, outcome, took, 0);
        CallRecord::new(asked, outcome, took, 0)
    }

    /// Makes a call. What becomes of it is for the caller to record.
    pub(super) async fn try_call(
        &self,
        from: &Requester,
        call: CallId,
        asked: &Asked,
        given: Given,
    ) -> Reply {
        let named = |failure: Failure| about(failure, &asked.server, &asked.item);
        let outgoing = match prepare(Attempt::new(self, from, call, asked), given).await {
            Ok(outgoing) => outgoing,
            Err(NotSent::Answered(reply)) => return Ok(reply),
            Err(NotSent::Failed(failure)) => return Err(named(failure)),
        };
        // A failure of the server has its names already.
        let sent = outgoing.send().await?;
        sent.into_reply().map_err(named)
    }

    /// Whether to learn from the result of this call what the tool answers.
    fn lesson(&self, asked: &Asked, given: &Given) -> Option<Lesson> {
        let Item::Tool(tool) = &asked.item else { return None };
        let connection = self.upstreams.get(&asked.server)?;
        connection.shapes.lesson(connection.known()?.tool(tool)?, &given.arguments)
    }

    fn record_outcome(
        &self,
        from: &Requester,
        call: CallId,
        asked: &Asked,
        outcome: &str,
        took: Duration,
        bytes: usize,
    ) {
        if let Err(error) = self.audit.outcome(asked.subject(from, call), outcome, took, bytes) {
            tracing::error!("{error}");
        }
    }
}

/// All that comes before a call goes out.
async fn prepare(attempt: Attempt<'_>, given: Given) -> Result<OutgoingCall<'_>, NotSent> {
    let checked = CheckedCall::new(attempt, given).await?;
    let decided = checked.decide().await?;
    let admitted = decided.admit()?;
    let ready = admitted.wait_for_turn().await?;
    Ok(ready.record()?)
}

/// As the log and the answer name it.
fn outcome(asked: &Asked, reply: &Reply) -> &'static str {
    match reply {
        Err(failure) => failure.code.as_str(),
        Ok(_) if asked.made() == Some(Made::Draft) => "draft",
        Ok(_) => "ok",
    }
}
