//! Which actions a viewer may carry out.

use super::action::Action;
use super::error::{ActionError, ErrorCode};
use super::sections::{Section, Sections};
use super::viewer::Viewer;

/// Checks that the viewer may carry out an action. A person may end the runs of their own AI client. They may not answer
/// its questions: the AI client has the same token, and would approve its own calls.
///
/// # Errors
/// [`ErrorCode::Forbidden`].
pub(super) fn check(viewer: &Viewer, action: &Action, sections: &Sections) -> Result<(), ActionError> {
    let is_permitted = match action {
        _ if viewer.is_administrator() => true,
        Action::EndRun { execution, .. } => {
            let runs = sections.value(Section::Runs);
            let mut active = runs["active"].as_array().into_iter().flatten();
            active.any(|run| run["execution"] == execution.as_str() && viewer.may_see_item(run))
        }
        _ => false,
    };
    let message = "only an administrator of this service may do that";
    is_permitted.then_some(()).ok_or_else(|| ActionError::new(ErrorCode::Forbidden, message))
}
