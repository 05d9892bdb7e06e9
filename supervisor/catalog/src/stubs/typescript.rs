//! Generates the TypeScript declarations of an upstream server.

use std::collections::HashMap;

use lockhouse_protocol::Language;

use super::type_names::{UniqueNames, type_name};
use super::{
    DEFAULT_CHARS_MAX, DESCRIPTION_CHARS_MAX, FIELD_CHARS_MAX, Function, Server, TYPESCRIPT_GLOBALS,
    TYPESCRIPT_PACKAGE, aliases,
};
use crate::identifiers::{camel_case, is_identifier, is_javascript_keyword};
use crate::types::{Field, Object, ParsedSchema, Type, comment_lines, one_line_format, quoted};

const BUILTIN_FUNCTIONS: [(&str, &str, &str); 5] = [
    ("list_tools", "(): Promise<Record<string, any>[]>", "The permitted tools of this server."),
    ("list_resources", "(): Promise<Record<string, any>[]>", "The permitted resources of this server."),
    ("read_resource", "(uri: string): Promise<any>", "A resource by its URI."),
    ("list_prompts", "(): Promise<Record<string, any>[]>", "The permitted prompts of this server."),
    (
        "get_prompt",
        "(name: string, args?: Record<string, string>): Promise<Record<string, any>>",
        "A prompt, with its messages.",
    ),
];
/// Maximum length, in bytes, of a parameter type that is repeated in the function overload with positional arguments. A
/// longer type is referenced as a property of the interface that declares the arguments.
const REPEATED_CHARS_MAX: usize = 60;
/// Global names of JavaScript and of common type libraries, separated by spaces. A server with such a name is not
/// declared as a global.
const GLOBALS: &str = "Object Function Error Iterator Array Infinity NaN undefined globalThis Number Boolean String Math \
    Reflect Symbol BigInt Date RegExp JSON Proxy Map Set Atomics Promise Temporal Intl escape unescape fetch module \
    exports process global Record Partial";

/// Generates the TypeScript declarations of an upstream server: its module, and the globals by which code
/// can use the server without an import.
///
/// `others` are the names of all upstream servers. If an alternative form of this server's name is the
/// name of another server, that form is not declared.
pub fn declarations(server: &Server, others: &[&str]) -> String {
    let aliases = aliases(&server.tools, is_identifier);
    let functions = server.tools.iter().map(|stub| stub.tool.identifier.as_str());
    let taken = functions.clone().chain(aliases.iter().map(|(alias, _)| alias.as_str()));
    let mut module = Module { names: UniqueNames::new(taken), out: String::new() };
    for stub in &server.tools {
        module.function(&Function::new(stub));
    }
    for (name, text, doc) in BUILTIN_FUNCTIONS {
        for form in [name.to_owned(), camel_case(name)] {
            if !module.names.has(&form) {
                module.out.push_str(&format!("  /** {doc} */\n  export function {form}{text};\n"));
            }
        }
    }
    if !aliases.is_empty() {
        let list: String = aliases.iter().map(|(alias, name)| format!("    {name} as {alias},\n")).collect();
        module.out.push_str(&format!("  export {{\n{list}  }};\n"));
    }
    let name = server.name;
    let itself = module.names.reserve("server");
    let forms = identifier_forms(name, others);
    let out = &module.out;
    let mut text = format!(
        "declare module \"mcp_tools/{name}\" {{\n{out}  const {itself}: typeof import(\"mcp_tools/{name}\");\n  \
         export default {itself};\n}}\n"
    );
    for form in forms.iter().filter(|form| *form != name) {
        text.push_str(&format!(
            "declare module \"mcp_tools/{form}\" {{\n  export * from \"mcp_tools/{name}\";\n  \
             export {{ default }} from \"mcp_tools/{name}\";\n}}\n"
        ));
    }
    for form in forms.iter().filter(|form| !is_declared(form)) {
        text.push_str(&format!(
            "declare module \"mcp_tools\" {{\n  export const {form}: typeof import(\"mcp_tools/{name}\");\n}}\n\
             declare const {form}: typeof import(\"mcp_tools/{name}\");\n"
        ));
    }
    text
}

/// Returns the forms of a server's name (unchanged, in camel case, with underscores instead of hyphens) that are valid
/// identifiers and not the name of another server.
fn identifier_forms(name: &str, others: &[&str]) -> Vec<String> {
    let mut forms: Vec<String> = Vec::new();
    let plain = name.replace('-', "_");
    for form in [name.to_owned(), camel_case(&plain), plain] {
        let is_free = form == name || !others.contains(&form.as_str());
        if is_free && is_identifier(&form) && !is_javascript_keyword(&form) && !forms.contains(&form) {
            forms.push(form);
        }
    }
    forms
}

/// Returns whether a global of JavaScript, of type libraries or of the stubs already has this name.
fn is_declared(name: &str) -> bool {
    let package = [TYPESCRIPT_PACKAGE, TYPESCRIPT_GLOBALS];
    let declared = [format!(" const {name}:"), format!(" function {name}("), format!(" class {name} ")];
    GLOBALS.split_ascii_whitespace().any(|global| global == name)
        || package.iter().any(|text| declared.iter().any(|words| text.contains(words)))
}

struct Module {
    names: UniqueNames,
    out: String,
}

/// One parsed schema of a tool (for its arguments or for its results), and the names of the types that were already
/// written for definitions in the schema, by the indexes of the definitions.
struct Scope<'a> {
    parsed: &'a ParsedSchema,
    prefix: String,
    definition_names: HashMap<usize, String>,
}

impl Module {
    fn function(&mut self, function: &Function) {
        let identifier = &function.tool.identifier;
        let mut scope =
            Scope { parsed: &function.input, prefix: identifier.clone(), definition_names: HashMap::new() };
        let interface = self.names.reserve(&type_name(identifier, "arguments"));
        let body = self.object(&function.arguments, &mut scope, "  ");
        let returns = match &function.output {
            Some(parsed) => {
                let mut scope = Scope {
                    parsed,
                    prefix: format!("{identifier}_result"),
                    definition_names: HashMap::new(),
                };
                let name = self.names.reserve(&type_name(identifier, "result"));
                let text = self.type_text(&parsed.kind, &mut scope, "  ");
                self.out.push_str(&format!("  export type {name} = {text};\n"));
                name
            }
            None => "any".into(),
        };
        self.out.push_str(&format!("  export interface {interface} {body}\n"));
        let mut about = comment_lines(&function.tool.description, DESCRIPTION_CHARS_MAX);
        about.extend(function.notes());
        let optional = if function.is_optional() { "?" } else { "" };
        self.out.push_str(&doc_comment(&about, "  "));
        self.out.push_str(&format!(
            "  export function {identifier}(args{optional}: {interface}): Promise<{returns}>;\n"
        ));
        let is_object = |field: &Field| matches!(function.input.resolve(&field.kind), Type::Object(_));
        if function.arguments.fields.first().is_none_or(is_object) {
            return;
        }
        let positional = self.positional_parameters(function, &interface, &mut scope);
        self.out.push_str(&format!("  export function {identifier}({positional}): Promise<{returns}>;\n"));
    }

    /// Returns the parameter list of a tool's function for a call with positional arguments. `interface` is the name of
    /// the interface that declares the arguments; long types refer to its properties.
    fn positional_parameters(&mut self, function: &Function, interface: &str, scope: &mut Scope) -> String {
        let mut names = UniqueNames::default();
        let mut parameters: Vec<String> = Vec::new();
        for (field, keyword) in function.arguments.fields.iter().zip(&function.keywords) {
            let is_taken = is_javascript_keyword(keyword);
            let name = names.reserve(&if is_taken { format!("{keyword}_") } else { keyword.clone() });
            let text = self.type_text(&field.kind, scope, "  ");
            let kind = match text.contains('\n') || text.len() > REPEATED_CHARS_MAX {
                true => format!("{interface}[{}]", quoted(&field.name, Language::Typescript)),
                false => text,
            };
            parameters.push(format!("{name}{}: {kind}", if field.required { "" } else { "?" }));
        }
        parameters.join(", ")
    }

    fn type_text(&mut self, kind: &Type, scope: &mut Scope, indent: &str) -> String {
        let text = match kind {
            Type::Any => "any",
            Type::Never => "never",
            Type::Null => "null",
            Type::Bool => "boolean",
            Type::Int | Type::Float => "number",
            Type::Str => "string",
            Type::Literal(values) => {
                let texts = values.iter().map(|value| one_line_format::value(value, Language::Typescript));
                return texts.collect::<Vec<_>>().join(" | ");
            }
            Type::List(items) => return one_line_format::array_of(&self.type_text(items, scope, indent)),
            Type::Tuple { items, required, rest } => {
                return self.tuple(items, *required, rest, scope, indent);
            }
            Type::Object(object) => return self.object(object, scope, indent),
            Type::Union(options) => {
                let mut texts: Vec<String> = Vec::new();
                for option in options {
                    let text = self.type_text(option, scope, indent);
                    if !texts.contains(&text) {
                        texts.push(text);
                    }
                }
                return texts.join(" | ");
            }
            Type::Named(index) => return self.definition(*index, scope),
        };
        text.into()
    }

    fn tuple(
        &mut self,
        items: &[Type],
        required: usize,
        rest: &Type,
        scope: &mut Scope,
        indent: &str,
    ) -> String {
        let mut texts: Vec<String> = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let text = self.type_text(item, scope, indent);
            texts.push(if index < required { text } else { format!("({text})?") });
        }
        if *rest != Type::Never {
            texts.push(format!("...Array<{}>", self.type_text(rest, scope, indent)));
        }
        format!("[{}]", texts.join(", "))
    }

    fn definition(&mut self, index: usize, scope: &mut Scope) -> String {
        if let Some(name) = scope.definition_names.get(&index) {
            return name.clone();
        }
        let definition = &scope.parsed.definitions[index];
        let name = self.names.reserve(&type_name(&scope.prefix, &definition.name));
        scope.definition_names.insert(index, name.clone());
        let about = doc_comment(&comment_lines(&definition.description, FIELD_CHARS_MAX), "  ");
        let text = self.type_text(&definition.kind, scope, "  ");
        let declared = match &definition.kind {
            Type::Object(_) => format!("{about}  export interface {name} {text}\n"),
            _ => format!("{about}  export type {name} = {text};\n"),
        };
        self.out.push_str(&declared);
        name
    }

    fn object(&mut self, object: &Object, scope: &mut Scope, indent: &str) -> String {
        let inner = format!("{indent}  ");
        let mut text = String::from("{\n");
        for field in &object.fields {
            let kind = self.type_text(&field.kind, scope, &inner);
            let mut about = comment_lines(&field.description, FIELD_CHARS_MAX);
            if let Some(default) = &field.default {
                let value = one_line_format::value(default, Language::Typescript);
                if value.len() <= DEFAULT_CHARS_MAX {
                    about.push(format!("Default: {value}"));
                }
            }
            text.push_str(&doc_comment(&about, &inner));
            let optional = if field.required { "" } else { "?" };
            text.push_str(&format!("{inner}{}{optional}: {kind};\n", property_key(&field.name)));
        }
        let rest = match &object.rest {
            Some(rest) if object.fields.is_empty() => Some(self.type_text(rest, scope, &inner)),
            // An index signature must also permit the declared fields, which may have other types.
            Some(_) => Some("any".into()),
            None if object.fields.is_empty() => Some("never".into()),
            None => None,
        };
        match rest {
            Some(rest) if object.fields.is_empty() && !rest.contains('\n') => {
                format!("{{ [key: string]: {rest} }}")
            }
            Some(rest) => format!("{text}{inner}[key: string]: {rest};\n{indent}}}"),
            None => format!("{text}{indent}}}"),
        }
    }
}

/// Returns a property name as it is written in a TypeScript declaration. The name is quoted if it is not
/// an identifier or is a keyword such as `get` or `readonly`.
fn property_key(name: &str) -> String {
    let means_more = matches!(
        name,
        "get" | "set" | "readonly" | "async" | "declare" | "abstract" | "accessor" | "constructor"
    );
    if means_more || is_javascript_keyword(name) || !is_identifier(name) {
        quoted(name, Language::Typescript)
    } else {
        name.to_owned()
    }
}

/// Returns `lines` as a doc comment, to be written before a declaration. Escapes text that would end the comment or be
/// a tag.
fn doc_comment(lines: &[String], indent: &str) -> String {
    let safe = |line: &String| {
        let line = line.replace("*/", "*\\/");
        let words = line.trim_start();
        if words.starts_with('@') { line.replacen('@', "\\@", 1) } else { line }
    };
    match lines {
        [] => String::new(),
        [line] => format!("{indent}/** {} */\n", safe(line)),
        lines => {
            let mut text = format!("{indent}/**\n");
            for line in lines {
                text.push_str(format!("{indent} * {}", safe(line)).trim_end());
                text.push('\n');
            }
            text + indent + " */\n"
        }
    }
}
