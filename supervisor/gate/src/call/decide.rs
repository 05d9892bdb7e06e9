//! The decision about one call: by the policy, or by the person to whom the policy leaves it.

use std::sync::Arc;

use lockhouse_base::telemetry;
use lockhouse_catalog::Tool;
use lockhouse_policies::{Call, Decision, Effect, Links, PermittedCall, Policy};
use lockhouse_protocol::{Failure, FailureCode, Reply};
use serde_json::{Map, Value};

use super::attempt::Attempt;
use crate::approvals::Approval;
use crate::asked::Made;
use crate::failures::failure;
use crate::links;
use crate::skill_requests::save_draft;
use crate::skills::Skills;

/// A permitted call, and what its permission rests on.
pub(super) struct Permission {
    call: PermittedCall,
    pub(super) policy: Arc<Policy>,
    /// The fingerprint of the tool.
    pub(super) definition: Option<String>,
    /// Where paths in the arguments led.
    pub(super) links: Links,
    approval: Option<Approval>,
}

impl Permission {
    pub(super) fn call(&self) -> &PermittedCall {
        &self.call
    }

    pub(super) fn into_call(self) -> PermittedCall {
        self.call
    }

    /// How a person approved the call; none for one that the policy allows.
    pub(super) fn approval(&self) -> Option<Approval> {
        self.approval
    }
}

/// Why a call is not permitted.
pub(super) enum Unpermitted {
    /// By the policy, and that is in the log.
    Denied(Failure),
    /// A person was asked, or could not be asked again.
    Declined(Failure),
    /// It is a person's to decide, and there is none.
    NobodyToAsk(Failure),
}

impl Unpermitted {
    /// With its record, if it has none yet.
    pub(super) fn noted(self, attempt: &Attempt<'_>) -> Failure {
        match self {
            Self::Denied(denied) => denied,
            Self::Declined(declined) | Self::NobodyToAsk(declined) => {
                attempt.gate.note_denial(attempt.subject(), Effect::Ask, &declined.message, None);
                declined
            }
        }
    }
}

/// Decides about a call, of this tool if it is one of a tool.
pub(super) async fn permission(
    attempt: &Attempt<'_>,
    mut call: Call,
    tool: Option<&Tool>,
) -> Result<Permission, Unpermitted> {
    let Attempt { gate, from, .. } = attempt;
    let policy = gate.policy.now();
    call.links = links::resolved(policy.paths(&call), &from.usage.turn).await;
    let (definition, links) = (call.definition.clone(), call.links.clone());
    let (call, approval) = match policy.decide(call) {
        Decision::Allow(permitted) => {
            telemetry::decided("allow");
            (permitted, None)
        }
        Decision::Deny(denial) => return Err(Unpermitted::Denied(attempt.deny(&denial))),
        Decision::Ask(pending) => {
            telemetry::decided("ask");
            let subject = attempt.subject();
            let asked = from.approvals.ask((subject.call, subject.id), pending, subject.line, tool).await;
            let (permitted, approval) = asked.map_err(|refused| match refused.nobody {
                true => Unpermitted::NobodyToAsk(refused.failure),
                false => Unpermitted::Declined(refused.failure),
            })?;
            (permitted, Some(approval))
        }
    };
    Ok(Permission { call, policy, definition, links, approval })
}

/// Keeps as a draft what nobody could be asked about. Without the record of that it is not kept.
pub(super) async fn keep_draft(
    attempt: &Attempt<'_>,
    skills: &Arc<Skills>,
    arguments: &Map<String, Value>,
) -> Reply {
    let reason = "a person must approve it, and there is nobody to ask: it is kept as a draft";
    attempt.gate.audit.denial(attempt.subject(), Effect::Ask, reason, None).map_err(|error| {
        tracing::error!("{error}");
        failure(FailureCode::Denied, format!("the skill was not kept: {error}"))
    })?;
    attempt.asked.note(Made::Draft);
    save_draft(skills, arguments).await
}
