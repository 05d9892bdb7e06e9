//! Streamable HTTP to a server.

use rmcp::RoleClient;
use rmcp::transport::Transport;

use super::definition::{HttpEndpoint, ServerLimits};
use super::transport::RawResults;

/// A transport to the endpoint, or why there can be none, in words of ours alone.
pub(super) fn transport(
    _endpoint: &HttpEndpoint,
    _limits: &ServerLimits,
    _raw: RawResults,
) -> Result<impl Transport<RoleClient> + use<>, String> {
    Err::<super::transport::LineTransport, _>(
        "it is reached over HTTP, and this version connects to stdio servers only".into(),
    )
}
