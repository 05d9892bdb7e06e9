//! Lists the resources and prompts of an upstream server: all pages, up to a maximum number of pages, entries and
//! bytes.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_mcp::ResponseError;
use lockhouse_mcp::client::Client;
use lockhouse_policies::Listing;
use rmcp::model::{
    ClientRequest, ErrorCode, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest,
    PaginatedRequestParams,
};
use serde::Deserialize;
use tokio::time::Instant;

use super::list_pages::{AfterPage, ListPages};
use super::request::send;
use lockhouse_mcp::client::bounded_list::BoundedList;
use lockhouse_mcp::client::inbound_message::offload_if_large;

/// Maximum number of entries of each list of a server: its resources, templates and prompts.
/// Bound: tools and searches.
const ENTRIES_MAX: usize = 10_000;
const BYTES_MAX: usize = 4 * 1024 * 1024;

/// The kind of list to request: resources, resource templates or prompts.
#[derive(Clone, Copy)]
enum ListKind {
    Resources,
    Templates,
    Prompts,
}

/// One page of a list of resources, resource templates or prompts.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    #[serde(borrow, alias = "resources", alias = "resourceTemplates", alias = "prompts", default)]
    entries: BoundedList<'a>,
    next_cursor: Option<String>,
}

/// The resources, resource templates or prompts collected from all pages of a list, each as JSON text.
#[derive(Default)]
struct CollectedEntries {
    entries: Vec<Arc<str>>,
    /// The same texts, to find entries that are listed again: some servers ignore the cursor and repeat a page.
    known: HashSet<Arc<str>>,
    bytes: usize,
    incomplete: bool,
}

/// Returns the serialized JSON object with the server's resources or prompts, as `listing` selects, in `items`, the
/// resource templates in `templates` (empty for prompts), and in `incomplete` whether entries are missing. `limit` is
/// the timeout for all pages together.
pub(super) async fn list(
    client: &Client,
    listing: Listing,
    limit: Duration,
) -> Result<Vec<u8>, ResponseError> {
    let deadline = Instant::now() + limit;
    let (items, templates) = match listing {
        Listing::Prompts => {
            (list_all_pages(client, ListKind::Prompts, deadline).await?, CollectedEntries::default())
        }
        Listing::Resources => {
            let items = list_all_pages(client, ListKind::Resources, deadline).await?;
            let templates = match list_all_pages(client, ListKind::Templates, deadline).await {
                // Many servers have no templates and do not know the method.
                Err(ResponseError::Refused(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                    CollectedEntries::default()
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

async fn list_all_pages(
    client: &Client,
    kind: ListKind,
    deadline: Instant,
) -> Result<CollectedEntries, ResponseError> {
    let mut collected = CollectedEntries::default();
    let mut pages = ListPages::default();
    loop {
        let limit = deadline.saturating_duration_since(Instant::now());
        let page = send(client.clone(), request(kind, pages.cursor()), limit).await?;
        let bytes = page.len();
        let added = offload_if_large(bytes, move || {
            let page: Page<'_> = serde_json::from_str(&page).ok()?;
            collected.add(&page.entries);
            Some((collected, page.next_cursor))
        });
        let next_cursor;
        (collected, next_cursor) = added.await.flatten().ok_or(ResponseError::Invalid)?;
        let after_page = pages.record(bytes, next_cursor);
        collected.incomplete |= after_page == AfterPage::LimitReached;
        if collected.incomplete || after_page == AfterPage::Complete {
            return Ok(collected);
        }
    }
}

impl CollectedEntries {
    fn add(&mut self, entries: &BoundedList<'_>) {
        self.incomplete |= entries.has_more;
        for entry in entries.items.iter().map(|entry| entry.get()) {
            if self.known.contains(entry) {
                continue;
            }
            self.bytes += entry.len();
            if self.entries.len() == ENTRIES_MAX || self.bytes > BYTES_MAX {
                self.incomplete = true;
                return;
            }
            let entry: Arc<str> = entry.into();
            self.known.insert(entry.clone());
            self.entries.push(entry);
        }
    }
}

fn request(kind: ListKind, cursor: Option<String>) -> ClientRequest {
    let params = PaginatedRequestParams::default().with_cursor(cursor);
    match kind {
        ListKind::Resources => ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(params)),
        ListKind::Templates => {
            ClientRequest::ListResourceTemplatesRequest(ListResourceTemplatesRequest::with_param(params))
        }
        ListKind::Prompts => ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(params)),
    }
}
