//! The path in a call of the built-in server `files`: the call continues with the target of its symbolic links, so that
//! the policy, the approver and the audit log see the file that is opened.

use std::path::Path;
use std::time::Duration;

use lockhouse_policies::{Call, Decision, Effect};
use lockhouse_protocol::{Failure, FailureCode};

use super::attempt::CallAttempt;
use crate::failures::invalid_arguments;
use crate::schema::run_blocking;
use crate::symlinks;
use lockhouse_host_files::{Access, FileCall, HostFiles, PathRefusal, ResolvedPath, make_content_readable};

/// Maximum time for resolving the path, since a file system may be remote or may hang.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the call with the target of its path, if the configuration of the server lets programs use the path. If the
/// target differs from the path as written, the policy must not deny the path as written either. A call that writes gets
/// the argument `replaces`, which describes the file that is there now.
pub(super) async fn with_target_path(
    attempt: &CallAttempt<'_>,
    files: &HostFiles,
    mut call: Call,
) -> Result<Call, Failure> {
    let access = FileCall::parse(attempt.item(), &call.arguments)?.access();
    let written =
        call.arguments.get("path").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
    let (server, path) = (files.clone(), written.clone());
    let slot = &attempt.run.files.slot;
    let resolve = move || {
        let resolved = server.resolve(access, &path)?;
        let existing =
            (access == Access::Write).then(|| server.describe_existing(Path::new(&resolved.target)));
        Ok((resolved, existing.flatten()))
    };
    let (ResolvedPath { written, target }, replaces) = match run_blocking(slot, RESOLVE_TIMEOUT, resolve)
        .await
    {
        Some(Ok(resolved)) => resolved,
        Some(Err(refusal @ (PathRefusal::NotNormal | PathRefusal::TooLong))) => {
            return Err(invalid_arguments(refusal.to_string()));
        }
        Some(Err(refusal)) => {
            let reason = format!("{written}: {refusal}");
            attempt.gate.record_denial(attempt.subject(), Effect::Deny, &reason, None);
            return Err(Failure::new(FailureCode::Denied, reason));
        }
        None => {
            return Err(Failure::new(FailureCode::Timeout, "the file system did not answer in time".into()));
        }
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
    let (paths, slot) = (policy.paths_to_resolve(call), &attempt.run.usage.slow_check_slot);
    as_written.resolved_paths = symlinks::resolve_in_background(paths, slot).await;
    match policy.decide(as_written) {
        Decision::Deny(denial) => Err(attempt.record_policy_denial(&denial)),
        Decision::Allow(_) | Decision::Ask(_) => Ok(()),
    }
}
