//! Generates type stubs: declaration files with the types of an upstream server's tools, for type checkers and editors.

mod python;
#[cfg(test)]
mod tests;
mod type_names;
mod typescript;

use serde_json::Value;

use super::Tool;
use super::identifiers::{camel_case, is_identifier, is_python_keyword, normalized, parameter_identifiers};
use super::result_wrapper::unwrapped_schema;
use super::types::{Object, ParsedSchema, parse_schema};

pub use python::modules as python;
pub use typescript::declarations as typescript;

/// The type stub of the Python package `mcp_tools`. This stub is the same for all upstream servers. So are the next
/// three stubs: the package's asynchronous variant, the TypeScript module and the TypeScript globals.
pub const PYTHON_PACKAGE: &str = include_str!("stubs/mcp_tools.pyi");
pub const PYTHON_ASYNC_PACKAGE: &str = include_str!("stubs/aio.pyi");
pub const TYPESCRIPT_PACKAGE: &str = include_str!("stubs/mcp_tools.d.ts");
pub const TYPESCRIPT_GLOBALS: &str = include_str!("stubs/globals.d.ts");

/// Maximum length of a tool's description in a stub, in characters.
const DESCRIPTION_CHARS_MAX: usize = 8_000;
/// Maximum length of a parameter's description in a stub, in characters.
const FIELD_CHARS_MAX: usize = 2_000;
/// Maximum length of a default value in a stub, in bytes.
const DEFAULT_CHARS_MAX: usize = 200;

/// An upstream server and its permitted tools, for which stubs are generated.
pub struct Server<'a> {
    pub name: &'a str,
    pub tools: Vec<StubTool<'a>>,
}

/// A permitted tool, for which a stub is generated.
pub struct StubTool<'a> {
    pub tool: &'a Tool,
    /// Whether calls of the tool require approval.
    pub requires_approval: bool,
    /// The JSON Schema that was inferred from earlier results. `None` if the tool has an output schema, or no results
    /// were observed.
    pub observed_output: Option<&'a Value>,
}

/// A tool with its parsed schemas.
struct Function<'a> {
    tool: &'a Tool,
    requires_approval: bool,
    input: ParsedSchema,
    arguments: Object,
    keywords: Vec<String>,
    output: Option<ParsedSchema>,
    /// Whether the type of the result was inferred from earlier results.
    is_observed: bool,
}

impl<'a> Function<'a> {
    fn new(stub: &StubTool<'a>) -> Self {
        let StubTool { tool, requires_approval, observed_output } = *stub;
        let definition: Value = serde_json::from_str(tool.definition()).unwrap_or_default();
        let input = parse_schema(definition.get("inputSchema").unwrap_or(&Value::Null));
        let output = definition
            .get("outputSchema")
            .filter(|_| tool.declares_values)
            .map(|output| parse_schema(unwrapped_schema(output).as_ref().unwrap_or(output)));
        let is_observed = output.is_none() && observed_output.is_some();
        let output = output.or_else(|| observed_output.map(parse_schema));
        let arguments = input.arguments();
        let names: Vec<&str> = arguments.fields.iter().map(|field| field.name.as_str()).collect();
        Self {
            tool,
            requires_approval,
            keywords: parameter_identifiers(&names),
            arguments,
            output,
            input,
            is_observed,
        }
    }

    /// Returns the notes on the function that follow the tool's description.
    fn notes(&self) -> impl Iterator<Item = String> {
        let asks = self.requires_approval.then_some("A person is asked before each call.");
        let observed = self.is_observed.then_some("The type of the result was observed, and not declared.");
        [asks, observed].into_iter().flatten().map(str::to_owned)
    }

    /// Returns whether the tool's first parameter accepts an object. If so, an object that is the only argument of a
    /// Python call is the value of that parameter. Otherwise, such an object contains all arguments.
    fn takes_object_first(&self) -> bool {
        self.tool.accepted_values.first().is_some_and(|first| first.object)
    }

    fn is_optional(&self) -> bool {
        self.tool.required == 0
    }
}

/// Returns pairs of an alternative name of a tool's function and the identifier that the name refers to.
/// The alternative names are the tool's exact name and, unless it is ambiguous, the camel case form of
/// its identifier. Names that `is_name` rejects are left out.
fn aliases(tools: &[StubTool<'_>], is_name: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    let mut taken: Vec<&str> = tools.iter().map(|stub| stub.tool.identifier.as_str()).collect();
    taken.sort_unstable();
    let mut folds: Vec<String> = tools.iter().map(|stub| normalized(stub.tool.name.as_str())).collect();
    folds.sort_unstable();
    let alone = |name: &str| {
        let fold = normalized(name);
        let first = folds.partition_point(|other| *other < fold);
        folds.get(first + 1).is_none_or(|other| *other != fold)
    };
    let mut aliases: Vec<(String, String)> = Vec::new();
    for StubTool { tool, .. } in tools {
        let exact = Some(tool.name.as_str().to_owned()).filter(|name| is_name(name));
        let other =
            Some(camel_case(&tool.identifier)).filter(|form| alone(tool.name.as_str()) && is_name(form));
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

/// Returns whether the name is valid in Python and has no special meaning there.
fn is_python_name(name: &str) -> bool {
    is_identifier(name) && !is_python_keyword(name) && !name.starts_with("__")
}
