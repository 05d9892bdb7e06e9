//! The states of a call, in order: [`CheckedCall`], [`DecidedCall`], [`AdmittedCall`], [`ReadyCall`],
//! [`OutgoingCall`], [`SentCall`].
//!
//! A value of each state can be created only from a value of the previous state, which it consumes. So an unchecked
//! call cannot be decided, and a call without an audit record cannot be sent. The files next to this one implement the
//! steps.

use std::time::Duration;

use lockhouse_base::telemetry::{self, Stage};
use lockhouse_catalog::SideEffects;
use lockhouse_policies::{Call, CallTarget, Effect, PermittedCall, ScopedLimits};
use lockhouse_protocol::{Failure, Reply};

use super::attempt::CallAttempt;
use super::decide::{Permission, PermissionError, decide_permission, store_draft};
use super::record::{self, RecordedCall};
use super::{check, file_path, recheck};
use crate::argument_names::RawArguments;
use crate::destination::{Destination, DestinationOffer, ReservedDestination};
use crate::listing_filter;
use crate::tool_request::Dispatch;
use lockhouse_messages::Approval;

/// How the processing of a call ended before the call was sent to its server.
pub(super) enum EarlyEnd {
    /// The call failed.
    Failed(Failure),
    /// The call has a result although it was not sent, such as an empty list or a stored draft.
    Answered(Vec<u8>),
}

impl From<Failure> for EarlyEnd {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// A call of an item that the destination offers, with valid arguments.
pub(super) struct CheckedCall<'a> {
    attempt: CallAttempt<'a>,
    destination: Destination,
    offered: DestinationOffer,
    call: Call,
    /// The timeout that the program requests; `None` if it requests none.
    timeout: Option<Duration>,
}

impl<'a> CheckedCall<'a> {
    pub(super) async fn new(mut attempt: CallAttempt<'a>, raw: RawArguments) -> Result<Self, EarlyEnd> {
        let destination = attempt.gate.destination(attempt.run, attempt.server())?;
        check::refuse_never_permitted(&attempt, &destination)?;
        let (gate, run) = (attempt.gate, attempt.run);
        let destination = attempt.wait_for_server(gate.own_destination(run, destination)).await?;
        let offered = attempt.wait_for_server(destination.fetch_offer()).await?;
        let timeout = raw.timeout;
        let mut call = check::validated_call(&attempt, offered.catalogue(), raw).await?;
        if let Some(content) = attempt.request.content() {
            call.arguments.extend(content.description());
        }
        offered.check_supported(attempt.item(), &call.arguments)?;
        let call = match offered.file_access() {
            Some(files) => file_path::with_target_path(&attempt, files, call).await?,
            None => call,
        };
        Ok(Self { attempt, destination, offered, call, timeout })
    }

    /// Decides whether the call is permitted: by the policy, or by an approver if the policy requires approval. If no
    /// approver is available, a skill is stored as a draft.
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

/// A call that the policy or an approver has permitted.
pub(super) struct DecidedCall<'a> {
    attempt: CallAttempt<'a>,
    destination: Destination,
    permission: Permission,
    timeout: Option<Duration>,
}

impl<'a> DecidedCall<'a> {
    /// Counts the call against the limits (quotas and rates) of the policy. Fails if the call would exceed a
    /// limit.
    pub(super) fn admit(self) -> Result<AdmittedCall<'a>, Failure> {
        let Self { attempt, destination, permission, timeout } = self;
        let CallAttempt { gate, run, .. } = &attempt;
        let limits = gate.policy.limits(permission.call(), run.client());
        let admitted = gate.limiter.admit(&run.usage, permission.call(), &limits).map_err(|refused| {
            telemetry::count_policy_rate_limit();
            let (reason, place) = (&refused.failure.message, &refused.place);
            gate.record_denial(attempt.subject(), Effect::Deny, reason, Some(place));
            refused.failure
        })?;
        let timeout = [timeout, admitted.timeout].into_iter().flatten().min();
        Ok(AdmittedCall { attempt, destination, permission, limits, timeout })
    }
}

/// A permitted call that was counted against the policy's limits.
pub(super) struct AdmittedCall<'a> {
    attempt: CallAttempt<'a>,
    destination: Destination,
    permission: Permission,
    limits: Vec<ScopedLimits>,
    timeout: Option<Duration>,
}

impl<'a> AdmittedCall<'a> {
    /// Waits until the audit log is delivered, if the configuration requires that, until the server's concurrency
    /// limit permits the call, and until the newest requirements are known. Then checks that the decision to permit the call
    /// is still valid.
    pub(super) async fn wait_for_server_slot(self) -> Result<ReadyCall<'a>, Failure> {
        let Self { mut attempt, destination, permission, limits, timeout } = self;
        let execution = attempt.run.execution();
        record::wait_for_delivery(&attempt).await?;
        let destination = attempt.gate.run_destination(attempt.run, destination, attempt.item())?;
        let server = attempt.wait_for_server(destination.reserve(execution)).await?;
        attempt.gate.wait_for_requirements_look().await;
        server.refuse_withdrawn()?;
        let tool = attempt.tool_in(server.catalogue());
        recheck::refuse_changed_definition(&attempt, &permission, tool)?;
        let approval = permission.approval();
        let permitted = recheck::recheck_permission(&attempt, permission).await?;
        recheck::refuse_after_suspension(&attempt)?;
        // The policy's `on_change` may have changed while the call waited.
        tool.map_or(Ok(()), |tool| attempt.refuse_unaccepted_tool(tool))?;
        let changes = tool.map_or(SideEffects::None, |tool| tool.side_effects);
        Ok(ReadyCall { attempt, server, permitted, approval, changes, limits, timeout })
    }
}

/// A call that is still permitted, and that may be sent because the server's concurrency limit has a free
/// slot for it.
pub(super) struct ReadyCall<'a> {
    attempt: CallAttempt<'a>,
    server: ReservedDestination,
    permitted: PermittedCall,
    /// The scope of the approval; `None` if the policy permits the call without approval.
    approval: Option<Approval>,
    /// The side effects that the server declares for the called tool.
    changes: SideEffects,
    limits: Vec<ScopedLimits>,
    timeout: Option<Duration>,
}

impl<'a> ReadyCall<'a> {
    /// Writes the audit record of the call, which must exist before the call is sent.
    pub(super) fn record(self) -> Result<OutgoingCall<'a>, Failure> {
        let Self { attempt, server, permitted, approval, changes, limits, timeout } = self;
        // The time of a call that waited for an approver is not recorded as time of the gate.
        if approval.is_none() {
            telemetry::record_stage(Stage::Gate, attempt.gate_time());
        }
        let recorded = RecordedCall::new(&attempt, permitted, approval)?;
        Ok(OutgoingCall { attempt, server, recorded, changes, limits, timeout })
    }
}

/// A call with an audit record, ready to be sent.
pub(super) struct OutgoingCall<'a> {
    attempt: CallAttempt<'a>,
    server: ReservedDestination,
    recorded: RecordedCall,
    changes: SideEffects,
    limits: Vec<ScopedLimits>,
    timeout: Option<Duration>,
}

impl<'a> OutgoingCall<'a> {
    /// Sends the call to its destination and waits for the reply.
    pub(super) async fn send(self) -> Result<SentCall<'a>, Failure> {
        let Self { attempt, server, recorded, changes, limits, timeout } = self;
        attempt.request.record_dispatch(Dispatch::Sent(changes));
        let CallAttempt { gate, run, request, .. } = &attempt;
        let reply = server.call(recorded, timeout, gate, run, request).await?;
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
    /// Counts the reply against the policy's limits for results, and returns it for the caller. Fails if it
    /// exceeds a limit. From a list of resources or prompts, removes the entries that the policy does not permit.
    pub(super) fn into_reply(self) -> Reply {
        let Self { attempt, limits, reply } = self;
        let CallAttempt { gate, run, .. } = attempt;
        let bytes = attempt.request.result_bytes(reply.len());
        gate.limiter.count_result(&run.usage, &limits, bytes).inspect_err(|_| {
            // The program must not read on in a file that exceeds the limit.
            run.files.transfers.close_all();
        })?;
        match attempt.item() {
            CallTarget::List(listing) => listing_filter::filter_listing(
                &gate.policy.current(),
                run.client(),
                attempt.server(),
                *listing,
                &reply,
            ),
            CallTarget::Tool(_) | CallTarget::Resource(_) | CallTarget::Prompt(_) => Ok(reply),
        }
    }
}
