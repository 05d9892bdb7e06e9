//! Determines the value of a program: makes its last expression the return value, calls an uncalled function at its
//! end, and creates advice for a program without a value.

use std::collections::BTreeSet;

use oxc::allocator::{ArenaBox, ArenaVec, GetAllocator, TakeIn};
use oxc::ast::ast::{
    AssignmentTarget, Expression, FormalParameters, IdentifierReference, Program, Statement,
};
use oxc::ast::builder::AstBuilder;
use oxc::ast_visit::Visit;
use oxc::span::Span;

use super::source_map::Position;

/// Maximum number of characters shown of a name in a message to the program's author.
const NAME_CHARS_MAX: usize = 60;

/// Turns the program's last expression into a `return` statement, so that its value is the result. Declarations without
/// effects may follow the expression. If the value is a function that needs no arguments, the function is called. If
/// the program does not end with an expression, but has a main function that needs no arguments and that it does not
/// use, a call of that function is added and returned. The main function is `default_function`, the default export, or
/// else the function `main`.
pub(super) fn return_last_expression<'a>(
    program: &mut Program<'a>,
    default_function: Option<&str>,
    builder: &AstBuilder<'a>,
) {
    // A program that consists of a string literal is parsed as a directive.
    if program.body.is_empty()
        && let Some(directive) = program.directives.pop()
    {
        let span = directive.span;
        let value = Expression::StringLiteral(ArenaBox::new_in(directive.expression, builder));
        program.body.push(Statement::new_return_statement(span, Some(value), builder));
        return;
    }
    let functions = callable_functions(program);
    let main = default_function.unwrap_or("main");
    let calls_main = functions.contains(main) && !uses(program, main);
    let last = program.body.iter_mut().rev().find(|statement| !does_nothing(statement));
    if let Some(Statement::ExpressionStatement(statement)) = last {
        let span = statement.span;
        let mut value = statement.expression.take_in(builder);
        if is_uncalled_function(&value, &functions) {
            let none = ArenaVec::new_in(builder);
            value = Expression::new_call_expression(span, value, None, none, false, builder);
        }
        if let Some(last) = program.body.iter_mut().rev().find(|statement| !does_nothing(statement)) {
            *last = Statement::new_return_statement(span, Some(value), builder);
        }
    } else if calls_main {
        let span = Span::empty(0);
        let main = Expression::new_identifier(span, builder.allocator().alloc_str(main), builder);
        let none = ArenaVec::new_in(builder);
        let value = Expression::new_call_expression(span, main, None, none, false, builder);
        program.body.push(Statement::new_return_statement(span, Some(value), builder));
    }
}

/// Returns whether a statement declares something and has no effect, so that it can follow the last expression.
pub(super) fn does_nothing(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::EmptyStatement(_)
            | Statement::FunctionDeclaration(_)
            | Statement::ImportDeclaration(_)
            | Statement::TSInterfaceDeclaration(_)
            | Statement::TSTypeAliasDeclaration(_)
    )
}

/// Returns the names of the functions that the program declares at its top level and that need no arguments.
fn callable_functions(program: &Program) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for statement in &program.body {
        match statement {
            Statement::FunctionDeclaration(function)
                if needs_nothing(&function.params) && !function.generator =>
            {
                names.extend(function.id.as_ref().map(|name| name.name.to_string()));
            }
            Statement::VariableDeclaration(declaration) => {
                for declarator in &declaration.declarations {
                    let is_function = declarator.init.as_ref().is_some_and(is_plain_function);
                    let name = declarator.id.get_identifier_name().filter(|_| is_function);
                    names.extend(name.map(|name| name.to_string()));
                }
            }
            _ => {}
        }
    }
    names
}

fn is_uncalled_function(value: &Expression, functions: &BTreeSet<String>) -> bool {
    match value {
        Expression::Identifier(name) => functions.contains(name.name.as_str()),
        Expression::ParenthesizedExpression(inner) => is_uncalled_function(&inner.expression, functions),
        other => is_plain_function(other),
    }
}

/// Returns whether an expression is a function that needs no arguments.
fn is_plain_function(value: &Expression) -> bool {
    match value {
        Expression::ArrowFunctionExpression(function) => needs_nothing(&function.params),
        Expression::FunctionExpression(function) => needs_nothing(&function.params) && !function.generator,
        _ => false,
    }
}

fn needs_nothing(parameters: &FormalParameters) -> bool {
    parameters.items.is_empty()
}

/// Returns whether the program uses a name.
fn uses(program: &Program, name: &str) -> bool {
    let mut finder = NameFinder { name, is_used: false };
    finder.visit_program(program);
    finder.is_used
}

struct NameFinder<'n> {
    name: &'n str,
    is_used: bool,
}

impl<'a> Visit<'a> for NameFinder<'_> {
    fn visit_identifier_reference(&mut self, identifier: &IdentifierReference<'a>) {
        self.is_used |= identifier.name == self.name;
    }
}

/// Returns advice for a program that ends with an assignment instead of a value. Otherwise returns `None`.
pub(super) fn advice(source: &str, program: &Program) -> Option<String> {
    match program.body.iter().rev().find(|statement| !does_nothing(statement))? {
        Statement::VariableDeclaration(declaration) => assigned(
            source,
            declaration.declarations.last()?.id.get_identifier_name()?.as_str(),
            declaration.span,
        ),
        Statement::ExpressionStatement(statement) => match &statement.expression {
            Expression::AssignmentExpression(assignment) => {
                let AssignmentTarget::AssignmentTargetIdentifier(name) = &assignment.left else {
                    return None;
                };
                assigned(source, name.name.as_str(), assignment.span)
            }
            _ => None,
        },
        _ => None,
    }
}

fn assigned(source: &str, name: &str, place: Span) -> Option<String> {
    let line = Position::from_byte(source, place.start as usize).line;
    let shown: String = name.chars().take(NAME_CHARS_MAX).collect();
    Some(format!("end with an expression; `{shown}` was assigned on line {line}"))
}

#[cfg(test)]
mod tests {
    use super::super::typescript::{translate, translated};

    #[test]
    fn a_function_at_the_end_is_called() {
        for (source, expected) in [
            ("async () => 1", "return (async () => 1)()"),
            ("(async () => { return 1 })", "})()"),
            ("async function main() { return 1 }", "return main()"),
            ("const f = async () => 1; f", "return f()"),
            ("function f() { return 1 } f", "return f()"),
            ("export default async function () { return 1 }", "return async function() {\n\treturn 1;\n}()"),
            ("export default function f() { return 1 }", "return f()"),
        ] {
            assert!(translated(source).contains(expected), "{source} became {}", translated(source));
        }
        for source in [
            "async (x) => x",
            "async function main(x) { return 1 }",
            "async function main() {} main();",
            "await f(); export default async function f() {}",
            "github.list",
        ] {
            let javascript = translated(source);
            assert!(
                !javascript.contains(")()") && !javascript.contains("return main()\n"),
                "{source} became {javascript}"
            );
        }
    }

    #[test]
    fn a_missing_value_is_explained() {
        let advice =
            |source| translate(source, false).ok().and_then(|translated| translated.missing_value_advice);
        for (source, expected) in [
            ("const result = 1", Some("end with an expression; `result` was assigned on line 1")),
            ("let r;\nr = await a.b()", Some("end with an expression; `r` was assigned on line 2")),
            ("console.log(1)", None),
        ] {
            assert_eq!(advice(source).as_deref(), expected, "{source}");
        }
    }
}
