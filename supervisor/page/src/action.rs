//! The actions of a page, and the interface of what carries them out.

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::attachment::Attachment;
use super::error::{ActionError, ErrorCode};
use super::viewer::Viewer;

/// An action that a viewer requests: what an operator's command can do. The fields are the members of the request's
/// body, which must have exactly these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// Answer a question about calls that require approval. The digest is that of the question that was shown.
    Answer {
        supervisor: u32,
        id: u64,
        digest: String,
        decision: Decision,
        scope: Scope,
        /// The signature of a key, if the question requires one.
        #[serde(default)]
        proof: Option<KeyProof>,
        /// Why the viewer approves alone what requires more people.
        #[serde(default)]
        break_glass: Option<String>,
    },
    /// Return what a key must sign for an approval with this scope.
    RequestChallenge {
        supervisor: u32,
        id: u64,
        digest: String,
        scope: Scope,
    },
    /// Register a key, with the code of an administrator.
    RegisterKey(NewKey),
    /// Show the policies that people propose for engines of the system.
    ShowProposals {},
    /// Return what a key must sign to accept the proposed policy with this digest.
    ChallengeProposal {
        supervisor: u32,
        digest: String,
    },
    /// Accept the proposed policy that was shown.
    AcceptProposal {
        supervisor: u32,
        digest: String,
        /// The signature of a key, if the engine requires one.
        #[serde(default)]
        proof: Option<KeyProof>,
    },
    EndRun {
        supervisor: u32,
        execution: String,
    },
    EndSession {
        supervisor: u32,
        id: u64,
    },
    /// Show the change of the policy that gives a tool this effect, without changing the file.
    PreviewPolicy {
        server: String,
        tool: String,
        effect: ToolEffect,
    },
    /// Change the policy as it was shown: the digest is that of the shown change.
    ApplyPolicy {
        server: String,
        tool: String,
        effect: ToolEffect,
        digest: String,
    },
    Reload {},
    /// Connect to an upstream server, and show the tool definitions that no user has accepted.
    ReviewServer {
        server: String,
    },
    /// Accept the tool definitions that were shown: the digest is that of the review.
    AcceptServer {
        server: String,
        digest: String,
        /// The signature of a key, if the engine requires one.
        #[serde(default)]
        proof: Option<KeyProof>,
    },
    /// Return what a key must sign to accept the tool definitions with this digest.
    ChallengeServer {
        server: String,
        digest: String,
    },
    VerifyAudit {},
    CheckHost {},
    /// Write a record about the page to the audit log. No viewer can request it.
    Record {
        event: PageRecord,
        /// The process of the page.
        process: i32,
    },
}

/// The signature of a key, as the browser has it: each member is in base64url.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyProof {
    pub credential: String,
    pub client_data: String,
    pub authenticator_data: String,
    pub signature: String,
}

/// A new key, as the browser has it: binary members are in base64url.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewKey {
    /// The code of the administrator.
    pub code: String,
    pub credential: String,
    pub client_data: String,
    pub authenticator_data: String,
    pub public_key: String,
    pub algorithm: i32,
}

/// Leaves the code out, because actions are logged.
impl std::fmt::Debug for NewKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewKey").field("credential", &self.credential).finish_non_exhaustive()
    }
}

/// What the audit log records about a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum PageRecord {
    Started {},
    Stopped {},
    Login(PageLogin),
    /// A viewer requests an action, or it has failed for this reason.
    Action {
        action: String,
        viewer: String,
        failed: Option<String>,
    },
}

/// A login at the page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageLogin {
    /// Who has logged in. `None` if the login was refused.
    pub viewer: Option<String>,
    /// The number of refused logins before this one that have no record.
    pub left_out: u64,
}

/// The paths of the actions below `/api/`, each with the name of its variant of [`Action`].
pub(super) const PATHS: [(&str, &str); 16] = [
    ("approvals/answer", "answer"),
    ("approvals/challenge", "request_challenge"),
    ("keys/register", "register_key"),
    ("policy/proposals", "show_proposals"),
    ("policy/challenge", "challenge_proposal"),
    ("policy/accept", "accept_proposal"),
    ("runs/end", "end_run"),
    ("sessions/end", "end_session"),
    ("policy/preview", "preview_policy"),
    ("policy/apply", "apply_policy"),
    ("reload", "reload"),
    ("servers/review", "review_server"),
    ("servers/accept", "accept_server"),
    ("servers/challenge", "challenge_server"),
    ("audit/verify", "verify_audit"),
    ("host/check", "check_host"),
];

impl Action {
    /// Describes an action that changes something, for the audit log. `None` for one that only shows something.
    #[must_use]
    pub fn description(&self) -> Option<String> {
        match self {
            Self::Answer { supervisor, id, decision, scope, break_glass, .. } => {
                let alone = if break_glass.is_some() { ", break glass" } else { "" };
                Some(format!("answer question {id} of process {supervisor}: {decision:?}, {scope:?}{alone}"))
            }
            Self::EndRun { execution, .. } => Some(format!("end run {execution}")),
            Self::EndSession { supervisor, id } => Some(format!("end session {id} of process {supervisor}")),
            Self::ApplyPolicy { server, tool, effect, .. } => {
                Some(format!("policy {effect:?} {server}.{tool}"))
            }
            Self::RegisterKey(key) => Some(format!("register the key {}", key.credential)),
            Self::AcceptProposal { supervisor, digest, .. } => {
                Some(format!("accept the policy {digest} of process {supervisor}"))
            }
            Self::Reload {} => Some("reload".to_owned()),
            Self::AcceptServer { server, .. } => Some(format!("accept definitions of {server}")),
            Self::RequestChallenge { .. }
            | Self::ShowProposals {}
            | Self::ChallengeProposal { .. }
            | Self::ChallengeServer { .. }
            | Self::PreviewPolicy { .. }
            | Self::ReviewServer { .. }
            | Self::VerifyAudit {}
            | Self::CheckHost {}
            | Self::Record { .. } => None,
        }
    }

    /// Whether the action only takes permissions away, or may: it is then carried out even if it cannot be recorded.
    #[must_use]
    pub fn only_restricts(&self) -> bool {
        matches!(self, Self::EndRun { .. } | Self::EndSession { .. } | Self::Reload {})
    }

    /// Parses the body of a request for the action with the name `variant`.
    pub(super) fn parse(variant: &str, body: &Value) -> Result<Self, ActionError> {
        serde_json::from_value(json!({variant: body}))
            .map_err(|error| ActionError::new(ErrorCode::Invalid, format!("the body is invalid: {error}")))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    Approve,
    Decline,
}

/// Which calls an approval covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    Once,
    Execution,
    Always,
}

/// The effect of a change of the policy on a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolEffect {
    Allow,
    Ask,
    Deny,
}

/// Carries out the actions of viewers. Implemented with the commands of operators.
pub trait Operator: Send + Sync + 'static {
    /// Carries out an action that the viewer may request. Returns the JSON for the page.
    fn act(&self, action: Action, viewer: Viewer) -> BoxFuture<'_, Result<Value, ActionError>>;

    /// Returns a stored result: one that the section of results lists under this id.
    fn stored_result(&self, id: String) -> BoxFuture<'_, Result<Attachment, ActionError>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_has_an_action_and_a_body_has_exactly_its_members() {
        for (path, variant) in PATHS {
            let error = Action::parse(variant, &json!({"nothing": 1})).expect_err("an unknown member");
            assert!(
                error.message.contains("unknown field") && error.code == ErrorCode::Invalid,
                "{path}: {error}"
            );
        }
        assert_eq!(Action::parse("reload", &json!({})), Ok(Action::Reload {}));
        assert!(Action::parse("reload", &json!(null)).is_err());
        let body = json!({"supervisor": 1, "execution": "x"});
        assert_eq!(
            Action::parse("end_run", &body),
            Ok(Action::EndRun { supervisor: 1, execution: "x".into() })
        );
    }
}
