//! Lists the tools of an upstream server, up to a maximum number of pages, tools and bytes.

use std::time::Duration;

use lockhouse_catalog::{Catalogue, SkippedTools};
use lockhouse_protocol::ServerName;
use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams};
use serde::Deserialize;

use super::connect_error::ConnectError;
use super::list_pages::{AfterPage, ListPages};
use super::request::send;
use lockhouse_mcp::client::Client;
use lockhouse_mcp::client::bounded_list::BoundedList;
use lockhouse_mcp::client::inbound_message::offload_if_large;

/// One page of the result of `tools/list`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    #[serde(borrow, default)]
    tools: BoundedList<'a>,
    next_cursor: Option<String>,
}

/// Lists all tools of a server. `limit` is the timeout for each page. If the server offers more tools than the limits
/// permit, the further tools are left out.
pub(super) async fn list_tools(
    name: &ServerName,
    client: &Client,
    limit: Duration,
) -> Result<Catalogue, ConnectError> {
    let mut listed = (Catalogue::default(), SkippedTools::default());
    let mut pages = ListPages::default();
    let mut after_page = AfterPage::RequestNext;
    while after_page == AfterPage::RequestNext && !listed.1.is_full {
        let params = PaginatedRequestParams::default().with_cursor(pages.cursor());
        let request = ListToolsRequest {
            params: Some(params),
            method: Default::default(),
            extensions: Default::default(),
        };
        let page = send(client.clone(), ClientRequest::ListToolsRequest(request), limit).await?;
        let bytes = page.len();
        let (mut catalogue, mut left_out) = listed;
        let added = offload_if_large(bytes, move || {
            let page: Page<'_> = serde_json::from_str(&page)?;
            catalogue.add(page.tools.items.iter().map(|tool| tool.get()), &mut left_out);
            left_out.is_full |= page.tools.has_more;
            Ok::<_, serde_json::Error>(((catalogue, left_out), page.next_cursor))
        });
        let added = added.await.ok_or_else(|| ConnectError::Strange("its tools cannot be read".into()))?;
        let next_cursor;
        (listed, next_cursor) = added.map_err(|error| ConnectError::Strange(error.to_string()))?;
        after_page = pages.record(bytes, next_cursor);
    }
    let (catalogue, left_out) = listed;
    if let Some(summary) = left_out.message() {
        tracing::warn!(server = %name, "{summary}");
    }
    if left_out.is_full || after_page == AfterPage::LimitReached {
        let kept = catalogue.tools.len();
        tracing::warn!(server = %name, "it offers more tools than the limit: {kept} are used, the rest is ignored");
    }
    Ok(catalogue)
}
