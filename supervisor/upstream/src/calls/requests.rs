//! What is sent for a call.

use lockhouse_policies::Item;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, CompleteRequest, GetPromptRequest,
    GetPromptRequestParams, ReadResourceRequest, ReadResourceRequestParams,
};
use serde_json::{Map, Value};

use crate::call::InputResponses;
use crate::wire::Verb;

/// What code never asks.
#[expect(deprecated)]
pub(super) fn verb_request(verb: &Verb, item: &Item) -> ClientRequest {
    use rmcp::model::{SubscribeRequest, SubscribeRequestParams};
    let uri = || item.as_str().to_owned();
    match verb {
        Verb::Subscribe => {
            ClientRequest::SubscribeRequest(SubscribeRequest::new(SubscribeRequestParams::new(uri())))
        }
        Verb::Complete(parameters) => {
            ClientRequest::CompleteRequest(CompleteRequest::new((**parameters).clone()))
        }
        Verb::Usual => request(item, Map::new(), InputResponses::default()),
    }
}

pub(super) fn request(item: &Item, arguments: Map<String, Value>, input: InputResponses) -> ClientRequest {
    let name = item.as_str().to_owned();
    let InputResponses { responses, state } = input;
    match item {
        Item::Resource(_) => {
            let mut parameters = ReadResourceRequestParams::new(name);
            (parameters.input_responses, parameters.request_state) = (responses, state);
            ClientRequest::ReadResourceRequest(ReadResourceRequest::new(parameters))
        }
        Item::Prompt(_) => {
            let mut parameters = GetPromptRequestParams::new(name).with_arguments(arguments);
            (parameters.input_responses, parameters.request_state) = (responses, state);
            ClientRequest::GetPromptRequest(GetPromptRequest::new(parameters))
        }
        Item::Tool(_) | Item::List(_) => {
            let mut parameters = CallToolRequestParams::new(name).with_arguments(arguments);
            (parameters.input_responses, parameters.request_state) = (responses, state);
            ClientRequest::CallToolRequest(CallToolRequest::new(parameters))
        }
    }
}
