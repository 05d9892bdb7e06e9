//! Extracts a function or other definition of a program as a self-contained module: its source, with all
//! definitions that it uses. A skill is saved in this way.

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

use super::nesting_limit;
use super::source_map::Position;

/// Built-in globals that the initializer of a saved constant may call, since their calls have no effect
/// outside of the program.
const PURE_GLOBALS: [&str; 27] = [
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
const ALTERNATIVE: &str =
    "pass it as a parameter, or give the whole source: skills.save({ name, description, code })";

/// Why a definition cannot be extracted.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExtractError {
    #[error("there is no program")]
    NoProgram,
    #[error(
        "{0} is not defined by a function, class or const at the top of this program; move it there, or give its \
         source: skills.save({{ name, description, code }})"
    )]
    Undefined(String),
    #[error("{name} on line {line} cannot be saved: {why}; {ALTERNATIVE}")]
    Unsaveable { name: String, line: u32, why: &'static str },
    #[error("line {user} uses what line {line} sets, and {why}; {ALTERNATIVE}")]
    Uses { user: u32, line: u32, why: &'static str },
}

/// A definition that was extracted from a program, as the source of a self-contained module.
pub(super) struct SkillSource {
    pub(super) code: String,
    /// Global names that the module uses but does not define.
    pub(super) free: BTreeSet<String>,
}

/// Extracts the top-level definition of `name` from a program, with all definitions that it uses.
///
/// # Errors
/// Why the definition cannot be saved without the rest of the program.
pub(super) fn extract(source: &str, name: &str) -> Result<SkillSource, ExtractError> {
    let absent = || ExtractError::Undefined(name.to_owned());
    if nesting_limit::too_deep_at(source).is_some() {
        return Err(absent());
    }
    let allocator = Allocator::default();
    let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
    let kind = SourceType::ts().with_module(true);
    let program = Parser::new(&allocator, source, kind).with_options(options).parse().program;
    let semantic = SemanticBuilder::new().with_build_nodes(true).build(&program).semantic;
    let statements = Statements::analyze(&program.body, &semantic);
    let definitions = statements.bound.get(name).ok_or_else(absent)?;
    let line = |at: usize| Position::from_byte(source, program.body[at].span().start as usize).line;
    let (mut taken, mut free) = (BTreeSet::new(), BTreeSet::new());
    // Statements to be added, each with the line that uses it.
    let mut waiting: Vec<(usize, Option<u32>)> = definitions.iter().map(|at| (*at, None)).collect();
    while let Some((at, needed_on)) = waiting.pop() {
        if !taken.insert(at) {
            continue;
        }
        if let Err(why) = check_self_contained(&program.body[at], semantic.scoping()) {
            let line = line(at);
            return Err(match needed_on {
                None => ExtractError::Unsaveable { name: name.to_owned(), line, why },
                Some(user) => ExtractError::Uses { user, line, why },
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
        if definitions.contains(at) && !exports { format!("export {text}") } else { text.to_owned() }
    };
    let parts: Vec<String> = taken.iter().map(text).collect();
    free.remove("arguments");
    Ok(SkillSource { code: parts.join("\n\n") + "\n", free })
}

/// The top-level statements of a program, by index: the statements that declare each name (`bound`), the other
/// statements that each one uses, and the global names that each one uses (`free`).
struct Statements<'a> {
    bound: BTreeMap<&'a str, BTreeSet<usize>>,
    uses: BTreeMap<usize, BTreeSet<usize>>,
    free: BTreeMap<usize, BTreeSet<&'a str>>,
}

impl<'a> Statements<'a> {
    fn analyze(body: &[Statement<'a>], semantic: &'a Semantic<'a>) -> Self {
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

/// Checks that a statement only defines something, and that its value does not depend on a run of the program. The
/// error is the reason, as a part of an [`ExtractError`].
fn check_self_contained(statement: &Statement, scoping: &Scoping) -> Result<(), &'static str> {
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
        return Err("that is not a const");
    }
    let mut finder = CallFinder { scoping, has_calls: false };
    finder.visit_variable_declaration(variables);
    if finder.has_calls { Err("that is made by a call") } else { Ok(()) }
}

/// Finds calls in the initializer of a constant. Such calls would run when the saved module is loaded.
struct CallFinder<'s> {
    scoping: &'s Scoping,
    has_calls: bool,
}

impl CallFinder<'_> {
    /// Sets `has_calls` unless the called expression is known to have no effects: a built-in global of
    /// [`PURE_GLOBALS`], or a method of a literal or of such a global. Examples are `new Map()` and `/x/.exec("y")`.
    fn check_callee(&mut self, mut callee: &Expression) {
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
                    self.has_calls |= !(is_global && PURE_GLOBALS.contains(&name.name.as_str()));
                    return;
                }
                other => {
                    self.has_calls |= !(other.is_literal()
                        || matches!(other, Expression::ArrayExpression(_) | Expression::TemplateLiteral(_)));
                    return;
                }
            }
        }
    }
}

impl<'a> Visit<'a> for CallFinder<'_> {
    fn visit_function(&mut self, _: &Function<'a>, _: ScopeFlags) {}

    fn visit_arrow_function_expression(&mut self, _: &ArrowFunctionExpression<'a>) {}

    fn visit_await_expression(&mut self, _: &AwaitExpression<'a>) {
        self.has_calls = true;
    }

    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        self.check_callee(&call.callee);
        walk::walk_call_expression(self, call);
    }

    fn visit_new_expression(&mut self, new: &NewExpression<'a>) {
        self.check_callee(&new.callee);
        walk::walk_new_expression(self, new);
    }

    fn visit_tagged_template_expression(&mut self, tagged: &TaggedTemplateExpression<'a>) {
        self.check_callee(&tagged.tag);
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
        let Ok(SkillSource { code, free }) = extract(PROGRAM, "report") else { panic!("it can be cut out") };
        let expected = "import { list } from \"mcp_tools/x\";\n\nconst LIMIT = 3, NAMES = new Set([\"a\"]);\n\n\
            type Row = { id: number };\n\nconst half = (n: number) => n / 2;\n\nexport async function report(n: Row): \
            Promise<number> {\n  return half(LIMIT) + (await list()).length + NAMES.size + Math.abs(n.id);\n}\n";
        assert_eq!(code, expected);
        assert!(free.contains("Math") && !free.contains("list"), "{free:?}");
        assert!(extract(PROGRAM, "half").is_ok_and(|cut| cut.code.starts_with("export const half")));
        assert!(extract(PROGRAM, "lost").is_ok_and(|cut| cut.free.contains("zzz")));
    }

    #[test]
    fn what_cannot_stand_alone_says_why() {
        for (name, why) in [
            ("bad", "line 12 uses what line 7 sets, and that is made by a call"),
            ("count", "and that is not a const"),
            ("rows", "rows on line 7 cannot be saved: that is made by a call"),
            ("nothing", "is not defined"),
            ("", "is not defined"),
        ] {
            let message = extract(PROGRAM, name).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(message.contains(why), "{name}: {message}");
        }
    }
}
