//! Handles the requests of workers. Each request gets exactly one reply.

use lockhouse_policies::CallTarget;
use lockhouse_protocol::{CallId, Failure, FailureCode, Reply, WorkerRequest};
use serde_json::json;

use super::argument_names::RawArguments;
use super::failures::sanitize_message;
use super::tool_request::{CallRecord, ToolRequest};
use super::tool_search::Search;
use super::{Gate, RunContext};

impl Gate {
    /// Answers one request of a worker. If `tool_request` is set, the request goes to an upstream server, and a
    /// record of the call is returned in addition to the reply.
    pub async fn handle_request(
        &self,
        run: &RunContext,
        call: CallId,
        tool_request: Option<ToolRequest>,
        request: WorkerRequest,
    ) -> (Reply, Option<CallRecord>) {
        if let Some(tool_request) = tool_request {
            let tool_request = self.with_resolved_name(run, tool_request);
            let arguments = match tool_request.content() {
                Some(content) => RawArguments::of_path(&content.path),
                None => RawArguments::from_request(request),
            };
            let (reply, record) = self.call(run, call, &tool_request, arguments).await;
            return (self.limit_reply(reply), Some(record));
        }
        let reply = match request {
            WorkerRequest::ListTools { server } => self.list_tools(run, &server).await,
            WorkerRequest::Describe { server, tool: Some(tool) } => {
                self.describe(run, call, &server, &tool).await
            }
            WorkerRequest::Describe { server, tool: None } => self.describe_server(run, &server).await,
            WorkerRequest::LoadResult { handle } => {
                match self.results.get(run.principal().owner(), &handle) {
                    Ok(json) => Ok(json.as_bytes().to_vec()),
                    Err(not_kept) => Err(Failure::new(FailureCode::NotFound, not_kept.to_string())),
                }
            }
            WorkerRequest::LoadSkill { name } => self.load_skill(run, &name).await,
            WorkerRequest::CheckCalls { calls } => self.check_calls(run, call, calls).await,
            WorkerRequest::SearchSkills { query, limit } => self.search_skills(run, query, limit).await,
            WorkerRequest::Search { query, limit, detail } => {
                let search = Search { query: &query, limit, detail, language: run.language };
                let found = self.search(&run.scope, run.client(), search).await;
                Ok(json!({"tools": found.tools, "missing": found.missing}).to_string().into_bytes())
            }
            request @ (WorkerRequest::OpenFile { .. }
            | WorkerRequest::ReadPiece { .. }
            | WorkerRequest::CreateFile { .. }
            | WorkerRequest::WritePiece { .. }
            | WorkerRequest::FinishFile { .. }) => self.serve_file(run, call, request).await,
            WorkerRequest::ListServers => self.list_servers(run),
            // These go to a server, so each has a `tool_request`.
            WorkerRequest::Call { .. }
            | WorkerRequest::ListResources { .. }
            | WorkerRequest::ReadResource { .. }
            | WorkerRequest::ListPrompts { .. }
            | WorkerRequest::GetPrompt { .. } => {
                Err(Failure::new(FailureCode::UnknownTool, "the request names no server".to_owned()))
            }
        };
        (self.limit_reply(reply), None)
    }

    /// Replaces the tool name in a request by the exact name if the program uses another spelling, such as the
    /// tool's identifier. Recognizes other spellings only of permitted tools.
    fn with_resolved_name(&self, run: &RunContext, tool_request: ToolRequest) -> ToolRequest {
        match &tool_request.item {
            CallTarget::Tool(tool) => match self.resolve_tool_name(run, &tool_request.server, tool) {
                Some(meant) => tool_request.with_item(CallTarget::Tool(meant)),
                None => tool_request,
            },
            _ => tool_request,
        }
    }

    /// Limits the size of a reply to a worker: replaces a reply that is too long by a failure, and truncates the
    /// messages of failures.
    fn limit_reply(&self, reply: Reply) -> Reply {
        match reply {
            Err(failure) => Err(Failure {
                message: sanitize_message(&failure.message),
                result: failure.result.filter(|json| json.len() <= self.reply_bytes_max),
                ..failure
            }),
            Ok(json) if json.len() > self.reply_bytes_max => Err(Failure::new(
                FailureCode::ResultTooLarge,
                format!(
                    "the result has {} bytes, the limit is {}; ask for less at a time",
                    json.len(),
                    self.reply_bytes_max
                ),
            )),
            reply => reply,
        }
    }
}
