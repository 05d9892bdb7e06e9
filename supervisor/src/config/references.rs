//! Values that are not written down but referred to: variables of the environment, files, credentials, keyrings.
//!
//! What is referred to may be a secret: it is in no error, and in no debug text.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Bytes of one value from a file, a credential or a keyring.
const VALUE_BYTES_MAX: u64 = 64 * 1024;
/// A locked keyring asks its person, who may not be there.
const KEYRING_PATIENCE: Duration = Duration::from_secs(10);
const KEYRING_LOOK_EVERY: Duration = Duration::from_millis(10);

/// A text with references in it.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct Template(Vec<Piece>);

#[derive(Clone, PartialEq)]
pub(crate) enum Piece {
    Text(String),
    Reference(Reference),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reference {
    Environment {
        name: String,
        default: Option<String>,
    },
    /// Its content, without the end of its last line.
    File(PathBuf),
    /// Of systemd: a file in `$CREDENTIALS_DIRECTORY`.
    Credential(String),
    Keyring {
        service: String,
        user: String,
    },
    /// What VS Code would ask its person for.
    Input {
        variable: String,
        description: Option<String>,
    },
    /// A variable of an AI client that means nothing outside it, as it is written.
    Foreign(String),
}

/// Why a reference has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unresolved {
    #[error("the environment variable {0} is not set")]
    Environment(String),
    #[error("it asks for an input{}: set the environment variable {variable}", shown(.description))]
    Input { variable: String, description: Option<String> },
    #[error("{what} cannot be used: {reason}")]
    File { what: String, reason: String },
    #[error("there is no credential {0}: $CREDENTIALS_DIRECTORY, where systemd puts credentials, is not set")]
    NoCredentials(String),
    #[error("the keyring entry {entry} cannot be read: {reason}")]
    Keyring { entry: String, reason: &'static str },
    #[error("the variable {0} has a meaning in that AI client only")]
    Foreign(String),
}

/// The files that references in a text name: `${file:/PATH}`.
pub(crate) fn referenced_files(text: &str) -> impl Iterator<Item = &str> {
    let after = text.split("${file:").skip(1);
    after.filter_map(|after| after.split_once('}')).map(|(path, _)| path)
}

fn shown(description: &Option<String>) -> String {
    description.as_ref().map_or_else(String::new, |description| format!(" ({description})"))
}

/// Where references lead.
#[derive(Clone, Default)]
pub(crate) struct Surroundings {
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) home: Option<PathBuf>,
    /// Where Lockhouse was started, which for an AI client is the project.
    pub(crate) directory: PathBuf,
}

impl Surroundings {
    /// Of this process. A variable that is not UTF-8 counts as not set.
    pub(crate) fn of_process() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let environment: BTreeMap<_, _> = std::env::vars_os().filter_map(text).collect();
        let home = environment.get("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        Self { environment, home, directory: std::env::current_dir().unwrap_or_default() }
    }

    /// With the home directory in place of `~` and of a leading `~/`.
    pub(crate) fn expand_home(&self, path: &str) -> PathBuf {
        match (path.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            (None, Some(home)) if path == "~" => home.clone(),
            _ => PathBuf::from(path),
        }
    }
}

impl Template {
    pub(crate) fn literal(text: impl Into<String>) -> Self {
        Self(vec![Piece::Text(text.into())])
    }

    pub(crate) fn reference(reference: Reference) -> Self {
        Self(vec![Piece::Reference(reference)])
    }

    pub(crate) fn push(&mut self, piece: Piece) {
        match (self.0.last_mut(), piece) {
            (Some(Piece::Text(text)), Piece::Text(more)) => text.push_str(&more),
            (_, Piece::Text(text)) if text.is_empty() => {}
            (_, piece) => self.0.push(piece),
        }
    }

    /// The text, if it refers to nothing.
    pub(crate) fn as_literal(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    pub(crate) fn resolve(&self, surroundings: &Surroundings) -> Result<String, Unresolved> {
        let value = |piece: &Piece| match piece {
            Piece::Text(text) => Ok(text.clone()),
            Piece::Reference(reference) => reference.value(surroundings),
        };
        self.0.iter().map(value).collect()
    }

    /// The values of its references, one by one: what a server that prints its arguments would show.
    pub(crate) fn referenced(&self, surroundings: &Surroundings) -> Vec<String> {
        let value = |piece: &Piece| match piece {
            Piece::Text(_) => None,
            Piece::Reference(reference) => reference.value(surroundings).ok(),
        };
        self.0.iter().filter_map(value).collect()
    }

    /// As Lockhouse's own configuration writes it.
    pub(crate) fn to_own_syntax(&self) -> String {
        let mut written = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => {
                    let mut pieces = text.split('{');
                    written.push_str(pieces.next().unwrap_or_default());
                    for after in pieces {
                        double_dollars(&mut written);
                        written.push('{');
                        written.push_str(after);
                    }
                }
                Piece::Reference(reference) => {
                    double_dollars(&mut written);
                    written.push_str(&reference.to_own_syntax());
                }
            }
        }
        written
    }
}

/// Before a brace, and before a reference, every `$` of a text is written twice.
fn double_dollars(written: &mut String) {
    let dollars = written.len() - written.trim_end_matches('$').len();
    written.push_str(&"$".repeat(dollars));
}

/// Without the text, which may be a secret.
impl std::fmt::Debug for Template {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Template(..)")
    }
}

impl Reference {
    fn value(&self, surroundings: &Surroundings) -> Result<String, Unresolved> {
        let variable = |name: &String| surroundings.environment.get(name).cloned();
        match self {
            Self::Environment { name, default } => variable(name)
                .or_else(|| default.clone())
                .ok_or_else(|| Unresolved::Environment(name.clone())),
            Self::Input { variable: name, description } => variable(name).ok_or_else(|| Unresolved::Input {
                variable: name.clone(),
                description: description.clone(),
            }),
            Self::File(path) => content(path, || format!("the file {}", path.display())),
            Self::Credential(name) => {
                let directory = variable(&"CREDENTIALS_DIRECTORY".to_owned());
                let directory = directory.ok_or_else(|| Unresolved::NoCredentials(name.clone()))?;
                content(&Path::new(&directory).join(name), || format!("the credential {name}"))
            }
            Self::Keyring { service, user } => from_keyring(service, user),
            Self::Foreign(variable) => Err(Unresolved::Foreign(variable.clone())),
        }
    }

    fn to_own_syntax(&self) -> String {
        match self {
            Self::Environment { name, default: Some(default) } => format!("${{env:{name}:-{default}}}"),
            Self::Environment { name, default: None } | Self::Input { variable: name, .. } => {
                format!("${{env:{name}}}")
            }
            Self::File(path) => format!("${{file:{}}}", path.display()),
            Self::Credential(name) => format!("${{cred:{name}}}"),
            Self::Keyring { service, user } => format!("${{keyring:{service}/{user}}}"),
            Self::Foreign(variable) => variable.replace("${", "$${"),
        }
    }
}

/// A value from a file.
fn content(path: &Path, what: impl Fn() -> String) -> Result<String, Unresolved> {
    let refused = |reason: String| Unresolved::File { what: what(), reason };
    let metadata = std::fs::metadata(path).map_err(|error| refused(error.to_string()))?;
    if !metadata.is_file() {
        return Err(refused("it is not a regular file".into()));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(VALUE_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(|error| refused(error.to_string()))?;
    value(bytes).map_err(|reason| refused(reason.into()))
}

/// Without the end of its last line, which an editor puts there.
fn value(bytes: Vec<u8>) -> Result<String, &'static str> {
    if bytes.len() as u64 > VALUE_BYTES_MAX {
        return Err("it has more than 65536 bytes");
    }
    let mut text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8")?;
    text.truncate(text.trim_end_matches(['\r', '\n']).len());
    Ok(text)
}

/// Through the desktop's own program: whoever has a keyring has it.
fn from_keyring(service: &str, user: &str) -> Result<String, Unresolved> {
    let refused = |reason| Unresolved::Keyring { entry: format!("{service}/{user}"), reason };
    let mut command = Command::new("secret-tool");
    command.args(["lookup", "service", service, "username", user]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => refused("secret-tool is not installed (package libsecret-tools)"),
        _ => refused("secret-tool cannot be started"),
    })?;
    let begun = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if begun.elapsed() < KEYRING_PATIENCE => std::thread::sleep(KEYRING_LOOK_EVERY),
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(refused("the keyring did not answer in 10 s; is it locked?"));
            }
        }
    };
    let mut bytes = Vec::new();
    let output = child.stdout.take().map(|output| output.take(VALUE_BYTES_MAX + 1).read_to_end(&mut bytes));
    if !status.success() || bytes.is_empty() || !matches!(output, Some(Ok(_))) {
        return Err(refused(
            "there is no such entry; store it with `secret-tool store --label=LABEL service SERVICE username USER`",
        ));
    }
    value(bytes).map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_has_the_values_of_what_it_refers_to() {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("token"), "s3cret\n").expect("a file");
        let environment = [("A", "a"), ("CREDENTIALS_DIRECTORY", directory.path().to_str().expect("UTF-8"))];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let surroundings = Surroundings { environment, ..Surroundings::default() };
        let mut template = Template::literal("Bearer ");
        template.push(Piece::Reference(Reference::Credential("token".into())));
        assert_eq!(template.resolve(&surroundings), Ok("Bearer s3cret".to_owned()));
        assert_eq!(template.to_own_syntax(), "Bearer ${cred:token}");
        assert_eq!(format!("{template:?}"), "Template(..)");
        let of = |reference| Template::reference(reference).resolve(&surroundings);
        let variable = |name: &str, default: Option<&str>| Reference::Environment {
            name: name.into(),
            default: default.map(str::to_owned),
        };
        assert_eq!(of(variable("A", None)), Ok("a".to_owned()));
        assert_eq!(of(variable("B", Some("b"))), Ok("b".to_owned()));
        let told = of(variable("B", None)).expect_err("not set").to_string();
        assert_eq!(told, "the environment variable B is not set");
        assert_eq!(of(Reference::File(directory.path().join("token"))), Ok("s3cret".to_owned()));
        let told = of(Reference::File(directory.path().join("none"))).expect_err("no file").to_string();
        assert!(told.contains("/none cannot be used"), "{told}");
        assert!(of(Reference::File(directory.path().to_owned())).is_err());
    }
}
