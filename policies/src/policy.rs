//! A policy that has been checked, and what it says about a tool, a resource or a prompt.

use std::collections::HashSet;

use lockhouse_protocol::{ServerName, ToolName};

use crate::call::{Call, ClientName};
use crate::condition::World;
use crate::diagnostic::Diagnostics;
use crate::document;
use crate::effect::Effect;
use crate::item::Item;
use crate::judge::Ground;
use crate::layer::{Layer, View};
use crate::source::Source;
use crate::table::OnChange;

/// Paths of one call whose links are asked for. Any further one leads nobody knows where.
pub const PATHS_MAX: usize = 1_000;

/// Who may call what. Whatever it does not allow is denied.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Of what these and [`above`](Self::above) say the strictest counts.
    own: Layer,
    above: Vec<Layer>,
}

impl Policy {
    /// Reads a policy document: at most [`TEXT_BYTES_MAX`](crate::TEXT_BYTES_MAX) bytes of TOML with at most [`PATTERNS_MAX`](crate::PATTERNS_MAX) patterns and
    /// [`RULES_MAX`](crate::RULES_MAX) rules.
    ///
    /// # Errors
    /// All errors of the document at once, but for two cases: when the text is not TOML, only what is wrong with the
    /// TOML; when it is of another version, only that. At most [`DIAGNOSTICS_MAX`](crate::DIAGNOSTICS_MAX) are kept.
    pub fn parse(source: Source) -> Result<Self, Diagnostics> {
        Ok(Self { own: document::read(source)?, above: Vec::new() })
    }

    /// No policy at all: everything is denied, with a hint at how to write one.
    #[must_use]
    pub fn empty() -> Self {
        Self { own: Layer::none(), above: Vec::new() }
    }

    /// This policy below another one: of what the two say about a call the stricter counts, so that each can only take
    /// away from the other.
    #[must_use]
    pub fn under(mut self, above: Self) -> Self {
        self.above.push(above.own);
        self.above.extend(above.above);
        self
    }

    /// Whether a call of the tool would be allowed, or asked about, with some arguments and the right definition. For
    /// listing only: it makes no [`PermittedCall`](crate::PermittedCall).
    #[must_use]
    pub fn permits(&self, server: &ServerName, tool: &ToolName, client: Option<&ClientName>) -> bool {
        self.permits_item(server, &tool.into(), client)
    }

    /// The same of anything.
    #[must_use]
    pub fn permits_item(&self, server: &ServerName, item: &Item, client: Option<&ClientName>) -> bool {
        self.views(client).all(|view| view.could_permit(server, item))
    }

    /// Whether anything that begins so may be permitted to be read: what a resource's template with this beginning is
    /// listed for.
    #[must_use]
    pub fn permits_some_of(&self, server: &ServerName, beginning: &str, client: Option<&ClientName>) -> bool {
        self.views(client).all(|view| view.could_permit_some_of(server, beginning))
    }

    /// The paths that a call's decision depends on: in its arguments, and the folders that rules name. Where each leads
    /// to goes into [`Call::links`]. At most [`PATHS_MAX`].
    #[must_use]
    pub fn paths(&self, call: &Call) -> Vec<String> {
        let mut found: Vec<&str> = Vec::new();
        for view in self.views(call.client.as_ref()) {
            for ground in view.grounds(&call.server, &call.item) {
                let Ground::Rule(rule) = ground else { continue };
                for condition in &rule.conditions {
                    condition.paths(&call.arguments, &mut |path| found.push(path));
                }
            }
        }
        let mut seen = HashSet::new();
        let each_once = found.into_iter().filter(|path| seen.insert(*path));
        each_once.take(PATHS_MAX).map(str::to_owned).collect()
    }

    /// The files of its documents, this policy's own first.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.layers().filter(|layer| layer.source.is_some()).map(Layer::path)
    }

    /// The texts of these files, in the same order.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.layers().filter_map(|layer| layer.source.as_ref()).map(|source| source.text.as_str())
    }

    /// The servers that have a table, in every document, in the order of their names.
    pub fn servers(&self) -> impl Iterator<Item = &ServerName> {
        let names = self.own.servers.keys();
        names.filter(|name| self.above.iter().all(|layer| layer.servers.contains_key(*name)))
    }

    /// What becomes of the server's tools when they change: the strictest of what is said, if anything is.
    #[must_use]
    pub fn on_change(&self, server: &ServerName, client: Option<&ClientName>) -> Option<OnChange> {
        let said = self.views(client).filter_map(|view| view.servers.get(server)?.on_change);
        said.map(|(choice, _)| choice).max()
    }

    pub(crate) fn layers(&self) -> impl Iterator<Item = &Layer> {
        std::iter::once(&self.own).chain(&self.above)
    }

    pub(crate) fn views(&self, client: Option<&ClientName>) -> impl Iterator<Item = View<'_>> {
        self.layers().flat_map(move |layer| layer.views(client))
    }

    /// How many of its layers and clients' tables would not let a call go without a person.
    pub(crate) fn asked_by(&self, call: &Call) -> usize {
        let world = World::Known(&call.links);
        let asks = |view: &View<'_>| view.decisive(call, world).effect() != Effect::Allow;
        self.views(call.client.as_ref()).filter(asks).count()
    }

    /// What decides about a call: the strictest of what its layers say, and of two alike the first.
    pub(crate) fn verdict(&self, call: &Call) -> (View<'_>, Ground<'_>) {
        let world = World::Known(&call.links);
        let client = call.client.as_ref();
        let first = self.own.base();
        let mut strictest = (first, first.decisive(call, world));
        for view in self.views(client).skip(1) {
            if strictest.1.effect() == Effect::Deny {
                break;
            }
            let ground = view.decisive(call, world);
            if ground.effect() > strictest.1.effect() {
                strictest = (view, ground);
            }
        }
        strictest
    }
}
