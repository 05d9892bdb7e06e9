//! Generates the Python stubs of an upstream server: one module with synchronous functions, and one with `async`
//! functions.

use std::collections::HashMap;

use lockhouse_protocol::Language;

use super::type_names::{UniqueNames, type_name};
use super::{
    DEFAULT_CHARS_MAX, DESCRIPTION_CHARS_MAX, FIELD_CHARS_MAX, Function, Server, aliases, is_python_name,
};
use crate::types::{Field, Object, ParsedSchema, Type, comment_lines, one_line_format, quoted};

/// Names from Python's `builtins` that stubs use. If a tool has the same name, the stub qualifies the Python name.
const BUILTINS: [&str; 6] = ["bool", "dict", "float", "int", "list", "str"];
/// Names from `typing_extensions` that stubs use. If a tool has the same name, the stub qualifies the
/// Python name.
const TYPING: [&str; 7] = ["Any", "Literal", "NoReturn", "NotRequired", "TypeAlias", "TypedDict", "overload"];
/// The functions that each server's Python module has besides its tools. Each has three texts: `async` if the function
/// is asynchronous in the `aio` variant of the module, else `def`; the signature with placeholders for types; the
/// docstring. A function is left out if a tool has the same name.
const BUILTIN_FUNCTIONS: [(&str, &str, &str); 5] = [
    ("def", "list_tools() -> {list}[{dict}[{str}, {Any}]]", "The permitted tools of this server."),
    ("async", "list_resources() -> {list}[{dict}[{str}, {Any}]]", "The permitted resources of this server."),
    ("async", "read_resource(uri: {str}) -> {Any}", "A resource by its URI."),
    ("async", "list_prompts() -> {list}[{dict}[{str}, {Any}]]", "The permitted prompts of this server."),
    (
        "async",
        "get_prompt(name: {str}, arguments: {dict}[{str}, {str}] | None = ..., /, **named: {str}) -> {dict}[{str}, {Any}]",
        "A prompt, with its messages.",
    ),
];
const COLUMNS: usize = 100;

/// Generates the stub of a server's module and the stub of its `aio` variant, whose functions are asynchronous.
/// `identifier` is the name of the module.
pub fn modules(server: &Server, identifier: &str) -> (String, String) {
    let aliases = aliases(&server.tools, is_python_name);
    let builtin_functions: Vec<_> = BUILTIN_FUNCTIONS
        .iter()
        .filter(|(_, text, _)| !has_tool(server, text.split('(').next().unwrap_or_default()))
        .collect();
    let functions = server.tools.iter().map(|stub| stub.tool.identifier.as_str());
    let taken = functions.clone().chain(aliases.iter().map(|(alias, _)| alias.as_str()));
    let mut module = Module::new(UniqueNames::new(taken));
    let mut bodies = String::new();
    for stub in &server.tools {
        module.function(&Function::new(stub), &mut bodies);
    }
    let mut builtin_text = [String::new(), String::new()];
    for (way, text, doc) in builtin_functions {
        let text = module.fill_placeholders(text);
        builtin_text[0].push_str(&format!("def {text}:\n    \"\"\"{doc}\"\"\"\n\n"));
        let is_async = if *way == "async" { "async " } else { "" };
        builtin_text[1].push_str(&format!("{is_async}def {text}:\n    \"\"\"{doc}\"\"\"\n\n"));
    }
    let also: String =
        aliases.iter().map(|(alias, identifier)| format!("{alias} = {identifier}\n")).collect();
    let all: String = functions.map(|name| format!("    {},\n", quoted(name, Language::Python))).collect();
    let all = format!("__all__ = [\n{all}]\n\n");
    let head = module.head(server.name);
    let types = std::mem::take(&mut module.types);
    let imported = match module.type_names.as_slice() {
        [] => String::new(),
        names => format!("from mcp_tools.{identifier} import (\n    {},\n)\n\n", names.join(",\n    ")),
    };
    let later: String = bodies
        .split_inclusive('\n')
        .map(|line| if line.starts_with("def ") { format!("async {line}") } else { line.to_owned() })
        .collect();
    let [sync_builtins, async_builtins] = builtin_text;
    (
        format!("{head}{all}{types}{bodies}{sync_builtins}{also}"),
        format!("{head}{imported}{all}{later}{async_builtins}{also}"),
    )
}

fn has_tool(server: &Server, name: &str) -> bool {
    server.tools.iter().any(|stub| stub.tool.identifier == name)
}

struct Module {
    names: UniqueNames,
    /// The name under which the stub file imports the module `builtins`.
    builtins: String,
    typing: String,
    types: String,
    type_names: Vec<String>,
}

/// One parsed schema of a tool (for its arguments or for its results), and the names of the types that were already
/// written for definitions in the schema, by the indexes of the definitions.
struct Scope<'a> {
    parsed: &'a ParsedSchema,
    /// Prefix of the names of the types that are generated for the definitions in the schema.
    prefix: String,
    definition_names: HashMap<usize, String>,
}

impl Module {
    fn new(mut names: UniqueNames) -> Self {
        let (builtins, typing) = (names.reserve("_builtins"), names.reserve("_typing"));
        Self { names, builtins, typing, types: String::new(), type_names: Vec::new() }
    }

    fn head(&self, server: &str) -> String {
        let free: Vec<&str> = TYPING.iter().copied().filter(|name| !self.names.has(name)).collect();
        let mut head = format!("\"\"\"The permitted tools of the MCP server {server}.\"\"\"\n\n");
        head.push_str(&format!(
            "import builtins as {}\nimport typing_extensions as {}\n",
            self.builtins, self.typing
        ));
        if !free.is_empty() {
            head.push_str(&format!("from typing_extensions import {}\n", free.join(", ")));
        }
        head.push('\n');
        head
    }

    /// Returns the name of a Python type, qualified with its module if a tool has the same name.
    fn python_word(&self, name: &str) -> String {
        match name {
            name if !self.names.has(name) => name.to_owned(),
            name if BUILTINS.contains(&name) => format!("{}.{name}", self.builtins),
            name => format!("{}.{name}", self.typing),
        }
    }

    fn fill_placeholders(&self, text: &str) -> String {
        ["str", "dict", "list", "Any"]
            .iter()
            .fold(text.to_owned(), |text, name| text.replace(&format!("{{{name}}}"), &self.python_word(name)))
    }

    fn function(&mut self, function: &Function, out: &mut String) {
        let identifier = &function.tool.identifier;
        let mut scope =
            Scope { parsed: &function.input, prefix: identifier.clone(), definition_names: HashMap::new() };
        let mut kinds: Vec<String> = Vec::new();
        for field in &function.arguments.fields {
            kinds.push(self.type_text(&field.kind, &mut scope, &type_name(identifier, &field.name)));
        }
        let returns = match &function.output {
            Some(parsed) => {
                let prefix = format!("{identifier}_result");
                let name = type_name(&prefix, "");
                let mut scope = Scope { parsed, prefix, definition_names: HashMap::new() };
                self.type_text(&parsed.kind, &mut scope, &name)
            }
            None => self.python_word("Any"),
        };
        let mut parameters: Vec<String> = Vec::new();
        for ((field, kind), keyword) in function.arguments.fields.iter().zip(&kinds).zip(&function.keywords) {
            parameters.push(match field.required {
                true => format!("{keyword}: {kind}"),
                false => {
                    format!(
                        "{keyword}: {kind} = {}",
                        default_text(field, function).as_deref().unwrap_or("...")
                    )
                }
            });
        }
        if function.arguments.rest.is_some() {
            let mut known = UniqueNames::new(function.keywords.iter().map(String::as_str));
            parameters.push(format!("**{}: {}", known.reserve("more"), self.python_word("Any")));
        }
        let doc = docstring(&self.function_doc(function), "    ");
        let body = if doc.is_empty() { " ...\n\n".to_owned() } else { format!("\n{doc}\n") };
        let first = format!("def {identifier}({}) -> {returns}:", layout_parameters(&parameters, identifier));
        // As in TypeScript, the function can also be called with one object that contains all arguments.
        let also = !function.takes_object_first() && !(parameters.is_empty());
        if !also {
            out.push_str(&format!("{first}{body}"));
            return;
        }
        let fields = function.arguments.fields.iter().zip(kinds);
        let arguments = match function.arguments.rest {
            Some(_) => format!(
                "{}[{}, {}]",
                self.python_word("dict"),
                self.python_word("str"),
                self.python_word("Any")
            ),
            None => self.typed_dict(&type_name(identifier, "arguments"), fields, &[]),
        };
        let overload = self.python_word("overload");
        out.push_str(&format!("@{overload}\n{first}{body}"));
        out.push_str(&format!(
            "@{overload}\ndef {identifier}(arguments: {arguments}, /) -> {returns}: ...\n\n"
        ));
    }

    /// Returns the lines of the docstring of a tool: its description, a note if its calls require approval, and its
    /// parameters.
    fn function_doc(&self, function: &Function) -> Vec<String> {
        let mut lines = comment_lines(&function.tool.description, DESCRIPTION_CHARS_MAX);
        for note in function.notes() {
            if !lines.is_empty() {
                lines.push(String::new());
            }
            lines.push(note);
        }
        let mut parameters: Vec<String> = Vec::new();
        for (field, keyword) in function.arguments.fields.iter().zip(&function.keywords) {
            let mut about = field_doc(field);
            let Some(first) = about.first_mut() else { continue };
            let name = if field.name == *keyword {
                keyword.clone()
            } else {
                format!("{keyword} ({})", quoted(&field.name, Language::Python))
            };
            *first = format!("    {name}: {first}");
            let more = about.len().min(1);
            about[more..].iter_mut().for_each(|line| line.insert_str(0, "        "));
            parameters.append(&mut about);
        }
        if !parameters.is_empty() {
            if !lines.is_empty() {
                lines.push(String::new());
            }
            lines.push("Args:".into());
            lines.append(&mut parameters);
        }
        lines
    }

    /// Returns the Python type annotation for a type. For an object type, first writes a class to the stub,
    /// with `name` as the wanted name of the class.
    fn type_text(&mut self, kind: &Type, scope: &mut Scope, name: &str) -> String {
        match kind {
            Type::Any => self.python_word("Any"),
            Type::Never => self.python_word("NoReturn"),
            Type::Null => "None".into(),
            Type::Bool => self.python_word("bool"),
            Type::Int => self.python_word("int"),
            Type::Float => self.python_word("float"),
            Type::Str => self.python_word("str"),
            Type::Literal(values) => self.literal(values),
            Type::List(items) => {
                let items = self.type_text(items, scope, &type_name(name, "item"));
                format!("{}[{items}]", self.python_word("list"))
            }
            Type::Tuple { items, rest, .. } => {
                let options: Vec<Type> = items
                    .iter()
                    .chain([rest.as_ref()])
                    .filter(|kind| **kind != Type::Never)
                    .cloned()
                    .collect();
                let items = self.union(&options, scope, &type_name(name, "item"));
                format!("{}[{items}]", self.python_word("list"))
            }
            Type::Object(object) if object.fields.is_empty() => {
                let values = match &object.rest {
                    Some(rest) => self.type_text(rest, scope, &type_name(name, "value")),
                    None => self.python_word("Any"),
                };
                format!("{}[{}, {values}]", self.python_word("dict"), self.python_word("str"))
            }
            Type::Object(object) => self.object(object, scope, name, &[]),
            Type::Union(options) => self.union(options, scope, name),
            Type::Named(index) => self.definition(*index, scope),
        }
    }

    fn union(&mut self, options: &[Type], scope: &mut Scope, name: &str) -> String {
        let mut texts: Vec<String> = Vec::new();
        for option in options {
            let text = self.type_text(option, scope, name);
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let any = self.python_word("Any");
        if texts.is_empty() || texts.contains(&any) { any } else { texts.join(" | ") }
    }

    fn literal(&self, values: &[serde_json::Value]) -> String {
        // Python's `Literal` does not permit floats.
        let (fractions, values): (Vec<_>, Vec<_>) = values.iter().partition(|value| value.is_f64());
        let values: Vec<String> =
            values.iter().map(|value| one_line_format::value(value, Language::Python)).collect();
        let mut texts: Vec<String> = Vec::new();
        if !values.is_empty() {
            texts.push(format!("{}[{}]", self.python_word("Literal"), values.join(", ")));
        }
        if !fractions.is_empty() {
            texts.push(self.python_word("float"));
        }
        texts.join(" | ")
    }

    fn definition(&mut self, index: usize, scope: &mut Scope) -> String {
        if let Some(name) = scope.definition_names.get(&index) {
            return name.clone();
        }
        let definition = &scope.parsed.definitions[index];
        let wanted = type_name(&scope.prefix, &definition.name);
        if let Type::Object(object) = &definition.kind
            && !object.fields.is_empty()
        {
            let name = self.names.reserve(&wanted);
            scope.definition_names.insert(index, name.clone());
            let about = comment_lines(&definition.description, FIELD_CHARS_MAX);
            let fields = self.fields(object, scope, &name);
            self.write_class(&name, &fields, &about, object.rest.is_some());
            return name;
        }
        let name = self.names.reserve(&wanted);
        scope.definition_names.insert(index, name.clone());
        let text = self.type_text(&definition.kind, scope, &name);
        self.types.push_str(&format!("{name}: {} = {text}\n\n", self.python_word("TypeAlias")));
        self.type_names.push(name.clone());
        name
    }

    fn object(&mut self, object: &Object, scope: &mut Scope, wanted: &str, about: &[String]) -> String {
        let name = self.names.reserve(wanted);
        let fields = self.fields(object, scope, &name);
        self.write_class(&name, &fields, about, object.rest.is_some());
        name
    }

    fn fields<'f>(&mut self, object: &'f Object, scope: &mut Scope, name: &str) -> Vec<(&'f Field, String)> {
        let kind =
            |field: &'f Field| (field, self.type_text(&field.kind, scope, &type_name(name, &field.name)));
        object.fields.iter().map(kind).collect()
    }

    fn typed_dict<'f>(
        &mut self,
        wanted: &str,
        fields: impl Iterator<Item = (&'f Field, String)>,
        about: &[String],
    ) -> String {
        let name = self.names.reserve(wanted);
        self.write_class(&name, &fields.collect::<Vec<_>>(), about, false);
        name
    }

    fn write_class(&mut self, name: &str, fields: &[(&Field, String)], about: &[String], is_open: bool) {
        let mut about = about.to_vec();
        if is_open {
            about.push("It may have other keys as well.".into());
        }
        let typed_dict = self.python_word("TypedDict");
        let not_required = self.python_word("NotRequired");
        // Whether a field of a class can have this name: Python does not mangle it, and it does not hide a name that
        // later annotations use.
        let is_plain = |name: &str| {
            is_python_name(name)
                && !name.starts_with("__")
                && !is_reserved(name)
                && !self.type_names.iter().any(|other| other == name)
        };
        let as_class = fields.iter().all(|(field, _)| is_plain(&field.name));
        let mut text = match as_class {
            true => format!("class {name}({typed_dict}):\n"),
            false => format!("{name} = {typed_dict}({}, {{\n", quoted(name, Language::Python)),
        };
        if as_class && !about.is_empty() {
            text.push_str(&docstring(&about, "    "));
            text.push('\n');
        }
        for (field, kind) in fields {
            for line in field_doc(field) {
                text.push_str(&format!("    #: {line}\n"));
            }
            let kind = if field.required { kind.clone() } else { format!("{not_required}[{kind}]") };
            text.push_str(&match as_class {
                true => format!("    {}: {kind}\n", field.name),
                false => format!("    {}: {kind},\n", quoted(&field.name, Language::Python)),
            });
        }
        text.push_str(if as_class { "\n" } else { "})\n\n" });
        self.types.push_str(&text);
        self.type_names.push(name.to_owned());
    }
}

fn is_reserved(name: &str) -> bool {
    BUILTINS.contains(&name) || TYPING.contains(&name) || name == "_builtins" || name == "_typing"
}

/// Returns the default value of a parameter as a Python literal. Returns `None` if there is no default
/// value, it is a list or object, it is too long, or the parameter's type does not permit it.
fn default_text(field: &Field, function: &Function) -> Option<String> {
    let value = field.default.as_ref()?;
    let is_scalar = !value.is_array() && !value.is_object();
    let text = one_line_format::value(value, Language::Python);
    (is_scalar && text.len() <= DEFAULT_CHARS_MAX && function.input.admits(&field.kind, value))
        .then_some(text)
}

fn field_doc(field: &Field) -> Vec<String> {
    let mut lines = comment_lines(&field.description, FIELD_CHARS_MAX);
    if let Some(default) = &field.default {
        let text = one_line_format::value(default, Language::Python);
        if text.len() <= DEFAULT_CHARS_MAX {
            lines.push(format!("Default: {text}"));
        }
    }
    lines
}

fn layout_parameters(parameters: &[String], identifier: &str) -> String {
    let on_one_line = parameters.join(", ");
    if identifier.len() + on_one_line.len() + 10 <= COLUMNS {
        return on_one_line;
    }
    format!("\n    {},\n", parameters.join(",\n    "))
}

fn docstring(lines: &[String], indent: &str) -> String {
    let safe = |line: &String| line.replace('\\', "\\\\").replace("\"\"\"", "\\\"\\\"\\\"");
    match lines {
        [] => String::new(),
        [line] => {
            let line = safe(line);
            let ended = line.strip_suffix('"').map(|rest| format!("{rest}\\\""));
            format!("{indent}\"\"\"{}\"\"\"\n", ended.unwrap_or(line))
        }
        [first, more @ ..] => {
            let mut text = format!("{indent}\"\"\"{}\n", safe(first));
            for line in more {
                let line = safe(line);
                text.push_str(if line.is_empty() { "" } else { indent });
                text.push_str(&line);
                text.push('\n');
            }
            text + indent + "\"\"\"\n"
        }
    }
}
