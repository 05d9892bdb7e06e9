//! The policy that decides calls: one document, and those that restrict it further.

use std::collections::HashSet;

use lockhouse_protocol::{ServerName, ToolName};

use crate::call::{Call, ClientName};
use crate::call_target::CallTarget;
use crate::condition::PathResolution;
use crate::diagnostic::Diagnostics;
use crate::document;
use crate::effect::Effect;
use crate::layer::{Layer, LayerView};
use crate::precedence::Statement;
use crate::source::Source;
use crate::table::OnChange;

/// The number of paths of one call that are resolved. The targets of any further paths are unknown.
pub const PATHS_MAX: usize = 1_000;

/// Decides which calls are allowed. Calls that it does not allow are denied.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The policy's own document. For each call, the strictest of this document and those in [`above`](Self::above)
    /// counts.
    own: Layer,
    above: Vec<Layer>,
}

impl Policy {
    /// Parses a policy document: at most [`TEXT_BYTES_MAX`](crate::TEXT_BYTES_MAX) bytes of TOML, with at most
    /// [`PATTERNS_MAX`](crate::PATTERNS_MAX) patterns and [`RULES_MAX`](crate::RULES_MAX) rules.
    ///
    /// # Errors
    /// All errors of the document at once. If the text is not valid TOML, or is of another version, only that is
    /// reported. At most [`DIAGNOSTICS_MAX`](crate::DIAGNOSTICS_MAX) errors are kept.
    pub fn parse(source: Source) -> Result<Self, Diagnostics> {
        Ok(Self { own: document::read(source)?, above: Vec::new() })
    }

    /// Makes a policy without any document. It denies all calls, with a hint at how to write a policy.
    #[must_use]
    pub fn empty() -> Self {
        Self { own: Layer::empty(), above: Vec::new() }
    }

    /// Adds the documents of `above`. The strictest document counts for each call, so each can only restrict the
    /// others.
    #[must_use]
    pub fn restricted_by(mut self, above: Self) -> Self {
        self.above.push(above.own);
        self.above.extend(above.above);
        self
    }

    /// Whether the tool can be called with some arguments and the pinned definition, with or without approval.
    /// Intended for listings: it makes no [`PermittedCall`](crate::PermittedCall).
    #[must_use]
    pub fn permits(&self, server: &ServerName, tool: &ToolName, client: Option<&ClientName>) -> bool {
        self.permits_target(server, &tool.into(), client)
    }

    /// Whether the target can be requested with some arguments, with or without approval. Intended for listings.
    #[must_use]
    pub fn permits_target(
        &self,
        server: &ServerName,
        item: &CallTarget,
        client: Option<&ClientName>,
    ) -> bool {
        self.views(client).all(|view| view.may_permit(server, item))
    }

    /// Whether some resource whose URI starts with `beginning` can be read. Decides whether a resource template is listed.
    #[must_use]
    pub fn permits_any_with_prefix(
        &self,
        server: &ServerName,
        beginning: &str,
        client: Option<&ClientName>,
    ) -> bool {
        self.views(client).all(|view| view.may_permit_prefix(server, beginning))
    }

    /// Returns the paths on which the decision depends: those in the arguments, and the folders of rules. The caller
    /// resolves their symbolic links into [`Call::resolved_paths`]. At most [`PATHS_MAX`].
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

    /// Returns the names of the document files, the policy's own first.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.layers().filter(|layer| layer.source.is_some()).map(Layer::path)
    }

    /// Returns the texts of the documents, the policy's own first.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.layers().filter_map(|layer| layer.source.as_ref()).map(|source| source.text.as_str())
    }

    /// Returns the servers that have a table in every document, sorted by name.
    pub fn servers(&self) -> impl Iterator<Item = &ServerName> {
        let names = self.own.servers.keys();
        names.filter(|name| self.above.iter().all(|layer| layer.servers.contains_key(*name)))
    }

    /// Returns the strictest `on_change` for the server, or `None` when no document sets one.
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

    /// Counts the views that do not allow the call without approval.
    pub(crate) fn layers_requiring_approval(&self, call: &Call) -> usize {
        let paths = PathResolution::Known(&call.resolved_paths);
        let requires_approval =
            |view: &LayerView<'_>| view.deciding_statement(call, paths).effect() != Effect::Allow;
        self.views(call.client.as_ref()).filter(requires_approval).count()
    }

    /// Returns the statement that decides the call: the strictest among the deciding statements of all views, and the
    /// first of equals.
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
