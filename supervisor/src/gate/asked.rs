//! What a worker asks of an upstream server, and what became of it.

use std::time::Duration;

use lockhouse_policies::{Item, Listing};
use lockhouse_protocol::{CallId, Request, ServerName};

use super::Requester;
use crate::audit::Subject;
use crate::upstream::Caller;

/// One thing asked of one upstream server.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// As the audit log names it.
    pub(crate) id: uuid::Uuid,
    pub(crate) server: ServerName,
    pub(crate) item: Item,
    /// Of the program, as the worker says.
    pub(crate) line: Option<u32>,
}

impl Asked {
    /// None for a question that is answered here.
    pub(crate) fn of(request: &Request) -> Option<Self> {
        let (server, item) = match request {
            Request::Call { server, tool, .. } => (server, Item::Tool(tool.clone())),
            Request::ReadResource { server, uri } => (server, Item::Resource(uri.clone())),
            Request::GetPrompt { server, name, .. } => (server, Item::Prompt(name.clone())),
            Request::ListResources { server } => (server, Item::List(Listing::Resources)),
            Request::ListPrompts { server } => (server, Item::List(Listing::Prompts)),
            Request::ListServers
            | Request::ListTools { .. }
            | Request::Describe { .. }
            | Request::Search { .. }
            | Request::LoadResult { .. }
            | Request::LoadSkill { .. }
            | Request::SearchSkills { .. } => return None,
        };
        let line = match request {
            Request::Call { line, .. } => *line,
            _ => None,
        };
        Some(Self { line, ..Self::new(server.clone(), item) })
    }

    pub(crate) fn new(server: ServerName, item: Item) -> Self {
        Self { id: uuid::Uuid::now_v7(), server, item, line: None }
    }

    pub(super) fn subject<'a>(&'a self, from: &'a Requester, call: CallId) -> Subject<'a> {
        let Caller { execution, client, .. } = &from.caller;
        Subject {
            execution: *execution,
            call,
            id: self.id,
            client: client.as_ref(),
            server: &self.server,
            item: &self.item,
            line: self.line,
        }
    }
}

/// What became of one call, for the answer.
#[derive(Clone, Debug)]
pub(crate) struct CallRecord {
    pub(crate) server: String,
    /// `tool`, or what else was asked for.
    pub(crate) kind: &'static str,
    /// Cut: a URI can be long.
    pub(crate) name: String,
    pub(crate) outcome: &'static str,
    /// Of the program, as the worker says.
    pub(crate) line: Option<u32>,
    /// Whether it may have changed something.
    pub(crate) changes: bool,
    pub(crate) ms: f64,
    pub(crate) bytes: usize,
}

impl CallRecord {
    pub(super) fn new(
        asked: &Asked,
        outcome: &'static str,
        changes: bool,
        took: Duration,
        bytes: usize,
    ) -> Self {
        let (server, kind, name) = (asked.server.to_string(), asked.item.kind(), asked.item.to_string());
        let ms = took.as_micros() as f64 / 1000.0;
        Self { server, kind, name, outcome, line: asked.line, changes, ms, bytes }
    }

    /// What was called, as programs and people name it.
    pub(crate) fn title(&self) -> String {
        format!("{}.{}", self.server, self.name)
    }
}
