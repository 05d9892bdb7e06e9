//! The policy that decides calls to upstream servers: one document, and the documents that restrict it further.

use std::collections::{BTreeMap, HashSet};

use lockhouse_protocol::{ServerName, ToolName};

use crate::approval_requirement::ApprovalRequirement;
use crate::call::{Call, ClientName};
use crate::call_target::CallTarget;
use crate::condition::PathResolution;
use crate::diagnostic::Diagnostics;
use crate::document;
use crate::effect::Effect;
use crate::layer::{Layer, LayerView};
use crate::precedence::Statement;
use crate::rule_presence::RulePresence;
use crate::source::Source;
use crate::table::OnChange;

/// The maximum number of paths of one call whose symbolic links are resolved. The targets of any further paths count
/// as unknown.
/// Bound: calls and arguments.
pub const PATHS_MAX: usize = 1_000;

/// A policy: decides whether a call to an upstream server is allowed, requires approval or is denied. A call that no
/// part of the policy allows is denied.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The policy's own document, as opposed to the documents in [`above`](Self::above), which restrict it. For each
    /// call, the strictest decision of all these documents holds.
    own: Layer,
    above: Vec<Layer>,
}

impl Policy {
    /// Parses a policy document: at most [`TEXT_BYTES_MAX`](crate::TEXT_BYTES_MAX) bytes of TOML, with at most
    /// [`PATTERNS_MAX`](crate::PATTERNS_MAX) patterns and [`RULES_MAX`](crate::RULES_MAX) rules.
    ///
    /// # Errors
    /// All errors of the document at once. If the text is not valid TOML, or is of another version than 1, only that
    /// is reported. At most [`DIAGNOSTICS_MAX`](crate::DIAGNOSTICS_MAX) errors are reported; any further errors are
    /// only counted.
    pub fn parse(source: Source) -> Result<Self, Diagnostics> {
        Ok(Self { own: document::read(source)?, above: Vec::new() })
    }

    /// Creates a policy without any document. It denies all calls to upstream servers, with a hint at how to write a
    /// policy.
    #[must_use]
    pub fn empty() -> Self {
        Self { own: Layer::empty(), above: Vec::new() }
    }

    /// Adds the documents of the policy `above` as further restrictions. For each call the strictest decision of
    /// all documents holds, so an added document cannot permit more.
    #[must_use]
    pub fn restricted_by(mut self, above: Self) -> Self {
        self.above.push(above.own);
        self.above.extend(above.above);
        self
    }

    /// Whether the policy permits `client` calls of the tool with at least some arguments, with or without approval.
    /// Assumes that the tool's definition is the one that the policy pins. Intended for listings of tools: the result
    /// is no permission to send a call ([`PermittedCall`](crate::PermittedCall)).
    #[must_use]
    pub fn permits(&self, server: &ServerName, tool: &ToolName, client: Option<&ClientName>) -> bool {
        self.permits_target(server, &tool.into(), client)
    }

    /// Whether the policy permits `client` a call of the target `item` with at least some arguments, with or without
    /// approval. Assumes that a tool's definition is the one that the policy pins. Intended for listings of tools,
    /// resources and prompts.
    #[must_use]
    pub fn permits_target(
        &self,
        server: &ServerName,
        item: &CallTarget,
        client: Option<&ClientName>,
    ) -> bool {
        self.views(client).all(|view| view.may_permit(server, item))
    }

    /// Whether the policy permits the reading of at least one resource whose URI starts with `beginning`. Lockhouse
    /// lists a resource template only if this function returns true for the text before the template's first variable.
    #[must_use]
    pub fn permits_any_with_prefix(
        &self,
        server: &ServerName,
        beginning: &str,
        client: Option<&ClientName>,
    ) -> bool {
        self.views(client).all(|view| view.may_permit_prefix(server, beginning))
    }

    /// Returns the paths on which the decision about the call depends: the paths in its arguments, and the folders of
    /// rules. The caller has to resolve their symbolic links and put the result into [`Call::resolved_paths`].
    /// Returns at most [`PATHS_MAX`] paths.
    #[must_use]
    pub fn paths_to_resolve(&self, call: &Call) -> Vec<String> {
        let mut found: Vec<&str> = Vec::new();
        for view in self.views(call.client.as_ref()) {
            for statement in view.statements(&call.server, &call.item) {
                let Statement::Rule(rule) = statement else { continue };
                for condition in &rule.conditions {
                    condition.paths(&call.arguments, &mut |path| found.push(path));
                }
            }
        }
        let mut seen = HashSet::new();
        let each_once = found.into_iter().filter(|path| seen.insert(*path));
        each_once.take(PATHS_MAX).map(str::to_owned).collect()
    }

    /// Whether a document of the policy has a table `[clients.NAME.servers.SERVER]` for exactly this client and server.
    /// Tables for a prefix of client names do not count.
    #[must_use]
    pub fn names_client(&self, server: &ServerName, client: Option<&ClientName>) -> bool {
        self.layers().any(|layer| {
            let table = layer.clients.table_for(client).filter(|table| !table.starred);
            table.and_then(|table| table.servers.as_ref()).is_some_and(|servers| servers.contains_key(server))
        })
    }

    /// Returns the file names of the policy's documents, its own document first.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.layers().filter(|layer| layer.source.is_some()).map(Layer::path)
    }

    /// Returns the texts of the policy's documents, its own document first.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.layers().filter_map(|layer| layer.source.as_ref()).map(|source| source.text.as_str())
    }

    /// Returns the servers that have a table `[servers.NAME]` in every document of the policy, sorted by name.
    pub fn servers(&self) -> impl Iterator<Item = &ServerName> {
        let names = self.own.servers.keys();
        names.filter(|name| self.above.iter().all(|layer| layer.servers.contains_key(*name)))
    }

    /// Returns the value of `on_change` (what happens when a tool's definition changes) for the server and the client:
    /// the strictest one in all documents, or `None` when no document sets one.
    #[must_use]
    pub fn on_change(&self, server: &ServerName, client: Option<&ClientName>) -> Option<OnChange> {
        let choices = self.views(client).filter_map(|view| view.servers.get(server)?.on_change);
        choices.map(|(choice, _)| choice).max()
    }

    pub(crate) fn layers(&self) -> impl Iterator<Item = &Layer> {
        std::iter::once(&self.own).chain(&self.above)
    }

    pub(crate) fn views(&self, client: Option<&ClientName>) -> impl Iterator<Item = LayerView<'_>> {
        self.layers().flat_map(move |layer| layer.views(client))
    }

    /// Counts the policy views (the tables for all clients and those of `call.client`, in each document) that do not
    /// allow the call without approval.
    pub(crate) fn layers_requiring_approval(&self, call: &Call) -> usize {
        let paths = PathResolution::Known(&call.resolved_paths);
        let requires_approval =
            |view: &LayerView<'_>| view.deciding_statement(call, paths).effect() != Effect::Allow;
        self.views(call.client.as_ref()).filter(requires_approval).count()
    }

    /// Returns what the approval of the call requires: what the statements that decide it require together, of which each view
    /// has one.
    pub(crate) fn requirement_for(&self, call: &Call) -> ApprovalRequirement {
        let paths = PathResolution::Known(&call.resolved_paths);
        let views = self.views(call.client.as_ref());
        let each = views.map(|view| view.deciding_statement(call, paths).requirement());
        each.fold(ApprovalRequirement::default(), ApprovalRequirement::and)
    }

    /// Returns the strongest proof that a rule requires of an approval; `None` if no rule requires any.
    #[must_use]
    pub fn strongest_presence(&self) -> Option<RulePresence> {
        let tables = self.layers().flat_map(|layer| {
            let of_clients = layer.clients.all.iter().filter_map(|client| client.servers.as_ref());
            of_clients.chain([&layer.servers]).chain(layer.servers_of_roles()).flat_map(BTreeMap::values)
        });
        tables.flat_map(|table| table.rules.iter()).filter_map(|rule| rule.requirement.presence).max()
    }

    /// Returns the policy statement that decides the call, and the view (server tables) that contains it. Each
    /// view has one deciding statement; the strictest of them is returned, or the first if several are equally
    /// strict.
    pub(crate) fn strictest_statement(&self, call: &Call) -> (LayerView<'_>, Statement<'_>) {
        let paths = PathResolution::Known(&call.resolved_paths);
        let client = call.client.as_ref();
        let first = self.own.common_view();
        let mut strictest = (first, first.deciding_statement(call, paths));
        for view in self.views(client).skip(1) {
            if strictest.1.effect() == Effect::Deny {
                break;
            }
            let statement = view.deciding_statement(call, paths);
            if statement.effect() > strictest.1.effect() {
                strictest = (view, statement);
            }
        }
        strictest
    }
}
