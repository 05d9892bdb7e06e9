//! Carries out the actions of viewers, with the requests and commands of operators.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use lockhouse_messages::{
    Approval, ApproverAnswer, ApproverDecision, EndedRuns, EndedSessions, OperatorRequest, OperatorResponse,
};
use lockhouse_page::{Action, ActionError, Attachment, Decision, ErrorCode, Operator, Scope, Viewer};
use lockhouse_protocol::{ServerName, ToolName};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::action_process::ActionProcess;
use super::approval_questions::ApprovalQuestions;
use super::configured_action::{ConfiguredAction, action_error};
use super::kept_results::KeptResults;
use crate::cli::audit::verify::verify_own_log;
use crate::cli::control_client::request_one;
use crate::cli::reload;
use crate::config::{self, Files};

/// Maximum time of a verification of the audit log.
const VERIFY_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum number of actions at one time that take long. Further ones wait.
const LONG_ACTIONS_MAX: usize = 2;

pub(super) struct PageOperator {
    files: Files,
    process: ActionProcess,
    long_actions: Arc<Semaphore>,
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
        Ok(Self {
            files: files.clone(),
            process: ActionProcess::new(files)?,
            long_actions: Arc::new(Semaphore::new(LONG_ACTIONS_MAX)),
            questions,
            results: KeptResults::new(files),
        })
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
            Action::PreviewPolicy { server, tool, effect } => {
                let tool = exact_tool(&server, &tool)?;
                self.run(ConfiguredAction::PreviewPolicy { tool, effect }).await
            }
            Action::ApplyPolicy { server, tool, effect, digest } => {
                let (tool, digest) = (exact_tool(&server, &tool)?, checked_digest(digest)?);
                let mut applied = self.run(ConfiguredAction::ApplyPolicy { tool, effect, digest }).await?;
                applied["reloads"] = reload_all().await;
                Ok(applied)
            }
            Action::Reload {} => Ok(json!({"reloads": reload_all().await})),
            Action::ReviewServer { server } => {
                self.run(ConfiguredAction::ReviewServer { server: server_name(&server)? }).await
            }
            Action::AcceptServer { server, digest } => {
                let (server, digest) = (server_name(&server)?, checked_digest(digest)?);
                self.run(ConfiguredAction::AcceptServer { server, digest }).await
            }
            Action::VerifyAudit {} => self.verify_audit().await,
            Action::CheckHost {} => self.run(ConfiguredAction::CheckHost).await,
        }
    }

    async fn run(&self, action: ConfiguredAction) -> Result<Value, ActionError> {
        let running = async {
            let _permit = self.long_actions.acquire().await.map_err(|error| failed(&error))?;
            self.process.run(&action).await
        };
        within(action.timeout(), running).await
    }

    async fn verify_audit(&self) -> Result<Value, ActionError> {
        let settings = config::load_audit_settings(&self.files).map_err(|error| failed(&error))?;
        let verifying = async {
            let permit = self.long_actions.clone().acquire_owned().await.map_err(|error| failed(&error))?;
            let verify = move || {
                // A verification that takes too long still goes on.
                let _permit = permit;
                verify_own_log(&settings)
            };
            let verified = tokio::task::spawn_blocking(verify).await.map_err(|error| failed(&error))?;
            verified.map_err(|error| failed(&error))
        };
        within(VERIFY_TIMEOUT, verifying).await
    }
}

fn failed(error: &dyn std::error::Error) -> ActionError {
    action_error(ErrorCode::Failed, error)
}

/// Waits for an action for at most this time.
async fn within(
    time: Duration,
    action: impl Future<Output = Result<Value, ActionError>>,
) -> Result<Value, ActionError> {
    let elapsed = |_| {
        let message = format!("the action did not end within {} s", time.as_secs());
        Err(ActionError::new(ErrorCode::Failed, message))
    };
    tokio::time::timeout(time, action).await.unwrap_or_else(elapsed)
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

/// Returns `SERVER.TOOL` for a change of the policy. A name that would be taken for a pattern, or divided elsewhere, is
/// rejected: the change would be about other tools than the one that was denied.
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

/// Returns the digest if it has the form `sha256:HEX`.
fn checked_digest(digest: String) -> Result<String, ActionError> {
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
