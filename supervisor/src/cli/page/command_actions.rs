//! `lockhouse page-action`: carries out one action of the page that needs the configuration with its secrets, or takes long,
//! and ends. So the process of the page never has secrets, and an action can be ended.

use std::error::Error;
use std::process::ExitCode;

use lockhouse_audit::{ActiveDigests, Authentication, Channel, LocalUser};
use lockhouse_page::{Action, ActionError, ErrorCode, PageLogin, PageRecord, ToolEffect};
use lockhouse_policies::Effect as PolicyEffect;
use lockhouse_protocol::{InvalidName, ServerName, ToolName};
use serde_json::{Value, json};

use crate::cli::audit::verify::verify_own_log;
use crate::cli::command_audit_log::{CommandAuditLog, RecordError};
use crate::cli::command_error::CommandError;
use crate::cli::policy::set_effect::{EffectChange, Report};
use crate::cli::server::tool_changes::OfferedTools;
use crate::cli::terminal::sanitize_lines;
use crate::cli::{UNAVAILABLE, doctor, print_error};
use lockhouse_config::{self as config, Files};

/// Carries out the action on standard input, and prints its result.
pub(in crate::cli) async fn page_action(files: &Files) -> ExitCode {
    let result = match serde_json::from_reader(std::io::stdin()) {
        Ok(action) => carry_out(files, action).await,
        Err(error) => Err(action_error(ErrorCode::Invalid, &error)),
    };
    match serde_json::to_string(&result) {
        Ok(result) => println!("{result}"),
        Err(error) => return print_error(&error, UNAVAILABLE),
    }
    ExitCode::SUCCESS
}

async fn carry_out(files: &Files, action: Action) -> Result<Value, ActionError> {
    match action {
        Action::PreviewPolicy { server, tool, effect } => {
            let changed = change(files, exact_tool(&server, &tool)?, effect, None);
            let shown = changed.map_err(|error| action_error(ErrorCode::Refused, &error))?;
            Ok(json!({
                "file": shown.path.display().to_string(), "diff": shown.diff, "digest": shown.digest,
                "changed": shown.changed, "in_effect": shown.is_in_effect(), "warnings": shown.warnings(),
                "notes": shown.notes,
            }))
        }
        Action::ApplyPolicy { server, tool, effect, digest } => {
            checked_digest(&digest)?;
            let changed = change(files, exact_tool(&server, &tool)?, effect, Some(digest));
            let applied = changed.map_err(|error| match error {
                CommandError::Stale(_) | CommandError::Unavailable(_) => {
                    action_error(ErrorCode::Stale, &error)
                }
                _ => action_error(ErrorCode::Refused, &error),
            })?;
            Ok(json!({"changed": applied.changed}))
        }
        Action::ReviewServer { server } => Ok(offered_tools(files, &server).await?.to_json()),
        Action::AcceptServer { server, digest, proof: _ } => {
            let digest = checked_digest(&digest)?;
            let offered = offered_tools(files, &server).await?;
            offered.check_digest(digest).map_err(|error| action_error(ErrorCode::Stale, &error))?;
            // Lockhouse processes notice the accepted definitions themselves.
            Ok(json!({"message": offered.accept(files).map_err(failed)?, "reloads": []}))
        }
        Action::VerifyAudit {} => {
            let settings = config::load_audit_settings(files).map_err(|error| failed(error.into()))?;
            verify_own_log(&settings).map_err(|error| failed(CommandError::Unavailable(error)))
        }
        Action::CheckHost {} => Ok(doctor::examine(files).await.map_err(failed)?.to_json()),
        Action::Record { event, process } => {
            let by = LocalUser::current();
            record(files, &event, LocalUser { pid: Some(process), ..by })
                .map_err(|error| ActionError::new(ErrorCode::Failed, sanitize_lines(&error.to_string())))?;
            Ok(Value::Null)
        }
        Action::Answer { .. }
        | Action::RequestChallenge { .. }
        | Action::RegisterKey(_)
        | Action::ShowProposals {}
        | Action::ChallengeProposal { .. }
        | Action::ChallengeServer { .. }
        | Action::AcceptProposal { .. }
        | Action::EndRun { .. }
        | Action::EndSession { .. }
        | Action::Reload {} => {
            Err(ActionError::new(ErrorCode::Invalid, "the page itself carries this action out"))
        }
    }
}

/// Writes a record about the page.
fn record(files: &Files, event: &PageRecord, by: LocalUser) -> Result<(), RecordError> {
    let log = CommandAuditLog::open(files)?;
    let audit = log.audit();
    Ok(match event {
        PageRecord::Started {} => audit.process_started("page", ActiveDigests::default(), by),
        PageRecord::Stopped {} => audit.process_stopped("page", "it was closed", by),
        PageRecord::Login(PageLogin { viewer, left_out }) => {
            let refused = viewer.is_none().then_some("the link or the access token is not valid");
            let (name, left_out) = (viewer.as_deref(), *left_out);
            audit.authentication(Authentication { through: Channel::Page, name, refused, left_out }, by)
        }
        PageRecord::Action { action, viewer, failed } => {
            audit.page_action(action, viewer, failed.as_deref(), by)
        }
    }?)
}

/// Gives a tool this effect, if the change is the one with this digest. Without a digest, only shows the change.
fn change(
    files: &Files,
    tool: String,
    effect: ToolEffect,
    digest: Option<String>,
) -> Result<Report, CommandError> {
    let wanted = match effect {
        ToolEffect::Allow => PolicyEffect::Allow,
        ToolEffect::Ask => PolicyEffect::Ask,
        ToolEffect::Deny => PolicyEffect::Deny,
    };
    EffectChange { tool, unknown: false, dry_run: digest.is_none(), digest }.make(
        files,
        wanted,
        Channel::Page,
    )
}

async fn offered_tools(files: &Files, server: &str) -> Result<OfferedTools, ActionError> {
    let server = ServerName::new(server).map_err(invalid)?;
    OfferedTools::fetch(files, server.as_str(), &[]).await.map_err(failed)
}

/// Returns `SERVER.TOOL` for a change of the policy. A name that would be taken for a pattern, or divided elsewhere, is
/// rejected: the change would be about other tools than the one that was denied.
fn exact_tool(server: &str, tool: &str) -> Result<String, ActionError> {
    let server = ServerName::new(server).map_err(invalid)?;
    let tool = ToolName::new(tool).map_err(invalid)?;
    if tool.as_str().contains('*') || server.as_str().contains(['.', '/']) || server.as_str().starts_with('-')
    {
        let message = "a rule for this name would match other tools too: edit the policy yourself";
        return Err(ActionError::new(ErrorCode::Refused, message));
    }
    Ok(format!("{server}.{tool}"))
}

/// Returns the digest if it has the form `sha256:HEX`.
fn checked_digest(digest: &str) -> Result<&str, ActionError> {
    let hex = digest.strip_prefix("sha256:").unwrap_or_default();
    let is_valid = hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_valid.then_some(digest).ok_or_else(|| ActionError::new(ErrorCode::Invalid, "the digest is invalid"))
}

fn invalid(name: InvalidName) -> ActionError {
    action_error(ErrorCode::Invalid, &name)
}

fn failed(error: CommandError) -> ActionError {
    action_error(ErrorCode::Failed, &error)
}

/// Returns the error for the viewer of the page.
fn action_error(code: ErrorCode, error: &dyn Error) -> ActionError {
    ActionError::new(code, sanitize_lines(error.to_string().trim()))
}
