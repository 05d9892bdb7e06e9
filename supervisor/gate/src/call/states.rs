//! The states of a call, in order: [`CheckedCall`], [`DecidedCall`], [`AdmittedCall`], [`ReadyCall`],
//! [`OutgoingCall`], [`SentCall`].
//!
//! Each state can be made only from the one before and consumes it. So an unchecked call cannot be decided, and a
//! call without an audit record cannot be sent. The steps are implemented in the files next to this one.

use std::time::Duration;

use lockhouse_base::telemetry::{self, Stage};
use lockhouse_catalog::SideEffects;
use lockhouse_policies::{Call, CallTarget, Effect, PermittedCall, ScopedLimits};
use lockhouse_protocol::{Failure, Reply};

use super::attempt::CallAttempt;
use super::decide::{Permission, PermissionError, decide_permission, store_draft};
use super::record::RecordedCall;
use super::{check, recheck};
use crate::approvals::Approval;
use crate::argument_names::RawArguments;
use crate::destination::{Destination, DestinationOffer, ReservedDestination};
use crate::listing_filter;
use crate::tool_request::Dispatch;

/// A call that ended before it was sent.
pub(super) enum EarlyEnd {
    Failed(Failure),
    /// The call has a result without being sent, such as an empty list or a stored draft.
    Answered(Vec<u8>),
}

impl From<Failure> for EarlyEnd {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// A call of an item that the server offers, with valid arguments.
pub(super) struct CheckedCall<'a> {
    attempt: CallAttempt<'a>,
    destination: Destination<'a>,
    offered: DestinationOffer<'a>,
    call: Call,
    /// Timeout requested by the program.
    timeout: Option<Duration>,
}

impl<'a> CheckedCall<'a> {
    pub(super) async fn new(mut attempt: CallAttempt<'a>, raw: RawArguments) -> Result<Self, EarlyEnd> {
        let destination = attempt.gate.destination(attempt.requester, attempt.server())?;
        if check::is_empty_listing(&attempt) {
            return Err(EarlyEnd::Answered(listing_filter::empty_listing()));
        }
        check::refuse_never_permitted(&attempt, &destination)?;
        let offered = attempt.wait_for_server(destination.fetch_offer()).await?;
        let timeout = raw.timeout;
        let call = check::validated_call(&attempt, offered.catalogue(), raw).await?;
        offered.check_supported(attempt.item(), &call.arguments)?;
        Ok(Self { attempt, destination, offered, call, timeout })
    }

    /// Has the policy decide, or an approver if the policy requires approval. If no approver is available, a skill is
    /// stored as a draft.
    pub(super) async fn decide(self) -> Result<DecidedCall<'a>, EarlyEnd> {
        let Self { attempt, destination, offered, call, timeout } = self;
        let draft = offered.draft_store().map(|skills| (skills, call.arguments.clone()));
        let tool = attempt.tool_in(offered.catalogue());
        match decide_permission(&attempt, call, tool).await {
            Ok(permission) => Ok(DecidedCall { attempt, destination, permission, timeout }),
            Err(PermissionError::NobodyToAsk(_)) if let Some((skills, arguments)) = draft => {
                Err(EarlyEnd::Answered(store_draft(&attempt, skills, &arguments).await?))
            }
            Err(unpermitted) => Err(unpermitted.into_recorded_failure(&attempt).into()),
        }
    }
}

/// A call permitted by the policy or by an approver.
pub(super) struct DecidedCall<'a> {
    attempt: CallAttempt<'a>,
    destination: Destination<'a>,
    permission: Permission,
    timeout: Option<Duration>,
}

impl<'a> DecidedCall<'a> {
    /// Counts the call against the policy's limits.
    pub(super) fn admit(self) -> Result<AdmittedCall<'a>, Failure> {
        let Self { attempt, destination, permission, timeout } = self;
        let CallAttempt { gate, requester, .. } = &attempt;
        let limits = gate.policy.limits(permission.call(), requester.client());
        let admitted =
            gate.limiter.admit(&requester.usage, permission.call(), &limits).map_err(|refused| {
                telemetry::count_policy_rate_limit();
                let (reason, place) = (&refused.failure.message, &refused.place);
                gate.record_denial(attempt.subject(), Effect::Deny, reason, Some(place));
                refused.failure
            })?;
        let timeout = [timeout, admitted.timeout].into_iter().flatten().min();
        Ok(AdmittedCall { attempt, destination, permission, limits, timeout })
    }
}

/// A permitted call that is counted against the limits.
pub(super) struct AdmittedCall<'a> {
    attempt: CallAttempt<'a>,
    destination: Destination<'a>,
    permission: Permission,
    limits: Vec<ScopedLimits>,
    timeout: Option<Duration>,
}

impl<'a> AdmittedCall<'a> {
    /// Waits for a slot of the server's concurrency limit, then rechecks the decision.
    pub(super) async fn wait_for_server_slot(self) -> Result<ReadyCall<'a>, Failure> {
        let Self { mut attempt, destination, permission, limits, timeout } = self;
        let server = attempt.wait_for_server(destination.reserve()).await?;
        let tool = attempt.tool_in(server.catalogue());
        recheck::refuse_changed_definition(&attempt, &permission, tool)?;
        let approval = permission.approval();
        let permitted = recheck::recheck_permission(&attempt, permission).await?;
        // The policy's `on_change` may have changed during the wait.
        tool.map_or(Ok(()), |tool| attempt.refuse_unaccepted_tool(tool))?;
        let changes = tool.map_or(SideEffects::None, |tool| tool.side_effects);
        Ok(ReadyCall { attempt, server, permitted, approval, changes, limits, timeout })
    }
}

/// A call that has a slot at its server and is still permitted.
pub(super) struct ReadyCall<'a> {
    attempt: CallAttempt<'a>,
    server: ReservedDestination<'a>,
    permitted: PermittedCall,
    /// Scope of the approval, if a person approved the call.
    approval: Option<Approval>,
    /// Side effects that the server declares for the tool.
    changes: SideEffects,
    limits: Vec<ScopedLimits>,
    timeout: Option<Duration>,
}

impl<'a> ReadyCall<'a> {
    pub(super) fn record(self) -> Result<OutgoingCall<'a>, Failure> {
        let Self { attempt, server, permitted, approval, changes, limits, timeout } = self;
        // Time spent waiting for an approver is not counted as the gate's.
        if approval.is_none() {
            telemetry::record_stage(Stage::Gate, attempt.gate_time());
        }
        let recorded = RecordedCall::new(&attempt, permitted, approval)?;
        Ok(OutgoingCall { attempt, server, recorded, changes, limits, timeout })
    }
}

/// A recorded call that is ready to be sent.
pub(super) struct OutgoingCall<'a> {
    attempt: CallAttempt<'a>,
    server: ReservedDestination<'a>,
    recorded: RecordedCall,
    changes: SideEffects,
    limits: Vec<ScopedLimits>,
    timeout: Option<Duration>,
}

impl<'a> OutgoingCall<'a> {
    pub(super) async fn send(self) -> Result<SentCall<'a>, Failure> {
        let Self { attempt, server, recorded, changes, limits, timeout } = self;
        attempt.request.record_dispatch(Dispatch::Sent(changes));
        let reply = server.call(recorded, timeout, &attempt.requester.caller).await?;
        Ok(SentCall { attempt, limits, reply })
    }
}

/// A call that was sent to its server, with the server's reply.
pub(super) struct SentCall<'a> {
    attempt: CallAttempt<'a>,
    limits: Vec<ScopedLimits>,
    reply: Vec<u8>,
}

impl SentCall<'_> {
    /// Returns the part of the reply that may be passed on: within limits, and only permitted list entries.
    pub(super) fn into_reply(self) -> Reply {
        let Self { attempt, limits, reply } = self;
        let CallAttempt { gate, requester, .. } = attempt;
        gate.limiter.count_result(&requester.usage, &limits, reply.len())?;
        match attempt.item() {
            CallTarget::List(listing) => listing_filter::filter_listing(
                &gate.policy.current(),
                requester.client(),
                attempt.server(),
                *listing,
                &reply,
            ),
            CallTarget::Tool(_) | CallTarget::Resource(_) | CallTarget::Prompt(_) => Ok(reply),
        }
    }
}
