//! Finds the tool calls that a program certainly makes, and whose failure it does not catch. The supervisor
//! checks these calls before the run.
//!
//! Finds only awaited calls `SERVER.TOOL(…)` outside of `try`, branches, loops and callbacks. The search ends at the
//! first statement that contains a `return`, or that is of a kind that the search does not support, such as `throw`.

use std::collections::BTreeMap;

use oxc::ast::ast::{
    Argument, ArrayExpressionElement, BindingIdentifier, CallExpression, Expression, Function,
    ObjectExpression, ObjectPropertyKind, Program, PropertyKind, ReturnStatement, Statement, UnaryOperator,
};
use oxc::ast_visit::{Visit, walk};
use oxc::span::Span;
use oxc::syntax::scope::ScopeFlags;
use serde_json::{Map, Value};

use super::source_map::Position;

/// Maximum nesting depth of calls of the program's own functions whose bodies are searched.
const DEPTH_MAX: usize = 4;
/// Largest integer that JavaScript represents exactly.
const SAFE_INTEGER_MAX: f64 = 9_007_199_254_740_991.0;

/// A call of a tool that the program makes on every path.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PlannedToolCall {
    /// The name by which the program refers to the server, such as `github`.
    pub(super) server: String,
    pub(super) tool: String,
    /// The arguments as JSON, with `null` for values that are not literals. `None` if the names or the number of
    /// the arguments are not known before the run.
    pub(super) arguments: Option<Value>,
    pub(super) position: Position,
}

/// Returns the planned calls of a submitted program: the tool calls that it makes in every run and whose failure it
/// does not catch. They are in the order of the text.
pub(super) fn collect(source: &str, program: &Program) -> Vec<PlannedToolCall> {
    let mut bound = BoundNames::default();
    bound.visit_program(program);
    let mut functions = BTreeMap::new();
    for statement in &program.body {
        if let Statement::FunctionDeclaration(function) = statement
            && let (Some(name), Some(body)) = (&function.id, &function.body)
            && function.r#async
            && !function.generator
        {
            functions.insert(name.name.as_str(), body.statements.as_slice());
        }
    }
    let mut finder = Finder { source, bound: bound.0, functions, following: Vec::new(), calls: Vec::new() };
    finder.statements(&program.body, true);
    finder.calls.sort_by_key(|call| (call.position.line, call.position.column));
    finder.calls
}

/// The names that a program declares, with the number of their declarations.
#[derive(Default)]
struct BoundNames(BTreeMap<String, usize>);

impl<'a> Visit<'a> for BoundNames {
    fn visit_binding_identifier(&mut self, name: &BindingIdentifier<'a>) {
        *self.0.entry(name.name.to_string()).or_default() += 1;
    }
}

/// Finds out whether a statement contains a `return`, outside of functions nested in it.
#[derive(Default)]
struct ReturnFinder(bool);

impl<'a> Visit<'a> for ReturnFinder {
    fn visit_return_statement(&mut self, _: &ReturnStatement<'a>) {
        self.0 = true;
    }

    fn visit_function(&mut self, _: &Function<'a>, _: ScopeFlags) {}

    fn visit_arrow_function_expression(&mut self, _: &oxc::ast::ast::ArrowFunctionExpression<'a>) {}
}

fn may_return(statement: &Statement) -> bool {
    let mut finder = ReturnFinder::default();
    walk::walk_statement(&mut finder, statement);
    finder.0
}

struct Finder<'p, 'a> {
    source: &'p str,
    bound: BTreeMap<String, usize>,
    /// The statements of the async functions at the top level of the program, by the name of the function.
    functions: BTreeMap<&'p str, &'p [Statement<'a>]>,
    /// The names of the program's functions whose bodies are being visited, outermost first.
    following: Vec<String>,
    calls: Vec<PlannedToolCall>,
}

impl<'p, 'a> Finder<'p, 'a> {
    /// Visits statements in order. Stops after a statement that contains a `return`, and at a statement of an
    /// unsupported kind, such as `throw`. `is_program` tells whether these are the statements of the program itself:
    /// the value of the last one is then awaited.
    fn statements(&mut self, statements: &'p [Statement<'a>], is_program: bool) {
        for (position, statement) in statements.iter().enumerate() {
            match statement {
                // The value of the program is awaited.
                Statement::ExpressionStatement(one) => {
                    self.expression(&one.expression, is_program && position + 1 == statements.len());
                }
                Statement::VariableDeclaration(declaration) => {
                    for declarator in &declaration.declarations {
                        if let Some(value) = &declarator.init {
                            self.expression(value, false);
                        }
                    }
                }
                Statement::ReturnStatement(returned) => {
                    if let Some(value) = &returned.argument {
                        self.expression(value, true);
                    }
                    return;
                }
                Statement::IfStatement(branch) => self.expression(&branch.test, false),
                Statement::WhileStatement(repeated) => self.expression(&repeated.test, false),
                Statement::ForOfStatement(repeated) => self.expression(&repeated.right, false),
                Statement::ForInStatement(repeated) => self.expression(&repeated.right, false),
                Statement::TryStatement(_)
                | Statement::FunctionDeclaration(_)
                | Statement::ImportDeclaration(_)
                | Statement::TSInterfaceDeclaration(_)
                | Statement::TSTypeAliasDeclaration(_)
                | Statement::EmptyStatement(_) => {}
                _ => return,
            }
            if may_return(statement) {
                return;
            }
        }
    }

    /// Collects the planned calls in those parts of an expression that are always evaluated. `is_awaited` tells whether
    /// the program waits for the expression's promise.
    fn expression(&mut self, expression: &'p Expression<'a>, is_awaited: bool) {
        match expression {
            Expression::AwaitExpression(one) => self.expression(&one.argument, true),
            Expression::ParenthesizedExpression(one) => self.expression(&one.expression, is_awaited),
            Expression::TSAsExpression(one) => self.expression(&one.expression, is_awaited),
            Expression::TSNonNullExpression(one) => self.expression(&one.expression, is_awaited),
            Expression::TSSatisfiesExpression(one) => self.expression(&one.expression, is_awaited),
            Expression::CallExpression(call) => self.call(call, is_awaited),
            Expression::StaticMemberExpression(member) => self.expression(&member.object, false),
            Expression::ComputedMemberExpression(member) => self.expression(&member.object, false),
            Expression::BinaryExpression(both) => {
                self.expression(&both.left, false);
                self.expression(&both.right, false);
            }
            Expression::LogicalExpression(both) => self.expression(&both.left, false),
            Expression::ConditionalExpression(branch) => self.expression(&branch.test, false),
            Expression::UnaryExpression(one) => self.expression(&one.argument, false),
            Expression::TemplateLiteral(text) => {
                text.expressions.iter().for_each(|part| self.expression(part, false));
            }
            Expression::ArrayExpression(list) => {
                let parts = list.elements.iter().filter_map(ArrayExpressionElement::as_expression);
                parts.for_each(|part| self.expression(part, false));
            }
            Expression::ObjectExpression(object) => {
                for property in &object.properties {
                    if let ObjectPropertyKind::ObjectProperty(property) = property {
                        self.expression(&property.value, false);
                    }
                }
            }
            _ => {}
        }
    }

    fn call(&mut self, call: &'p CallExpression<'a>, is_awaited: bool) {
        let is_awaited = is_awaited && !call.optional;
        match &call.callee {
            Expression::StaticMemberExpression(member) if !member.optional => {
                let root = match &member.object {
                    Expression::Identifier(root) => Some(root.name.as_str()),
                    _ => None,
                };
                match root {
                    Some("Promise") if is_awaited && member.property.name == "all" => {
                        if let Some(Argument::ArrayExpression(list)) = call.arguments.first() {
                            let parts =
                                list.elements.iter().filter_map(ArrayExpressionElement::as_expression);
                            parts.for_each(|part| self.expression(part, true));
                        }
                        return;
                    }
                    Some("Promise") => {}
                    Some(root) if is_awaited && !self.bound.contains_key(root) => {
                        self.add(root, member.property.name.as_str(), member.property.span, call);
                    }
                    _ => self.expression(&member.object, false),
                }
            }
            Expression::Identifier(name) if is_awaited => self.follow(name.name.as_str()),
            _ => {}
        }
        for argument in call.arguments.iter().filter_map(Argument::as_expression) {
            self.expression(argument, false);
        }
    }

    fn add(&mut self, server: &str, tool: &str, place: Span, call: &CallExpression) {
        self.calls.push(PlannedToolCall {
            server: server.to_owned(),
            tool: tool.to_owned(),
            arguments: arguments(call),
            position: Position::from_byte(self.source, place.start as usize),
        });
    }

    /// Visits the statements of the program's async function `name`, which the program calls and awaits. Does nothing
    /// if the program declares the name several times or not as such a function, for a recursive call, and at a depth
    /// of [`DEPTH_MAX`] calls.
    fn follow(&mut self, name: &str) {
        let is_single = self.bound.get(name) == Some(&1);
        let Some(body) = self.functions.get(name).copied().filter(|_| is_single) else { return };
        if self.following.len() < DEPTH_MAX && !self.following.iter().any(|other| other == name) {
            self.following.push(name.to_owned());
            self.statements(body, false);
            self.following.pop();
        }
    }
}

/// Returns the arguments of a call as JSON: an object of named arguments, or an array of values. Returns `None` if the
/// names or the number of the arguments are not known before the run.
fn arguments(call: &CallExpression) -> Option<Value> {
    let given: Option<Vec<&Expression>> = call.arguments.iter().map(Argument::as_expression).collect();
    match given?.as_slice() {
        [] => Some(Value::Object(Map::new())),
        [Expression::ObjectExpression(object)] => named_arguments(object),
        // A value that is not known may be the object with the arguments by name.
        [one] => literal(one).map(|value| Value::Array(vec![value])),
        several => Some(several.iter().map(|one| literal(one).unwrap_or_default()).collect()),
    }
}

fn named_arguments(object: &ObjectExpression) -> Option<Value> {
    let mut named = Map::new();
    for property in &object.properties {
        let ObjectPropertyKind::ObjectProperty(property) = property else { return None };
        let is_plain = property.kind == PropertyKind::Init && !property.method && !property.computed;
        let name = property.key.static_name().filter(|name| is_plain && name != "__proto__")?;
        if named.insert(name.into_owned(), literal(&property.value).unwrap_or_default()).is_some() {
            return None;
        }
    }
    Some(Value::Object(named))
}

/// Returns the value of a string, boolean or number literal; `None` for every other expression.
fn literal(expression: &Expression) -> Option<Value> {
    match expression {
        Expression::StringLiteral(text) => Some(text.value.as_str().into()),
        Expression::BooleanLiteral(one) => Some(one.value.into()),
        Expression::NumericLiteral(number) => number_value(number.value),
        Expression::UnaryExpression(one) if one.operator == UnaryOperator::UnaryNegation => {
            match &one.argument {
                Expression::NumericLiteral(number) => number_value(-number.value),
                _ => None,
            }
        }
        _ => None,
    }
}

fn number_value(number: f64) -> Option<Value> {
    if number.fract() == 0.0 && number.abs() <= SAFE_INTEGER_MAX {
        return Some((number as i64).into());
    }
    serde_json::Number::from_f64(number).map(Value::Number)
}

#[cfg(test)]
mod tests {
    use super::super::typescript::translate;

    fn planned(source: &str) -> Vec<String> {
        let Ok(translated) = translate(source, false) else { panic!("it is valid: {source}") };
        let text = |arguments: Option<serde_json::Value>| {
            arguments.map_or("?".to_owned(), |arguments| arguments.to_string())
        };
        let calls = translated.planned_calls.into_iter();
        calls
            .map(|call| {
                let at = format!("{}:{}", call.position.line, call.position.column);
                format!("{at} {}.{} {}", call.server, call.tool, text(call.arguments))
            })
            .collect()
    }

    #[test]
    fn calls_on_every_path_are_found() {
        for (source, expected) in [
            ("await a.b({x: 1, 'y-z': v, s: \"t\"})", &[r#"1:9 a.b {"x":1,"y-z":null,"s":"t"}"#][..]),
            ("const r = await a.b(); r.c", &["1:19 a.b {}"]),
            ("const r = (await a.b(1, v)).c", &["1:20 a.b [1,null]"]),
            ("a.b(v)", &["1:3 a.b ?"]),
            ("return a.b({...v})", &["1:10 a.b ?"]),
            ("await Promise.all([a.b(), c.d('x')])", &["1:22 a.b {}", "1:29 c.d [\"x\"]"]),
            ("async function main() {\n  return await a.b();\n}\nawait main();", &["2:18 a.b {}"]),
            ("for (const r of await a.b()) { await a.c(); }\nawait a.d();", &["1:25 a.b {}", "2:9 a.d {}"]),
            ("if (await a.b()) { await a.c() }", &["1:13 a.b {}"]),
        ] {
            assert_eq!(planned(source), expected, "{source}");
        }
    }

    #[test]
    fn calls_that_may_not_run_or_may_be_caught_are_not_found() {
        for source in [
            "const p = a.b(); try { await p } catch {}",
            "try { await a.b() } catch {}",
            "await a.b().catch(() => 1)",
            "await Promise.allSettled([a.b()])",
            "x && await a.b()",
            "x ? await a.b() : 1",
            "[1].map(async () => await a.b())",
            "if (x) { return } await a.b()",
            "while (x) { await a.b() }",
            "const a = {b() {}}; await a.b()",
            "async function f(a) { await a.b() } await f(1)",
            "async function f() { await a.b() } try { await f() } catch {}",
            "await a?.b()",
            "await a.b?.()",
            "throw 1; await a.b()",
        ] {
            assert_eq!(planned(source), [""; 0], "{source}");
        }
    }
}
