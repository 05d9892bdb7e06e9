//! Reads the files that `envFile` names in entries of Cursor and VS Code. Their lines have the form `NAME=VALUE`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lockhouse_base::path_trust::TrustedOwners;

use super::file_permissions::refuse_untrusted;

/// Maximum size of an `envFile`, in bytes.
/// Bound: configuration and policy.
const BYTES_MAX: u64 = 256 * 1024;

/// Why the file that an `envFile` key names cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{path} cannot be used: {fault}")]
pub struct EnvFileError {
    path: PathBuf,
    fault: Fault,
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
enum Fault {
    /// The file cannot be read. The text is the operating system's error.
    #[error("{0}")]
    Unreadable(String),
    #[error("it is not a regular file of at most 256 KiB")]
    NotRegular,
    /// Another account can change the file. The text says which, and what to do.
    #[error("{0}")]
    Untrusted(String),
    /// A line does not have the form `NAME=VALUE`. `line` is the line number, counted from 1.
    #[error("line {line} is not NAME=VALUE")]
    Line { line: usize },
}

/// Reads the variables of a file, which only `owners` may be able to change: variables can say which code a server runs.
pub(super) fn read(path: &Path, owners: &TrustedOwners) -> Result<BTreeMap<String, String>, EnvFileError> {
    variables(path, owners).map_err(|fault| EnvFileError { path: path.to_owned(), fault })
}

fn variables(path: &Path, owners: &TrustedOwners) -> Result<BTreeMap<String, String>, Fault> {
    refuse_untrusted(path, owners).map_err(|error| Fault::Untrusted(error.to_string()))?;
    let unreadable = |error: std::io::Error| Fault::Unreadable(error.to_string());
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() || metadata.len() > BYTES_MAX {
        return Err(Fault::NotRegular);
    }
    parse(&std::fs::read_to_string(path).map_err(unreadable)?)
}

/// Parses the text of a file that `envFile` names. Comments, `export` and quotes are supported. Placeholders in values
/// are not expanded.
fn parse(text: &str) -> Result<BTreeMap<String, String>, Fault> {
    let mut variables = BTreeMap::new();
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let (line, fault) = (line.trim(), Fault::Line { line: index + 1 });
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let Some((name, value)) = line.split_once('=') else { return Err(fault) };
        let name = name.trim_end();
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(fault);
        }
        variables.insert(name.to_owned(), unquoted(value.trim_start()).ok_or(fault)?);
    }
    Ok(variables)
}

fn unquoted(value: &str) -> Option<String> {
    for quote in ['"', '\''] {
        if let Some(inner) = value.strip_prefix(quote) {
            let (inner, _) = inner.split_once(quote)?;
            return Some(if quote == '"' { inner.replace("\\n", "\n") } else { inner.to_owned() });
        }
    }
    // A ` #` begins a comment; a # without a space before it is part of the value.
    Some(value.split_once(" #").map_or(value, |(value, _)| value).trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_variables_comments_or_faults() {
        let text = "# c\n\nA=1\nexport B = 'x # y' # c\nC=\"a\\nb\"\nD=p#q # c\nE=\n";
        let variables = parse(text).expect("variables");
        let variables: Vec<(&str, &str)> =
            variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(variables, [("A", "1"), ("B", "x # y"), ("C", "a\nb"), ("D", "p#q"), ("E", "")]);
        assert_eq!(parse("A=1\nSEKRET\n"), Err(Fault::Line { line: 2 }));
        assert_eq!(parse("A='x"), Err(Fault::Line { line: 1 }));
    }
}
