//! Which actions a viewer may carry out.

use serde_json::Value;

use super::action::Action;
use super::error::{ActionError, ErrorCode};
use super::section::Section;
use super::sections::Sections;
use super::viewer::Viewer;

/// Checks that the viewer may carry out an action. A person without roles may end the runs of their own AI client. They may not
/// answer its questions: the AI client has the same token, and would approve its own calls.
///
/// # Errors
/// [`ErrorCode::Forbidden`].
pub(super) fn check(viewer: &Viewer, action: &Action, sections: &Sections) -> Result<(), ActionError> {
    let rights = viewer.rights();
    let (is_permitted, right) = match action {
        Action::Answer { supervisor, id, .. } | Action::RequestChallenge { supervisor, id, .. } => {
            (may_answer(viewer, *supervisor, *id, sections), "approve")
        }
        Action::RegisterKey(_) => (rights.approve, "approve"),
        Action::ShowProposals {}
        | Action::ChallengeProposal { .. }
        | Action::AcceptProposal { .. }
        | Action::PreviewPolicy { .. }
        | Action::ApplyPolicy { .. }
        | Action::ReviewServer { .. }
        | Action::AcceptServer { .. }
        | Action::ChallengeServer { .. } => (rights.policy, "policy"),
        Action::EndRun { execution, .. } => {
            let runs = sections.value(Section::Runs);
            let mut active = runs["active"].as_array().into_iter().flatten();
            let is_own = |run: &Value| {
                run["execution"] == execution.as_str() && run["client"].as_str() == Some(viewer.name())
            };
            (rights.operate || active.any(is_own), "operate")
        }
        Action::EndSession { .. } | Action::Reload {} | Action::CheckHost {} => (rights.operate, "operate"),
        Action::VerifyAudit {} => (rights.audit, "audit"),
        Action::Record { .. } => (false, "none"),
    };
    let message =
        || format!("only an administrator of this service, or a person with the role `{right}`, may do that");
    is_permitted.then_some(()).ok_or_else(|| ActionError::new(ErrorCode::Forbidden, message()))
}

/// Whether the viewer may answer a question. One that is not shown any more is reported as such later.
fn may_answer(viewer: &Viewer, supervisor: u32, id: u64, sections: &Sections) -> bool {
    let shown = sections.value(Section::Approvals);
    let mut questions = shown["questions"].as_array().into_iter().flatten();
    let question = questions.find(|question| question["supervisor"] == supervisor && question["id"] == id);
    match question {
        Some(question) => viewer.may_answer(question),
        None => viewer.rights().approve,
    }
}
