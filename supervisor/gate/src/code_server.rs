//! A server that programs can import: an upstream server, or the built-in server `files`.

use std::sync::Arc;
use std::time::Duration;

use lockhouse_catalog::{Catalogue, Tool};
use lockhouse_policies::CallTarget;
use lockhouse_protocol::{Failure, FileSource, FileTarget, Request, ServerName};
use lockhouse_upstream::{Connection, ConnectionState};
use serde_json::{Value, json};

use super::host_files::{FILES_CATALOGUE, FilePattern};
use super::tool_request::ToolRequest;
use super::{Gate, Requester};

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
    pub fn tool_request(&self, request: &Request) -> Option<ToolRequest> {
        let (tool, line) = match request {
            Request::OpenFile { source: FileSource::Host(_), line } => ("read", *line),
            Request::CreateFile { target: FileTarget::Host(_), line, .. } => ("write", *line),
            request => return ToolRequest::from_request(request),
        };
        let item = files_tool(tool)?;
        Some(ToolRequest::streamed(self.files.settings().name.clone(), item, line))
    }

    /// Returns the files of the host that the program of an execution may try to open, and those that were given to it, as
    /// JSON for [`Job::files`](lockhouse_protocol::Job::files). Empty if there are none.
    pub fn job_files(&self, requester: &Requester) -> Vec<u8> {
        let given: Vec<Value> =
            requester.files.given.iter().map(|given| json!([given.name, given.bytes])).collect();
        let settings = self.files.settings();
        let is_known = settings.is_on() && requester.scope.knows(&settings.name);
        if given.is_empty() && !is_known {
            return Vec::new();
        }
        let roots = |patterns: &[FilePattern], tool: &str| -> Vec<String> {
            let is_permitted = |item: &CallTarget| {
                requester.scope.contains(&settings.name, item)
                    && self.policy.current().permits_target(&settings.name, item, requester.client())
            };
            match files_tool(tool).is_some_and(|item| is_known && is_permitted(&item)) {
                true => {
                    patterns.iter().map(|pattern| pattern.root().to_string_lossy().into_owned()).collect()
                }
                false => Vec::new(),
            }
        };
        let (read, write) = (roots(&settings.read, "read"), roots(&settings.write, "write"));
        let advice = is_known.then(|| advice(&settings.name, &read, &write));
        json!({"given": given, "read": read, "write": write, "advice": advice, "server": settings.name.as_str()}).to_string().into_bytes()
    }
}

/// Returns a tool of the built-in server `files`.
pub(super) fn files_tool(name: &str) -> Option<CallTarget> {
    let found = FILES_CATALOGUE.tools.iter().find(|tool| tool.name.as_str() == name);
    found.map(|tool| CallTarget::Tool(tool.name.clone()))
}

/// Returns the error text for a path that a program cannot use.
fn advice(server: &ServerName, read: &[String], write: &[String]) -> String {
    let list = |roots: &[String]| match roots {
        [] => "nothing".to_owned(),
        roots => roots[..roots.len().min(10)].join(", "),
    };
    format!(
        "it is not a file that this program may use; the server {server} permits to read in {}, and to write in {}; a \
         person can add a path to [servers.{server}] of the configuration, and permit it in the policy",
        list(read),
        list(write)
    )
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

    /// Returns the schema of a tool's results that was observed in earlier calls.
    pub(super) fn observed_schema(self, tool: &Tool) -> Option<Value> {
        match self {
            Self::Upstream(connection) => connection.shapes.observed_schema(tool),
            Self::Files => None,
        }
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
