//! Serves the requests about the keys with which people prove that they are there. Each change is recorded before it is made.

use std::path::Path;

use lockhouse_approvals::PresenceError;
use lockhouse_audit::{Change, ChangeTarget, Channel, LocalUser};
use lockhouse_messages::{OperatorRequest, OperatorResponse};

use super::operator_responses::refused;
use crate::supervisor::Supervisor;

/// Carries a request about keys out. Only root permits the registration of a key, and removes one: a key of the agent would
/// approve its calls.
pub(super) fn carry_out(
    supervisor: &Supervisor,
    request: OperatorRequest,
    by: Option<LocalUser>,
) -> OperatorResponse {
    let presence = supervisor.approvers().presence();
    let is_root = by.is_some_and(|by| by.uid == 0);
    let response = match request {
        OperatorRequest::BeginEnrolment | OperatorRequest::RemoveKey(_) if !is_root => {
            return refused("only root registers and removes keys: use sudo");
        }
        OperatorRequest::BeginEnrolment => record(supervisor, "permit the registration of a key", by)
            .and_then(|()| presence.begin_enrolment())
            .map(|(code, seconds)| OperatorResponse::Enrolment { code, seconds }),
        OperatorRequest::EnrolKey(registration) => presence
            .enrol(&registration, |credential| record(supervisor, &format!("register {credential}"), by))
            .map(OperatorResponse::KeyEnrolled),
        OperatorRequest::RemoveKey(credential) => presence
            .remove(&credential, || record(supervisor, &format!("remove {credential}"), by))
            .map(|()| OperatorResponse::KeyRemoved(credential)),
        _ => presence.list().map(OperatorResponse::Keys),
    };
    response.unwrap_or_else(|why| refused(why.to_string()))
}

/// Records a change of the keys, which must be made only after success.
fn record(supervisor: &Supervisor, action: &str, by: Option<LocalUser>) -> Result<(), PresenceError> {
    let by = by.unwrap_or_else(LocalUser::current);
    let file = supervisor.approvers().presence().file().unwrap_or(Path::new(""));
    let (target, through) = (ChangeTarget::Keys, Channel::of_operator(by));
    let change =
        Change { target, file, action, through, before: None, after: None, presence: None, failed: None };
    supervisor.gate().audit().change(change, by).map_err(|error| {
        tracing::error!("the keys stay as they are: {error}");
        PresenceError::Unrecorded
    })
}
