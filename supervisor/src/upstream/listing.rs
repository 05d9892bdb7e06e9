//! A server's list of tools, as far as it is kept.

use std::time::Duration;

use lockhouse_protocol::ServerName;
use rmcp::RoleClient;
use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams};
use rmcp::service::Peer;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::fault::Fault;
use super::request::send;
use crate::catalog::{Catalogue, LeftOut};

const PAGES_MAX: usize = 100;

/// One page of `tools/list`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    #[serde(borrow, default)]
    tools: Vec<&'a RawValue>,
    next_cursor: Option<String>,
}

/// Lists all tools of a server.
pub(super) async fn list_tools(
    name: &ServerName,
    peer: &Peer<RoleClient>,
    limit: Duration,
) -> Result<Catalogue, Fault> {
    let (mut catalogue, mut left_out) = (Catalogue::default(), LeftOut::default());
    let mut cursor: Option<String> = None;
    let mut complete = false;
    for _ in 0..PAGES_MAX {
        let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
        let request = ListToolsRequest {
            params: Some(params),
            method: Default::default(),
            extensions: Default::default(),
        };
        let page = send(peer.clone(), ClientRequest::ListToolsRequest(request), limit).await?;
        let page: Page<'_> =
            serde_json::from_str(&page).map_err(|error| Fault::Strange(error.to_string()))?;
        catalogue.add(page.tools.iter().map(|tool| tool.get()), &mut left_out);
        complete = !left_out.is_full && (page.next_cursor.is_none() || page.next_cursor == cursor);
        if complete || left_out.is_full {
            break;
        }
        cursor = page.next_cursor;
    }
    if let Some(told) = left_out.told() {
        tracing::warn!(server = %name, "{told}");
    }
    if !complete {
        let kept = catalogue.tools.len();
        tracing::warn!(server = %name, "it offers more tools than are kept: {kept} are, the rest is left out");
    }
    Ok(catalogue)
}
