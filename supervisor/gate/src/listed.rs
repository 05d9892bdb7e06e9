//! What code sees of a server's resources and prompts: what the policy permits, and what is near a name that is wrong.

use std::time::Instant;

use lockhouse_policies::{ClientName, Item, Listing, Policy};
use lockhouse_protocol::{CallId, Failure, FailureCode, PromptName, Reply, ResourceUri, ServerName};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::arguments::Given;
use super::asked::Asked;
use super::failures::failure;
use super::{Gate, Requester};

/// Names that a message lists.
const NAMED_MAX: usize = 10;

/// A listing as upstream hands it over, and as code gets it.
#[derive(Deserialize, Serialize)]
pub(super) struct Listed<'a> {
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
    /// Of resources alone.
    #[serde(borrow, default)]
    templates: Vec<&'a RawValue>,
    /// Whether there are more than these.
    incomplete: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    uri: Option<String>,
    uri_template: Option<String>,
    name: Option<String>,
}

/// The listing of a server of which nothing is permitted, and which is therefore not asked.
pub(super) fn nothing() -> Vec<u8> {
    br#"{"items":[],"templates":[],"incomplete":false}"#.to_vec()
}

/// The permitted part of a listing.
pub(super) fn permitted(
    policy: &Policy,
    client: Option<&ClientName>,
    server: &ServerName,
    listing: Listing,
    json: &[u8],
) -> Reply {
    let unreadable =
        |_| failure(FailureCode::ToolFailed, format!("server {server} sent no list that MCP knows"));
    let mut listed: Listed<'_> = serde_json::from_slice(json).map_err(unreadable)?;
    let permits = |item: Item| policy.permits_item(server, &item, client);
    listed.items.retain(|entry| item(listing, entry).is_some_and(permits));
    listed.templates.retain(|entry| {
        let template = serde_json::from_str::<Entry>(entry.get()).ok().and_then(|entry| entry.uri_template);
        // What the braces stand for is not known.
        let beginning = |uri: &str| uri.split('{').next().unwrap_or_default().to_owned();
        template.is_some_and(|uri| policy.permits_some_of(server, &beginning(&uri), client))
    });
    serde_json::to_vec(&listed).map_err(unreadable)
}

/// What an entry can be asked for by; none for one that has no usable name.
fn item(listing: Listing, entry: &RawValue) -> Option<Item> {
    let entry: Entry = serde_json::from_str(entry.get()).ok()?;
    match listing {
        Listing::Resources => ResourceUri::new(entry.uri?).ok().map(Item::Resource),
        Listing::Prompts => PromptName::new(entry.name?).ok().map(Item::Prompt),
    }
}

impl Gate {
    /// The failure with what may have been meant, where a server knows no resource or prompt of that name.
    pub(super) async fn explained(
        &self,
        from: &Requester,
        call: CallId,
        asked: &Asked,
        failure: Failure,
    ) -> Failure {
        let is_about_the_name =
            matches!(failure.code, FailureCode::UnknownTool | FailureCode::InvalidArguments);
        let listing = match asked.item {
            Item::Resource(_) if is_about_the_name => Listing::Resources,
            Item::Prompt(_) if is_about_the_name => Listing::Prompts,
            _ => return failure,
        };
        let Some(names) = self.names(from, call, &asked.server, listing).await else { return failure };
        let wanted = asked.item.as_str();
        if names.iter().any(|name| name == wanted) {
            return failure;
        }
        let meant = match lockhouse_policies::nearest(wanted, names.iter().map(String::as_str)) {
            Some(name) => format!("did you mean {name}?"),
            None if names.is_empty() => "none is listed".into(),
            None => format!("there are: {}", names[..names.len().min(NAMED_MAX)].join(", ")),
        };
        let (server, kind, item) = (&asked.server, asked.item.kind(), &asked.item);
        let message = match listing {
            // It may be one that a template makes, and the server's own words then say what is wrong.
            Listing::Resources => {
                format!("{}; server {server} lists no {kind} {item}: {meant}", failure.message)
            }
            Listing::Prompts => format!("server {server} has no {kind} {item}; {meant}"),
        };
        Failure { code: FailureCode::UnknownTool, message, ..failure }
    }

    /// The names of what a server lists and the policy permits, where both can be known.
    async fn names(
        &self,
        from: &Requester,
        call: CallId,
        server: &ServerName,
        listing: Listing,
    ) -> Option<Vec<String>> {
        let asked = Asked::new(server.clone(), Item::List(listing));
        let started = Instant::now();
        let json = Box::pin(self.try_call(from, call, &asked, Given::default())).await.ok()?;
        // In the log it is a call like any other.
        self.audit.outcome(asked.subject(from, call), "ok", started.elapsed(), json.len()).ok()?;
        let listed: Listed<'_> = serde_json::from_slice(&json).ok()?;
        let items = listed.items.iter().filter_map(|entry| item(listing, entry));
        Some(items.map(|item| item.as_str().to_owned()).collect())
    }
}
