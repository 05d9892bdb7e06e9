//! The policies that people propose for engines of the system: shows them, and accepts one with a proof that a person is there.

use lockhouse_messages::{OperatorRequest, OperatorResponse, PolicyProposal, Presence, PresenceProof};
use lockhouse_page::{ActionError, ErrorCode};
use nix::unistd::geteuid;
use serde_json::{Value, json};

use super::approval_questions::approve_on_desktop;
use crate::cli::approvals::password::PasswordSubject;
use crate::cli::control_client::{request_all, request_one};

/// Returns the proposals, each with the process that it is for.
pub(super) async fn show() -> Value {
    let replies = request_all(&OperatorRequest::ShowProposal).await.into_iter();
    let proposals = replies.filter_map(|(supervisor, reply)| match reply {
        OperatorResponse::Proposal(proposal) if proposal.digest.is_some() => {
            let mut shown = json!(proposal);
            shown["supervisor"] = supervisor.into();
            Some(shown)
        }
        _ => None,
    });
    json!({"proposals": proposals.collect::<Value>()})
}

/// Returns what a key must sign to accept a proposal.
///
/// # Errors
/// The proposal is another one meanwhile, or no key is registered.
pub(super) async fn challenge(supervisor: u32, digest: String, port: u16) -> Result<Value, ActionError> {
    match request_one(supervisor, &OperatorRequest::ChallengeProposal { digest, port }).await {
        Ok(OperatorResponse::Challenge(challenge)) => Ok(json!(challenge)),
        Ok(OperatorResponse::Refused { reason }) => Err(ActionError::new(ErrorCode::Refused, reason)),
        _ => Err(ActionError::no_answer()),
    }
}

/// Accepts a proposal: with the signature of a key, or with the password of the person, for which polkit asks.
///
/// # Errors
/// The proposal is another one meanwhile, or the proof is missing or not valid.
pub(super) async fn accept(
    supervisor: u32,
    digest: String,
    proof: Option<PresenceProof>,
) -> Result<Value, ActionError> {
    if proof.is_none() && !geteuid().is_root() {
        let shown = request_one(supervisor, &OperatorRequest::ShowProposal).await;
        let Ok(OperatorResponse::Proposal(proposal)) = shown else { return Err(ActionError::no_answer()) };
        if needs_password(&proposal, &digest) {
            return approve_on_desktop(PasswordSubject::Policy(&proposal), "lockhouse policy accept").await;
        }
    }
    match request_one(supervisor, &OperatorRequest::AcceptProposal { digest, proof }).await {
        Ok(OperatorResponse::Reloaded(_)) => Ok(json!({"result": "accepted"})),
        Ok(OperatorResponse::Refused { reason }) => Err(ActionError::new(ErrorCode::Refused, reason)),
        _ => Err(ActionError::no_answer()),
    }
}

fn needs_password(proposal: &PolicyProposal, digest: &str) -> bool {
    proposal.presence == Presence::Password && proposal.digest.as_deref() == Some(digest)
}
