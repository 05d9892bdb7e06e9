//! A server that was found, and what becomes of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lockhouse_catalog::python_name;
use lockhouse_protocol::ServerName;
use lockhouse_upstream::{ServerDefinition, ServerLimits};

use super::secrets;
use crate::config::{Edit, Entry, LeftOut, Listed, Surroundings, Unresolved, usable};

/// One server of one file.
pub(super) struct Candidate {
    pub(super) client: String,
    pub(super) path: PathBuf,
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) reach: String,
    pub(super) verdict: Verdict,
}

pub(super) enum Verdict {
    Take {
        name: ServerName,
        entry: Box<Entry>,
        /// What it does not find now.
        lacks: Option<String>,
    },
    Leave(String),
}

impl Candidate {
    pub(super) fn taken(&self) -> Option<(&ServerName, &Entry)> {
        match &self.verdict {
            Verdict::Take { name, entry, .. } => Some((name, entry)),
            Verdict::Leave(_) => None,
        }
    }

    /// What becomes of it, for people.
    pub(super) fn told(&self) -> String {
        let (name, entry, lacks) = match &self.verdict {
            Verdict::Leave(reason) => return format!("left out: {reason}"),
            Verdict::Take { name, entry, lacks } => (name, entry, lacks),
        };
        let mut told = match name.as_str() == self.name {
            true => "taken".to_owned(),
            false => format!("taken as {name}"),
        };
        let secrets = secrets(entry);
        if !secrets.is_empty() {
            told += &format!("; plaintext secrets are copied to files: {}", secrets.join(", "));
        }
        if let Some(lacks) = lacks {
            told += &format!("; does not start yet: {lacks}");
        }
        told
    }
}

/// Who has a name already.
enum Holder {
    Configured(String),
    Taken { client: String, entry: Box<Entry> },
}

/// Decides about one server after the other: the first of a name is taken.
pub(super) struct Judge<'s> {
    edit: &'s Edit,
    surroundings: &'s Surroundings,
    /// By what code would call them.
    holders: BTreeMap<String, (ServerName, Holder)>,
}

impl<'s> Judge<'s> {
    pub(super) fn new(
        configured: &BTreeMap<ServerName, ServerDefinition>,
        edit: &'s Edit,
        surroundings: &'s Surroundings,
    ) -> Self {
        let holder = |(name, definition): (&ServerName, &ServerDefinition)| {
            (python_name(name.as_str()), (name.clone(), Holder::Configured(definition.origin.clone())))
        };
        Self { edit, surroundings, holders: configured.iter().map(holder).collect() }
    }

    pub(super) fn candidate(&mut self, client: &str, path: &Path, listed: Listed) -> Candidate {
        let reach = listed.entry.as_ref().map_or_else(|_| "-".to_owned(), Entry::summary);
        let verdict = self.judge(client, &listed).unwrap_or_else(|reason| Verdict::Leave(reason.to_string()));
        let path = path.to_owned();
        Candidate { client: client.to_owned(), path, line: listed.line, name: listed.name, reach, verdict }
    }

    fn judge(&mut self, client: &str, listed: &Listed) -> Result<Verdict, LeftOut> {
        let name = usable(&listed.name).ok_or(LeftOut::Name)?;
        let entry = listed.entry.clone()?.with_env_file(self.surroundings)?;
        let lacks = match entry.resolve(self.surroundings, ServerLimits::default(), String::new()) {
            Ok(_) => None,
            // It may be there when the server is started.
            Err(LeftOut::Unresolved { key, reason }) if !matches!(reason, Unresolved::Foreign(_)) => {
                Some(format!("{key}: {reason}"))
            }
            Err(reason) => return Err(reason),
        };
        if let Some((holder, held)) = self.holders.get(&python_name(name.as_str())) {
            return Ok(Verdict::Leave(in_the_way(&name, &entry, holder, held)));
        }
        if self.edit.server(name.as_str()).is_some() {
            return Ok(Verdict::Leave(
                "a server of that name is configured, and switched off or incomplete".into(),
            ));
        }
        let entry = Box::new(entry);
        let holder = Holder::Taken { client: client.to_owned(), entry: entry.clone() };
        self.holders.insert(python_name(name.as_str()), (name.clone(), holder));
        Ok(Verdict::Take { name, entry, lacks })
    }
}

fn in_the_way(name: &ServerName, entry: &Entry, holder: &ServerName, held: &Holder) -> String {
    let who = if holder == name {
        "that name".to_owned()
    } else {
        format!("the name {holder}, which is the same in code")
    };
    match held {
        Holder::Configured(origin) if holder == name => {
            format!("a server of that name is configured in {origin}")
        }
        Holder::Configured(origin) => format!("the server in {origin} has {who}: rename one of them"),
        Holder::Taken { client, entry: other } if other.reach == entry.reach => {
            format!("it is the same as that of {client}")
        }
        Holder::Taken { client, .. } => format!("another server of {client} has {who}: rename one of them"),
    }
}
