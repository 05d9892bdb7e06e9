//! Carries out the actions of viewers, with the requests and commands of operators.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use lockhouse_messages::{
    AccessToken, Approval, ApproverAnswer, ApproverDecision, ChallengeRequest, EndedRuns, EndedSessions,
    EnrolmentCode, KeyAssertion, KeyRegistration, OperatorRequest, OperatorResponse, PresenceProof,
};
use lockhouse_page::{
    Action, ActionError, Attachment, Decision, ErrorCode, KeyProof, NewKey, Operator, PageRecord, Scope,
    Viewer,
};
use serde_json::{Value, json};

use super::action_process::ActionProcesses;
use super::approval_questions::ApprovalQuestions;
use super::engine_tools;
use super::kept_results::KeptResults;
use super::page_records::PageRecords;
use super::policy_proposals;
use crate::cli::control_client::{request_all, request_one};
use crate::cli::reload;
use lockhouse_config::Files;

pub(super) struct PageOperator {
    processes: Arc<ActionProcesses>,
    records: PageRecords,
    questions: ApprovalQuestions,
    results: KeptResults,
    /// The port of `localhost` at which the page is. `None` for a Unix domain socket.
    port: Option<u16>,
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
    pub(super) fn new(
        files: &Files,
        questions: ApprovalQuestions,
        port: Option<u16>,
    ) -> std::io::Result<Self> {
        let processes = Arc::new(ActionProcesses::new(files)?);
        let records = PageRecords::new(processes.clone());
        Ok(Self { processes, records, questions, results: KeptResults::new(files), port })
    }

    pub(super) fn records(&self) -> &PageRecords {
        &self.records
    }

    pub(super) fn kept_results(&self) -> &KeptResults {
        &self.results
    }

    /// Records the action if it changes something, carries it out, and records that it failed.
    async fn act_recorded(&self, action: Action, viewer: Viewer) -> Result<Value, ActionError> {
        let Some(description) = action.description() else { return self.carry_out(action, &viewer).await };
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
        let result = self.carry_out(action, &viewer).await;
        if let Err(error) = &result
            && let Err(error) = self.records.write(record(Some(error.to_string()))).await
        {
            tracing::error!("a failed action of the page is not recorded in the audit log: {error}");
        }
        result
    }

    /// Returns the port at which a browser shows the page that asks a key.
    fn port_for_keys(&self) -> Result<u16, ActionError> {
        let message = "a key can be asked only by a page at localhost:PORT";
        self.port.ok_or_else(|| ActionError::new(ErrorCode::Refused, message))
    }

    async fn carry_out(&self, action: Action, viewer: &Viewer) -> Result<Value, ActionError> {
        match (action, engine_tools::engine()) {
            (Action::ReviewServer { server }, Some(engine)) => engine_tools::review(engine, server).await,
            (Action::AcceptServer { server, digest, proof }, Some(engine)) => {
                engine_tools::accept(engine, server, digest, proof.map(key_proof)).await
            }
            (action, _) => self.carry_out_here(action, viewer).await,
        }
    }

    /// Carries out an action that the engine of the system does not take.
    async fn carry_out_here(&self, action: Action, viewer: &Viewer) -> Result<Value, ActionError> {
        match action {
            Action::Answer { supervisor, id, digest, decision, scope, proof, break_glass } => {
                let (decision, scope) = (decision_of(decision), approval(scope));
                let proof = proof.map(key_proof);
                let token = viewer.token().map(|token| AccessToken(token.0.clone()));
                let answer = ApproverAnswer { id, digest, decision, scope, proof, break_glass, token };
                self.questions.answer(supervisor, answer).await
            }
            Action::RequestChallenge { supervisor, id, digest, scope } => {
                let port = self.port_for_keys()?;
                let request = ChallengeRequest { id, digest, scope: approval(scope), port };
                self.questions.challenge(supervisor, request).await
            }
            Action::RegisterKey(key) => register(key).await,
            Action::ShowProposals {} => Ok(policy_proposals::show().await),
            Action::ChallengeProposal { supervisor, digest } => {
                policy_proposals::challenge(supervisor, digest, self.port_for_keys()?).await
            }
            Action::AcceptProposal { supervisor, digest, proof } => {
                policy_proposals::accept(supervisor, digest, proof.map(key_proof)).await
            }
            Action::ChallengeServer { server, digest } => {
                let port = self.port_for_keys()?;
                let engine = engine_tools::engine().ok_or_else(ActionError::no_answer)?;
                engine_tools::challenge(engine, server, digest, port).await
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

fn key_proof(proof: KeyProof) -> PresenceProof {
    let KeyProof { credential, client_data, authenticator_data, signature } = proof;
    PresenceProof::Key(KeyAssertion { credential, client_data, authenticator_data, signature })
}

/// Registers a key in the process that has issued the code.
async fn register(key: NewKey) -> Result<Value, ActionError> {
    let NewKey { code, credential, client_data, authenticator_data, public_key, algorithm } = key;
    let code = EnrolmentCode(code);
    let registration =
        KeyRegistration { code, credential, client_data, authenticator_data, public_key, algorithm };
    let mut refusal = ActionError::no_answer();
    let request = OperatorRequest::EnrolKey(Box::new(registration));
    for (_, response) in request_all(&request).await {
        match response {
            OperatorResponse::KeyEnrolled(key) => return Ok(json!({"registered": key.credential})),
            OperatorResponse::Refused { reason } => refusal = ActionError::new(ErrorCode::Refused, reason),
            _ => {}
        }
    }
    Err(refusal)
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
        _ => Err(ActionError::no_answer()),
    }
}

async fn end_session(supervisor: u32, id: u64) -> Result<Value, ActionError> {
    let request = OperatorRequest::EndSessions(EndedSessions::Numbered(id));
    match request_one(supervisor, &request).await {
        Ok(OperatorResponse::EndedSessions(ended)) if !ended.is_empty() => Ok(json!({"ended": ended})),
        Ok(OperatorResponse::EndedSessions(_)) => {
            Err(ActionError::new(ErrorCode::Refused, "this session has already ended"))
        }
        _ => Err(ActionError::no_answer()),
    }
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
