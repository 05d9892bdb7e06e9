//! A policy layer: one parsed policy document, and the parts of it that apply to an AI client.

use std::collections::BTreeMap;

use lockhouse_protocol::ServerName;

use crate::call::ClientName;
use crate::pattern_index::PatternIndex;
use crate::role::{RoleKind, RoleTable};
use crate::source::{Source, SourceLocation};
use crate::table::{LimitsEntry, ServerTable};

/// The server tables of a policy document (`[servers.NAME]`), or of one AI client in it
/// (`[clients.NAME.servers.NAME]`), by server name.
pub(crate) type Servers = BTreeMap<ServerName, ServerTable>;

/// A policy layer: one parsed policy document. Several layers are evaluated together, and the strictest decision
/// holds.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    /// The name and text of the policy document; `None` when there is no policy.
    pub(crate) source: Option<Source>,
    pub(crate) servers: Servers,
    /// The limits of the table `[limits]`, which all calls together share; `None` if the document has no such table.
    pub(crate) limits: Option<LimitsEntry>,
    pub(crate) clients: Clients,
    /// The tables `[roles.NAME]` in the order of the document; `None` if the document has no `roles`.
    pub(crate) roles: Option<Vec<RoleTable>>,
}

/// The tables `[clients.NAME]` of a policy document.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clients {
    pub(crate) all: Vec<ClientTable>,
    by_name: PatternIndex,
}

/// The policy table `[clients.NAME]` of one AI client, or of all AI clients whose names have a common prefix.
#[derive(Clone, Debug)]
pub(crate) struct ClientTable {
    /// The AI client's name, or the common prefix of the names if `starred` is true.
    pub(crate) stem: String,
    /// Whether the client name in the document ends in `*`, so that the table applies to all names that start with
    /// `stem`.
    pub(crate) starred: bool,
    pub(crate) limits: Option<LimitsEntry>,
    /// The server tables that further restrict the calls of the AI client; `None` adds no restriction.
    pub(crate) servers: Option<Servers>,
    /// The line of the client's name in the policy document, counted from 1.
    pub(crate) line: usize,
}

/// A view of one policy document: the server tables that apply to all AI clients, or those that apply to one client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LayerView<'p> {
    pub(crate) layer: &'p Layer,
    pub(crate) servers: &'p Servers,
    pub(crate) scope: ViewScope<'p>,
}

/// To whom the server tables of a view apply.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ViewScope<'p> {
    Everyone,
    Client(&'p ClientTable),
    Role(&'p RoleTable),
    /// A person without a role that permits to run programs.
    NoRole,
}

impl Layer {
    /// Creates a layer without a document, for the case that there is no policy.
    pub(crate) fn empty() -> Self {
        Self { source: None, servers: Servers::new(), limits: None, clients: Clients::default(), roles: None }
    }

    /// Returns the view of the server tables that apply to all AI clients.
    pub(crate) fn common_view(&self) -> LayerView<'_> {
        LayerView { layer: self, servers: &self.servers, scope: ViewScope::Everyone }
    }

    /// Returns the views of the server tables that apply to calls of `client`: first the tables for all clients, then
    /// those for this client and for its role, if the document has any. A call is allowed only if every view allows it.
    pub(crate) fn views(&self, client: Option<&ClientName>) -> impl Iterator<Item = LayerView<'_>> {
        let table = self.clients.table_for(client);
        let further = table.and_then(|table| {
            Some(LayerView { layer: self, servers: table.servers.as_ref()?, scope: ViewScope::Client(table) })
        });
        std::iter::once(self.common_view()).chain(further).chain(self.role_view(client))
    }

    pub(crate) fn path(&self) -> &str {
        self.source.as_ref().map(|source| source.path.as_str()).unwrap_or_default()
    }

    pub(crate) fn location(&self, line: usize) -> SourceLocation {
        SourceLocation { path: self.path().to_owned(), line }
    }

    /// Returns the text of a line of the policy document, counted from 1; `None` if there is no such line.
    pub(crate) fn line_text(&self, line: usize) -> Option<&str> {
        self.source.as_ref()?.text.lines().nth(line.checked_sub(1)?)
    }
}

impl Layer {
    /// Returns the server tables of all roles.
    pub(crate) fn servers_of_roles(&self) -> impl Iterator<Item = &Servers> {
        self.roles.iter().flatten().filter_map(|role| role.servers.as_ref())
    }

    /// Returns the roles of a person, in the order of the document.
    pub(crate) fn roles_of<'p>(&'p self, person: &ClientName) -> impl Iterator<Item = &'p RoleTable> {
        self.roles.iter().flatten().filter(move |role| role.has_member(person))
    }

    /// Returns the role as which a client runs programs: the first one with `run`. `None` if roles do not apply to the client, or
    /// none of them has it.
    pub(crate) fn running_role(&self, client: Option<&ClientName>) -> Option<&RoleTable> {
        let person = client.filter(|client| client.is_authenticated())?;
        self.roles_of(person).find(|role| role.may.contains(&RoleKind::Run))
    }

    /// Returns the view that restricts what a person calls: that of the first role with `run`. `None` if it does not
    /// restrict anything, or if roles do not apply to the client, because no authentication is required of it.
    pub(crate) fn role_view(&self, client: Option<&ClientName>) -> Option<LayerView<'_>> {
        static NOTHING: Servers = Servers::new();
        client.filter(|client| self.roles.is_some() && client.is_authenticated())?;
        let (servers, scope) = match self.running_role(client) {
            Some(role) => (role.servers.as_ref()?, ViewScope::Role(role)),
            None => (&NOTHING, ViewScope::NoRole),
        };
        Some(LayerView { layer: self, servers, scope })
    }
}

impl LayerView<'_> {
    /// Whether this view and `other` refer to the same server tables of the same policy document.
    pub(crate) fn has_same_tables(self, other: LayerView<'_>) -> bool {
        std::ptr::eq(self.servers, other.servers)
    }

    /// Returns the name of a server's table in this view, as the document writes it, such as `servers.github`.
    pub(crate) fn table_name(self, server: &ServerName) -> String {
        match self.scope {
            ViewScope::Client(client) => format!("{}.servers.{server}", client.table()),
            ViewScope::Role(role) => format!("roles.{}.servers.{server}", role.name),
            ViewScope::Everyone | ViewScope::NoRole => format!("servers.{server}"),
        }
    }
}

impl Clients {
    pub(crate) fn new(all: Vec<ClientTable>) -> Self {
        let by_name = PatternIndex::new(all.iter().map(|table| (table.stem.as_str(), table.starred)));
        Self { all, by_name }
    }

    /// Returns the client table with the most specific name that matches `client`. A client without a name (`None`)
    /// matches only the table of the name `*`.
    pub(crate) fn table_for(&self, client: Option<&ClientName>) -> Option<&ClientTable> {
        let position = match client {
            Some(client) => self.by_name.matching(client.as_str()).next(),
            None => self.by_name.matching_prefixes("").next(),
        };
        self.all.get(position?)
    }
}

impl ClientTable {
    /// Returns the name of the client's table, such as `clients.cursor`.
    pub(crate) fn table(&self) -> String {
        let name = self.name();
        let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
        if plain { format!("clients.{name}") } else { format!("clients.{name:?}") }
    }

    /// Returns the client's name as written in the document, with the `*` at its end if there is one.
    pub(crate) fn name(&self) -> String {
        format!("{}{}", self.stem, if self.starred { "*" } else { "" })
    }
}
