//! Carries out the actions of viewers, with the requests and commands of operators.

use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use lockhouse_messages::{
    Approval, ApproverAnswer, ApproverDecision, EndedRuns, EndedSessions, OperatorRequest, OperatorResponse,
};
use lockhouse_page::{Action, ActionError, Attachment, Decision, Effect, ErrorCode, Operator, Scope, Viewer};
use lockhouse_protocol::{ServerName, ToolName};
use serde_json::{Value, json};

use super::approval_questions::ApprovalQuestions;
use super::commands::Commands;
use super::kept_results::KeptResults;
use crate::cli::control_client::request_one;
use crate::cli::reload;
use crate::cli::{DIGEST_IS_STALE, UNAVAILABLE};
use crate::config::Files;

/// Maximum times of the commands that the page runs.
const POLICY_TIMEOUT: Duration = Duration::from_secs(20);
const SERVER_TIMEOUT: Duration = Duration::from_secs(90);
const DOCTOR_TIMEOUT: Duration = Duration::from_secs(90);
const VERIFY_TIMEOUT: Duration = Duration::from_secs(120);

pub(super) struct PageOperator {
    commands: Commands,
    questions: ApprovalQuestions,
    results: KeptResults,
}

impl Operator for PageOperator {
    fn act(&self, action: Action, viewer: Viewer) -> BoxFuture<'_, Result<Value, ActionError>> {
        tracing::info!("{} requests on the page: {action:?}", viewer.name());
        self.carry_out(action).boxed()
    }

    fn stored_result(&self, id: String) -> BoxFuture<'_, Result<Attachment, ActionError>> {
        async move { self.results.download(&id).await }.boxed()
    }
}

impl PageOperator {
    pub(super) fn new(files: &Files, questions: ApprovalQuestions) -> std::io::Result<Self> {
        Ok(Self { commands: Commands::new(files)?, questions, results: KeptResults::new(files) })
    }

    pub(super) fn kept_results(&self) -> &KeptResults {
        &self.results
    }

    async fn carry_out(&self, action: Action) -> Result<Value, ActionError> {
        match action {
            Action::Answer { supervisor, id, digest, decision, scope } => {
                let answer =
                    ApproverAnswer { id, digest, decision: decision_of(decision), scope: approval(scope) };
                self.questions.answer(supervisor, answer).await
            }
            Action::EndRun { supervisor, execution } => end_run(supervisor, execution).await,
            Action::EndSession { supervisor, id } => end_session(supervisor, id).await,
            Action::PreviewPolicy { server, tool, effect } => self.preview(&server, &tool, effect).await,
            Action::ApplyPolicy { server, tool, effect, digest } => {
                self.apply(&server, &tool, effect, &digest).await
            }
            Action::Reload {} => Ok(json!({"reloads": reload_all().await})),
            Action::ReviewServer { server } => self.review(&server).await,
            Action::AcceptServer { server, digest } => self.accept(&server, &digest).await,
            Action::VerifyAudit {} => {
                self.commands.run(&["audit", "verify", "--json"], &[], VERIFY_TIMEOUT).await?.json()
            }
            Action::CheckHost {} => {
                self.commands.run(&["doctor", "--json"], &[], DOCTOR_TIMEOUT).await?.json()
            }
        }
    }

    async fn preview(&self, server: &str, tool: &str, effect: Effect) -> Result<Value, ActionError> {
        let tool = exact_tool(server, tool)?;
        let command = ["policy", effect.as_str(), "--dry-run", "--json"];
        let output = self.commands.run(&command, &[&tool], POLICY_TIMEOUT).await?;
        if output.status != Some(0) {
            return Err(output.to_error(ErrorCode::Refused));
        }
        let told = output.json()?;
        let diff = &told["diff"];
        Ok(json!({
            "file": told["file"], "diff": diff, "digest": told["digest"], "changed": diff != "",
            "in_effect": told["in_effect"], "warnings": told["warnings"], "notes": told["notes"],
        }))
    }

    async fn apply(
        &self,
        server: &str,
        tool: &str,
        effect: Effect,
        digest: &str,
    ) -> Result<Value, ActionError> {
        let tool = exact_tool(server, tool)?;
        let command = ["policy", effect.as_str(), "--json", "--digest", checked_digest(digest)?];
        let output = self.commands.run(&command, &[&tool], POLICY_TIMEOUT).await?;
        match output.status {
            Some(0) => Ok(json!({"changed": output.json()?["changed"], "reloads": reload_all().await})),
            Some(status) if status == i32::from(UNAVAILABLE) => Err(output.to_error(ErrorCode::Stale)),
            _ => Err(output.to_error(ErrorCode::Refused)),
        }
    }

    async fn review(&self, server: &str) -> Result<Value, ActionError> {
        let server = server_name(server)?;
        let output =
            self.commands.run(&["server", "diff", "--json"], &[server.as_str()], SERVER_TIMEOUT).await?;
        if output.status == Some(0) { output.json() } else { Err(output.to_error(ErrorCode::Failed)) }
    }

    async fn accept(&self, server: &str, digest: &str) -> Result<Value, ActionError> {
        let server = server_name(server)?;
        let command = ["server", "accept", "--digest", checked_digest(digest)?];
        let output = self.commands.run(&command, &[server.as_str()], SERVER_TIMEOUT).await?;
        match output.status {
            // Lockhouse processes notice the accepted definitions themselves.
            Some(0) => Ok(json!({"message": output.stdout.trim(), "reloads": []})),
            _ if output.stderr.contains(DIGEST_IS_STALE) => Err(output.to_error(ErrorCode::Stale)),
            _ => Err(output.to_error(ErrorCode::Failed)),
        }
    }
}

fn decision_of(decision: Decision) -> ApproverDecision {
    match decision {
        Decision::Approve => ApproverDecision::Approve,
        Decision::Decline => ApproverDecision::Decline,
    }
}

fn approval(scope: Scope) -> Approval {
    match scope {
        Scope::Once => Approval::Once,
        Scope::Execution => Approval::Execution,
        Scope::Always => Approval::Always,
    }
}

fn server_name(name: &str) -> Result<ServerName, ActionError> {
    ServerName::new(name).map_err(|invalid| ActionError::new(ErrorCode::Invalid, invalid.to_string()))
}

/// Returns `SERVER.TOOL` for a command that changes the policy. A name that the command would take for a pattern, or
/// divide elsewhere, is rejected: the change would be about other tools than the one that was denied.
fn exact_tool(server: &str, tool: &str) -> Result<String, ActionError> {
    let server = server_name(server)?;
    let tool =
        ToolName::new(tool).map_err(|invalid| ActionError::new(ErrorCode::Invalid, invalid.to_string()))?;
    if tool.as_str().contains('*') || server.as_str().contains(['.', '/']) || server.as_str().starts_with('-')
    {
        let message = "a rule for this name would match other tools too: edit the policy yourself";
        return Err(ActionError::new(ErrorCode::Refused, message));
    }
    Ok(format!("{server}.{tool}"))
}

/// Returns the digest if it has the form `sha256:HEX`, so that it cannot be taken for something else on a command line.
fn checked_digest(digest: &str) -> Result<&str, ActionError> {
    let hex = digest.strip_prefix("sha256:").unwrap_or_default();
    let is_valid = hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_valid.then_some(digest).ok_or_else(|| ActionError::new(ErrorCode::Invalid, "the digest is invalid"))
}

async fn end_run(supervisor: u32, execution: String) -> Result<Value, ActionError> {
    let request = OperatorRequest::EndRuns(EndedRuns::One(execution));
    match request_one(supervisor, &request).await {
        Ok(OperatorResponse::EndedRuns(ended)) if !ended.is_empty() => Ok(json!({"ended": ended})),
        Ok(OperatorResponse::EndedRuns(_)) => {
            Err(ActionError::new(ErrorCode::Refused, "this run is not active any more"))
        }
        _ => Err(no_answer()),
    }
}

async fn end_session(supervisor: u32, id: u64) -> Result<Value, ActionError> {
    let request = OperatorRequest::EndSessions(EndedSessions::Numbered(id));
    match request_one(supervisor, &request).await {
        Ok(OperatorResponse::EndedSessions(ended)) if !ended.is_empty() => Ok(json!({"ended": ended})),
        Ok(OperatorResponse::EndedSessions(_)) => {
            Err(ActionError::new(ErrorCode::Refused, "this session has already ended"))
        }
        _ => Err(no_answer()),
    }
}

fn no_answer() -> ActionError {
    ActionError::new(ErrorCode::Failed, "the Lockhouse process did not answer: it is busy, or it has ended")
}

/// Reloads the configuration in all Lockhouse processes, and returns the outcome of each.
async fn reload_all() -> Value {
    let reload = |reload: Value| {
        let restart = reload["restart_required"].as_array().filter(|tables| !tables.is_empty());
        let message = match (reload["error"].as_str(), restart) {
            (Some(error), _) => error.to_owned(),
            (None, Some(_)) => format!("in force, except {} until a restart", reload["restart_required"]),
            (None, None) => "the configuration is in force".to_owned(),
        };
        json!({"supervisor": reload["pid"], "accepted": reload["in_force"], "message": message})
    };
    reload::reload_all().await.into_iter().map(reload).collect()
}
