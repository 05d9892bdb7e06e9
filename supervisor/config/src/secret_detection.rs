//! Detects secrets that would be written to the configuration in plain text, and stores them in files that only their
//! owner can read.

use std::io::{ErrorKind, Write};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use lockhouse_base::directories;
use lockhouse_base::text_files::write_target;

/// If the name of a variable, header or option contains one of these words, the value is probably a secret.
const SECRET_WORDS: [&str; 14] = [
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "apikey",
    "credential",
    "credentials",
    "authorization",
    "bearer",
    "cookie",
    "pat",
    "pwd",
    "dsn",
];
/// If a name ends with one of these words, the value is no secret: it says where a secret is or how a secret is used,
/// as in `TOKEN_FILE`.
const NON_SECRET_WORDS: [&str; 12] =
    ["file", "path", "dir", "directory", "url", "uri", "endpoint", "id", "name", "type", "env", "public"];
/// Texts with which secrets begin: tokens of well-known services, values of `Authorization` headers, and private keys
/// in PEM.
const SECRET_PREFIXES: [&str; 21] = [
    "sk-",
    "sk_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "AKIA",
    "AIza",
    "npm_",
    "pypi-",
    "hf_",
    "eyJ",
    "lin_api_",
    "Bearer ",
    "Basic ",
    "-----BEGIN",
];
/// The minimum length of a secret in characters: shorter values are ordinary words and numbers.
const SECRET_CHARS_MIN: usize = 6;

/// Whether the value of a variable, header or option with this name is probably a secret. In doubt, returns true. A
/// value with a placeholder is never a secret.
pub fn looks_secret(name: &str, value: &str) -> bool {
    if value.contains("${") || value.chars().count() < SECRET_CHARS_MIN {
        return false;
    }
    if SECRET_PREFIXES.iter().any(|prefix| value.starts_with(prefix)) || has_password(value) {
        return true;
    }
    let words = name_words(name);
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    // Matches `API_KEY`, `X-Api-Key` and `privateKey`, but not `KEYBOARD`.
    let is_key = words.last().is_some_and(|last| last == "key");
    (has(&SECRET_WORDS) || is_key)
        && !words.last().is_some_and(|last| NON_SECRET_WORDS.contains(&last.as_str()))
}

/// Whether the value is a URL with a password, as in `postgres://user:password@host/`.
fn has_password(value: &str) -> bool {
    url::Url::parse(value).is_ok_and(|url| url.password().is_some_and(|password| !password.is_empty()))
}

/// Splits a name such as `GITHUB_TOKEN`, `X-Api-Key` or `apiKey` into lower-case words.
fn name_words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_small = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && after_small) {
            words.push(String::new());
        }
        if let (true, Some(word)) = (c.is_alphanumeric(), words.last_mut()) {
            word.extend(c.to_lowercase());
        }
        after_small = c.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Replaces the secrets in a command-line argument or URL by placeholders. Returns `None` if the text
/// contains no secret.
///
/// Possible secrets are values in the query of a URL and values after `--option=`, `NAME=` or `Name: `. If
/// none of them is a secret, the whole text is checked; its name is `option`, the command-line option that
/// precedes it. `reference` receives the name and text of each possible secret and returns its placeholder,
/// or `None` if it is no secret. `plain` formats the text between the placeholders.
pub fn replace_secrets(
    option: &str,
    text: &str,
    reference: &mut impl FnMut(&str, &str) -> Option<String>,
    plain: impl Fn(&str) -> String,
) -> Option<String> {
    let (mut written, mut done) = (String::new(), 0);
    for (name, part) in named_parts(text) {
        if let Some(reference) = reference(name, &text[part.clone()]) {
            written += &plain(&text[done..part.start]);
            written += &reference;
            done = part.end;
        }
    }
    if done == 0 {
        return reference(option, text);
    }
    Some(written + &plain(&text[done..]))
}

/// Replaces the secrets in the arguments of a command by placeholders, as [`replace_secrets`] does. The name of an
/// argument is the option that precedes it.
pub fn replace_secrets_in_arguments(
    arguments: &mut [String],
    reference: &mut impl FnMut(&str, &str) -> Option<String>,
) {
    let mut option = String::new();
    for argument in arguments {
        let next = if argument.starts_with('-') { argument.trim_start_matches('-') } else { "" }.to_owned();
        if let Some(text) = replace_secrets(&option, argument, reference, str::to_owned) {
            *argument = text;
        }
        option = next;
    }
}

/// Whether an argument of a command looks like a secret.
pub(super) fn have_secrets(mut arguments: Vec<String>) -> bool {
    let mut found = false;
    replace_secrets_in_arguments(&mut arguments, &mut |name, value| {
        found |= looks_secret(name, value);
        None
    });
    found
}

/// Finds the values in a text that have a name, such as query parameters. Returns each name with the byte range of its
/// value.
fn named_parts(text: &str) -> Vec<(&str, Range<usize>)> {
    if let (Some(query), true) = (text.find('?'), text.contains("://")) {
        return query_values(text, query + 1);
    }
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    let Some(at) = text.find(['=', ':']) else { return Vec::new() };
    let (name, value) = (text[..at].trim_start_matches('-'), &text[at + 1..]);
    // A Windows path or a URL is no header.
    if !is_name(name) || value.starts_with(['/', '\\']) && text[at..].starts_with(':') {
        return Vec::new();
    }
    let start = text.len() - value.trim_start().len();
    if start == text.len() { Vec::new() } else { vec![(name, start..text.len())] }
}

fn query_values(url: &str, start: usize) -> Vec<(&str, Range<usize>)> {
    let end = url[start..].find('#').map_or(url.len(), |length| start + length);
    let (mut values, mut at) = (Vec::new(), start);
    for pair in url[start..end].split('&') {
        if let Some((name, value)) = pair.split_once('=').filter(|(_, value)| !value.is_empty()) {
            let begin = at + name.len() + 1;
            values.push((name, begin..begin + value.len()));
        }
        at += pair.len() + 1;
    }
    values
}

/// The maximum number of files for secrets with the same name of one server.
const FILES_PER_NAME_MAX: usize = 100;

/// Returns the directory in which Lockhouse stores secrets as files. Placeholders in the configuration name these
/// files, so that the configuration holds no secret in plain text. `None` if the user's configuration directory is
/// not known.
pub fn secrets_directory() -> Option<PathBuf> {
    Some(directories::configuration()?.join("secrets"))
}

/// Writes a secret of an upstream server to a new file with mode 0600 in `directory` and returns the file's path.
///
/// # Errors
/// Any I/O error, a directory whose path has characters that a placeholder cannot contain, or [`FILES_PER_NAME_MAX`]
/// existing files for this server and name.
pub fn store_secret(directory: &Path, server: &str, name: &str, value: &str) -> std::io::Result<PathBuf> {
    if directory.to_str().is_none_or(|path| path.contains(['}', '$'])) {
        let words = "a placeholder cannot contain the path of this directory: it has }, $ or characters that are not Unicode";
        return Err(std::io::Error::other(words));
    }
    write_target(directory)?;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = name.chars().map(plain).collect();
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    for number in 1..=FILES_PER_NAME_MAX {
        // Never replaces an older file, since placeholders may still refer to it.
        let suffix = if number == 1 { String::new() } else { format!("-{number}") };
        let path = directory.join(format!("{server}.{name}{suffix}"));
        match options.open(&path) {
            Ok(mut file) => {
                file.write_all(value.as_bytes()).and_then(|()| file.sync_all())?;
                return Ok(path);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn secrets_are_known_by_their_name_or_their_form() {
        for (name, value) in [
            ("GITHUB_TOKEN", "0123456789"),
            ("X-Api-Key", "0123456789"),
            ("apiKey", "0123456789"),
            ("Authorization", "Bearer 0123"),
            ("DB_PASSWORD", "hunter2"),
            ("ANYTHING", "ghp_0123456789"),
            ("DATABASE_URL", "postgres://user:pass@db/x"),
        ] {
            assert!(looks_secret(name, value), "{name}");
        }
        for (name, value) in [
            ("GITHUB_HOST", "github.example.com"),
            ("KEYBOARD", "qwertz-de"),
            ("TOKEN_FILE", "/run/secrets/token"),
            ("GITHUB_TOKEN", "${env:GITHUB_TOKEN}"),
            ("MAX_TOKENS", "100000"),
            ("API_KEY", "none"),
            ("DATABASE_URL", "postgres://db/x"),
            ("Accept", "application/json"),
        ] {
            assert!(!looks_secret(name, value), "{name}");
        }
    }

    #[test]
    fn secrets_in_arguments_and_urls_are_found_where_they_begin() {
        let replace = |option: &str, text: &str| {
            let mut reference =
                |name: &str, value: &str| looks_secret(name, value).then(|| format!("<{name}>"));
            replace_secrets(option, text, &mut reference, str::to_owned)
        };
        for (option, text, expected) in [
            ("api-key", "0123456789", "<api-key>"),
            ("", "sk-0123456789", "<>"),
            ("", "--api-key=0123456789", "--api-key=<api-key>"),
            ("e", "GITHUB_TOKEN=0123456789", "GITHUB_TOKEN=<GITHUB_TOKEN>"),
            ("header", "Authorization: Bearer 0123456789", "Authorization: <Authorization>"),
            ("header", "X-Api-Key:0123456789", "X-Api-Key:<X-Api-Key>"),
            ("db", "postgres://user:pass@db/x", "<db>"),
            ("", "--db=postgres://user:pass@db/x", "--db=<db>"),
            (
                "",
                "https://x.example/mcp?a=b&api_key=0123456789#c",
                "https://x.example/mcp?a=b&api_key=<api_key>#c",
            ),
            (
                "",
                "https://x.example/?token=0123456789&key=0123456789",
                "https://x.example/?token=<token>&key=<key>",
            ),
        ] {
            assert_eq!(replace(option, text).as_deref(), Some(expected), "{option} {text}");
        }
        for (option, text) in [
            ("", "-y"),
            ("", "--log=debug"),
            ("", "https://x.example/mcp?a=b"),
            ("token-file", "/run/secrets/token"),
            ("", "C:\\Users\\token"),
            ("header", "Accept: application/json"),
            ("api-key", "${env:API_KEY}"),
            ("", "@scope/package@1.2.3"),
        ] {
            assert_eq!(replace(option, text), None, "{option} {text}");
        }
    }

    #[test]
    fn a_value_that_is_kept_is_its_owners_alone_and_takes_no_other_ones_place() {
        let directory = tempfile::tempdir().expect("a directory");
        let secrets = directory.path().join("secrets");
        let first = store_secret(&secrets, "git", "X/../Key", "one").expect("a file");
        let second = store_secret(&secrets, "git", "X/../Key", "two").expect("a file");
        let text = |path: &Path| std::fs::read_to_string(path).expect("text");
        assert_eq!((text(&first), text(&second)), ("one".to_owned(), "two".to_owned()));
        assert_eq!(first, secrets.join("git.X____Key"));
        let mode = |path: &Path| std::fs::metadata(path).expect("metadata").permissions().mode() & 0o777;
        assert_eq!((mode(&first), mode(&secrets)), (0o600, 0o700));
        assert_eq!(std::fs::read_dir(&secrets).expect("a directory").count(), 2);
    }
}
