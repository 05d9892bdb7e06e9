//! Resolves placeholders in configuration values, such as `${env:NAME}`: environment variables, files, systemd
//! credentials and keyring entries.
//!
//! Resolved values may be secrets. They never appear in errors or debug output.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockhouse_base::directories::expand_home;
use lockhouse_base::path_trust::{Strictness, TrustedOwners, check_path};
use nix::unistd::{Uid, User};
use parking_lot::Mutex;

use super::search_paths::find_program;

/// The maximum size in bytes of a value that is read from a file, a credential or a keyring.
/// Bound: configuration and policy.
const VALUE_BYTES_MAX: u64 = 64 * 1024;
/// The time limit for reading a keyring entry. A locked keyring asks its user for the password, and the user may be
/// absent.
const KEYRING_TIMEOUT: Duration = Duration::from_secs(10);
const KEYRING_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A text of the configuration that may contain placeholders.
#[derive(Clone, Default, PartialEq)]
pub struct Template(Vec<TemplatePart>);

#[derive(Clone, PartialEq)]
pub(crate) enum TemplatePart {
    Text(String),
    Placeholder(Placeholder),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Placeholder {
    Environment {
        name: String,
        default: Option<String>,
    },
    /// A placeholder for the content of a file, without trailing line breaks.
    File(PathBuf),
    /// A placeholder for a systemd credential, which is a file in `$CREDENTIALS_DIRECTORY`. The text is the
    /// credential's name.
    Credential(String),
    Keyring {
        service: String,
        user: String,
    },
    /// A placeholder `${input:ID}` of VS Code. VS Code asks its user for the value; Lockhouse reads it from an
    /// environment variable.
    Input {
        variable: String,
        description: Option<String>,
    },
    /// A placeholder that only the AI client can resolve, in the client's syntax.
    ClientOnly(String),
}

/// Why a placeholder has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceholderError {
    #[error("the environment variable {0} is not set")]
    Environment(String),
    #[error("it asks for an input{}: set the environment variable {variable}", in_parentheses(.description))]
    Input { variable: String, description: Option<String> },
    #[error("{what} cannot be used: {reason}")]
    File { what: String, reason: String },
    #[error("there is no credential {0}: $CREDENTIALS_DIRECTORY, where systemd puts credentials, is not set")]
    NoCredentials(String),
    #[error("the keyring entry {entry} cannot be read: {reason}")]
    Keyring { entry: String, reason: &'static str },
    #[error("the variable {0} can only be resolved by that AI client")]
    ClientOnly(String),
}

/// Finds the paths of all `${file:PATH}` placeholders in a text.
pub(crate) fn placeholder_files(text: &str) -> impl Iterator<Item = &str> {
    let after = text.split("${file:").skip(1);
    after.filter_map(|after| after.split_once('}')).map(|(path, _)| path)
}

fn in_parentheses(description: &Option<String>) -> String {
    description.as_ref().map_or_else(String::new, |description| format!(" ({description})"))
}

/// What placeholders and `~` are resolved from: environment variables, home directory and working directory.
#[derive(Clone, Default)]
pub struct Environment {
    pub variables: BTreeMap<String, String>,
    pub home: Option<PathBuf>,
    /// The working directory of Lockhouse. If an AI client started Lockhouse, it is the directory of the client's
    /// project.
    pub directory: PathBuf,
    /// The accounts that may own files with variables and files with servers.
    pub owners: TrustedOwners,
    /// The user id of the person whose engine of the system this process is, in another account than that person's.
    pub person: Option<u32>,
    /// What was looked up so far. Clones share it.
    pub(super) used: Arc<Mutex<UsedEnvironment>>,
}

/// The parts of an environment on which a configuration depends.
#[derive(Clone, Debug, Default)]
pub(crate) struct UsedEnvironment {
    /// The names of the variables that were looked up and are set.
    pub variables: BTreeSet<String>,
    /// Whether the working directory was looked up.
    pub directory: bool,
    /// The files whose contents are values, such as those of `${file:…}`.
    pub files: BTreeSet<PathBuf>,
}

impl Environment {
    /// Returns the environment of this process. Variables that are not UTF-8 count as unset.
    pub fn from_process() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let variables: BTreeMap<_, _> = std::env::vars_os().filter_map(text).collect();
        let home = variables.get("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let directory = std::env::current_dir().unwrap_or_default();
        Self {
            variables,
            home,
            directory,
            owners: TrustedOwners::root_and_own(),
            person: None,
            used: Arc::default(),
        }
    }

    /// Returns the value of a variable, and remembers that it was used.
    pub fn variable(&self, name: &str) -> Option<&String> {
        let value = self.variables.get(name)?;
        self.used.lock().variables.insert(name.to_owned());
        Some(value)
    }

    /// Returns the working directory of Lockhouse, and remembers that the configuration depends on it.
    pub(crate) fn use_directory(&self) -> &Path {
        self.used.lock().directory = true;
        &self.directory
    }

    /// Remembers that a file has values of the configuration.
    pub(crate) fn use_file(&self, path: &Path) {
        self.used.lock().files.insert(path.to_owned());
    }

    /// Returns what was looked up so far.
    pub(crate) fn used(&self) -> UsedEnvironment {
        self.used.lock().clone()
    }

    /// Returns the environment of files that programs use: in the engine of the system, they are those of its person.
    pub(crate) fn for_files(&self) -> Self {
        match self.person {
            None => self.clone(),
            Some(person) => Self { home: account_home(Uid::from_raw(person)), ..self.clone() },
        }
    }

    /// Replaces a path's leading `~/`, or a path `~`, by the home directory.
    pub fn expand_home(&self, path: &str) -> PathBuf {
        expand_home(Path::new(path), self.home.as_deref())
    }
}

/// Returns the home directory of an account, as the list of accounts has it.
pub(crate) fn account_home(account: Uid) -> Option<PathBuf> {
    User::from_uid(account).ok().flatten().map(|user| user.dir)
}

impl Template {
    pub fn literal(text: impl Into<String>) -> Self {
        Self(vec![TemplatePart::Text(text.into())])
    }

    pub fn placeholder(placeholder: Placeholder) -> Self {
        Self(vec![TemplatePart::Placeholder(placeholder)])
    }

    pub(crate) fn push(&mut self, part: TemplatePart) {
        match (self.0.last_mut(), part) {
            (Some(TemplatePart::Text(text)), TemplatePart::Text(more)) => text.push_str(&more),
            (_, TemplatePart::Text(text)) if text.is_empty() => {}
            (_, part) => self.0.push(part),
        }
    }

    /// Returns the text if it contains no placeholder; `None` if it contains one.
    pub(crate) fn as_literal(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [TemplatePart::Text(text)] => Some(text),
            _ => None,
        }
    }

    pub fn resolve(&self, environment: &Environment) -> Result<String, PlaceholderError> {
        let value = |part: &TemplatePart| match part {
            TemplatePart::Text(text) => Ok(text.clone()),
            TemplatePart::Placeholder(placeholder) => placeholder.resolve(environment),
        };
        self.0.iter().map(value).collect()
    }

    /// Returns the values of all placeholders that can be resolved. Lockhouse redacts these values in the output of the
    /// server, which may print its arguments.
    pub(crate) fn placeholder_values(&self, environment: &Environment) -> Vec<String> {
        let value = |part: &TemplatePart| match part {
            TemplatePart::Text(_) => None,
            TemplatePart::Placeholder(placeholder) => placeholder.resolve(environment).ok(),
        };
        self.0.iter().filter_map(value).collect()
    }

    /// Whether a placeholder stands for a value from a place for secrets: a file, a credential or a keyring.
    pub(crate) fn has_secret_placeholder(&self) -> bool {
        let is_secret = |part: &TemplatePart| {
            let TemplatePart::Placeholder(placeholder) = part else { return false };
            matches!(
                placeholder,
                Placeholder::File(_) | Placeholder::Credential(_) | Placeholder::Keyring { .. }
            )
        };
        self.0.iter().any(is_secret)
    }

    /// Whether the text is one placeholder for a value that lies encrypted: a credential or an entry of a keyring.
    pub(crate) fn is_sealed_secret(&self) -> bool {
        matches!(
            self.0.as_slice(),
            [TemplatePart::Placeholder(Placeholder::Credential(_) | Placeholder::Keyring { .. })]
        )
    }

    /// Formats the text with its placeholders in Lockhouse's own syntax.
    pub(crate) fn to_own_syntax(&self) -> String {
        let mut written = String::new();
        for part in &self.0 {
            match part {
                TemplatePart::Text(text) => {
                    let mut pieces = text.split('{');
                    written.push_str(pieces.next().unwrap_or_default());
                    for after in pieces {
                        double_dollars(&mut written);
                        written.push('{');
                        written.push_str(after);
                    }
                }
                TemplatePart::Placeholder(placeholder) => {
                    double_dollars(&mut written);
                    written.push_str(&placeholder.to_own_syntax());
                }
            }
        }
        written
    }
}

/// Doubles the `$` characters at the end of the text. This escapes them, as is necessary before a brace or a
/// placeholder.
fn double_dollars(written: &mut String) {
    let dollars = written.len() - written.trim_end_matches('$').len();
    written.push_str(&"$".repeat(dollars));
}

/// The debug output hides the text, which may be a secret.
impl std::fmt::Debug for Template {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Template(..)")
    }
}

impl Placeholder {
    fn resolve(&self, environment: &Environment) -> Result<String, PlaceholderError> {
        let variable = |name: &String| environment.variable(name).cloned();
        match self {
            Self::Environment { name, default } => variable(name)
                .or_else(|| default.clone())
                .ok_or_else(|| PlaceholderError::Environment(name.clone())),
            Self::Input { variable: name, description } => variable(name).ok_or_else(|| {
                PlaceholderError::Input { variable: name.clone(), description: description.clone() }
            }),
            Self::File(path) => {
                environment.use_file(path);
                // The value can be a part of a server's command.
                check_path(path, &environment.owners, Strictness::Usual).map_err(|untrusted| {
                    let reason = format!("{untrusted}, who could change what code may do");
                    PlaceholderError::File { what: format!("the file {}", path.display()), reason }
                })?;
                read_value(path, || format!("the file {}", path.display()))
            }
            Self::Credential(name) => {
                let directory = variable(&"CREDENTIALS_DIRECTORY".to_owned());
                let directory = directory.ok_or_else(|| PlaceholderError::NoCredentials(name.clone()))?;
                read_value(&Path::new(&directory).join(name), || format!("the credential {name}"))
            }
            Self::Keyring { service, user } => read_keyring(service, user),
            Self::ClientOnly(variable) => Err(PlaceholderError::ClientOnly(variable.clone())),
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
            Self::ClientOnly(variable) => variable.replace("${", "$${"),
        }
    }
}

/// Reads the value of a placeholder from a file. `what` describes the file in errors.
fn read_value(path: &Path, what: impl Fn() -> String) -> Result<String, PlaceholderError> {
    let error = |reason: String| PlaceholderError::File { what: what(), reason };
    let metadata = std::fs::metadata(path).map_err(|source| error(source.to_string()))?;
    if !metadata.is_file() {
        return Err(error("it is not a regular file".into()));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(VALUE_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(|source| error(source.to_string()))?;
    decode_value(bytes).map_err(|reason| error(reason.into()))
}

/// Decodes the value of a placeholder as UTF-8, without the trailing line breaks that editors add. Returns an error if
/// the value is not UTF-8 or exceeds [`VALUE_BYTES_MAX`].
fn decode_value(bytes: Vec<u8>) -> Result<String, &'static str> {
    if bytes.len() as u64 > VALUE_BYTES_MAX {
        return Err("it has more than 65536 bytes");
    }
    let mut text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8")?;
    text.truncate(text.trim_end_matches(['\r', '\n']).len());
    Ok(text)
}

/// Reads a keyring entry with `secret-tool`, the program of the desktop's keyring.
fn read_keyring(service: &str, user: &str) -> Result<String, PlaceholderError> {
    let error = |reason| PlaceholderError::Keyring { entry: format!("{service}/{user}"), reason };
    let program = find_program("secret-tool")
        .ok_or_else(|| error("secret-tool is not installed (package libsecret-tools)"))?;
    let mut command = Command::new(program);
    command.args(["lookup", "service", service, "username", user]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|_| error("secret-tool cannot be started"))?;
    let started = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if started.elapsed() < KEYRING_TIMEOUT => std::thread::sleep(KEYRING_POLL_INTERVAL),
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(error("the keyring did not answer in 10 s; is it locked?"));
            }
        }
    };
    let mut bytes = Vec::new();
    let output = child.stdout.take().map(|output| output.take(VALUE_BYTES_MAX + 1).read_to_end(&mut bytes));
    if !status.success() || bytes.is_empty() || !matches!(output, Some(Ok(_))) {
        return Err(error(
            "there is no such entry; store it with `secret-tool store --label=LABEL service SERVICE username USER`",
        ));
    }
    decode_value(bytes).map_err(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_has_the_values_of_what_it_refers_to() {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("token"), "s3cret\n").expect("a file");
        let variables = [("A", "a"), ("CREDENTIALS_DIRECTORY", directory.path().to_str().expect("UTF-8"))];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let environment = Environment { variables, ..Environment::default() };
        let mut template = Template::literal("Bearer ");
        template.push(TemplatePart::Placeholder(Placeholder::Credential("token".into())));
        assert_eq!(template.resolve(&environment), Ok("Bearer s3cret".to_owned()));
        assert_eq!(template.to_own_syntax(), "Bearer ${cred:token}");
        assert_eq!(format!("{template:?}"), "Template(..)");
        let resolve = |placeholder| Template::placeholder(placeholder).resolve(&environment);
        let variable = |name: &str, default: Option<&str>| Placeholder::Environment {
            name: name.into(),
            default: default.map(str::to_owned),
        };
        assert_eq!(resolve(variable("A", None)), Ok("a".to_owned()));
        assert_eq!(resolve(variable("B", Some("b"))), Ok("b".to_owned()));
        let message = resolve(variable("B", None)).expect_err("not set").to_string();
        assert_eq!(message, "the environment variable B is not set");
        assert_eq!(resolve(Placeholder::File(directory.path().join("token"))), Ok("s3cret".to_owned()));
        let message =
            resolve(Placeholder::File(directory.path().join("none"))).expect_err("no file").to_string();
        assert!(message.contains("/none cannot be used"), "{message}");
        assert!(resolve(Placeholder::File(directory.path().to_owned())).is_err());
    }
}
