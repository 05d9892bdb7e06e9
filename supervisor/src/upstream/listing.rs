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
use crate::catalog::{self, Catalogue, Tool};

const PAGES_MAX: usize = 100;
/// Tools left out that are named in the log, and how much of each name.
const NAMED_MAX: usize = 3;
const NAME_CHARS_MAX: usize = 40;

/// One page of `tools/list`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    #[serde(borrow, default)]
    tools: Vec<&'a RawValue>,
    next_cursor: Option<String>,
}

/// Tools that cannot be used.
#[derive(Default)]
struct LeftOut {
    count: usize,
    first: Vec<String>,
}

/// Lists all tools of a server.
pub(super) async fn list_tools(
    name: &ServerName,
    peer: &Peer<RoleClient>,
    limit: Duration,
) -> Result<Catalogue, Fault> {
    let mut listing = Catalogue::default();
    let mut left_out = LeftOut::default();
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
        let has_room = add(&mut listing, &page.tools, &mut left_out);
        complete = has_room && (page.next_cursor.is_none() || page.next_cursor == cursor);
        if complete || !has_room {
            break;
        }
        cursor = page.next_cursor;
    }
    if let Some(told) = left_out.told() {
        tracing::warn!(server = %name, "{told}");
    }
    if !complete {
        tracing::warn!(server = %name, "it offers more tools than are kept; the rest is left out");
    }
    Ok(listing)
}

/// Whether there is room for more.
fn add(listing: &mut Catalogue, entries: &[&RawValue], left_out: &mut LeftOut) -> bool {
    for entry in entries {
        listing.definitions_bytes += entry.get().len();
        if listing.tools.len() == catalog::TOOLS_MAX
            || listing.definitions_bytes > catalog::DEFINITIONS_BYTES_MAX
        {
            return false;
        }
        match Tool::from_json(entry.get()) {
            Some(tool) if listing.tool(&tool.name).is_none() => listing.tools.push(tool),
            _ => left_out.add(entry),
        }
    }
    true
}

impl LeftOut {
    fn add(&mut self, entry: &RawValue) {
        #[derive(Deserialize)]
        struct Named {
            name: Option<String>,
        }
        self.count += 1;
        if self.first.len() < NAMED_MAX {
            let named: Option<Named> = serde_json::from_str(entry.get()).ok();
            let name = named.and_then(|named| named.name).unwrap_or_default();
            self.first.push(format!("{:?}", name.chars().take(NAME_CHARS_MAX).collect::<String>()));
        }
    }

    fn told(&self) -> Option<String> {
        let (count, first) = (self.count, self.first.join(", "));
        let more = if count > self.first.len() { ", …" } else { "" };
        (count > 0).then(|| {
            format!(
                "left out {count} tools that have no usable name of their own or are too large: {first}{more}"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_told_once_and_harmlessly() {
        let names = ["a", "a", "\\u001b]0;x\\u202e", "b c", "", "d"];
        let entries = names.map(|name| RawValue::from_string(format!("{{\"name\": \"{name}\"}}")));
        let entries: Vec<_> = entries.into_iter().map(|entry| entry.expect("JSON")).collect();
        let entries: Vec<&RawValue> = entries.iter().map(AsRef::as_ref).collect();
        let mut listing = Catalogue::default();
        let mut left_out = LeftOut::default();
        assert!(add(&mut listing, &entries, &mut left_out));
        assert_eq!(listing.tools.len(), 2);
        let told = left_out.told().expect("words");
        assert!(told.contains("left out 4 tools"), "{told}");
        assert!(told.ends_with(r#""a", "\u{1b}]0;x\u{202e}", "b c", …"#), "{told}");
        assert_eq!(LeftOut::default().told(), None);
    }
}
