//! `requirements.toml` as it is written. A key that is not listed here is an error: what is misspelt would hold nothing.

use std::ops::Range;
use std::path::PathBuf;

use lockhouse_policies::{Diagnostic, Diagnostics, Place, Source};
use lockhouse_protocol::ServerName;
use lockhouse_upstream::{ServerDefinition, ServerLimits};
use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;
use toml::de::{DeTable, Deserializer};
use url::Url;

use super::Requirement;
use super::identity::{Identity, Wanted};
use crate::config::dialects::{self, Listed};
use crate::config::references::Surroundings;

/// An entry of `[[approved]]`: a name, and what the server of that name must be.
#[derive(Debug)]
pub(super) struct Approved {
    pub(super) place: Place,
    pub(super) name: ServerName,
    pub(super) wanted: Wanted,
}

/// An entry of `[[denied]]`: servers for whom everything holds that it says.
#[derive(Debug)]
pub(super) struct Denied {
    pub(super) place: Place,
    /// With `*` at its end for every name that begins so.
    name: Option<String>,
    what: Option<Wanted>,
}

impl Denied {
    pub(super) fn means(
        &self,
        name: &ServerName,
        definition: &ServerDefinition,
        identity: &Identity,
    ) -> bool {
        let has_name = |pattern: &String| match pattern.strip_suffix('*') {
            Some(start) => name.as_str().starts_with(start),
            None => name.as_str() == pattern,
        };
        self.name.as_ref().is_none_or(has_name)
            && self.what.as_ref().is_none_or(|what| what.resembles(definition, identity))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    /// Read by [`policy_above`].
    policy: Option<Spanned<PathBuf>>,
    /// Read by [`dialects::read_own`], which knows what must not be shown.
    servers: Option<IgnoredAny>,
    approved: Option<Vec<Spanned<Entry>>>,
    #[serde(default)]
    denied: Vec<Spanned<Entry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: Option<Spanned<String>>,
    command: Option<Spanned<PathBuf>>,
    #[serde(default)]
    args: Vec<String>,
    env: Option<Vec<String>>,
    cwd: Option<Spanned<PathBuf>>,
    sha256: Option<Spanned<String>>,
    url: Option<Spanned<String>>,
}

/// Reads and checks the file.
pub(super) fn parse(
    source: &Source,
    limits: ServerLimits,
    surroundings: &Surroundings,
) -> Result<Requirement, Diagnostics> {
    let mut reader = Reader { source, faults: Vec::new() };
    let unreadable = |error: toml::de::Error| {
        // What the parser quotes may be a value of a server's environment.
        let told = if reader.may_hold_secrets(error.span()) { "this part of it" } else { error.message() };
        Diagnostics::from(reader.fault(error.span(), told))
    };
    let root = DeTable::parse(&source.text).map_err(unreadable)?;
    let document = Document::deserialize(Deserializer::from(root.clone())).map_err(unreadable)?;
    let approved =
        document.approved.map(|entries| entries.iter().filter_map(|entry| reader.approved(entry)).collect());
    let denied = document.denied.iter().filter_map(|entry| reader.denied(entry)).collect();
    if let Some(path) = document.policy.as_ref().filter(|path| !path.get_ref().is_absolute()) {
        reader.add(path.span(), "expected an absolute path");
    }
    let servers = dialects::read_own(source, root.get_ref(), surroundings).unwrap_or_else(|faults| {
        reader.faults.extend(faults.0);
        Vec::new()
    });
    if !reader.faults.is_empty() {
        return Err(Diagnostics(reader.faults));
    }
    let definition = |listed: Listed| resolved(listed, source, limits, surroundings);
    let fixed = document.servers.map(|_| servers.into_iter().filter_map(definition).collect());
    Ok(Requirement { path: source.path.clone(), fixed, approved, denied })
}

/// A server that is listed and cannot be used is told, and used by nobody.
fn resolved(
    listed: Listed,
    source: &Source,
    limits: ServerLimits,
    surroundings: &Surroundings,
) -> Option<(ServerName, ServerDefinition)> {
    let Listed { name, line, entry } = listed;
    let origin = format!("{}:{line}", source.path);
    let definition = entry.and_then(|entry| entry.resolve(surroundings, limits, origin.clone()));
    let told = |reason| tracing::warn!("{origin}: server {name:?} is left out: {reason}");
    Some((ServerName::new(name.as_str()).ok()?, definition.map_err(told).ok()?))
}

/// The file of the policy that is above every other one.
pub(super) fn policy_above(source: &Source) -> Result<Option<Spanned<PathBuf>>, Diagnostics> {
    #[derive(Deserialize)]
    struct Above {
        policy: Option<Spanned<PathBuf>>,
    }
    let unreadable = |error: toml::de::Error| fault_in(source, error.span(), "this cannot be read");
    let above: Above = toml::from_str(&source.text).map_err(unreadable)?;
    let policy = above.policy;
    match policy.as_ref().filter(|path| !path.get_ref().is_absolute()) {
        Some(path) => Err(fault_in(source, Some(path.span()), "expected an absolute path")),
        None => Ok(policy),
    }
}

/// One fault.
pub(super) fn fault_in(source: &Source, span: Option<Range<usize>>, label: &str) -> Diagnostics {
    Reader { source, faults: Vec::new() }.fault(span, label).into()
}

struct Reader<'s> {
    source: &'s Source,
    faults: Vec<Diagnostic>,
}

impl Reader<'_> {
    fn add(&mut self, span: Range<usize>, label: &str) {
        let fault = self.fault(Some(span), label);
        self.faults.push(fault);
    }

    /// A line that may hold a secret is named and not shown.
    fn fault(&self, span: Option<Range<usize>>, label: &str) -> Diagnostic {
        let title = "the requirements are not valid";
        match &span {
            Some(place) if self.may_hold_secrets(span.clone()) => {
                let path = self.place(place.start).to_string();
                Diagnostic::new(&Source { path, text: String::new() }, None, title, label)
            }
            _ => Diagnostic::new(self.source, span, title, label),
        }
    }

    /// Only servers have secrets, so nothing before the first of them has any.
    fn may_hold_secrets(&self, span: Option<Range<usize>>) -> bool {
        let text = &self.source.text;
        let end = span.map_or(text.len(), |span| {
            text[span.start..].find('\n').map_or(text.len(), |at| span.start + at)
        });
        text[..end].contains("servers")
    }

    fn place(&self, at: usize) -> Place {
        Place { path: self.source.path.clone(), line: 1 + self.source.text[..at].matches('\n').count() }
    }

    fn approved(&mut self, entry: &Spanned<Entry>) -> Option<Approved> {
        let what = self.wanted(entry)?;
        let place = self.place(entry.span().start);
        let (Some(name), Some(wanted)) = (&entry.get_ref().name, what) else {
            self.add(entry.span(), "an approved server has a name, and a command or a url");
            return None;
        };
        if matches!(wanted, Wanted::Program { path: None, .. }) {
            self.add(entry.span(), "an approved server has a command or a url");
            return None;
        }
        match ServerName::new(name.get_ref().as_str()) {
            Ok(name) => Some(Approved { place, name, wanted }),
            Err(invalid) => {
                self.add(name.span(), &invalid.to_string());
                None
            }
        }
    }

    fn denied(&mut self, entry: &Spanned<Entry>) -> Option<Denied> {
        let what = self.wanted(entry)?;
        let name = entry.get_ref().name.as_ref().map(|name| name.get_ref().clone());
        if name.is_none() && what.is_none() {
            self.add(entry.span(), "a denied server has a name, a command, a sha256 or a url");
            return None;
        }
        Some(Denied { place: self.place(entry.span().start), name, what })
    }

    /// What an entry says of the server itself, if anything; `None` outside when that is wrong.
    fn wanted(&mut self, entry: &Spanned<Entry>) -> Option<Option<Wanted>> {
        let Entry { command, args, env, cwd, sha256, url, .. } = entry.get_ref();
        let of_a_program =
            command.is_some() || sha256.is_some() || !args.is_empty() || env.is_some() || cwd.is_some();
        match url {
            Some(url) if of_a_program => {
                self.add(url.span(), "a server has a command or a url, not both");
                None
            }
            Some(url) => self.address(url).map(Some),
            None if !of_a_program => Some(None),
            None => self.program(entry).map(Some),
        }
    }

    fn program(&mut self, entry: &Spanned<Entry>) -> Option<Wanted> {
        let Entry { command, args, env, cwd, sha256, .. } = entry.get_ref();
        if let Some(command) = command.as_ref().filter(|command| !command.get_ref().is_absolute()) {
            self.add(command.span(), "expected an absolute path: a name could stand for any file");
            return None;
        }
        if let Some(cwd) = cwd.as_ref().filter(|cwd| !cwd.get_ref().is_absolute()) {
            self.add(cwd.span(), "expected an absolute path: it is compared with the server's `cwd`");
            return None;
        }
        let is_digest = |text: &str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if let Some(sha256) = sha256.as_ref().filter(|sha256| !is_digest(sha256.get_ref())) {
            self.add(sha256.span(), "expected 64 hexadecimal digits, as sha256sum prints them");
            return None;
        }
        Some(Wanted::Program {
            path: command.as_ref().map(|command| command.get_ref().clone()),
            arguments: args.clone(),
            variables: env.clone(),
            directory: cwd.as_ref().map(|cwd| cwd.get_ref().clone()),
            sha256: sha256.as_ref().map(|sha256| sha256.get_ref().to_ascii_lowercase()),
        })
    }

    fn address(&mut self, text: &Spanned<String>) -> Option<Wanted> {
        let (stem, and_below) = match text.get_ref().strip_suffix('*') {
            Some(stem) => (stem, true),
            None => (text.get_ref().as_str(), false),
        };
        let url = Url::parse(stem).ok().filter(|url| {
            let plain = url.query().is_none() && url.fragment().is_none();
            // A star in place of the host's end would mean hosts of anybody.
            let ends_in_path = !and_below || stem.splitn(4, '/').count() == 4;
            matches!(url.scheme(), "http" | "https") && url.has_host() && plain && ends_in_path
        });
        if url.is_none() {
            self.add(text.span(), "expected http(s)://HOST/PATH, with or without * at the end of the path");
        }
        url.map(|url| Wanted::Address { url, and_below })
    }
}
