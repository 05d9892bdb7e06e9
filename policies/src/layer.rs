//! One policy document that has been checked, and what of it applies to a client.

use std::collections::BTreeMap;

use lockhouse_protocol::ServerName;

use crate::call::ClientName;
use crate::index::Index;
use crate::source::{Place, Source};
use crate::table::{Bounds, ServerTable};

/// The tables of servers.
pub(crate) type Servers = BTreeMap<ServerName, ServerTable>;

/// A document.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    /// `None`: there is no policy at all.
    pub(crate) source: Option<Source>,
    pub(crate) servers: Servers,
    /// Of everything together.
    pub(crate) limits: Option<Bounds>,
    pub(crate) clients: Clients,
}

/// The tables of clients.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clients {
    pub(crate) all: Vec<ClientTable>,
    by_name: Index,
}

/// What a document says about one client, or about those whose names begin alike.
#[derive(Clone, Debug)]
pub(crate) struct ClientTable {
    /// The name, or its beginning.
    pub(crate) stem: String,
    /// Whether it ends in `*`.
    pub(crate) starred: bool,
    pub(crate) limits: Option<Bounds>,
    /// What it is permitted, of what everyone is. `None`: all of that.
    pub(crate) servers: Option<Servers>,
    /// The line of its name.
    pub(crate) line: usize,
}

/// What one document says about servers: to everyone, or to one client besides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'p> {
    pub(crate) layer: &'p Layer,
    pub(crate) servers: &'p Servers,
    pub(crate) client: Option<&'p ClientTable>,
}

impl Layer {
    /// Where there is no policy.
    pub(crate) fn none() -> Self {
        Self { source: None, servers: Servers::new(), limits: None, clients: Clients::default() }
    }

    /// What it says to everyone.
    pub(crate) fn base(&self) -> View<'_> {
        View { layer: self, servers: &self.servers, client: None }
    }

    /// What of it applies to a client.
    pub(crate) fn views(&self, client: Option<&ClientName>) -> impl Iterator<Item = View<'_>> {
        let table = self.clients.table_of(client);
        let further = table.and_then(|table| {
            Some(View { layer: self, servers: table.servers.as_ref()?, client: Some(table) })
        });
        std::iter::once(self.base()).chain(further)
    }

    pub(crate) fn path(&self) -> &str {
        self.source.as_ref().map(|source| source.path.as_str()).unwrap_or_default()
    }

    pub(crate) fn place(&self, line: usize) -> Place {
        Place { path: self.path().to_owned(), line }
    }

    /// The text of a line, counted from 1.
    pub(crate) fn line_text(&self, line: usize) -> Option<&str> {
        self.source.as_ref()?.text.lines().nth(line.checked_sub(1)?)
    }
}

impl View<'_> {
    /// Whether the two are of the same tables.
    pub(crate) fn is(self, other: View<'_>) -> bool {
        std::ptr::eq(self.servers, other.servers)
    }

    /// What the table of a server is called here.
    pub(crate) fn table_name(self, server: &ServerName) -> String {
        match self.client {
            Some(client) => format!("{}.servers.{server}", client.table()),
            None => format!("servers.{server}"),
        }
    }
}

impl Clients {
    pub(crate) fn new(all: Vec<ClientTable>) -> Self {
        let by_name = Index::of(all.iter().map(|table| (table.stem.as_str(), table.starred)));
        Self { all, by_name }
    }

    /// The most specific one that fits. A client that does not say its name fits `*` alone.
    pub(crate) fn table_of(&self, client: Option<&ClientName>) -> Option<&ClientTable> {
        let number = match client {
            Some(client) => self.by_name.fitting(client.as_str()).next(),
            None => self.by_name.beginning("").next(),
        };
        self.all.get(number?)
    }
}

impl ClientTable {
    /// What its table is called.
    pub(crate) fn table(&self) -> String {
        let name = self.name();
        let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
        if plain { format!("clients.{name}") } else { format!("clients.{name:?}") }
    }

    /// As it is written.
    pub(crate) fn name(&self) -> String {
        format!("{}{}", self.stem, if self.starred { "*" } else { "" })
    }
}
