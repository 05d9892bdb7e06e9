//! What a worker asks of an upstream server, and what became of it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lockhouse_audit::Subject;
use lockhouse_catalog::Changes;
use lockhouse_policies::{Item, Listing};
use lockhouse_protocol::{CallId, Request, ServerName};
use lockhouse_upstream::Caller;

use super::Requester;

/// One thing asked of one upstream server.
#[derive(Clone, Debug)]
pub struct Asked {
    /// As the audit log names it.
    pub id: uuid::Uuid,
    pub server: ServerName,
    pub item: Item,
    /// Of the program, as the worker says.
    pub line: Option<u32>,
    /// Set when the call is made, and never for one that is refused. The task that makes the call and the one that abandons it share it.
    made: Arc<OnceLock<Made>>,
}

/// What was made of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    /// The call was sent to its server, which declares that it changes this.
    Sent(Changes),
    /// No person could be asked: the draft is kept until a person decides.
    Draft,
}

impl Made {
    fn changes(self) -> Changes {
        match self {
            Self::Sent(changes) => changes,
            Self::Draft => Changes::Something,
        }
    }
}

impl Asked {
    /// None for a question that is answered here.
    pub fn of(request: &Request) -> Option<Self> {
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

    pub fn new(server: ServerName, item: Item) -> Self {
        Self { id: uuid::Uuid::now_v7(), server, item, line: None, made: Arc::default() }
    }

    /// The same call of another item.
    pub(super) fn about(self, item: Item) -> Self {
        Self { item, ..self }
    }

    /// From now on the call counts as made. A second note changes nothing.
    pub(super) fn note(&self, made: Made) {
        let _ = self.made.set(made);
    }

    /// None for a call that was not made.
    pub(super) fn made(&self) -> Option<Made> {
        self.made.get().copied()
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
pub struct CallRecord {
    pub server: String,
    /// `tool`, or what else was asked for.
    pub kind: &'static str,
    /// Cut: a URI can be long.
    pub name: String,
    pub outcome: &'static str,
    /// Of the program, as the worker says.
    pub line: Option<u32>,
    /// What it may have changed.
    pub changes: Changes,
    pub ms: f64,
    pub bytes: usize,
}

impl CallRecord {
    pub(super) fn new(asked: &Asked, outcome: &'static str, took: Duration, bytes: usize) -> Self {
        let (server, kind, name) = (asked.server.to_string(), asked.item.kind(), asked.item.to_string());
        let ms = took.as_micros() as f64 / 1000.0;
        let changes = asked.made().map_or(Changes::Nothing, Made::changes);
        Self { server, kind, name, outcome, line: asked.line, changes, ms, bytes }
    }

    /// What was called, as programs and people name it.
    pub fn title(&self) -> String {
        format!("{}.{}", self.server, self.name)
    }
}
