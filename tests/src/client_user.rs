//! A scripted user of an AI client, who answers elicitation requests as the test decides.

use std::sync::Arc;

use parking_lot::Mutex;
use std::time::Duration;

use rmcp::model::{
    ClientCapabilities, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData,
    ProgressNotificationParam,
};
use serde_json::{Value, json};

/// How the user or the AI client replies to an elicitation request.
#[derive(Clone, Debug)]
pub enum UserReply {
    /// The user accepts the request with these field values.
    Accept(Value),
    /// The user accepts the request, but the reply has no `content`.
    AcceptEmpty,
    /// The replies to the first, second and later requests. The last reply is repeated for all further requests.
    Sequence(Vec<UserReply>),
    /// The user waits for this delay, and then accepts the request with these field values.
    Delayed(Duration, Value),
    /// The user declines the request.
    Decline,
    /// The user cancels the request.
    Cancel,
    /// The AI client never replies.
    NoReply,
    /// The AI client answers with the error "method not found", although it announced elicitation.
    MethodNotFound,
}

/// A scripted user, together with the MCP capabilities that the AI client announces.
#[derive(Clone, Debug)]
pub struct ClientUser {
    pub(crate) abilities: ClientCapabilities,
    reply: UserReply,
    requests: Arc<Mutex<Vec<Value>>>,
    notes: Arc<Mutex<Vec<ProgressNotificationParam>>>,
}

impl Default for ClientUser {
    /// Creates an AI client without MCP capabilities, which cannot ask its user anything.
    fn default() -> Self {
        Self::new(json!({}), UserReply::MethodNotFound)
    }
}

impl ClientUser {
    /// Creates a scripted user, who replies as `reply` says, of an AI client that announces these MCP capabilities.
    ///
    /// # Panics
    /// If `abilities` are no valid MCP client capabilities.
    #[must_use]
    pub fn new(abilities: Value, reply: UserReply) -> Self {
        let abilities = serde_json::from_value(abilities).expect("capabilities");
        Self { abilities, reply, requests: Arc::default(), notes: Arc::default() }
    }

    /// Creates a scripted user, who replies as `reply` says, of an AI client that supports form and URL elicitation.
    #[must_use]
    pub fn replying(reply: UserReply) -> Self {
        Self::new(json!({"elicitation": {"form": {}, "url": {}}}), reply)
    }

    /// Returns the elicitation requests that the AI client has received so far.
    #[must_use]
    pub fn received_requests(&self) -> Vec<Value> {
        self.requests.lock().clone()
    }

    /// Returns the progress notifications that the AI client has received so far.
    #[must_use]
    pub fn progress_notifications(&self) -> Vec<ProgressNotificationParam> {
        self.notes.lock().clone()
    }

    pub(crate) fn record_progress(&self, note: ProgressNotificationParam) {
        self.notes.lock().push(note);
    }

    pub(crate) async fn answer(&self, request: ElicitRequestParams) -> Result<ElicitResult, ErrorData> {
        let request = serde_json::to_value(request).unwrap_or_default();
        let turn = {
            let mut requests = self.requests.lock();
            requests.push(request);
            requests.len() - 1
        };
        let reply = match &self.reply {
            UserReply::Sequence(all) => &all[turn.min(all.len() - 1)],
            reply => reply,
        };
        match reply {
            UserReply::AcceptEmpty => Ok(ElicitResult::new(ElicitationAction::Accept)),
            UserReply::Sequence(_) => panic!("a turn within a turn"),
            UserReply::Accept(content) => {
                Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content.clone()))
            }
            UserReply::Delayed(after, content) => {
                tokio::time::sleep(*after).await;
                Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content.clone()))
            }
            UserReply::Decline => Ok(ElicitResult::new(ElicitationAction::Decline)),
            UserReply::Cancel => Ok(ElicitResult::new(ElicitationAction::Cancel)),
            UserReply::NoReply => std::future::pending().await,
            UserReply::MethodNotFound => {
                Err(ErrorData::new(rmcp::model::ErrorCode::METHOD_NOT_FOUND, "elicitation/create", None))
            }
        }
    }
}
