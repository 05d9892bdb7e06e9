//! What a server is told about us, and what becomes of what it says unasked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lockhouse_policies::printable;
use lockhouse_protocol::ServerName;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    ClientConfig, CustomRequest, CustomResult, ElicitRequestParams, ElicitResult, ElicitationAction,
    ErrorCode, ErrorData, Implementation, ProgressNotificationParam, ProtocolVersion,
    ResourceUpdatedNotificationParam,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use tokio::sync::Notify;

use super::callers::{Asking, Callers};
use super::elicitation;
use super::inbound::REFUSED_METHOD;
use super::notices::{DirectNotices, Notice};
use crate::ai_client::{AiClient, Answer, Mode, Question, Unasked};

/// Characters of a server's words about its progress that are passed on.
const PROGRESS_CHARS_MAX: usize = 200;

/// Why a request is not read.
const UNREAD_REQUEST: &str =
    "the request is larger than 1 MiB, has more than 4,096 JSON values or is nested too deeply";

/// Our side of a conversation with a server.
pub(super) struct Host {
    name: ServerName,
    callers: Callers,
    /// Told when the server says that its tools are others now.
    changed: Arc<Notify>,
    notices: DirectNotices,
    /// Whether it was logged already that a question could not be passed on: a server can ask without end.
    complained: AtomicBool,
}

impl Host {
    pub(super) fn new(
        name: ServerName,
        callers: Callers,
        changed: Arc<Notify>,
        notices: DirectNotices,
    ) -> Self {
        Self { name, callers, changed, notices, complained: AtomicBool::new(false) }
    }

    pub(super) fn callers(&self) -> Callers {
        self.callers.clone()
    }

    pub(super) fn notices(&self) -> DirectNotices {
        self.notices.clone()
    }

    fn decline(&self, why: &str) -> ElicitResult {
        if !self.complained.swap(true, Ordering::Relaxed) {
            tracing::warn!(server = %self.name, "a question of the server was declined: {why}");
        }
        ElicitResult::new(ElicitationAction::Decline)
    }
}

impl ClientHandler for Host {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("lockhouse", env!("CARGO_PKG_VERSION"));
        let mut capabilities = elicitation::capabilities();
        // Sampling is deprecated: it passes through for the servers of older eras that AI clients have directly.
        capabilities.sampling = self.notices.is_direct().then(Default::default);
        ClientConfig::new(capabilities, us).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
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
            Ok(answer) => Ok(elicitation::result(answer)),
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

    /// A question to the AI client's model, in the older eras.
    #[expect(deprecated)]
    async fn create_message(
        &self,
        request: rmcp::model::CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::CreateMessageResult, ErrorData> {
        let refused = |why: &str| ErrorData::invalid_request(format!("not passed on: {why}"), None);
        let Asking::One(caller) = self.callers.asking() else {
            return Err(refused("no call is in flight that it could be for, or several are"));
        };
        let able = |ai_client: &AiClient| caller.wire.is_some() && ai_client.can(Mode::Sampling);
        let Some(ai_client) = caller.ai_client.filter(able) else {
            return Err(refused("the AI client of this call offers no sampling"));
        };
        let parameters = serde_json::to_string(&request).unwrap_or_default();
        let question = Question::sampling(&parameters).map_err(|unfit| refused(&unfit.to_string()))?;
        match ai_client.ask(&self.name, question).await {
            Ok(Answer::Accept(Some(message))) => {
                serde_json::from_value(message).map_err(|_| refused("the AI client's answer is no message"))
            }
            Ok(_) => Err(refused("the AI client declined")),
            Err(unasked) => Err(refused(&unasked.to_string())),
        }
    }

    /// What MCP does not know, and what stands for a request that is not read.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        match request.method == REFUSED_METHOD {
            true => Err(ErrorData::invalid_request(UNREAD_REQUEST, None)),
            false => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None)),
        }
    }

    #[expect(deprecated)]
    async fn on_logging_message(
        &self,
        params: rmcp::model::LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.callers.log(serde_json::to_value(params).unwrap_or_default());
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.notices.tell(Notice::Resource(self.name.clone(), params.uri));
    }

    async fn on_resource_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.notices.tell(Notice::Resources);
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.notices.tell(Notice::Prompts);
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let words = params.message.as_deref().unwrap_or_default();
        let words: String = words.chars().take(PROGRESS_CHARS_MAX).collect();
        self.callers.progress(params, &printable(&words));
    }
}
