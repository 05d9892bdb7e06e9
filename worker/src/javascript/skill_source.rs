//! The source of one function of the program, with what it uses of the rest, as a module of its own.

use std::collections::{BTreeMap, BTreeSet};

use oxc::allocator::Allocator;
use oxc::ast::ast::{
    ArrowFunctionExpression, AwaitExpression, CallExpression, Declaration, Expression, Function,
    NewExpression, Statement, TaggedTemplateExpression, VariableDeclaration,
};
use oxc::ast_visit::{Visit, walk};
use oxc::parser::{ParseOptions, Parser};
use oxc::semantic::{ScopeFlags, Scoping, Semantic, SemanticBuilder};
use oxc::span::{GetSpan, SourceType, Span};

use super::nesting;
use super::positions::Place;

/// What a constant may be made by: nothing that is a tool, or the program's own.
const LANGUAGE: [&str; 27] = [
    "Array",
    "BigInt",
    "Boolean",
    "Date",
    "Error",
    "Float32Array",
    "Float64Array",
    "Int32Array",
    "JSON",
    "Map",
    "Math",
    "Number",
    "Object",
    "Promise",
    "Proxy",
    "RegExp",
    "Set",
    "String",
    "Symbol",
    "TextDecoder",
    "TextEncoder",
    "URLSearchParams",
    "Uint8Array",
    "WeakMap",
    "WeakSet",
    "parseFloat",
    "parseInt",
];
const OTHERWISE: &str =
    "pass it as a parameter, or give the whole source: skills.save({ name, description, code })";

/// Why a definition cannot stand alone as a module.
#[derive(Debug, thiserror::Error)]
pub(super) enum CutError {
    #[error("there is no program")]
    NoProgram,
    #[error(
        "{0} is not defined by a function, class or const at the top of this program; move it there, or give its \
         source: skills.save({{ name, description, code }})"
    )]
    Undefined(String),
    #[error("{name} on line {line} cannot be saved: {why}; {OTHERWISE}")]
    Unsaveable { name: String, line: u32, why: &'static str },
    #[error("line {user} uses what line {line} sets, and {why}; {OTHERWISE}")]
    Uses { user: u32, line: u32, why: &'static str },
}

/// A module's source.
pub(super) struct Cut {
    pub(super) code: String,
    /// Names that it takes from the global scope.
    pub(super) free: BTreeSet<String>,
}

/// Cuts the definition of a name at the top of the program out of it.
///
/// # Errors
/// Why it cannot stand alone.
pub(super) fn cut(source: &str, name: &str) -> Result<Cut, CutError> {
    let absent = || CutError::Undefined(name.to_owned());
    if nesting::too_deep_at(source).is_some() {
        return Err(absent());
    }
    let allocator = Allocator::default();
    let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
    let kind = SourceType::ts().with_module(true);
    let program = Parser::new(&allocator, source, kind).with_options(options).parse().program;
    let semantic = SemanticBuilder::new().with_build_nodes(true).build(&program).semantic;
    let statements = Statements::of(&program.body, &semantic);
    let wanted = statements.bound.get(name).ok_or_else(absent)?;
    let line = |at: usize| Place::of(source, program.body[at].span().start as usize).line;
    let (mut taken, mut free) = (BTreeSet::new(), BTreeSet::new());
    // Each with the line that needs it.
    let mut waiting: Vec<(usize, Option<u32>)> = wanted.iter().map(|at| (*at, None)).collect();
    while let Some((at, needed_on)) = waiting.pop() {
        if !taken.insert(at) {
            continue;
        }
        if let Err(why) = stands_alone(&program.body[at], semantic.scoping()) {
            let line = line(at);
            return Err(match needed_on {
                None => CutError::Unsaveable { name: name.to_owned(), line, why },
                Some(user) => CutError::Uses { user, line, why },
            });
        }
        free.extend(statements.free.get(&at).into_iter().flatten().map(|name| (*name).to_owned()));
        waiting.extend(statements.uses.get(&at).into_iter().flatten().map(|other| (*other, Some(line(at)))));
    }
    let text = |at: &usize| {
        let statement = &program.body[*at];
        let text = statement.span().source_text(source);
        let exports =
            matches!(statement, Statement::ExportDeclaration(_) | Statement::ExportDefaultDeclaration(_));
        if wanted.contains(at) && !exports { format!("export {text}") } else { text.to_owned() }
    };
    let parts: Vec<String> = taken.iter().map(text).collect();
    free.remove("arguments");
    Ok(Cut { code: parts.join("\n\n") + "\n", free })
}

/// The statements at the top of a program, by their numbers: what each binds, and what of the others it uses.
struct Statements<'a> {
    bound: BTreeMap<&'a str, BTreeSet<usize>>,
    uses: BTreeMap<usize, BTreeSet<usize>>,
    free: BTreeMap<usize, BTreeSet<&'a str>>,
}

impl<'a> Statements<'a> {
    fn of(body: &[Statement<'a>], semantic: &'a Semantic<'a>) -> Self {
        let (scoping, nodes) = (semantic.scoping(), semantic.nodes());
        let at = |span: Span| {
            let after = body.partition_point(|statement| statement.span().start <= span.start);
            after.checked_sub(1).filter(|at| body[*at].span().end >= span.end)
        };
        let mut all = Self { bound: BTreeMap::new(), uses: BTreeMap::new(), free: BTreeMap::new() };
        for symbol in scoping.get_bindings(scoping.root_scope_id()).values() {
            let declared =
                scoping.symbol_declarations(*symbol).map(|node| nodes.get_node(node).kind().span());
            let declared: BTreeSet<usize> = declared.filter_map(at).collect();
            for reference in scoping.get_resolved_references(*symbol) {
                if let Some(user) = at(nodes.get_node(reference.node_id()).kind().span()) {
                    let others = declared.iter().filter(|other| **other != user);
                    all.uses.entry(user).or_default().extend(others);
                }
            }
            all.bound.entry(scoping.symbol_name(*symbol)).or_default().extend(declared);
        }
        for (name, references) in scoping.root_unresolved_references() {
            for reference in references {
                let reference = scoping.get_reference(*reference);
                if reference.is_value()
                    && let Some(user) = at(nodes.get_node(reference.node_id()).kind().span())
                {
                    all.free.entry(user).or_default().insert(name.as_str());
                }
            }
        }
        all
    }
}

/// Whether it does nothing but define, and needs nothing that only a run of the program knows.
fn stands_alone(statement: &Statement, scoping: &Scoping) -> Result<(), &'static str> {
    let variables = match statement {
        Statement::ImportDeclaration(_)
        | Statement::FunctionDeclaration(_)
        | Statement::ClassDeclaration(_)
        | Statement::ExportDefaultDeclaration(_)
        | Statement::TSEnumDeclaration(_)
        | Statement::TSInterfaceDeclaration(_)
        | Statement::TSTypeAliasDeclaration(_)
        | Statement::TSNamespaceDeclaration(_) => return Ok(()),
        Statement::ExportDeclaration(export) => match &export.declaration {
            Declaration::VariableDeclaration(variables) => variables,
            _ => return Ok(()),
        },
        Statement::VariableDeclaration(variables) => variables,
        _ => return Err("that is known only when the program runs"),
    };
    if !variables.kind.is_const() {
        return Err("that is no const");
    }
    let mut look = Look { scoping, calls: false };
    look.visit_variable_declaration(variables);
    if look.calls { Err("that is made by a call") } else { Ok(()) }
}

/// Looks for calls that happen at once.
struct Look<'s> {
    scoping: &'s Scoping,
    calls: bool,
}

impl Look<'_> {
    /// `new Map()` and `/x/.exec("y")` are no calls of the program's own or of a tool.
    fn calls(&mut self, mut callee: &Expression) {
        loop {
            callee = match callee {
                Expression::StaticMemberExpression(member) => &member.object,
                Expression::ComputedMemberExpression(member) => &member.object,
                Expression::CallExpression(call) => &call.callee,
                Expression::NewExpression(new) => &new.callee,
                Expression::ParenthesizedExpression(inner) => &inner.expression,
                Expression::Identifier(name) => {
                    let is_global = name
                        .reference_id
                        .get()
                        .is_some_and(|reference| self.scoping.get_reference(reference).symbol_id().is_none());
                    self.calls |= !(is_global && LANGUAGE.contains(&name.name.as_str()));
                    return;
                }
                other => {
                    self.calls |= !(other.is_literal()
                        || matches!(other, Expression::ArrayExpression(_) | Expression::TemplateLiteral(_)));
                    return;
                }
            }
        }
    }
}

impl<'a> Visit<'a> for Look<'_> {
    fn visit_function(&mut self, _: &Function<'a>, _: ScopeFlags) {}

    fn visit_arrow_function_expression(&mut self, _: &ArrowFunctionExpression<'a>) {}

    fn visit_await_expression(&mut self, _: &AwaitExpression<'a>) {
        self.calls = true;
    }

    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        self.calls(&call.callee);
        walk::walk_call_expression(self, call);
    }

    fn visit_new_expression(&mut self, new: &NewExpression<'a>) {
        self.calls(&new.callee);
        walk::walk_new_expression(self, new);
    }

    fn visit_tagged_template_expression(&mut self, tagged: &TaggedTemplateExpression<'a>) {
        self.calls(&tagged.tag);
        walk::walk_tagged_template_expression(self, tagged);
    }

    fn visit_variable_declaration(&mut self, variables: &VariableDeclaration<'a>) {
        walk::walk_variable_declaration(self, variables);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = "import { list } from \"mcp_tools/x\";\nimport other from \"y\";\nconst LIMIT = 3, NAMES = new Set([\"a\"]);\n\
        type Row = { id: number };\nconst half = (n: number) => n / 2;\nfunction unused() {}\nconst rows = await list();\n\
        let counter = 0;\nasync function report(n: Row): Promise<number> {\n  return half(LIMIT) + (await list()).length + \
        NAMES.size + Math.abs(n.id);\n}\nfunction bad() { return rows; }\nfunction count() { counter += 1; }\nfunction lost() \
        { return zzz; }\nreport({ id: 1 });\n";

    #[test]
    fn what_a_function_uses_comes_with_it() {
        let Ok(Cut { code, free }) = cut(PROGRAM, "report") else { panic!("it can be cut out") };
        let expected = "import { list } from \"mcp_tools/x\";\n\nconst LIMIT = 3, NAMES = new Set([\"a\"]);\n\n\
            type Row = { id: number };\n\nconst half = (n: number) => n / 2;\n\nexport async function report(n: Row): \
            Promise<number> {\n  return half(LIMIT) + (await list()).length + NAMES.size + Math.abs(n.id);\n}\n";
        assert_eq!(code, expected);
        assert!(free.contains("Math") && !free.contains("list"), "{free:?}");
        assert!(cut(PROGRAM, "half").is_ok_and(|cut| cut.code.starts_with("export const half")));
        assert!(cut(PROGRAM, "lost").is_ok_and(|cut| cut.free.contains("zzz")));
    }

    #[test]
    fn what_cannot_stand_alone_says_why() {
        for (name, why) in [
            ("bad", "line 12 uses what line 7 sets, and that is made by a call"),
            ("count", "and that is no const"),
            ("rows", "rows on line 7 cannot be saved: that is made by a call"),
            ("nothing", "is not defined"),
            ("", "is not defined"),
        ] {
            let told = cut(PROGRAM, name).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(told.contains(why), "{name}: {told}");
        }
    }
}
