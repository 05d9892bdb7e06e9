//! The static files of the page, which are part of the program. They contain no data, so they are served without a
//! session.

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;

/// A static file of the page.
#[derive(Clone, Copy, Debug)]
struct Asset {
    name: &'static str,
    media_type: &'static str,
    content: &'static [u8],
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! asset {
    ($name:literal, $media_type:expr) => {
        Asset { name: $name, media_type: $media_type, content: include_bytes!(concat!("../assets/", $name)) }
    };
}

/// All static files. The first one is the page itself, at `/`.
const ASSETS: &[Asset] = &[
    asset!("index.html", HTML),
    asset!("style.css", CSS),
    asset!("icon.svg", SVG),
    asset!("api.js", JAVASCRIPT),
    asset!("app.js", JAVASCRIPT),
    asset!("approvals.js", JAVASCRIPT),
    asset!("audit.js", JAVASCRIPT),
    asset!("denials.js", JAVASCRIPT),
    asset!("dom.js", JAVASCRIPT),
    asset!("events.js", JAVASCRIPT),
    asset!("format.js", JAVASCRIPT),
    asset!("host.js", JAVASCRIPT),
    asset!("keyboard.js", JAVASCRIPT),
    asset!("keys.js", JAVASCRIPT),
    asset!("login.js", JAVASCRIPT),
    asset!("messages.js", JAVASCRIPT),
    asset!("notifications.js", JAVASCRIPT),
    asset!("overview.js", JAVASCRIPT),
    asset!("parts.js", JAVASCRIPT),
    asset!("proposals.js", JAVASCRIPT),
    asset!("results.js", JAVASCRIPT),
    asset!("run.js", JAVASCRIPT),
    asset!("runs.js", JAVASCRIPT),
    asset!("savings.js", JAVASCRIPT),
    asset!("servers.js", JAVASCRIPT),
    asset!("state.js", JAVASCRIPT),
    asset!("steady_order.js", JAVASCRIPT),
    asset!("theme.js", JAVASCRIPT),
    asset!("waterfall.js", JAVASCRIPT),
];

/// Returns the response with the page itself.
pub(super) fn index() -> Response {
    respond(&ASSETS[0])
}

/// Returns the response with the static file of this name; `None` if there is none.
pub(super) fn named(name: &str) -> Option<Response> {
    ASSETS[1..].iter().find(|asset| asset.name == name).map(respond)
}

fn respond(asset: &Asset) -> Response {
    let mut response = Response::new(Body::from(asset.content));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(asset.media_type));
    response
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_file_of_the_folder_is_served() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/assets");
        let files = std::fs::read_dir(folder).expect("the folder").flatten();
        let files: BTreeSet<String> =
            files.map(|file| file.file_name().to_string_lossy().into_owned()).collect();
        let served: BTreeSet<String> = ASSETS.iter().map(|asset| asset.name.to_owned()).collect();
        assert_eq!(files, served);
        assert!(named("index.html").is_none() && named("../src/lib.rs").is_none());
    }

    #[test]
    fn the_page_has_no_inline_script_style_or_handler() {
        let page = std::str::from_utf8(ASSETS[0].content).expect("text").to_lowercase();
        for (at, _) in page.match_indices("<script") {
            let tag = &page[at..at + page[at..].find('>').expect("an end") + 1];
            assert!(tag.contains(" src=") && page[at + tag.len()..].starts_with("</script>"), "{tag}");
        }
        assert!(!page.contains("<style") && !page.contains(" style=") && !page.contains("javascript:"));
        let handlers = page.split(" on").skip(1).filter(|rest| {
            rest.split(|c: char| !c.is_ascii_lowercase())
                .next()
                .is_some_and(|name| rest[name.len()..].starts_with("=\""))
        });
        assert_eq!(handlers.count(), 0);
    }
}
