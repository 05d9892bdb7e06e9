//! Carries out the actions of viewers, with the requests and commands of operators.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use lockhouse_messages::{
    Approval, ApproverAnswer, ApproverDecision, EndedRuns, EndedSessions, OperatorRequest, OperatorResponse,
};
use lockhouse_page::{
    Action, ActionError, Attachment, Decision, ErrorCode, Operator, PageRecord, Scope, Viewer,
};
use serde_json::{Value, json};

use super::action_process::ActionProcesses;
use super::approval_questions::ApprovalQuestions;
use super::kept_results::KeptResults;
use super::page_records::PageRecords;
use crate::cli::control_client::request_one;
use crate::cli::reload;
use lockhouse_config::Files;

pub(super) struct PageOperator {
    processes: Arc<ActionProcesses>,
    records: PageRecords,
    questions: ApprovalQuestions,
    results: KeptResults,
}

impl Operator for PageOperator {
    fn act(&self, action: Action, viewer: Viewer) -> BoxFuture<'_, Result<Value, ActionError>> {
        tracing::info!("{} requests on the page: {action:?}", viewer.name());
        self.act_recorded(action, viewer).boxed()
    }

    fn stored_result(&self, id: String) -> BoxFuture<'_, Result<Attachment, ActionError>> {
        async move { self.results.download(&id).await }.boxed()
    }
}

impl PageOperator {
    pub(super) fn new(files: &Files, questions: ApprovalQuestions) -> std::io::Result<Self> {
        let processes = Arc::new(ActionProcesses::new(files)?);
        let records = PageRecords::new(processes.clone());
        Ok(Self { processes, records, questions, results: KeptResults::new(files) })
    }

    pub(super) fn records(&self) -> &PageRecords {
        &self.records
    }

    pub(super) fn kept_results(&self) -> &KeptResults {
        &self.results
    }

    /// Records the action if it changes something, carries it out, and records that it failed.
    async fn act_recorded(&self, action: Action, viewer: Viewer) -> Result<Value, ActionError> {
        let Some(description) = action.description() else { return self.carry_out(action).await };
        let record = |failed| PageRecord::Action {
            action: description.clone(),
            viewer: viewer.name().to_owned(),
            failed,
        };
        if let Err(error) = self.records.write(record(None)).await {
            if !action.only_restricts() {
                let message = format!("nothing was changed, because the audit log cannot record it: {error}");
                return Err(ActionError::new(ErrorCode::Failed, message));
            }
            tracing::error!("an action of the page is not recorded in the audit log: {error}");
        }
        let result = self.carry_out(action).await;
        if let Err(error) = &result
            && let Err(error) = self.records.write(record(Some(error.to_string()))).await
        {
            tracing::error!("a failed action of the page is not recorded in the audit log: {error}");
        }
        result
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
            Action::Reload {} => Ok(json!({"reloads": reload_all().await})),
            action @ Action::ApplyPolicy { .. } => {
                let mut applied = self.processes.run(&action).await?;
                applied["reloads"] = reload_all().await;
                Ok(applied)
            }
            action => self.processes.run(&action).await,
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
