//! The proxy of HTTP requests to an upstream server and to its authorization server.

use crate::definition::{HttpEndpoint, Proxy};

/// Lets the requests of a client for this endpoint go over the configured proxy.
pub(super) fn with_proxy(
    builder: reqwest::ClientBuilder,
    endpoint: &HttpEndpoint,
) -> reqwest::Result<reqwest::ClientBuilder> {
    Ok(match &endpoint.proxy {
        _ if endpoint.is_on_this_host() => builder.no_proxy(),
        Proxy::Environment => builder,
        Proxy::None => builder.no_proxy(),
        Proxy::Address(proxy) => builder.proxy(reqwest::Proxy::all(proxy.clone())?),
    })
}
