//! Builds the MCP requests for calls to upstream servers.

use lockhouse_policies::CallTarget;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, CompleteRequest, GetPromptRequest,
    GetPromptRequestParams, ReadResourceRequest, ReadResourceRequestParams,
};
use serde_json::{Map, Value};

use crate::call_types::InputResponses;
use crate::direct_request::DirectRequestKind;

/// Builds a request that only AI clients with direct access to the server can make: completion or subscription.
#[expect(deprecated)]
pub(super) fn verb_request(verb: &DirectRequestKind, item: &CallTarget) -> ClientRequest {
    use rmcp::model::{SubscribeRequest, SubscribeRequestParams};
    let uri = || item.as_str().to_owned();
    match verb {
        DirectRequestKind::Subscribe => {
            ClientRequest::SubscribeRequest(SubscribeRequest::new(SubscribeRequestParams::new(uri())))
        }
        DirectRequestKind::Complete(parameters) => {
            ClientRequest::CompleteRequest(CompleteRequest::new((**parameters).clone()))
        }
        DirectRequestKind::Usual => request(item, Map::new(), InputResponses::default()),
    }
}

pub(super) fn request(
    item: &CallTarget,
    arguments: Map<String, Value>,
    input: InputResponses,
) -> ClientRequest {
    let name = item.as_str().to_owned();
    let InputResponses { responses, state } = input;
    match item {
        CallTarget::Resource(_) => {
            let mut parameters = ReadResourceRequestParams::new(name);
            (parameters.input_responses, parameters.request_state) = (responses, state);
            ClientRequest::ReadResourceRequest(ReadResourceRequest::new(parameters))
        }
        CallTarget::Prompt(_) => {
            let mut parameters = GetPromptRequestParams::new(name).with_arguments(arguments);
            (parameters.input_responses, parameters.request_state) = (responses, state);
            ClientRequest::GetPromptRequest(GetPromptRequest::new(parameters))
        }
        CallTarget::Tool(_) | CallTarget::List(_) => {
            let mut parameters = CallToolRequestParams::new(name).with_arguments(arguments);
            (parameters.input_responses, parameters.request_state) = (responses, state);
            ClientRequest::CallToolRequest(CallToolRequest::new(parameters))
        }
    }
}
