//! The states of a call that goes out, in their order: [`CheckedCall`], [`DecidedCall`], [`AdmittedCall`], [`ReadyCall`],
//! [`OutgoingCall`], [`SentCall`].
//!
//! Each is made of the one before it alone, and uses it up. So a call that was not checked is never decided about, and
//! one that has no record is never sent. What the steps do is in the files beside this one.

use std::time::Duration;

use lockhouse_base::telemetry::{self, Stage};
use lockhouse_catalog::Changes;
use lockhouse_policies::{Call, Effect, Item, PermittedCall, ScopedLimits};
use lockhouse_protocol::{Failure, Reply};

use super::attempt::Attempt;
use super::decide::{Permission, Unpermitted, keep_draft, permission};
use super::record::RecordedCall;
use super::{check, recheck};
use crate::approvals::Approval;
use crate::arguments::Given;
use crate::asked::Made;
use crate::destination::{Destination, Offered, Ready};
use crate::listed;

/// A call that is over before it goes out.
pub(super) enum NotSent {
    Failed(Failure),
    /// It succeeded all the same.
    Answered(Vec<u8>),
}

impl From<Failure> for NotSent {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// A call of what its server offers, with arguments that fit.
pub(super) struct CheckedCall<'a> {
    attempt: Attempt<'a>,
    destination: Destination<'a>,
    offered: Offered<'a>,
    call: Call,
    /// That the program asks for.
    timeout: Option<Duration>,
}

impl<'a> CheckedCall<'a> {
    pub(super) async fn new(mut attempt: Attempt<'a>, given: Given) -> Result<Self, NotSent> {
        let destination = attempt.gate.destination(attempt.from, attempt.server())?;
        if check::lists_nothing(&attempt) {
            return Err(NotSent::Answered(listed::nothing()));
        }
        check::refuse_hopeless(&attempt, &destination)?;
        let offered = attempt.wait(destination.offer()).await?;
        let call = check::fitting_call(&attempt, offered.catalogue(), &given.arguments).await?;
        offered.offers(attempt.item(), &call.arguments)?;
        Ok(Self { attempt, destination, offered, call, timeout: given.timeout })
    }

    /// Has the policy decide, or the person to whom the policy leaves the call. A skill that nobody can be asked about is
    /// kept until somebody can.
    pub(super) async fn decide(self) -> Result<DecidedCall<'a>, NotSent> {
        let Self { attempt, destination, offered, call, timeout } = self;
        let draft = offered.drafts().map(|skills| (skills, call.arguments.clone()));
        let tool = attempt.tool_in(offered.catalogue());
        match permission(&attempt, call, tool).await {
            Ok(permission) => Ok(DecidedCall { attempt, destination, permission, timeout }),
            Err(Unpermitted::NobodyToAsk(_)) if let Some((skills, arguments)) = draft => {
                Err(NotSent::Answered(keep_draft(&attempt, skills, &arguments).await?))
            }
            Err(unpermitted) => Err(unpermitted.noted(&attempt).into()),
        }
    }
}

/// A call that the policy permits, or a person.
pub(super) struct DecidedCall<'a> {
    attempt: Attempt<'a>,
    destination: Destination<'a>,
    permission: Permission,
    timeout: Option<Duration>,
}

impl<'a> DecidedCall<'a> {
    /// Counts the call against the policy's limits.
    pub(super) fn admit(self) -> Result<AdmittedCall<'a>, Failure> {
        let Self { attempt, destination, permission, timeout } = self;
        let Attempt { gate, from, .. } = &attempt;
        let limits = gate.policy.limits(permission.call(), from.client());
        let admitted = gate.limiter.admit(&from.usage, permission.call(), &limits).map_err(|refused| {
            telemetry::limited_by_policy();
            let (reason, place) = (&refused.failure.message, &refused.place);
            gate.note_denial(attempt.subject(), Effect::Deny, reason, Some(place));
            refused.failure
        })?;
        let timeout = [timeout, admitted.timeout].into_iter().flatten().min();
        Ok(AdmittedCall { attempt, destination, permission, limits, timeout })
    }
}

/// A permitted call that is counted.
pub(super) struct AdmittedCall<'a> {
    attempt: Attempt<'a>,
    destination: Destination<'a>,
    permission: Permission,
    limits: Vec<ScopedLimits>,
    timeout: Option<Duration>,
}

impl<'a> AdmittedCall<'a> {
    /// Waits for its turn at the server. What the decision rests on may have changed until then.
    pub(super) async fn wait_for_turn(self) -> Result<ReadyCall<'a>, Failure> {
        let Self { mut attempt, destination, permission, limits, timeout } = self;
        let server = attempt.wait(destination.turn()).await?;
        let tool = attempt.tool_in(server.catalogue());
        recheck::refuse_another_tool(&attempt, &permission, tool)?;
        let approval = permission.approval();
        let permitted = recheck::still_permitted(&attempt, permission).await?;
        // The policy may say something else of tools that have changed than before the wait.
        tool.map_or(Ok(()), |tool| attempt.refuse_changed(tool))?;
        let changes = tool.map_or(Changes::Nothing, |tool| tool.changes);
        Ok(ReadyCall { attempt, server, permitted, approval, changes, limits, timeout })
    }
}

/// A call whose turn it is, and that is still permitted.
pub(super) struct ReadyCall<'a> {
    attempt: Attempt<'a>,
    server: Ready<'a>,
    permitted: PermittedCall,
    /// By a person.
    approval: Option<Approval>,
    /// What the server declares that it changes.
    changes: Changes,
    limits: Vec<ScopedLimits>,
    timeout: Option<Duration>,
}

impl<'a> ReadyCall<'a> {
    pub(super) fn record(self) -> Result<OutgoingCall<'a>, Failure> {
        let Self { attempt, server, permitted, approval, changes, limits, timeout } = self;
        // What a person takes is not the gate's.
        if approval.is_none() {
            telemetry::took(Stage::Gate, attempt.own_time());
        }
        let recorded = RecordedCall::new(&attempt, permitted, approval)?;
        Ok(OutgoingCall { attempt, server, recorded, changes, limits, timeout })
    }
}

/// A call that goes out now.
pub(super) struct OutgoingCall<'a> {
    attempt: Attempt<'a>,
    server: Ready<'a>,
    recorded: RecordedCall,
    changes: Changes,
    limits: Vec<ScopedLimits>,
    timeout: Option<Duration>,
}

impl<'a> OutgoingCall<'a> {
    pub(super) async fn send(self) -> Result<SentCall<'a>, Failure> {
        let Self { attempt, server, recorded, changes, limits, timeout } = self;
        attempt.asked.note(Made::Sent(changes));
        let reply = server.call(recorded, timeout, &attempt.from.caller).await?;
        Ok(SentCall { attempt, limits, reply })
    }
}

/// A call that was answered.
pub(super) struct SentCall<'a> {
    attempt: Attempt<'a>,
    limits: Vec<ScopedLimits>,
    reply: Vec<u8>,
}

impl SentCall<'_> {
    /// What of the answer is handed on.
    pub(super) fn into_reply(self) -> Reply {
        let Self { attempt, limits, reply } = self;
        let Attempt { gate, from, .. } = attempt;
        gate.limiter.received(&from.usage, &limits, reply.len())?;
        match attempt.item() {
            Item::List(listing) => {
                listed::permitted(&gate.policy.now(), from.client(), attempt.server(), *listing, &reply)
            }
            Item::Tool(_) | Item::Resource(_) | Item::Prompt(_) => Ok(reply),
        }
    }
}
