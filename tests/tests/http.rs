//! Tests `lockhouse serve` over HTTP, with authenticated AI clients and with unauthenticated ones.

mod exposure;
mod host_and_origin;
mod limits;
mod request_bodies;
mod sessions;
mod tls;
mod unauthenticated;
mod unix_sockets;
mod versions;

/// Configuration of a daemon without authentication, for tests of everything else.
const OPEN: &str = "[http]\nauth = \"none\"\n";
