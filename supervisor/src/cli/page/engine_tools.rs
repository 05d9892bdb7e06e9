//! The tools of a server of the system's engine: shows those that nobody has accepted, and accepts them with a proof that a person is
//! there.

use lockhouse_config::SystemEngine;
use lockhouse_messages::{DefinitionReview, OperatorRequest, OperatorResponse, Presence, PresenceProof};
use lockhouse_page::{ActionError, ErrorCode};
use serde_json::{Value, json};

use super::approval_questions::approve_on_desktop;
use crate::cli::approvals::password::PasswordSubject;
use crate::cli::control_client::{engine_id, request_one};
use crate::cli::server::engine_tools::to_json;

/// Returns the engine that has the servers of the person who runs the page; `None` if the configuration of this account has them.
pub(super) fn engine() -> Option<SystemEngine> {
    SystemEngine::of_this_account().ok().flatten()
}

/// Returns the tools of a server that nobody has accepted.
///
/// # Errors
/// The server is not available.
pub(super) async fn review(engine: SystemEngine, server: String) -> Result<Value, ActionError> {
    Ok(to_json(&ask_review(engine, server).await?))
}

/// Returns what a key must sign to accept the tools with this digest.
///
/// # Errors
/// The tools are others than those that were shown, or no key is registered.
pub(super) async fn challenge(
    engine: SystemEngine,
    server: String,
    digest: String,
    port: u16,
) -> Result<Value, ActionError> {
    let request = OperatorRequest::ChallengeDefinitions { server, digest, port };
    match request_one(engine_id(engine), &request).await {
        Ok(OperatorResponse::Challenge(challenge)) => Ok(json!(challenge)),
        Ok(OperatorResponse::Refused { reason }) => Err(ActionError::new(ErrorCode::Refused, reason)),
        _ => Err(ActionError::no_answer()),
    }
}

/// Accepts the tools of a server: with the signature of a key, or with the password of the person, for which polkit asks.
///
/// # Errors
/// The tools are others than those that were shown, or the proof is missing or not valid.
pub(super) async fn accept(
    engine: SystemEngine,
    server: String,
    digest: String,
    proof: Option<PresenceProof>,
) -> Result<Value, ActionError> {
    let message = format!("The tools of {server} are accepted.");
    if proof.is_none() {
        let review = ask_review(engine, server.clone()).await?;
        if review.presence == Presence::Password && review.digest == digest {
            approve_on_desktop(PasswordSubject::Tools(&review), "lockhouse server accept").await?;
            return Ok(json!({"message": message, "reloads": []}));
        }
    }
    let request = OperatorRequest::AcceptDefinitions { server, digest, proof };
    match request_one(engine_id(engine), &request).await {
        Ok(OperatorResponse::DefinitionsAccepted(_)) => Ok(json!({"message": message, "reloads": []})),
        Ok(OperatorResponse::Refused { reason }) => Err(ActionError::new(ErrorCode::Refused, reason)),
        _ => Err(ActionError::no_answer()),
    }
}

async fn ask_review(engine: SystemEngine, server: String) -> Result<DefinitionReview, ActionError> {
    match request_one(engine_id(engine), &OperatorRequest::ReviewDefinitions { server }).await {
        Ok(OperatorResponse::Definitions(review)) => Ok(*review),
        Ok(OperatorResponse::Refused { reason }) => Err(ActionError::new(ErrorCode::Failed, reason)),
        _ => Err(ActionError::no_answer()),
    }
}
