//! The MCP requests for calls to upstream servers.

use std::collections::BTreeMap;

use lockhouse_policies::CallTarget;
use rmcp::model::{
    ClientRequest, CompleteRequest, GetPromptRequest, GetPromptRequestParams, ReadResourceRequest,
    ReadResourceRequestParams, RequestMetaObject,
};
use serde::Serialize;
use serde_json::{Map, Value};

use super::call_types::InputResponses;
use super::direct_request::DirectRequestKind;

/// A request to an upstream server on behalf of submitted code or of an AI client.
pub(super) enum OutgoingRequest<'a> {
    Tool(ToolCall<'a>),
    Other(Box<ClientRequest>),
}

/// A `tools/call` request.
pub(super) struct ToolCall<'a> {
    name: &'a str,
    arguments: &'a Map<String, Value>,
    input: InputResponses,
}

impl<'a> OutgoingRequest<'a> {
    /// Builds the usual request for the target `item`: `tools/call`, `resources/read` or `prompts/get`. `input` has the
    /// user's answers and the server's state if the call is repeated because the server required input.
    pub(super) fn new(
        item: &'a CallTarget,
        arguments: &'a Map<String, Value>,
        input: InputResponses,
    ) -> Self {
        let name = item.as_str();
        let InputResponses { responses, state } = input;
        match item {
            CallTarget::Resource(_) => {
                let mut parameters = ReadResourceRequestParams::new(name);
                (parameters.input_responses, parameters.request_state) = (responses, state);
                Self::other(ClientRequest::ReadResourceRequest(ReadResourceRequest::new(parameters)))
            }
            CallTarget::Prompt(_) => {
                let mut parameters = GetPromptRequestParams::new(name).with_arguments(arguments.clone());
                (parameters.input_responses, parameters.request_state) = (responses, state);
                Self::other(ClientRequest::GetPromptRequest(GetPromptRequest::new(parameters)))
            }
            CallTarget::Tool(_) | CallTarget::List(_) => {
                Self::Tool(ToolCall { name, arguments, input: InputResponses { responses, state } })
            }
        }
    }

    /// Builds a request that only AI clients with direct access to the server can make: completion or subscription.
    /// Returns `None` for [`DirectRequestKind::Usual`]; [`Self::new`] builds that request.
    #[expect(deprecated, reason = "MCP deprecates it, but it is still in use")]
    pub(super) fn direct(kind: &DirectRequestKind, item: &CallTarget) -> Option<Self> {
        use rmcp::model::{SubscribeRequest, SubscribeRequestParams};
        let request = match kind {
            DirectRequestKind::Subscribe => {
                let parameters = SubscribeRequestParams::new(item.as_str());
                ClientRequest::SubscribeRequest(SubscribeRequest::new(parameters))
            }
            DirectRequestKind::Complete(parameters) => {
                ClientRequest::CompleteRequest(CompleteRequest::new((**parameters).clone()))
            }
            DirectRequestKind::Usual => return None,
        };
        Some(Self::other(request))
    }

    fn other(request: ClientRequest) -> Self {
        Self::Other(Box::new(request))
    }

    /// Serializes the request as one line of JSON. `id` is the id of the request and its progress token, `meta` its
    /// other metadata.
    pub(super) fn into_line(self, id: i64, meta: Option<RequestMetaObject>) -> serde_json::Result<Vec<u8>> {
        match self {
            Self::Tool(call) => {
                let mut line = serde_json::to_vec(&call.message(id, meta))?;
                line.push(b'\n');
                Ok(line)
            }
            Self::Other(request) => lockhouse_mcp::client::request_line(*request, id, meta),
        }
    }
}

impl<'a> ToolCall<'a> {
    fn message(self, id: i64, others: Option<RequestMetaObject>) -> ToolCallMessage<'a> {
        let Self { name, arguments, input: InputResponses { responses, state } } = self;
        let meta = Metadata { progress_token: id, others };
        let params = Parameters { meta, name, arguments, input_responses: responses, request_state: state };
        ToolCallMessage { jsonrpc: "2.0", id, method: "tools/call", params }
    }
}

/// A `tools/call` request in its serialized form. It borrows the arguments of the call, whereas rmcp's type would need
/// a copy of them.
#[derive(Serialize)]
struct ToolCallMessage<'a> {
    jsonrpc: &'static str,
    id: i64,
    method: &'static str,
    params: Parameters<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Parameters<'a> {
    #[serde(rename = "_meta")]
    meta: Metadata,
    name: &'a str,
    arguments: &'a Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_responses: Option<BTreeMap<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_state: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    progress_token: i64,
    #[serde(flatten)]
    others: Option<RequestMetaObject>,
}

#[cfg(test)]
mod tests {
    use lockhouse_protocol::ToolName;
    use rmcp::model::{CallToolRequest, CallToolRequestParams};
    use serde_json::json;

    use super::*;

    /// Converts the request to rmcp's type for it.
    fn typed(request: OutgoingRequest<'_>) -> ClientRequest {
        let ToolCall { name, arguments, input } = match request {
            OutgoingRequest::Tool(call) => call,
            OutgoingRequest::Other(request) => return *request,
        };
        let parameters = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments.clone());
        let mut request = CallToolRequest::new(parameters);
        (request.params.input_responses, request.params.request_state) = (input.responses, input.state);
        ClientRequest::CallToolRequest(request)
    }

    #[test]
    fn a_tool_call_is_serialized_like_the_request_of_rmcp() {
        let item = CallTarget::Tool(ToolName::new("files.add").expect("a name"));
        let Value::Object(arguments) = json!({"a": 1, "text": "x\n"}) else { panic!("an object") };
        let input = InputResponses {
            responses: Some([("q".to_owned(), json!({"action": "accept"}))].into()),
            state: Some("s".to_owned()),
        };
        let mut meta = RequestMetaObject::default();
        meta.set_traceparent("00-1-2-01");
        for (input, meta) in [(InputResponses::default(), None), (input, Some(meta))] {
            let request = || OutgoingRequest::new(&item, &arguments, input.clone());
            let own = request().into_line(7, meta.clone()).expect("JSON");
            let typed = OutgoingRequest::other(typed(request()));
            let typed = typed.into_line(7, meta).expect("JSON");
            let parse = |line: &[u8]| serde_json::from_slice::<Value>(line).expect("JSON");
            assert_eq!(parse(&own), parse(&typed));
            assert!(own.ends_with(b"}\n"));
        }
    }
}
