//! A server that programs can import: an upstream server, or the built-in server `files`.

use std::sync::Arc;
use std::time::Duration;

use lockhouse_catalog::{Catalogue, DescribeOptions, Tool};
use lockhouse_policies::CallTarget;
use lockhouse_protocol::{Failure, FileSource, Language, ServerName, WorkerRequest};
use lockhouse_upstream::{Connection, ConnectionState, ServerInfo};
use serde_json::Value;

use super::tool_request::ToolRequest;
use super::{Gate, RunContext};
use lockhouse_host_files::FILES_CATALOGUE;

/// A server that programs can import.
#[derive(Clone, Copy)]
pub(super) enum CodeServer<'g> {
    Upstream(&'g Arc<Connection>),
    /// The built-in server `files`, whose tools are always the same.
    Files,
}

impl Gate {
    /// Returns the server with this name; `None` if there is none.
    pub(super) fn code_server(&self, name: &ServerName) -> Option<CodeServer<'_>> {
        match self.is_files_server(name) {
            true => Some(CodeServer::Files),
            false => self.upstreams.get(name).map(CodeServer::Upstream),
        }
    }

    /// Whether this is the name of the built-in server `files`, and the server is configured.
    pub(super) fn is_files_server(&self, name: &ServerName) -> bool {
        let settings = self.files.settings();
        settings.is_on() && settings.name == *name
    }

    /// Returns the request that a worker's request is for the gate. Returns `None` if Lockhouse answers the request itself,
    /// and it is no call.
    ///
    /// Takes the content of a file that is written from the files of the run.
    pub fn tool_request(&self, run: &RunContext, request: &WorkerRequest) -> Option<ToolRequest> {
        let server = || self.files.settings().name.clone();
        match request {
            WorkerRequest::OpenFile { source: FileSource::Host(_), line } => {
                Some(ToolRequest::streamed(server(), files_tool("read")?, *line))
            }
            WorkerRequest::FinishFile { file, line } => {
                let content = run.files.transfers.take_complete(*file)?;
                Some(ToolRequest::writing(server(), files_tool("write")?, *line, content))
            }
            request => ToolRequest::from_request(request),
        }
    }
}

/// Returns a tool of the built-in server `files`.
pub(super) fn files_tool(name: &str) -> Option<CallTarget> {
    let found = FILES_CATALOGUE.tools.iter().find(|tool| tool.name.as_str() == name);
    found.map(|tool| CallTarget::Tool(tool.name.clone()))
}

impl CodeServer<'_> {
    /// Returns the last known tools, without waiting; `None` if none are known yet.
    pub(super) fn known_catalogue(self) -> Option<Arc<Catalogue>> {
        match self {
            Self::Upstream(connection) => connection.known_catalogue(),
            Self::Files => Some(FILES_CATALOGUE.clone()),
        }
    }

    /// Returns the tools, and waits for the server to connect if none are known.
    pub(super) async fn catalogue(self) -> Result<Arc<Catalogue>, Failure> {
        match self {
            Self::Upstream(connection) => connection.catalogue().await,
            Self::Files => Ok(FILES_CATALOGUE.clone()),
        }
    }

    /// Returns the tools of the current connection, and waits for the server to connect.
    pub(super) async fn connected_catalogue(self) -> Result<Arc<Catalogue>, Failure> {
        match self {
            Self::Upstream(connection) => Ok(connection.connected_server().await?.catalogue.clone()),
            Self::Files => Ok(FILES_CATALOGUE.clone()),
        }
    }

    /// Returns the tools of the current connection without waiting; `None` if the server is not connected.
    pub(super) fn current_catalogue(self) -> Option<Arc<Catalogue>> {
        match self {
            Self::Upstream(connection) => match connection.state() {
                ConnectionState::Connected(offer) => Some(offer.catalogue.clone()),
                _ => None,
            },
            Self::Files => Some(FILES_CATALOGUE.clone()),
        }
    }

    /// Returns what the server says about itself; `None` if it is not connected, and for the built-in server.
    pub(super) fn about(self) -> Option<ServerInfo> {
        match self {
            Self::Upstream(connection) => match connection.state() {
                ConnectionState::Connected(offer) => offer.info(),
                _ => None,
            },
            Self::Files => None,
        }
    }

    /// Returns the schema of a tool's results that was observed in earlier calls.
    pub(super) fn observed_schema(self, tool: &Tool) -> Option<Value> {
        match self {
            Self::Upstream(connection) => connection.shapes.observed_schema(tool),
            Self::Files => None,
        }
    }

    /// Returns the options with which a tool is described to programs and models. `requires_approval` is whether its calls
    /// require approval.
    pub(super) fn describe_options(
        self,
        tool: &Tool,
        requires_approval: bool,
        language: Option<Language>,
    ) -> DescribeOptions {
        let keeps_text = match self {
            Self::Upstream(connection) => connection.keeps_text(&tool.name),
            Self::Files => false,
        };
        let observed_output = self.observed_schema(tool);
        DescribeOptions { requires_approval, observed_output, keeps_text, language }
    }

    /// Returns the state of the connection; `None` for a server without one, which is always available.
    pub(super) fn state(self) -> Option<ConnectionState> {
        match self {
            Self::Upstream(connection) => Some(connection.state()),
            Self::Files => None,
        }
    }

    /// Returns how long a caller waits for the server to connect, at most `most`.
    pub(super) fn connect_time_left(self, most: Duration) -> Duration {
        match self {
            Self::Upstream(connection) => connection.connect_time_left(most),
            Self::Files => most,
        }
    }
}
