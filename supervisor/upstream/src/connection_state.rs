//! The state of the connection to an upstream server, as the connection task publishes it to callers.

use std::sync::Arc;

use lockhouse_catalog::Catalogue;

use super::in_flight_calls::InFlightCalls;
use lockhouse_mcp::client::Client;

/// The state of the connection to an upstream server.
#[derive(Clone, Debug)]
pub enum ConnectionState {
    /// The server is not started, because no caller needs it.
    Idle,
    /// The server is being started, or the connection was lost or is being closed. After a loss, the server will be
    /// restarted.
    Connecting,
    /// The server is connected and can be called.
    Connected(Arc<ConnectedServer>),
    /// The most recent attempt to connect failed, or the server was disconnected because it exceeded a limit or broke
    /// the protocol. Another attempt will follow. Contains the reason, without any text of the server.
    Failed(String),
}

/// What a server says about itself. The texts come from the server, and are not verified.
#[derive(Clone, Debug)]
pub struct ServerInfo {
    /// The name and the version of the server's program. `None` if it does not say them.
    pub program: Option<(String, String)>,
    /// How to use the server. `None` if it gives no instructions.
    pub instructions: Option<String>,
}

/// A connected upstream server with its tools.
#[derive(Debug)]
pub struct ConnectedServer {
    pub catalogue: Arc<Catalogue>,
    pub(super) client: Client,
    pub(super) calls: InFlightCalls,
}

impl ConnectedServer {
    /// Returns what the server says about itself; `None` if it has said nothing.
    pub fn info(&self) -> Option<ServerInfo> {
        let info = self.client.info()?;
        let instructions = info.instructions.clone().filter(|text| !text.trim().is_empty());
        let program =
            info.server_info.as_ref().map(|program| (program.name.clone(), program.version.clone()));
        Some(ServerInfo { program, instructions })
    }
}
