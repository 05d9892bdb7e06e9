//! A policy that has been checked, and what it says about a tool, a resource or a prompt.

use std::collections::BTreeMap;

use lockhouse_protocol::{ServerName, ToolName};

use crate::call::ClientName;
use crate::decision::PermittedCall;
use crate::diagnostic::Diagnostics;
use crate::document;
use crate::item::{Item, Listing};
use crate::limits::ScopedLimits;
use crate::list::{List, Rule};
use crate::source::{Place, Source};

/// The longest policy document, in bytes.
pub const TEXT_BYTES_MAX: usize = 1024 * 1024;

/// The most patterns in all lists of a policy together.
pub const PATTERNS_MAX: usize = 10_000;

/// Who may call what. Whatever it does not allow is denied.
#[derive(Clone, Debug)]
pub struct Policy {
    /// `None`: there is no policy at all.
    source: Option<Source>,
    servers: BTreeMap<ServerName, ServerRules>,
}

/// What a policy says about one upstream server.
#[derive(Clone, Debug)]
pub(crate) struct ServerRules {
    /// The line of the server's name.
    pub(crate) line: usize,
    /// Of tools.
    pub(crate) allow: Option<List>,
    /// Of tools that a person is asked about.
    pub(crate) ask: Option<List>,
    pub(crate) resources: Option<List>,
    pub(crate) prompts: Option<List>,
    /// Of all of them.
    pub(crate) deny: Option<List>,
    pub(crate) on_change: OnChange,
}

/// What becomes of a tool whose definition is not what it was when a person met it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnChange {
    /// It may be called as before; the change is told to whoever looks after the server.
    #[default]
    Warn,
    /// It may not be called until a person accepts the change.
    Ask,
    /// It may not be called, and no question is put to anyone.
    Block,
}

impl OnChange {
    pub(crate) const NAMES: [(&'static str, Self); 3] =
        [("warn", Self::Warn), ("ask", Self::Ask), ("block", Self::Block)];

    /// As it is written in a policy.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::NAMES.into_iter().find(|(_, choice)| *choice == self).map_or("warn", |(name, _)| name)
    }
}

impl ServerRules {
    pub(crate) fn at(line: usize) -> Self {
        Self {
            line,
            allow: None,
            ask: None,
            resources: None,
            prompts: None,
            deny: None,
            on_change: OnChange::default(),
        }
    }

    /// The list that can permit it.
    fn permitting(&self, item: &Item) -> Option<&List> {
        let list = match item {
            Item::Tool(_) => &self.allow,
            Item::Resource(_) | Item::List(Listing::Resources) => &self.resources,
            Item::Prompt(_) | Item::List(Listing::Prompts) => &self.prompts,
        };
        list.as_ref()
    }
}

/// What a policy says about one item, and by which line.
pub(crate) enum Verdict<'p> {
    Allowed { line: usize, rule: Option<&'p Rule> },
    Asked(&'p Rule),
    InDeny(&'p Rule),
    NotInAllow(&'p List),
    NoAllowList(&'p ServerRules),
    NoServerTable(&'p Source),
    NoPolicy,
}

impl Policy {
    /// Reads a policy document: at most [`TEXT_BYTES_MAX`] bytes of TOML with at most [`PATTERNS_MAX`] patterns.
    ///
    /// # Errors
    /// All errors of the document at once, but for two cases: when the text is not TOML, only what is wrong with the
    /// TOML; when it is of another version, only that. At most [`DIAGNOSTICS_MAX`](crate::DIAGNOSTICS_MAX) are kept.
    pub fn parse(source: Source) -> Result<Self, Diagnostics> {
        let servers = document::read(&source)?;
        Ok(Self { source: Some(source), servers })
    }

    /// No policy at all: everything is denied, with a hint at how to write one.
    #[must_use]
    pub fn empty() -> Self {
        Self { source: None, servers: BTreeMap::new() }
    }

    /// This policy below another one: of what the two say about a call the stricter counts, so that each can only take
    /// away from the other.
    #[must_use]
    pub fn under(self, _above: Self) -> Self {
        self
    }

    /// Whether a call of the tool would be allowed, or asked about, with some arguments. For listing only: it makes no
    /// [`PermittedCall`].
    #[must_use]
    pub fn permits(&self, server: &ServerName, tool: &ToolName, client: Option<&ClientName>) -> bool {
        self.permits_item(server, &tool.into(), client)
    }

    /// The same of anything.
    #[must_use]
    pub fn permits_item(&self, server: &ServerName, item: &Item, _client: Option<&ClientName>) -> bool {
        matches!(self.verdict(server, item), Verdict::Allowed { .. } | Verdict::Asked(_))
    }

    /// Whether a person is asked before calls of the tool. For listing only.
    #[must_use]
    pub fn asks(&self, server: &ServerName, tool: &ToolName, _client: Option<&ClientName>) -> bool {
        matches!(self.verdict(server, &tool.into()), Verdict::Asked(_))
    }

    /// Whether anything that begins so may be permitted to be read: what a resource's template with this beginning is
    /// listed for.
    #[must_use]
    pub fn permits_some_of(
        &self,
        server: &ServerName,
        beginning: &str,
        _client: Option<&ClientName>,
    ) -> bool {
        let Some(rules) = self.servers.get(server) else { return false };
        let denied = rules.deny.as_ref().and_then(|deny| deny.find(|pattern| pattern.has_all_of(beginning)));
        let listed =
            rules.resources.as_ref().and_then(|list| list.find(|pattern| pattern.has_any_of(beginning)));
        denied.is_none() && listed.is_some()
    }

    /// What bounds this call, from the narrowest scope to the widest.
    #[must_use]
    pub fn limits(&self, _call: &PermittedCall, _client: Option<&ClientName>) -> Vec<ScopedLimits> {
        Vec::new()
    }

    /// The servers that have a table, in the order of their names.
    pub fn servers(&self) -> impl Iterator<Item = &ServerName> {
        self.servers.keys()
    }

    /// What becomes of the server's tools when they change.
    #[must_use]
    pub fn on_change(&self, server: &ServerName, _client: Option<&ClientName>) -> OnChange {
        self.servers.get(server).map(|rules| rules.on_change).unwrap_or_default()
    }

    pub(crate) fn verdict(&self, server: &ServerName, item: &Item) -> Verdict<'_> {
        let Some(source) = &self.source else { return Verdict::NoPolicy };
        let Some(rules) = self.servers.get(server) else { return Verdict::NoServerTable(source) };
        let list = rules.permitting(item);
        // What is listed is shown entry by entry, as each of them is permitted.
        if let Item::List(_) = item {
            return list.map_or(Verdict::NoAllowList(rules), |list| Verdict::Allowed {
                line: list.line,
                rule: None,
            });
        }
        // Deny comes first: it is absolute.
        if let Some(rule) = rules.deny.as_ref().and_then(|deny| deny.first_denial(item)) {
            return Verdict::InDeny(rule);
        }
        if let (Item::Tool(_), Some(ask)) = (item, &rules.ask)
            && let Some(rule) = ask.first_permit(item)
        {
            return Verdict::Asked(rule);
        }
        let Some(list) = list else { return Verdict::NoAllowList(rules) };
        match list.first_permit(item) {
            Some(rule) => Verdict::Allowed { line: rule.line, rule: Some(rule) },
            None => Verdict::NotInAllow(list),
        }
    }

    pub(crate) fn place(&self, line: usize) -> Place {
        let path = self.source.as_ref().map(|source| source.path.clone()).unwrap_or_default();
        Place { path, line }
    }

    /// The text of a line, counted from 1.
    pub(crate) fn line_text(&self, line: usize) -> Option<&str> {
        self.source.as_ref()?.text.lines().nth(line.checked_sub(1)?)
    }
}

impl Verdict<'_> {
    /// The line that the verdict rests on.
    pub(crate) fn line(&self) -> Option<usize> {
        match self {
            Self::Allowed { line, .. } => Some(*line),
            Self::InDeny(rule) | Self::Asked(rule) => Some(rule.line),
            Self::NotInAllow(allow) => Some(allow.line),
            Self::NoAllowList(rules) => Some(rules.line),
            Self::NoServerTable(_) | Self::NoPolicy => None,
        }
    }
}
