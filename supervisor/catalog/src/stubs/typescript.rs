//! A server as a module that TypeScript knows by its declarations.

use std::collections::HashMap;

use lockhouse_base::language::Language;

use super::names::{Names, type_name};
use super::{
    DEFAULT_CHARS_MAX, DESCRIPTION_CHARS_MAX, FIELD_CHARS_MAX, Function, Server, TYPESCRIPT_GLOBALS,
    TYPESCRIPT_PACKAGE, aliases,
};
use crate::names::{camel, is_identifier, is_javascript_keyword};
use crate::types::{Field, Object, Shape, Type, comment_lines, inline, quoted};

const BESIDES: [(&str, &str, &str); 5] = [
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
/// A type that is longer is referred to where it was written first.
const REPEATED_CHARS_MAX: usize = 60;
/// Globals of the language and of other programs' types: no server is declared as a global under their names.
const GLOBALS: &str = "Object Function Error Iterator Array Infinity NaN undefined globalThis Number Boolean String Math \
    Reflect Symbol BigInt Date RegExp JSON Proxy Map Set Atomics Promise Temporal Intl escape unescape fetch module \
    exports process global Record Partial";

/// The declarations of a server: its module, and the names under which it is found without an import.
///
/// `others` are the names of all servers: one under its own name goes before another form of a name.
pub fn declarations(server: &Server, others: &[&str]) -> String {
    let aliases = aliases(&server.tools, is_identifier);
    let functions = server.tools.iter().map(|(tool, _)| tool.identifier.as_str());
    let taken = functions.clone().chain(aliases.iter().map(|(alias, _)| alias.as_str()));
    let mut module = Module { names: Names::of(taken), out: String::new() };
    for (tool, asks) in &server.tools {
        module.function(&Function::of(tool, *asks));
    }
    for (name, text, doc) in BESIDES {
        for form in [name.to_owned(), camel(name)] {
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
    let itself = module.names.fresh("server");
    let forms = forms(name, others);
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

/// The names of a server that are identifiers.
fn forms(name: &str, others: &[&str]) -> Vec<String> {
    let mut forms: Vec<String> = Vec::new();
    let plain = name.replace('-', "_");
    for form in [name.to_owned(), camel(&plain), plain] {
        let is_free = form == name || !others.contains(&form.as_str());
        if is_free && is_identifier(&form) && !is_javascript_keyword(&form) && !forms.contains(&form) {
            forms.push(form);
        }
    }
    forms
}

/// Whether something else is global under the name.
fn is_declared(name: &str) -> bool {
    let package = [TYPESCRIPT_PACKAGE, TYPESCRIPT_GLOBALS];
    let declared = [format!(" const {name}:"), format!(" function {name}("), format!(" class {name} ")];
    GLOBALS.split_ascii_whitespace().any(|global| global == name)
        || package.iter().any(|text| declared.iter().any(|words| text.contains(words)))
}

struct Module {
    names: Names,
    out: String,
}

/// The types of one tool, some of which are definitions that have their names already.
struct Scope<'a> {
    shape: &'a Shape,
    prefix: String,
    named: HashMap<usize, String>,
}

impl Module {
    fn function(&mut self, function: &Function) {
        let identifier = &function.tool.identifier;
        let mut scope = Scope { shape: &function.input, prefix: identifier.clone(), named: HashMap::new() };
        let interface = self.names.fresh(&type_name(identifier, "arguments"));
        let body = self.object(&function.arguments, &mut scope, "  ");
        let returns = match &function.output {
            Some(shape) => {
                let mut scope =
                    Scope { shape, prefix: format!("{identifier}_result"), named: HashMap::new() };
                let name = self.names.fresh(&type_name(identifier, "result"));
                let text = self.kind(&shape.kind, &mut scope, "  ");
                self.out.push_str(&format!("  export type {name} = {text};\n"));
                name
            }
            None => "any".into(),
        };
        self.out.push_str(&format!("  export interface {interface} {body}\n"));
        let mut about = comment_lines(&function.tool.description, DESCRIPTION_CHARS_MAX);
        if function.asks {
            about.push("A person is asked before each call.".into());
        }
        let optional = if function.is_optional() { "?" } else { "" };
        self.out.push_str(&documented(&about, "  "));
        self.out.push_str(&format!(
            "  export function {identifier}(args{optional}: {interface}): Promise<{returns}>;\n"
        ));
        let is_object = |field: &Field| matches!(function.input.resolved(&field.kind), Type::Object(_));
        if function.arguments.fields.first().is_none_or(is_object) {
            return;
        }
        let positions = self.positions(function, &interface, &mut scope);
        self.out.push_str(&format!("  export function {identifier}({positions}): Promise<{returns}>;\n"));
    }

    /// The parameters one after the other.
    fn positions(&mut self, function: &Function, interface: &str, scope: &mut Scope) -> String {
        let mut names = Names::default();
        let mut parameters: Vec<String> = Vec::new();
        for (field, keyword) in function.arguments.fields.iter().zip(&function.keywords) {
            let is_taken = is_javascript_keyword(keyword);
            let name = names.fresh(&if is_taken { format!("{keyword}_") } else { keyword.clone() });
            let text = self.kind(&field.kind, scope, "  ");
            let kind = match text.contains('\n') || text.len() > REPEATED_CHARS_MAX {
                true => format!("{interface}[{}]", quoted(&field.name, Language::Typescript)),
                false => text,
            };
            parameters.push(format!("{name}{}: {kind}", if field.required { "" } else { "?" }));
        }
        parameters.join(", ")
    }

    fn kind(&mut self, kind: &Type, scope: &mut Scope, indent: &str) -> String {
        let text = match kind {
            Type::Any => "any",
            Type::Never => "never",
            Type::Null => "null",
            Type::Bool => "boolean",
            Type::Int | Type::Float => "number",
            Type::Str => "string",
            Type::Literal(values) => {
                let texts = values.iter().map(|value| inline::value(value, Language::Typescript));
                return texts.collect::<Vec<_>>().join(" | ");
            }
            Type::List(items) => return inline::array_of(&self.kind(items, scope, indent)),
            Type::Tuple { items, required, rest } => {
                return self.tuple(items, *required, rest, scope, indent);
            }
            Type::Object(object) => return self.object(object, scope, indent),
            Type::Union(options) => {
                let mut texts: Vec<String> = Vec::new();
                for option in options {
                    let text = self.kind(option, scope, indent);
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
            let text = self.kind(item, scope, indent);
            texts.push(if index < required { text } else { format!("({text})?") });
        }
        if *rest != Type::Never {
            texts.push(format!("...Array<{}>", self.kind(rest, scope, indent)));
        }
        format!("[{}]", texts.join(", "))
    }

    fn definition(&mut self, index: usize, scope: &mut Scope) -> String {
        if let Some(name) = scope.named.get(&index) {
            return name.clone();
        }
        let definition = &scope.shape.definitions[index];
        let name = self.names.fresh(&type_name(&scope.prefix, &definition.name));
        scope.named.insert(index, name.clone());
        let about = documented(&comment_lines(&definition.description, FIELD_CHARS_MAX), "  ");
        let text = self.kind(&definition.kind, scope, "  ");
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
            let kind = self.kind(&field.kind, scope, &inner);
            let mut about = comment_lines(&field.description, FIELD_CHARS_MAX);
            if let Some(default) = &field.default {
                let value = inline::value(default, Language::Typescript);
                if value.len() <= DEFAULT_CHARS_MAX {
                    about.push(format!("Default: {value}"));
                }
            }
            text.push_str(&documented(&about, &inner));
            let optional = if field.required { "" } else { "?" };
            text.push_str(&format!("{inner}{}{optional}: {kind};\n", key(&field.name)));
        }
        let rest = match &object.rest {
            Some(rest) if object.fields.is_empty() => Some(self.kind(rest, scope, &inner)),
            // What has a type of its own need not be of the type of the rest.
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

/// A property, quoted where a declaration could mean something else by it.
fn key(name: &str) -> String {
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

/// A comment for the declaration that follows. It cannot end early, and has no tags and directives of others.
fn documented(lines: &[String], indent: &str) -> String {
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
