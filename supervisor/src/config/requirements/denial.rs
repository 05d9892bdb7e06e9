//! Decides whether an entry of `[[denied]]` describes a server. The match is loose, so that a denied server cannot be used
//! in another form: a key that names several things denies each of them wherever it is, and what is not known is denied.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use lockhouse_upstream::{Endpoint, ServerCommand, ServerDefinition, program_digest};

use super::address::may_reach;
use super::identity::{Identity, ServerMatcher};

/// Prefixes of package names, each of which names a registry.
const REGISTRIES: [&str; 3] = ["jsr", "npm", "pypi"];

impl ServerMatcher {
    /// Whether a server is a denied one: all keys of this pattern match it.
    pub(super) fn denies(&self, definition: &ServerDefinition, identity: &Identity) -> bool {
        match (self, &definition.endpoint) {
            (Self::Program { path, arguments, variables, directory, sha256 }, Endpoint::Stdio(command)) => {
                let sets = |name: &String| sets_variable(command, name);
                path.as_ref().is_none_or(|path| may_be_program(path, identity))
                    && arguments.iter().all(|argument| has_argument(command, argument))
                    && variables.as_ref().is_none_or(|names| names.iter().any(sets))
                    && directory.as_ref().is_none_or(|directory| runs_in(directory, command))
                    && sha256.as_ref().is_none_or(|sha256| may_have_digest(sha256, identity))
            }
            (Self::Address { url, and_below, .. }, Endpoint::Http(endpoint)) => {
                may_reach(&endpoint.url, url, *and_below)
            }
            _ => false,
        }
    }
}

/// Whether a server's program is the file `denied`, also through links. A program that does not exist may be it: it may
/// appear before the server starts.
fn may_be_program(denied: &Path, identity: &Identity) -> bool {
    let file = |path: &Path| std::fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
    match identity {
        Identity::Program(path) => {
            path == denied || file(path).is_none_or(|found| file(denied) == Some(found))
        }
        Identity::Address(_) | Identity::Unknown => true,
    }
}

/// Whether a server has this argument, in any place, also as a word of a command line such as that of `sh -c`. A package
/// counts in every version and from every registry; `--name=value` counts as both `--name` and `value`.
fn has_argument(command: &ServerCommand, denied: &str) -> bool {
    let denied_package = package(denied);
    let is_denied =
        |part: &str| part == denied || !denied_package.is_empty() && package(part) == denied_package;
    let is_it = |word: &str| {
        let parts = word.split_once('=').filter(|_| word.starts_with('-'));
        is_denied(word) || parts.is_some_and(|(name, value)| is_denied(name) || is_denied(value))
    };
    command.arguments.iter().any(|argument| is_it(argument) || shell_words(argument).any(is_it))
}

/// Whether a server sets this variable: in its `env`, or in an argument such as `NAME=value` of `env` or `sh -c`.
fn sets_variable(command: &ServerCommand, name: &str) -> bool {
    let sets = |word: &str| word.strip_prefix(name).is_some_and(|rest| rest.starts_with('='));
    command.environment.contains_key(name)
        || command.arguments.iter().any(|argument| shell_words(argument).any(sets))
}

/// Returns the words of a command line, without the quotes and operators of a shell.
fn shell_words(text: &str) -> impl Iterator<Item = &str> {
    let separates = |letter: char| letter.is_whitespace() || "'\"`;&|()<>{}".contains(letter);
    text.split(separates).filter(|word| !word.is_empty())
}

/// Returns the name of a package without what differs between spellings: the registry (`npm:`), the version, extras, the
/// case, and `-`, `_` and `.`.
fn package(text: &str) -> String {
    let text = text
        .split_once(':')
        .filter(|(registry, _)| REGISTRIES.contains(registry))
        .map_or(text, |(_, name)| name);
    // The first `@` of an npm package is that of its scope.
    let (scope, name) = if let Some(scoped) = text.strip_prefix('@') { ("@", scoped) } else { ("", text) };
    let name = name.split(['@', '=', '<', '>', '~', '!', '[', ';']).next().unwrap_or_default();
    format!("{scope}{}", name.to_ascii_lowercase().replace(['_', '.'], "-"))
}

/// Whether a server runs in this directory. Without `cwd`, it runs in the current one.
fn runs_in(denied: &Path, command: &ServerCommand) -> bool {
    let directory = command.directory.clone().unwrap_or_else(|| PathBuf::from("."));
    let target = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    target(&directory) == target(denied)
}

/// Whether a server's program may have this SHA-256. That of a program that cannot be read is not known, so that a user
/// cannot hide a denied program from the check, for example by making it unreadable.
fn may_have_digest(denied: &str, identity: &Identity) -> bool {
    match identity {
        Identity::Program(path) => !program_digest(path).is_ok_and(|found| found != denied),
        Identity::Address(_) | Identity::Unknown => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(arguments: &[&str]) -> ServerCommand {
        let arguments = arguments.iter().map(ToString::to_string).collect();
        ServerCommand { arguments, ..ServerCommand::default() }
    }

    #[test]
    fn a_denied_package_is_denied_in_every_spelling() {
        for (arguments, denied, expected) in [
            (&["-y", "evil-mcp"][..], "evil-mcp", true),
            (&["-y", "evil-mcp@latest"], "evil-mcp", true),
            (&["-y", "@Evil/MCP@1.2"], "@evil/mcp", true),
            (&["run", "-A", "npm:evil-mcp@1"], "evil-mcp", true),
            (&["--package=evil-mcp@1", "x"], "evil-mcp", true),
            (&["Evil_MCP==1.0"], "evil-mcp", true),
            (&["evil.mcp[cli]>=1"], "evil-mcp", true),
            (&["-c", "exec npx -y 'evil-mcp@2'"], "evil-mcp", true),
            (&["-c", "A=b; docker run x"], "run", true),
            (&["--mode=write"], "write", true),
            (&["-y", "evil-mcp-2"], "evil-mcp", false),
            (&["-y", "@other/mcp"], "@evil/mcp", false),
            (&["-y", "mcp"], "@evil/mcp", false),
            (&["--", "@"], "==", false),
            (&[], "evil-mcp", false),
        ] {
            assert_eq!(has_argument(&command(arguments), denied), expected, "{arguments:?} as {denied}");
        }
    }

    #[test]
    fn a_variable_that_an_argument_sets_is_denied() {
        for (arguments, expected) in [
            (&["LD_PRELOAD=/x.so", "node"][..], true),
            (&["-c", "LD_PRELOAD='/x.so' node"], true),
            (&["-S", "A=b LD_PRELOAD=/x.so node"], true),
            (&["LD_PRELOAD", "XLD_PRELOAD=/x.so"], false),
        ] {
            assert_eq!(sets_variable(&command(arguments), "LD_PRELOAD"), expected, "{arguments:?}");
        }
    }
}
