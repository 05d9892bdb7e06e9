//! Finds out whether a sandboxed upstream server was refused an access, from what the server says: the kernel does not
//! tell. The texts are the server's, and so prove nothing.

use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use lockhouse_protocol::ServerName;
use serde_json::json;

use super::named_paths::leads_through_own_link;
use super::protected_paths::{Place, ProtectedPaths};
use super::{KernelGap, SandboxPlaces, kernel_gaps, profile_paths};
use crate::definition::{Confinement, Endpoint, Network, ServerCommand, ServerDefinition};

/// How programs report the errors EACCES and EPERM, in lower case.
const SIGNS: [&str; 7] = [
    "attempt to write a readonly database",
    "eacces",
    "operation not permitted",
    "permission denied",
    "permissiondenied",
    "permissionerror",
    "unable to open database file",
];
/// The maximum number of bytes of a text that are searched.
const TEXT_BYTES_MAX: usize = 16 * 1024;

/// How the advice begins.
const ADVICE: &str = "it is confined by `sandbox` in ";

/// Returns the text of an error of a sandboxed server without the advice that follows it.
#[must_use]
pub fn without_sandbox_advice(error: &str) -> &str {
    error.split_once(ADVICE).map_or(error, |(error, _)| error.trim_end_matches([';', ' ']))
}

/// Tells users that a sandboxed server may have been refused an access, and which setting permits it.
#[derive(Debug)]
pub(crate) struct RefusalNotice {
    server: ServerName,
    /// `FILE` or `FILE:LINE` where the server is configured.
    origin: String,
    /// The configured sandbox.
    confinement: Confinement,
    /// The command of the server, which names paths that the profile grants.
    command: ServerCommand,
    places: SandboxPlaces,
    /// Whether the current process of the server has caused a log message.
    is_logged: AtomicBool,
}

impl RefusalNotice {
    /// Creates the notice for a server; `None` if the server has no sandbox.
    pub(crate) fn new(
        server: &ServerName,
        definition: &ServerDefinition,
        places: &SandboxPlaces,
    ) -> Option<Self> {
        match &definition.endpoint {
            Endpoint::Stdio(command) => {
                let (server, origin) = (server.clone(), definition.origin.clone());
                let confinement = command.confinement.clone()?;
                let (command, places) = (command.clone(), places.clone());
                Some(Self { server, origin, confinement, command, places, is_logged: AtomicBool::new(false) })
            }
            Endpoint::Http(_) | Endpoint::Socket(_) => None,
        }
    }

    /// Begins the observation of a new process of the server. Writes to the log that it starts although it can destroy the
    /// files of its user, if the kernel is too old.
    pub(crate) fn reset(&self) {
        let gaps = kernel_gaps().into_iter().filter(KernelGap::is_refused_if_required);
        let server = &self.server;
        gaps.for_each(|gap| tracing::warn!(%server, "its sandbox is not enforced as a whole: {gap}"));
        self.is_logged.store(false, Ordering::Relaxed);
    }

    /// Whether the text says that an access was refused. The first such text of each process is logged.
    pub(crate) fn is_refusal(&self, text: &str) -> bool {
        if !reports_refusal(text) {
            return false;
        }
        if !self.is_logged.swap(true, Ordering::Relaxed) {
            tracing::warn!(server = %self.server, "it reported a refused access; {}", self.advice(text));
        }
        true
    }

    /// Returns the advice for users, with the place of the setting. If `text`, which the server wrote, names a path, the
    /// advice has the line that grants its folder, unless that would also grant a protected place.
    pub(crate) fn advice(&self, text: &str) -> String {
        let general = format!(
            "{ADVICE}{}: `read` and `write` of that key grant further paths, `network = true` all sockets, and `user_namespaces = true` \
             user namespaces, as for the sandbox of a browser",
            self.origin
        );
        let refused = refused_path(text).map(Path::new).and_then(Path::parent);
        match refused.map(|folder| self.grantable(folder)) {
            Some(Some(folder)) => format!(
                "{general}. If it may change what it says that it was refused, the key is {}",
                sandbox_key(&self.confinement, &folder)
            ),
            Some(None) => format!(
                "{general}. Grant no folder that also holds keys, settings or files of other programs: give the server one of its own"
            ),
            None => general,
        }
    }

    /// Returns the folder without links if a server may be granted changes of it: it exists, and no protected place is in it
    /// or above it. The server names the folder, so it is not one that the server can replace by a link that leads elsewhere.
    fn grantable(&self, folder: &Path) -> Option<PathBuf> {
        let goes_up = folder.components().any(|part| part == Component::ParentDir);
        let resolved =
            std::fs::canonicalize(folder).ok().filter(|_| !goes_up && !leads_through_own_link(folder))?;
        let home = std::env::home_dir().and_then(|home| std::fs::canonicalize(home).ok());
        let place = ProtectedPaths::new(home.as_deref(), &self.places.own).place_to_change(&resolved);
        let named = profile_paths(&self.command, home.as_deref(), &self.places).write;
        let mut changeable = self.confinement.write.iter().chain(&named).chain(&self.places.folder);
        let can_replace =
            changeable.any(|path| std::fs::canonicalize(path).is_ok_and(|path| resolved.starts_with(path)));
        (place == Place::Elsewhere && !can_replace).then_some(resolved)
    }

    /// Returns the advice for submitted code and the model, who cannot change the setting.
    pub(crate) fn model_advice(&self) -> String {
        format!(
            " (server {} is confined: its user can grant it further paths with the key `sandbox` of its configuration)",
            self.server
        )
    }
}

/// Returns the key `sandbox` of a configuration file that also grants changes of `folder`.
fn sandbox_key(confinement: &Confinement, folder: &Path) -> String {
    let list = |paths: &mut dyn Iterator<Item = &Path>| {
        // A JSON string is a valid TOML string.
        let quoted: Vec<String> = paths.map(|path| json!(path.to_string_lossy()).to_string()).collect();
        (!quoted.is_empty()).then(|| format!("[{}]", quoted.join(", ")))
    };
    let network = match (confinement.profile, confinement.network) {
        (_, Network::All) => Some("true".to_owned()),
        (Some(_), Network::None) => Some("false".to_owned()),
        (None, Network::None) | (_, Network::Internet) => None,
    };
    let write = confinement.write.iter().map(PathBuf::as_path).chain([folder]);
    let parts = [
        ("profile", confinement.profile.map(|profile| json!(profile.as_str()).to_string())),
        ("read", list(&mut confinement.read.iter().map(PathBuf::as_path))),
        ("write", list(&mut { write })),
        ("network", network),
        ("user_namespaces", confinement.user_namespaces.then(|| "true".to_owned())),
    ];
    let parts = parts.into_iter().filter_map(|(name, value)| Some(format!("{name} = {}", value?)));
    format!("sandbox = {{ {} }}", parts.collect::<Vec<_>>().join(", "))
}

fn reports_refusal(text: &str) -> bool {
    let end = text.floor_char_boundary(TEXT_BYTES_MAX.min(text.len()));
    let text = text[..end].to_ascii_lowercase();
    SIGNS.iter().any(|sign| text.contains(sign))
}

/// Returns the path in a text that says that an access to it was refused; `None` if there is none. The text is the
/// server's, so the path proves nothing.
pub fn refused_path(text: &str) -> Option<&str> {
    let end = text.floor_char_boundary(TEXT_BYTES_MAX.min(text.len()));
    let lines = text[..end].split(['|', '\n']).filter(|line| reports_refusal(line));
    let is_separator = |c: char| c.is_whitespace() || "'\"`(),;:<>[]".contains(c);
    let mut words = lines.flat_map(|line| line.split(is_separator));
    words.find(|word| word.len() > 1 && word.starts_with('/') && !word.starts_with("//"))
}

#[cfg(test)]
mod tests {
    use crate::definition::{ConfinementProfile, ServerLimits};

    use super::*;

    #[test]
    fn a_refused_path_is_found_in_what_programs_say() {
        for (text, expected) in [
            ("Error: EACCES: permission denied, open '/home/ada/x.json'", Some("/home/ada/x.json")),
            (
                "at main (/srv/a.js:1:2) | PermissionError: [Errno 13] Permission denied: '/srv/b'",
                Some("/srv/b"),
            ),
            ("cat: /home/ada/.ssh/id: Permission denied", Some("/home/ada/.ssh/id")),
            ("Permission denied", None),
            ("no such file: '/srv/b'", None),
        ] {
            assert_eq!(refused_path(text), expected, "{text}");
        }
        assert!(!reports_refusal("the tool was denied by policy"));
    }

    #[test]
    fn the_advice_has_a_line_to_paste_that_keeps_the_present_grants() {
        let command =
            |confinement| ServerCommand { confinement: Some(confinement), ..ServerCommand::default() };
        let advice = |confinement: Confinement, text: &str| {
            let endpoint = Endpoint::Stdio(command(confinement));
            let definition = ServerDefinition::new(endpoint, ServerLimits::default(), "config.toml:3".into());
            let notice = RefusalNotice::new(
                &ServerName::new("s").expect("a name"),
                &definition,
                &SandboxPlaces::default(),
            );
            notice.expect("a sandbox").advice(text)
        };
        let directory = tempfile::tempdir().expect("a directory");
        let data = directory.path().canonicalize().expect("a path").join("data");
        std::fs::create_dir(&data).expect("a folder");
        std::os::unix::fs::symlink("/usr", data.join("link")).expect("a link");
        std::fs::create_dir(data.join("own")).expect("a folder");
        let data = data.display().to_string();
        let refused = &*format!("EACCES: permission denied, rename '{data}/x.tmp'");
        let of_its_own = "give the server one of its own".to_owned();
        let general = "as for the sandbox of a browser".to_owned();
        let profile = Confinement::with_profile(ConfinementProfile::Default);
        for (confinement, text, expected) in [
            (
                profile.clone(),
                refused,
                format!(r#"the key is sandbox = {{ profile = "default", write = ["{data}"] }}"#),
            ),
            (
                Confinement {
                    read: vec!["/a b".into()],
                    write: vec!["/c".into()],
                    network: Network::All,
                    profile: None,
                    user_namespaces: true,
                    requires_full: false,
                },
                refused,
                format!(
                    r#"the key is sandbox = {{ read = ["/a b"], write = ["/c", "{data}"], network = true, user_namespaces = true }}"#
                ),
            ),
            (profile.clone(), "EACCES: permission denied, open '/x'", of_its_own.clone()),
            (profile.clone(), "EACCES: permission denied, open '/var/lib/x'", of_its_own.clone()),
            (profile.clone(), "EACCES: permission denied, open '/etc/lockhouse/x'", of_its_own.clone()),
            // A path that the server can lead elsewhere after the grant.
            (profile.clone(), &*format!("EACCES: '{data}/new/x'"), of_its_own.clone()),
            (profile.clone(), &*format!("EACCES: '{data}/../data/x'"), of_its_own.clone()),
            (profile.clone(), &*format!("EACCES: '{data}/link/share/x'"), of_its_own.clone()),
            (
                Confinement { write: vec![data.clone().into()], ..profile.clone() },
                &*format!("EACCES: '{data}/own/x'"),
                of_its_own.clone(),
            ),
            (profile, "no such file", general),
        ] {
            let advice = advice(confinement, text);
            assert!(advice.starts_with("it is confined by `sandbox` in config.toml:3: "), "{advice}");
            assert!(advice.ends_with(&expected), "{advice}");
        }
    }
}
