//! The actions of the page that need the configuration with its secrets, or start servers or workers. `lockhouse page-action`
//! carries one out and ends, so that the process of the page never has secrets.

use std::process::ExitCode;
use std::time::Duration;

use lockhouse_page::{ActionError, Effect, ErrorCode};
use lockhouse_policies::Effect as PolicyEffect;
use lockhouse_protocol::ServerName;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::cli::policy::set_effect::{EffectChange, Report, SetEffectError};
use crate::cli::server::tool_changes::{OfferedTools, ToolChangesError};
use crate::cli::terminal::sanitize_lines;
use crate::cli::{UNAVAILABLE, doctor, print_error};
use crate::config::Files;

const POLICY_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum time of an action that starts a server or workers.
const START_TIMEOUT: Duration = Duration::from_secs(90);

/// An action that needs the configuration. A tool has the form `SERVER.TOOL`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ConfiguredAction {
    PreviewPolicy { tool: String, effect: Effect },
    ApplyPolicy { tool: String, effect: Effect, digest: String },
    ReviewServer { server: ServerName },
    AcceptServer { server: ServerName, digest: String },
    CheckHost,
}

/// Runs `lockhouse page-action`: carries out the action on standard input, and prints its result.
pub(in crate::cli) async fn page_action(files: &Files) -> ExitCode {
    let result = match serde_json::from_reader::<_, ConfiguredAction>(std::io::stdin()) {
        Ok(action) => action.carry_out(files).await,
        Err(error) => Err(action_error(ErrorCode::Invalid, &error)),
    };
    match serde_json::to_string(&result) {
        Ok(result) => println!("{result}"),
        Err(error) => return print_error(&error, UNAVAILABLE),
    }
    ExitCode::SUCCESS
}

impl ConfiguredAction {
    /// Returns the maximum time of the action.
    pub(super) fn timeout(&self) -> Duration {
        match self {
            Self::PreviewPolicy { .. } | Self::ApplyPolicy { .. } => POLICY_TIMEOUT,
            Self::ReviewServer { .. } | Self::AcceptServer { .. } | Self::CheckHost => START_TIMEOUT,
        }
    }

    async fn carry_out(self, files: &Files) -> Result<Value, ActionError> {
        match self {
            Self::PreviewPolicy { tool, effect } => {
                let shown = change(files, &tool, effect, None)
                    .map_err(|error| action_error(ErrorCode::Refused, &error))?;
                Ok(json!({
                    "file": shown.path.display().to_string(), "diff": shown.diff, "digest": shown.digest,
                    "changed": shown.changed, "in_effect": shown.is_in_effect(), "warnings": shown.warnings(),
                    "notes": shown.notes,
                }))
            }
            Self::ApplyPolicy { tool, effect, digest } => {
                let applied = change(files, &tool, effect, Some(&digest)).map_err(|error| {
                    let code = if error.is_unavailable() { ErrorCode::Stale } else { ErrorCode::Refused };
                    action_error(code, &error)
                })?;
                Ok(json!({"changed": applied.changed}))
            }
            Self::ReviewServer { server } => {
                let offered = OfferedTools::fetch(files, server.as_str(), &[]).await;
                offered.map(|offered| offered.to_json()).map_err(|error| tools_error(&error))
            }
            Self::AcceptServer { server, digest } => {
                accept(files, &server, &digest).await.map_err(|error| tools_error(&error))
            }
            Self::CheckHost => {
                let report = doctor::examine(files).await;
                report.map(|report| report.to_json()).map_err(|error| action_error(ErrorCode::Failed, &error))
            }
        }
    }
}

/// Gives a tool this effect, if the change is the one with this digest. Without a digest, only shows the change.
fn change(files: &Files, tool: &str, effect: Effect, digest: Option<&str>) -> Result<Report, SetEffectError> {
    let wanted = match effect {
        Effect::Allow => PolicyEffect::Allow,
        Effect::Ask => PolicyEffect::Ask,
        Effect::Deny => PolicyEffect::Deny,
    };
    EffectChange { tool, wanted, unknown: false, dry_run: digest.is_none(), digest }.make(files)
}

async fn accept(files: &Files, server: &ServerName, digest: &str) -> Result<Value, ToolChangesError> {
    let offered = OfferedTools::fetch(files, server.as_str(), &[]).await?;
    offered.check_digest(digest)?;
    // Lockhouse processes notice the accepted definitions themselves.
    Ok(json!({"message": offered.accept(files)?.to_string(), "reloads": []}))
}

fn tools_error(error: &ToolChangesError) -> ActionError {
    let is_stale = matches!(error, ToolChangesError::Stale(_));
    action_error(if is_stale { ErrorCode::Stale } else { ErrorCode::Failed }, error)
}

/// Returns the error for the viewer of the page.
pub(super) fn action_error(code: ErrorCode, error: &dyn std::error::Error) -> ActionError {
    ActionError::new(code, sanitize_lines(error.to_string().trim()))
}
