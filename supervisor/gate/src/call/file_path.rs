//! The path in a call of the built-in server `files`: the call continues with the target of its symbolic links, so that
//! the policy, the approver and the audit log see the file that is opened.

use lockhouse_policies::{Call, Decision, Effect};
use lockhouse_protocol::{Failure, FailureCode};

use super::attempt::CallAttempt;
use crate::failures::invalid_arguments;
use crate::file_access::{FileAccess, ResolveError, ResolvedFile};
use lockhouse_host_files::{FileCall, UnusablePath, make_content_readable};

/// Returns the call with the target of its path, if the configuration of the server lets programs use the path. If the
/// target differs from the path as written, the policy must not deny the path as written either. A call that writes gets
/// the argument `replaces`, which describes the file that is there now.
pub(super) async fn with_target_path(
    attempt: &CallAttempt<'_>,
    files: &FileAccess,
    mut call: Call,
) -> Result<Call, Failure> {
    let access = FileCall::parse(attempt.item(), &call.arguments)?.access();
    let written =
        call.arguments.get("path").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
    let resolved = files.resolve(&attempt.run.files.slot, access, written.clone()).await;
    let ResolvedFile { written, target, replaces } = match resolved {
        Ok(resolved) => resolved,
        Err(ResolveError::Unusable(UnusablePath { is_invalid: true, reason })) => {
            return Err(invalid_arguments(reason));
        }
        Err(ResolveError::Unusable(UnusablePath { reason, .. })) => {
            let reason = format!("{written}: {reason}");
            attempt.gate.record_denial(attempt.subject(), Effect::Deny, &reason, None);
            return Err(Failure::new(FailureCode::Denied, reason));
        }
        Err(ResolveError::Failed(failure)) => return Err(failure),
    };
    make_content_readable(&mut call.arguments);
    call.arguments.extend(replaces.map(|replaces| ("replaces".to_owned(), replaces.into())));
    call.arguments.insert("path".into(), written.clone().into());
    if target != written {
        refuse_denied_spelling(attempt, &call).await?;
        call.arguments.insert("path".into(), target.into());
    }
    Ok(call)
}

/// Fails if the policy denies the call with the path as written.
async fn refuse_denied_spelling(attempt: &CallAttempt<'_>, call: &Call) -> Result<(), Failure> {
    let (policy, mut as_written) = (attempt.gate.policy.current(), call.clone());
    as_written.resolved_paths = attempt.gate.resolve_links(attempt.run, &policy, call).await;
    match policy.decide(as_written) {
        Decision::Deny(denial) => Err(attempt.record_policy_denial(&denial)),
        Decision::Allow(_) | Decision::Ask(_) => Ok(()),
    }
}
