//! The tools of a server as files that type checkers, editors and people read.

mod names;
mod python;
#[cfg(test)]
mod tests;
mod typescript;

use serde_json::Value;

use super::Tool;
use super::names::{camel, folded, is_identifier, is_python_keyword, parameter_identifiers};
use super::types::{Object, Shape, read};
use super::wrapping::inner;

pub use python::modules as python;
pub use typescript::declarations as typescript;

/// The types of `mcp_tools` itself, and of what TypeScript finds without an import.
pub const PYTHON_PACKAGE: &str = include_str!("stubs/mcp_tools.pyi");
pub const PYTHON_ASYNC_PACKAGE: &str = include_str!("stubs/aio.pyi");
pub const TYPESCRIPT_PACKAGE: &str = include_str!("stubs/mcp_tools.d.ts");
pub const TYPESCRIPT_GLOBALS: &str = include_str!("stubs/globals.d.ts");

/// Characters of a tool's description, and of a parameter's.
const DESCRIPTION_CHARS_MAX: usize = 8_000;
const FIELD_CHARS_MAX: usize = 2_000;
/// Characters of a default that is told.
const DEFAULT_CHARS_MAX: usize = 200;

/// One server, as far as it may be used.
pub struct Server<'a> {
    pub name: &'a str,
    /// Each with whether a person is asked before a call.
    pub tools: Vec<(&'a Tool, bool)>,
}

/// A tool and all that its definition says.
struct Function<'a> {
    tool: &'a Tool,
    asks: bool,
    input: Shape,
    arguments: Object,
    keywords: Vec<String>,
    output: Option<Shape>,
}

impl<'a> Function<'a> {
    fn of(tool: &'a Tool, asks: bool) -> Self {
        let definition: Value = serde_json::from_str(tool.definition()).unwrap_or_default();
        let input = read(definition.get("inputSchema").unwrap_or(&Value::Null));
        let output =
            definition.get("outputSchema").map(|output| read(inner(output).as_ref().unwrap_or(output)));
        let arguments = input.arguments();
        let names: Vec<&str> = arguments.fields.iter().map(|field| field.name.as_str()).collect();
        Self { tool, asks, keywords: parameter_identifiers(&names), arguments, output, input }
    }

    /// Whether the first parameter may be an object, so that an object alone is that parameter in Python.
    fn takes_object_first(&self) -> bool {
        self.tool.accepted.first().is_some_and(|first| first.object)
    }

    fn is_optional(&self) -> bool {
        self.tool.required == 0
    }
}

/// Other names under which code finds the tools, each with the identifier that it stands for.
fn aliases(tools: &[(&Tool, bool)], is_name: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    let mut taken: Vec<&str> = tools.iter().map(|(tool, _)| tool.identifier.as_str()).collect();
    taken.sort_unstable();
    let mut folds: Vec<String> = tools.iter().map(|(tool, _)| folded(tool.name.as_str())).collect();
    folds.sort_unstable();
    let alone = |name: &str| {
        let fold = folded(name);
        let first = folds.partition_point(|other| *other < fold);
        folds.get(first + 1).is_none_or(|other| *other != fold)
    };
    let mut aliases: Vec<(String, String)> = Vec::new();
    for (tool, _) in tools {
        let exact = Some(tool.name.as_str().to_owned()).filter(|name| is_name(name));
        let other = Some(camel(&tool.identifier)).filter(|form| alone(tool.name.as_str()) && is_name(form));
        for alias in [exact, other].into_iter().flatten() {
            let is_new = taken.binary_search(&alias.as_str()).is_err()
                && aliases.last().is_none_or(|(last, _)| *last != alias);
            if is_new {
                aliases.push((alias, tool.identifier.clone()));
            }
        }
    }
    aliases
}

/// What Python can write as a name, and has no meaning of its own for.
fn is_python_name(name: &str) -> bool {
    is_identifier(name) && !is_python_keyword(name) && !name.starts_with("__")
}
