//! Files of `NAME=VALUE` lines, which Cursor and VS Code call `envFile`.

use std::collections::BTreeMap;
use std::path::Path;

use super::left_out::LeftOut;

const BYTES_MAX: u64 = 256 * 1024;

pub(super) fn read(path: &Path) -> Result<BTreeMap<String, String>, LeftOut> {
    let refused = |reason: &str| LeftOut::EnvFile(format!("{} cannot be used: {reason}", path.display()));
    let metadata = std::fs::metadata(path).map_err(|error| refused(&error.to_string()))?;
    if !metadata.is_file() || metadata.len() > BYTES_MAX {
        return Err(refused("it is not a regular file of at most 256 KiB"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| refused(&error.to_string()))?;
    parse(&text).map_err(|line| refused(&format!("line {line} is not NAME=VALUE")))
}

/// Comments, `export` and quotation marks are understood; nothing is expanded. Fails with the number of the line that is
/// something else.
fn parse(text: &str) -> Result<BTreeMap<String, String>, usize> {
    let mut variables = BTreeMap::new();
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (name, value) = line.split_once('=').ok_or(index + 1)?;
        let name = name.trim_end();
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(index + 1);
        }
        variables.insert(name.to_owned(), unquoted(value.trim_start()).ok_or(index + 1)?);
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
    // A comment begins at a # with a space before it; a # inside a value is part of it.
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
        assert_eq!(parse("A=1\nSEKRET\n"), Err(2));
        assert_eq!(parse("A='x"), Err(1));
    }
}
