//! Determines the value of a program: makes its last expression the return value, calls an uncalled function at its
//! end, and creates advice for a program without a value.

use std::collections::BTreeMap;

use oxc::allocator::{ArenaBox, ArenaVec, GetAllocator, TakeIn};
use oxc::ast::ast::{
    Argument, AssignmentTarget, BindingPattern, ExportDefaultDeclarationKind, Expression, FormalParameter,
    FormalParameters, IdentifierReference, Program, Statement,
};
use oxc::ast::builder::AstBuilder;
use oxc::ast_visit::Visit;
use oxc::span::Span;

use super::source_map::Position;

/// Maximum number of characters shown of a name in a message to the program's author.
const NAME_CHARS_MAX: usize = 60;

/// Turns the program's last expression into a `return` statement, so that its value is the result. Declarations without
/// effects may follow the expression. If the value is a function that can be called ([`CallForm`]), the function is called;
/// if it is a function literal that needs other arguments, it is no value. If
/// the program does not end with an expression, but has a main function that can be called and that it does not
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
    let main_form = functions.get(main).copied().filter(|_| !uses(program, main));
    let last = program.body.iter_mut().rev().find(|statement| !does_nothing(statement));
    if let Some(Statement::ExpressionStatement(statement)) = last {
        if function_parameters(&statement.expression).is_some_and(|form| form.is_none()) {
            return;
        }
        let span = statement.span;
        let mut value = statement.expression.take_in(builder);
        if let Some(form) = uncalled_function(&value, &functions) {
            value = form.call(span, value, builder);
        }
        if let Some(last) = program.body.iter_mut().rev().find(|statement| !does_nothing(statement)) {
            *last = Statement::new_return_statement(span, Some(value), builder);
        }
    } else if let Some(form) = main_form {
        let span = Span::empty(0);
        let main = Expression::new_identifier(span, builder.allocator().alloc_str(main), builder);
        let value = form.call(span, main, builder);
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

/// How a function can be called whose arguments the program does not give.
#[derive(Clone, Copy)]
enum CallForm {
    /// It needs no arguments.
    Plain,
    /// Its only required parameter is taken apart, as in `({ github }) => …`: it gets the object with all servers and
    /// functions, which refuses other names.
    WithServers,
}

impl CallForm {
    /// Returns how a function with these parameters can be called; `None` if it needs other arguments.
    fn of(parameters: &FormalParameters) -> Option<Self> {
        let is_required = |item: &&FormalParameter| {
            item.initializer.is_none() && !matches!(item.pattern, BindingPattern::AssignmentPattern(_))
        };
        let required: Vec<_> = parameters.items.iter().filter(is_required).collect();
        match required.as_slice() {
            [] => Some(Self::Plain),
            [only] if parameters.items.len() == 1 && only.pattern.is_object_pattern() => {
                Some(Self::WithServers)
            }
            _ => None,
        }
    }

    fn call<'a>(self, span: Span, function: Expression<'a>, builder: &AstBuilder<'a>) -> Expression<'a> {
        let mut arguments = ArenaVec::new_in(builder);
        if matches!(self, Self::WithServers) {
            arguments.push(Argument::from(Expression::new_identifier(span, "mcp_tools", builder)));
        }
        Expression::new_call_expression(span, function, None, arguments, false, builder)
    }
}

/// Returns the functions that the program declares at its top level and that can be called.
fn callable_functions(program: &Program) -> BTreeMap<String, CallForm> {
    let mut functions = BTreeMap::new();
    for statement in &program.body {
        match statement {
            Statement::FunctionDeclaration(function) if !function.generator => {
                let named = function.id.as_ref().zip(CallForm::of(&function.params));
                functions.extend(named.map(|(name, form)| (name.name.to_string(), form)));
            }
            Statement::VariableDeclaration(declaration) => {
                for declarator in &declaration.declarations {
                    let form = declarator.init.as_ref().and_then(function_parameters).flatten();
                    let named = declarator.id.get_identifier_name().zip(form);
                    functions.extend(named.map(|(name, form)| (name.to_string(), form)));
                }
            }
            _ => {}
        }
    }
    functions
}

fn uncalled_function(value: &Expression, functions: &BTreeMap<String, CallForm>) -> Option<CallForm> {
    match value {
        Expression::Identifier(name) => functions.get(name.name.as_str()).copied(),
        Expression::ParenthesizedExpression(inner) => uncalled_function(&inner.expression, functions),
        other => function_parameters(other).flatten(),
    }
}

/// Returns how a function literal can be called: `Some(None)` if it needs arguments, and `None` for other expressions.
fn function_parameters(value: &Expression) -> Option<Option<CallForm>> {
    match value {
        Expression::ArrowFunctionExpression(function) => Some(CallForm::of(&function.params)),
        Expression::FunctionExpression(function) if !function.generator => {
            Some(CallForm::of(&function.params))
        }
        Expression::ParenthesizedExpression(inner) => function_parameters(&inner.expression),
        _ => None,
    }
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

/// Returns advice for a program that ends with an assignment instead of a value, or with a function that cannot be called
/// without arguments. Otherwise returns `None`.
pub(super) fn advice(source: &str, program: &Program) -> Option<String> {
    if let Some(function) = uncallable_function(program) {
        return Some(format!(
            "{function} was not called, because it needs arguments: call it at the end, or write its statements as the program"
        ));
    }
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

/// Returns the words for the function at the end of a program that needs arguments and that the program does not use.
fn uncallable_function(program: &Program) -> Option<String> {
    let last = program.body.iter().rev().find(|statement| !does_nothing(statement))?;
    let (name, form) = match last {
        Statement::ExpressionStatement(last) => (None, function_parameters(&last.expression)?),
        Statement::ExportDefaultDeclaration(export) => match &export.declaration {
            ExportDefaultDeclarationKind::FunctionDeclaration(function) if !function.generator => {
                (function.id.as_ref(), CallForm::of(&function.params))
            }
            other => (None, function_parameters(other.as_expression()?)?),
        },
        _ => return None,
    };
    match name {
        _ if form.is_some() => None,
        None => Some("the function".to_owned()),
        Some(name) => (!uses(program, name.name.as_str())).then(|| format!("the function {}", name.name)),
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
