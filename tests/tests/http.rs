//! Tests `lockhouse serve` over HTTP, with authenticated AI clients and with unauthenticated ones.

mod exposure;
mod host_and_origin;
mod limits;
mod request_bodies;
mod sessions;
pub(crate) mod tls;
mod unauthenticated;
mod unix_sockets;
mod versions;

/// A daemon configuration without authentication, for the tests that do not test authentication.
const OPEN: &str = "[http]\nauth = \"none\"\n";
