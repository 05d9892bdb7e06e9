//! Serves the protected resource metadata (RFC 9728), by which AI clients find the authorization server.

use axum::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL};
use axum::routing::get;
use axum::{Json, Router};
use lockhouse_messages::ResourceMetadata;

/// Path of the protected resource metadata.
const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// Returns a router that serves the metadata without authentication. It has no route if there is none.
pub(crate) fn metadata_routes(metadata: Option<ResourceMetadata>) -> Router {
    let Some(ResourceMetadata { document, .. }) = metadata else { return Router::new() };
    let answer = move || {
        let document = document.clone();
        // The document is public; web pages may read it too.
        async move { ([(ACCESS_CONTROL_ALLOW_ORIGIN, "*"), (CACHE_CONTROL, "max-age=300")], Json(document)) }
    };
    Router::new()
        .route(METADATA_PATH, get(answer.clone()))
        .route(&format!("{METADATA_PATH}/mcp"), get(answer))
}
