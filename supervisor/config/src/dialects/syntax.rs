//! Detects the syntax of a servers file, and parses the file into the common syntax tree.

use lockhouse_policies::{Diagnostics, Source};

use super::document_tree::{Node, Value, json, parse_json, parse_toml, toml_table};
use super::{continue_format, yaml_tree};

/// The syntax of a servers file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    Json,
    Toml,
    Yaml,
}

impl Syntax {
    /// Detects the syntax of a text. A text that begins with `{` or `/` is JSON; a text that begins with `[` is JSON if
    /// it parses as JSON. A text with a line that begins with `mcpServers:` is YAML. Any other text is TOML.
    pub(super) fn of(text: &str) -> Self {
        let start = text.trim_start_matches('\u{feff}').trim_start();
        if start.starts_with(['{', '/']) || (start.starts_with('[') && json(start).is_ok()) {
            Self::Json
        } else if yaml_tree::looks_like_yaml(text) {
            Self::Yaml
        } else {
            Self::Toml
        }
    }
}

/// Parses a servers file.
///
/// # Errors
/// The file is not valid in its syntax.
pub(super) fn parse(source: &Source) -> Result<Node, Diagnostics> {
    parse_as(source, Syntax::of(&source.text))
}

/// Parses a servers file whose syntax is known.
///
/// # Errors
/// The file is not valid in this syntax.
pub fn parse_as(source: &Source, syntax: Syntax) -> Result<Node, Diagnostics> {
    match syntax {
        Syntax::Json => parse_json(source),
        Syntax::Yaml => yaml_tree::parse(source).map(continue_format::with_named_servers),
        Syntax::Toml => {
            let document = parse_toml(source)?;
            Ok(Node { at: document.span(), value: Value::Table(toml_table(document.into_inner())) })
        }
    }
}
