//! A server's lists of resources and prompts: all pages, as far as they fit.

use std::time::Duration;

use lockhouse_policies::Listing;
use rmcp::RoleClient;
use rmcp::model::{
    ClientRequest, ErrorCode, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest,
    PaginatedRequestParams,
};
use rmcp::service::{Peer, ServiceError};
use serde::Deserialize;
use tokio::time::Instant;

use super::entries::Entries;
use super::inbound::reading;
use super::listing::{CURSOR_BYTES_MAX, PAGES_BYTES_MAX};
use super::request::send;

const PAGES_MAX: usize = 100;
const ENTRIES_MAX: usize = 10_000;
const BYTES_MAX: usize = 4 * 1024 * 1024;

/// What is listed, by method.
#[derive(Clone, Copy)]
enum Kind {
    Resources,
    Templates,
    Prompts,
}

/// One page of any of the lists.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    #[serde(borrow, alias = "resources", alias = "resourceTemplates", alias = "prompts", default)]
    entries: Entries<'a>,
    next_cursor: Option<String>,
}

/// Entries that are kept, each as its JSON.
#[derive(Default)]
struct Kept {
    entries: Vec<String>,
    bytes: usize,
    incomplete: bool,
}

/// The list for the gate, as JSON: `{"items", "templates", "incomplete"}`.
pub(super) async fn list(
    peer: &Peer<RoleClient>,
    listing: Listing,
    limit: Duration,
) -> Result<Vec<u8>, ServiceError> {
    let deadline = Instant::now() + limit;
    let (items, templates) = match listing {
        Listing::Prompts => (all(peer, Kind::Prompts, deadline).await?, Kept::default()),
        Listing::Resources => {
            let items = all(peer, Kind::Resources, deadline).await?;
            let templates = match all(peer, Kind::Templates, deadline).await {
                // Many servers have none, and do not know the method.
                Err(ServiceError::McpError(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                    Kept::default()
                }
                templates => templates?,
            };
            (items, templates)
        }
    };
    let json = format!(
        r#"{{"items":[{}],"templates":[{}],"incomplete":{}}}"#,
        items.entries.join(","),
        templates.entries.join(","),
        items.incomplete || templates.incomplete,
    );
    Ok(json.into_bytes())
}

async fn all(peer: &Peer<RoleClient>, kind: Kind, deadline: Instant) -> Result<Kept, ServiceError> {
    let mut kept = Kept::default();
    let mut cursor: Option<String> = None;
    let mut bytes = 0;
    for _ in 0..PAGES_MAX {
        let limit = deadline.saturating_duration_since(Instant::now());
        let page = send(peer.clone(), request(kind, cursor.clone()), limit).await?;
        bytes += page.len();
        let added = reading(page.len(), move || {
            let page: Page<'_> = serde_json::from_str(&page).ok()?;
            kept.add(&page.entries);
            Some((kept, page.next_cursor))
        });
        (kept, cursor) = added.await.flatten().ok_or(ServiceError::UnexpectedResponse)?;
        if kept.incomplete || cursor.is_none() {
            return Ok(kept);
        }
        if bytes > PAGES_BYTES_MAX || cursor.as_ref().is_some_and(|cursor| cursor.len() > CURSOR_BYTES_MAX) {
            break;
        }
    }
    kept.incomplete = true;
    Ok(kept)
}

impl Kept {
    fn add(&mut self, entries: &Entries<'_>) {
        self.incomplete |= entries.has_more;
        for entry in &entries.kept {
            self.bytes += entry.get().len();
            if self.entries.len() == ENTRIES_MAX || self.bytes > BYTES_MAX {
                self.incomplete = true;
                return;
            }
            self.entries.push(entry.get().to_owned());
        }
    }
}

fn request(kind: Kind, cursor: Option<String>) -> ClientRequest {
    let params = PaginatedRequestParams::default().with_cursor(cursor);
    match kind {
        Kind::Resources => ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(params)),
        Kind::Templates => {
            ClientRequest::ListResourceTemplatesRequest(ListResourceTemplatesRequest::with_param(params))
        }
        Kind::Prompts => ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(params)),
    }
}
