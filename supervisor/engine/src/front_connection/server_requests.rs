//! Requests of operators about upstream servers of the system's engine: logins, secrets, and changed tools.

use lockhouse_audit::LocalUser;
use lockhouse_messages::{OperatorRequest, OperatorResponse};

use super::operator_responses::{refused, respond};
use crate::supervisor::Supervisor;

/// Carries out a request about servers. Any other request is refused.
pub(super) async fn carry_out(
    supervisor: &Supervisor,
    request: OperatorRequest,
    by: Option<LocalUser>,
) -> OperatorResponse {
    match request {
        OperatorRequest::BeginLogin { server, scopes, proof } => {
            respond(supervisor.begin_login(&server, scopes, proof.as_ref(), by), OperatorResponse::Login)
        }
        OperatorRequest::ContinueLogin { server, redirect } => {
            respond(supervisor.continue_login(&server, redirect), OperatorResponse::Login)
        }
        OperatorRequest::LogOut { server } => {
            respond(supervisor.log_out(&server, by).await, OperatorResponse::LoggedOut)
        }
        OperatorRequest::SetSecret { name, value } => {
            respond(supervisor.set_secret(&name, &value, by).await, OperatorResponse::Reloaded)
        }
        OperatorRequest::ReviewDefinitions { server } => {
            let review = supervisor.review_definitions(&server).await;
            respond(review.map(Box::new), OperatorResponse::Definitions)
        }
        OperatorRequest::ChallengeDefinitions { server, digest, port } => {
            let challenge = supervisor.challenge_definitions(&server, &digest, port).await;
            respond(challenge, OperatorResponse::Challenge)
        }
        OperatorRequest::AcceptDefinitions { server, digest, proof } => {
            let accepted = supervisor.accept_definitions(&server, &digest, proof.as_ref(), by).await;
            respond(accepted, OperatorResponse::DefinitionsAccepted)
        }
        _ => refused("this request is not about servers"),
    }
}
