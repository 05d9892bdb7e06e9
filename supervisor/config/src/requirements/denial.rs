//! Decides whether an entry of `[[denied]]` describes a server. The match is loose, so that a denied server cannot be used
//! in another form: a key that names several things denies each of them wherever it is, and what is not known is denied.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use lockhouse_base::percent::percent_decoded;
use lockhouse_upstream::{Endpoint, Proxy, ServerCommand, ServerDefinition, program_digest};
use url::Url;

use super::address::{is_same_host, may_reach};
use super::identity::{Identity, ServerMatcher};

/// Endings of the files of packages, whose names have a version.
const PACKAGE_FILES: [&str; 6] = [".tar.bz2", ".tar.gz", ".tar.xz", ".tgz", ".whl", ".zip"];
/// Beginnings of a denied name that the same package in a command need not have.
const REGISTRIES: [&str; 5] = ["docker.io/", "github:", "jsr:", "npm:", "pypi:"];
/// The maximum number of options in one word before a value that is compared.
const ATTACHED_MAX: usize = 16;
/// The beginning of variables that are settings of npm.
const NPM: &str = "npm_config_";

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
                    || proxies(&endpoint.proxy).iter().any(|proxy| is_same_host(proxy, url))
            }
            _ => false,
        }
    }
}

/// Returns the proxies through which a server may be reached: a denied host could answer as one.
fn proxies(proxy: &Proxy) -> Vec<Url> {
    match proxy {
        Proxy::None => Vec::new(),
        Proxy::Address(address) => vec![address.clone()],
        Proxy::Environment => {
            let is_proxy = |name: &str| name.to_ascii_lowercase().ends_with("_proxy");
            let set = std::env::vars().filter(|(name, _)| is_proxy(name));
            set.filter_map(|(_, value)| {
                Url::parse(&value).or_else(|_| Url::parse(&format!("http://{value}"))).ok()
            })
            .collect()
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
/// counts in every version, from every registry, under another name (`x@npm:NAME`), and in an address; `--name=value`
/// counts as both `--name` and `value`.
fn has_argument(command: &ServerCommand, denied: &str) -> bool {
    let denied_parts = if denied.starts_with('-') { Vec::new() } else { packages(&without_registry(denied)) };
    let is_denied = |text: &str| text == denied || contains_package(&packages(text), &denied_parts);
    let is_it = |word: &str| {
        let parts = word.split_once('=').filter(|_| word.starts_with('-'));
        // Options of one letter may be in one word, with the value of the last one, such as `-qwNAME` of uvx.
        let options = word.strip_prefix('-').filter(|options| !options.starts_with('-')).unwrap_or_default();
        let mut attached =
            options.char_indices().skip(1).take(ATTACHED_MAX).map(|(start, _)| &options[start..]);
        is_denied(word)
            || parts.is_some_and(|(name, value)| is_denied(name) || is_denied(value))
            || attached.any(is_denied)
    };
    // Variables are arguments too: `npm_config_package`.
    let mut texts = command.arguments.iter().chain(command.environment.values());
    texts.any(|text| {
        let joined = without_quotes(text);
        is_it(text) || shell_words(text).chain(shell_words(&joined)).any(is_it)
    })
}

/// Whether a server sets this variable: in its `env`, or in an argument such as `NAME=value` of `env` or `-eNAME=value`.
/// npm ignores the case of its variables.
fn sets_variable(command: &ServerCommand, name: &str) -> bool {
    let is_name = |found: &str| found == name || is_of_npm(name) && found.eq_ignore_ascii_case(name);
    let sets = |word: &str| {
        let names = word.match_indices('=').map(|(end, _)| word[..end].trim_end_matches('+'));
        names.into_iter().any(|before| {
            let start = before.len().checked_sub(name.len()).filter(|start| before.is_char_boundary(*start));
            start.is_some_and(|start| is_name(&before[start..]) && may_precede_name(&before[..start]))
        })
    };
    command.environment.keys().any(|found| is_name(found))
        || command.arguments.iter().any(|argument| {
            let joined = without_quotes(argument);
            shell_words(argument).chain(shell_words(&joined)).any(sets)
        })
}

/// Whether this text before a variable's name in a word is an option, such as `--env=` and `-e`, or nothing.
fn may_precede_name(option: &str) -> bool {
    let has_one_dash = option.starts_with('-') && !option.starts_with("--");
    option.is_empty() || option.ends_with('=') || has_one_dash
}

fn is_of_npm(name: &str) -> bool {
    name.get(..NPM.len()).is_some_and(|start| start.eq_ignore_ascii_case(NPM))
}

/// Returns the words of a command line, without the quotes and operators of a shell.
fn shell_words(text: &str) -> impl Iterator<Item = &str> {
    let separates = |letter: char| letter.is_whitespace() || "'\"`;&|()<>{},".contains(letter);
    text.split(separates).filter(|word| !word.is_empty())
}

/// Returns a command line without the quotes in its words, such as that of `LD_PRE""LOAD`.
fn without_quotes(text: &str) -> String {
    text.replace(['"', '\'', '\\'], "")
}

/// Whether the denied parts follow each other in those of an argument. A name after a scope is another package than the
/// name alone.
fn contains_package(parts: &[String], denied: &[String]) -> bool {
    let is_after_scope = |at: usize| at > 0 && parts[at - 1].starts_with('@');
    let mut found = parts.windows(denied.len().max(1)).enumerate();
    found.any(|(at, found)| found == denied && !is_after_scope(at))
}

/// Returns a denied name without its registry and, for an image, its tag.
fn without_registry(denied: &str) -> String {
    let lower = denied.to_ascii_lowercase();
    let name = REGISTRIES.iter().find_map(|registry| lower.strip_prefix(registry)).unwrap_or(&lower);
    match name.rsplit_once(':') {
        Some((image, tag)) if image.contains('/') && !tag.contains('/') => image.to_owned(),
        _ => name.to_owned(),
    }
}

/// Returns the names of packages that a text may mean, in its order: the parts of a name with a registry, a scope or an
/// owner, and those of an address. A path is no package, unless it is that of a package's file.
fn packages(text: &str) -> Vec<String> {
    let decoded = percent_decoded(text);
    if decoded.starts_with(['/', '.', '~']) {
        let file = decoded.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
        let is_package = PACKAGE_FILES.iter().any(|ending| file.ends_with(ending));
        return is_package.then(|| package(&file)).into_iter().chain([package(&decoded)]).collect();
    }
    decoded
        .split(['/', '\\', ':', '#', '?', '=', '&'])
        .map(package)
        .filter(|package| !package.is_empty())
        .collect()
}

/// Returns the name of a package without what differs between spellings: the version, extras, the case, and runs of `-`,
/// `_` and `.`.
fn package(text: &str) -> String {
    // The first `@` of an npm package is that of its scope.
    let (scope, name) = if let Some(scoped) = text.strip_prefix('@') { ("@", scoped) } else { ("", text) };
    let name = name.split(['@', '=', '<', '>', '~', '!', '[', ';']).next().unwrap_or_default();
    let name = name.to_ascii_lowercase();
    let name = without_version(name.strip_suffix(".git").unwrap_or(&name));
    let words: Vec<&str> = name.split(['-', '_', '.']).filter(|word| !word.is_empty()).collect();
    if words.is_empty() { String::new() } else { format!("{scope}{}", words.join("-")) }
}

/// Returns the name of a package without what follows it in the name of its file: `x` of `x-1.0-py3-none-any.whl`. A name in
/// that of a wheel has no `-`; in others, the version is last.
fn without_version(file: &str) -> &str {
    let Some(name) = PACKAGE_FILES.iter().find_map(|ending| file.strip_suffix(ending)) else { return file };
    let is_version = |at: &usize| {
        let rest = &name[at + 1..];
        rest.strip_prefix('v').unwrap_or(rest).starts_with(|letter: char| letter.is_ascii_digit())
    };
    let mut versions = name.match_indices('-').map(|(at, _)| at).filter(is_version);
    let version = if file.ends_with(".whl") { versions.next() } else { versions.next_back() };
    version.map_or(name, |at| &name[..at])
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
            (&["evil--mcp"], "evil-mcp", true),
            (&["-y", "good@npm:evil-mcp@1"], "evil-mcp", true),
            (&["run", "npm:/evil-mcp@1"], "evil-mcp", true),
            (&["--with", "safe,evil-mcp"], "evil-mcp", true),
            (&["https://registry.npmjs.org/evil-mcp/-/evil-mcp-1.0.tgz"], "evil-mcp", true),
            (&["https://registry.npmjs.org/@evil/mcp/-/mcp-1.0.tgz"], "@evil/mcp", true),
            (&["git+https://github.com/x/evil-mcp.git#main"], "evil-mcp", true),
            (&["--package=https://registry.npmjs.org/evil%2Dmcp/-/evil%2Dmcp-1.tgz"], "evil-mcp", true),
            (&["https://registry.npmjs.org/@evil%2Fmcp/-/mcp-1.0.tgz"], "@evil/mcp", true),
            (&["-wevil-mcp"], "evil-mcp", true),
            (&["-qwevil-mcp", "safe"], "evil-mcp", true),
            (&["x@NPM:evil-mcp@1"], "evil-mcp", true),
            (&["https:registry.npmjs.org/evil-mcp/-/evil-mcp-1.0.tgz"], "evil-mcp", true),
            (&[r"https:\\registry.npmjs.org\evil-mcp\-\evil-mcp-1.0.tgz"], "evil-mcp", true),
            (&["-A", "npm:evil-mcp/server"], "evil-mcp", true),
            (&["jsr:@evil/mcp/mod.ts"], "@evil/mcp", true),
            (&["https://files.pythonhosted.org/a/b/evil_mcp-1.0-py3-none-any.whl"], "evil-mcp", true),
            (&["github:x/evil-mcp"], "evil-mcp", true),
            (&["x/evil-mcp"], "evil-mcp", true),
            (&["git@github.com:x/evil-mcp.git"], "evil-mcp", true),
            (&["run", "mcp/evil:latest"], "mcp/evil", true),
            (&["run", "docker.io/mcp/evil@sha256:0"], "mcp/evil", true),
            (&["-c", "npx evil\"-\"mcp"], "evil-mcp", true),
            (&["npm_config_package=evil-mcp", "npm", "exec"], "evil-mcp", true),
            (&["-c", "P=evil-mcp; npx $P"], "evil-mcp", true),
            (&["git+https://github.com/x/y#egg=evil-mcp"], "evil-mcp", true),
            (&["/opt/w/evil_mcp-1.0-py3-none-any.whl"], "evil-mcp", true),
            (&["./evil-mcp-v1.0.tgz"], "evil-mcp", true),
            (&["https://x.org/evil-mcp.tgz"], "evil-mcp", true),
            (&["https://x.org/web-3-mcp-1.0.tgz"], "web-3-mcp", true),
            (&["run", "mcp/evil"], "mcp/evil:latest", true),
            (&["run", "mcp/evil:2.0"], "docker.io/mcp/evil:1.0", true),
            (&["evil-mcp"], "npm:evil-mcp", true),
            (&["@trusted/evil-mcp"], "evil-mcp", false),
            (&["run", "other/evil"], "mcp/evil", false),
            (&["/srv/write/x"], "write", false),
            (&["x/y"], "-y", false),
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
            (&["run", "--env=LD_PRELOAD=/x.so"], true),
            (&["run", "-eLD_PRELOAD=/x.so"], true),
            (&["-c", "LD_PRELOAD+=/x.so node"], true),
            (&["-c", "export \"LD_PRELOAD\"=/x.so"], true),
            (&["-S", "LD_PRE\"\"LOAD=/x.so node"], true),
            (&["-p", "Environment=LD_PRELOAD=/x.so"], true),
            (&["LD_PRELOAD", "XLD_PRELOAD=/x.so"], false),
            (&["--XLD_PRELOAD=/x.so", "--env=XLD_PRELOAD=/x.so"], false),
        ] {
            assert_eq!(sets_variable(&command(arguments), "LD_PRELOAD"), expected, "{arguments:?}");
        }
    }

    #[test]
    fn a_denied_package_is_denied_in_a_variable() {
        let environment = [("npm_config_package".to_owned(), "evil-mcp@1".to_owned())].into();
        let command = ServerCommand { environment, ..command(&["exec", "-y"]) };
        assert!(has_argument(&command, "evil-mcp"));
        assert!(!has_argument(&command, "other-mcp"));
    }

    #[test]
    fn the_case_of_variables_matters_except_for_npm() {
        let command = |name: &str| {
            let environment = [(name.to_owned(), "x".to_owned())].into();
            ServerCommand { environment, ..ServerCommand::default() }
        };
        assert!(sets_variable(&command("npm_config_registry"), "NPM_CONFIG_REGISTRY"));
        assert!(sets_variable(&command("A"), "A"));
        assert!(!sets_variable(&command("a"), "A"));
    }

    #[test]
    fn a_denied_host_is_no_proxy() {
        let url = |text: &str| Url::parse(text).expect("a URL");
        let denied = url("http://127.0.0.1:18931/");
        let through = |proxy: &str| {
            proxies(&Proxy::Address(url(proxy))).iter().any(|proxy| is_same_host(proxy, &denied))
        };
        assert!(through("http://localhost:18931"));
        assert!(!through("http://localhost:18932"));
        assert!(proxies(&Proxy::None).is_empty());
    }
}
