//! Finds out whether a sandboxed upstream server was refused an access, from what the server says: the kernel does not
//! tell. The texts are the server's, and so prove nothing.

use std::sync::atomic::{AtomicBool, Ordering};

use lockhouse_protocol::ServerName;

use crate::definition::{Endpoint, ServerDefinition};

/// How programs report the errors EACCES and EPERM, in lower case.
const SIGNS: [&str; 5] =
    ["eacces", "permission denied", "permissionerror", "permissiondenied", "operation not permitted"];
/// The maximum number of bytes of a text that are searched.
const TEXT_BYTES_MAX: usize = 16 * 1024;

/// Tells users that a sandboxed server may have been refused an access, and which setting permits it.
#[derive(Debug)]
pub(crate) struct RefusalNotice {
    server: ServerName,
    /// `FILE` or `FILE:LINE` where the server is configured.
    origin: String,
    /// Whether the current process of the server has caused a log message.
    is_logged: AtomicBool,
}

impl RefusalNotice {
    /// Creates the notice for a server; `None` if the server has no sandbox.
    pub(crate) fn new(server: &ServerName, definition: &ServerDefinition) -> Option<Self> {
        match &definition.endpoint {
            Endpoint::Stdio(command) if command.confinement.is_some() => {
                let (server, origin) = (server.clone(), definition.origin.clone());
                Some(Self { server, origin, is_logged: AtomicBool::new(false) })
            }
            Endpoint::Stdio(_) | Endpoint::Http(_) => None,
        }
    }

    /// Begins the observation of a new process of the server.
    pub(crate) fn reset(&self) {
        self.is_logged.store(false, Ordering::Relaxed);
    }

    /// Whether the text says that an access was refused. The first such text of each process is logged.
    pub(crate) fn is_refusal(&self, text: &str) -> bool {
        if !reports_refusal(text) {
            return false;
        }
        if !self.is_logged.swap(true, Ordering::Relaxed) {
            tracing::warn!(server = %self.server, "it reported a refused access; {}", self.advice());
        }
        true
    }

    /// Returns the advice for users, with the place of the setting.
    pub(crate) fn advice(&self) -> String {
        format!(
            "it is confined by `sandbox` in {}: `read` and `write` of that key grant further paths, and `network = true` all sockets",
            self.origin
        )
    }

    /// Returns the advice for submitted code and the model, who cannot change the setting.
    pub(crate) fn model_advice(&self) -> String {
        format!(
            " (server {} is confined: its user can grant it further paths with the key `sandbox` of its configuration)",
            self.server
        )
    }
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
}
