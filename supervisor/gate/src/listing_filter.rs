//! Filters an upstream server's lists of resources and prompts by the policy, and suggests similar names if a requested
//! resource or prompt does not exist.

use std::time::Instant;

use lockhouse_policies::{CallTarget, ClientName, Listing, Policy};
use lockhouse_protocol::{
    CallId, CallOutcome, Failure, FailureCode, PromptName, Reply, ResourceUri, ServerName,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::argument_names::RawArguments;
use super::tool_request::ToolRequest;
use super::{Gate, RunContext};

/// Maximum number of prompt names or resource URIs that an error message lists.
const NAMES_SHOWN_MAX: usize = 10;

/// A list of resources or prompts as JSON: the form in which the upstream connection returns the list, and in which
/// programs receive it.
#[derive(Deserialize, Serialize)]
pub(super) struct ItemList<'a> {
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
    /// The resource templates. Always empty in a list of prompts.
    #[serde(borrow, default)]
    templates: Vec<&'a RawValue>,
    /// Whether the server has more items than the list contains.
    incomplete: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    uri: Option<String>,
    uri_template: Option<String>,
    name: Option<String>,
}

/// Removes the entries that the policy does not permit from a list of resources or prompts.
pub(super) fn filter_listing(
    policy: &Policy,
    client: Option<&ClientName>,
    server: &ServerName,
    listing: Listing,
    json: &[u8],
) -> Reply {
    let unreadable = |_| {
        Failure::new(FailureCode::ToolFailed, format!("server {server} sent a list that is not valid MCP"))
    };
    let mut listed: ItemList<'_> = serde_json::from_slice(json).map_err(unreadable)?;
    let permits = |item: CallTarget| policy.permits_target(server, &item, client);
    listed.items.retain(|entry| requestable_item(listing, entry).is_some_and(permits));
    listed.templates.retain(|entry| {
        let template = serde_json::from_str::<Entry>(entry.get()).ok().and_then(|entry| entry.uri_template);
        // The values of the template's variables are unknown, so the policy is matched with the text before the first
        // variable.
        let beginning = |uri: &str| uri.split('{').next().unwrap_or_default().to_owned();
        template.is_some_and(|uri| policy.permits_any_with_prefix(server, &beginning(&uri), client))
    });
    serde_json::to_vec(&listed).map_err(unreadable)
}

/// Returns the resource or prompt that an entry of a list describes. `None` if the entry has no valid URI or name.
fn requestable_item(listing: Listing, entry: &RawValue) -> Option<CallTarget> {
    let entry: Entry = serde_json::from_str(entry.get()).ok()?;
    match listing {
        Listing::Resources => ResourceUri::new(entry.uri?).ok().map(CallTarget::Resource),
        Listing::Prompts => PromptName::new(entry.name?).ok().map(CallTarget::Prompt),
    }
}

impl Gate {
    /// Improves the failure of a request whose resource or prompt the server does not have: the message then contains
    /// a similar existing name or, if there is none, a list of existing names. Returns other failures unchanged.
    pub(super) async fn with_suggestion(
        &self,
        run: &RunContext,
        call: CallId,
        request: &ToolRequest,
        failure: Failure,
    ) -> Failure {
        let is_about_the_name =
            matches!(failure.code, FailureCode::UnknownTool | FailureCode::InvalidArguments);
        let listing = match request.item {
            CallTarget::Resource(_) if is_about_the_name => Listing::Resources,
            CallTarget::Prompt(_) if is_about_the_name => Listing::Prompts,
            _ => return failure,
        };
        let Some(names) = self.permitted_names(run, call, &request.server, listing).await else {
            return failure;
        };
        let requested = request.item.as_str();
        if names.iter().any(|name| name == requested) {
            return failure;
        }
        let suggestion =
            match lockhouse_policies::most_similar_name(requested, names.iter().map(String::as_str)) {
                Some(name) => format!("did you mean {name}?"),
                None if names.is_empty() => "none is listed".into(),
                None => format!("there are: {}", names[..names.len().min(NAMES_SHOWN_MAX)].join(", ")),
            };
        let (server, kind, item) = (&request.server, request.item.kind(), &request.item);
        let message = match listing {
            // The URI may belong to a resource template. Then the server's own message explains the failure.
            Listing::Resources => {
                format!("{}; server {server} lists no {kind} {item}: {suggestion}", failure.message)
            }
            Listing::Prompts => format!("server {server} has no {kind} {item}; {suggestion}"),
        };
        Failure { code: FailureCode::UnknownTool, message, ..failure }
    }

    /// Returns the names of the prompts, or the URIs of the resources, that a server lists and the policy permits.
    /// `None` if the list is not available.
    async fn permitted_names(
        &self,
        run: &RunContext,
        call: CallId,
        server: &ServerName,
        listing: Listing,
    ) -> Option<Vec<String>> {
        let request = ToolRequest::new(server.clone(), CallTarget::List(listing));
        let started = Instant::now();
        let json = Box::pin(self.try_call(run, call, &request, RawArguments::default())).await.ok()?;
        // The request for the list gets audit records like every other call.
        self.audit
            .outcome(request.subject(run, call), CallOutcome::Ok, started.elapsed(), json.len())
            .ok()?;
        let listed: ItemList<'_> = serde_json::from_slice(&json).ok()?;
        let items = listed.items.iter().filter_map(|entry| requestable_item(listing, entry));
        Some(items.map(|item| item.as_str().to_owned()).collect())
    }
}
