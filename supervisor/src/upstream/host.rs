//! What a server is told about us, and what becomes of what it says unasked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lockhouse_policies::printable;
use lockhouse_protocol::ServerName;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, ErrorData, FormElicitationCapability, Implementation, ProgressNotificationParam,
    ProtocolVersion, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use tokio::sync::Notify;

use super::callers::{Asking, Callers};
use crate::ai_client::{Answer, Question, Unasked};

/// Characters of a server's words about its progress that are passed on.
const PROGRESS_CHARS_MAX: usize = 200;

/// Our side of a conversation with a server.
pub(super) struct Host {
    name: ServerName,
    callers: Callers,
    /// Told when the server says that its tools are others now.
    changed: Arc<Notify>,
    /// Whether it was logged already that a question could not be passed on: a server can ask without end.
    complained: AtomicBool,
}

impl Host {
    pub(super) fn new(name: ServerName, callers: Callers, changed: Arc<Notify>) -> Self {
        Self { name, callers, changed, complained: AtomicBool::new(false) }
    }

    pub(super) fn callers(&self) -> Callers {
        self.callers.clone()
    }

    fn decline(&self, why: &str) -> ElicitResult {
        if !self.complained.swap(true, Ordering::Relaxed) {
            tracing::warn!(server = %self.name, "a question of the server was declined: {why}");
        }
        ElicitResult::new(ElicitationAction::Decline)
    }
}

/// A person can be asked, if the AI client can. Connections outlive AI clients and are shared, so an older server is told
/// so in any case; in the era without `initialize` each call says it for itself.
pub(super) fn asks_people() -> ClientCapabilities {
    let elicitation = ElicitationCapability::new()
        .with_form(FormElicitationCapability::new())
        .with_url(UrlElicitationCapability::new());
    let mut capabilities = ClientCapabilities::default();
    capabilities.elicitation = Some(elicitation);
    capabilities
}

impl ClientHandler for Host {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("lockhouse", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(asks_people(), us).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    /// A question in the older eras. Over standard streams it does not say for which call it is.
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let Asking::One(caller) = self.callers.asking() else {
            return Ok(self.decline("no call is in flight that it could be for, or several are"));
        };
        let parameters = serde_json::to_string(&request).unwrap_or_default();
        let question = match Question::read(&self.name, &parameters) {
            Ok(question) => question,
            Err(unfit) => return Ok(self.decline(&unfit.to_string())),
        };
        let Some(ai_client) = caller.ai_client.filter(|ai_client| ai_client.can(question.mode())) else {
            self.callers.fail_the_one();
            return Ok(self.decline("the AI client cannot ask a person"));
        };
        match ai_client.ask(&self.name, question).await {
            Ok(answer) => Ok(result(answer)),
            Err(unasked) => {
                if unasked == Unasked::Unable {
                    self.callers.fail_the_one();
                }
                Ok(self.decline(&unasked.to_string()))
            }
        }
    }

    /// Unlike rmcp's own, which has none and says so with a list.
    #[expect(deprecated)]
    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::ListRootsResult, ErrorData> {
        Err(ErrorData::method_not_found::<rmcp::model::ListRootsRequestMethod>())
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let words = params.message.unwrap_or_default();
        let words: String = words.chars().take(PROGRESS_CHARS_MAX).collect();
        self.callers.progress(&params.progress_token, &printable(&words));
    }
}

/// An answer as MCP has it.
pub(super) fn result(answer: Answer) -> ElicitResult {
    match answer {
        Answer::Accept(Some(content)) => ElicitResult::new(ElicitationAction::Accept).with_content(content),
        Answer::Accept(None) => ElicitResult::new(ElicitationAction::Accept),
        Answer::Decline => ElicitResult::new(ElicitationAction::Decline),
        Answer::Cancel | Answer::Silence | Answer::Garbled => ElicitResult::new(ElicitationAction::Cancel),
    }
}
