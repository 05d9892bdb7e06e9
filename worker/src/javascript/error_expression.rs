//! Finds the source text of the expression that caused an error, since QuickJS's messages often do not name
//! it.

use oxc::allocator::Allocator;
use oxc::ast::ast::{
    BindingIdentifier, BindingPattern, CallExpression, ComputedMemberExpression, Expression, ForOfStatement,
    NewExpression, Program, SpreadElement, StaticMemberExpression, ThrowStatement, VariableDeclarator,
};
use oxc::ast_visit::{Visit, walk};
use oxc::parser::{ParseOptions, Parser};
use oxc::span::{GetSpan, SourceType, Span};

use super::source_map::Position;

/// Maximum number of characters shown of an expression.
const EXPRESSION_CHARACTERS_MAX: usize = 60;

/// Maximum size in bytes of a program that is parsed for an error message. Larger programs are not parsed, to save
/// time.
pub(super) const PARSED_BYTES_MAX: usize = 256 * 1024;

/// Maximum number of names collected from one program, to suggest a similar one for an unknown name.
const NAMES_MAX: usize = 2_000;

/// The kind of operation that failed. Its subject is the expression that an error message names.
#[derive(Clone, Copy)]
pub(super) enum FailedOperation<'a> {
    /// The program read this property of undefined or null. The subject is the expression before the property.
    Property(&'a str),
    /// The program called something that is no function. The subject is the called expression.
    Call,
    /// The program used `new` on something that is no constructor. The subject is the constructor expression.
    New,
    /// The program iterated over a value that is not iterable, in a loop, an array pattern or a spread. The
    /// subject is the iterated expression.
    Iteration,
    /// The program destructured null or undefined by an object pattern. The subject is the destructured expression.
    Destructuring,
}

/// Returns the source text of the expression that probably caused the failed operation at a position. Long text is
/// shortened. Returns `None` if no expression fits, or if the program is too large or too deeply nested to be parsed.
pub(super) fn find(source: &str, position: Position, operation: FailedOperation) -> Option<String> {
    let at = u32::try_from(position.to_byte(source)?).ok()?;
    let rest = &source[at as usize..];
    let line_end = at + u32::try_from(rest.find('\n').unwrap_or(rest.len())).ok()?;
    let mut finder = Finder { operation, at, line_end, best: None };
    with_parsed(source, |program| finder.visit_program(program))?;
    let (_, span) = finder.best?;
    expression_text(source, span)
}

/// Returns the source text of an expression on one line, shortened if it is long. Returns `None` for a span that is not in
/// the source text.
pub(super) fn expression_text(source: &str, span: Span) -> Option<String> {
    let words: Vec<&str> = source.get(span.start as usize..span.end as usize)?.split_whitespace().collect();
    let text = words.join(" ");
    Some(match text.char_indices().nth(EXPRESSION_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    })
}

/// Returns the names that a program declares, at most [`NAMES_MAX`]. Returns none for a program that is too large or
/// too deeply nested to be parsed.
pub(super) fn bound_names(source: &str) -> Vec<String> {
    let mut names = BoundNames::default();
    with_parsed(source, |program| names.visit_program(program));
    names.0
}

/// Returns the position of the program's only `throw` whose operand is plainly not an Error, such as `throw "text"`.
/// Returns `None` if the program has no such `throw` or several, or if it is too large or too deeply nested to be
/// parsed.
pub(super) fn only_non_error_throw(source: &str) -> Option<Position> {
    let mut throws = NonErrorThrows::default();
    with_parsed(source, |program| throws.visit_program(program))?;
    match throws.0.as_slice() {
        [start] => Some(Position::from_byte(source, *start as usize)),
        _ => None,
    }
}

fn with_parsed(source: &str, look: impl FnOnce(&Program)) -> Option<()> {
    if source.len() > PARSED_BYTES_MAX || super::nesting_limit::too_deep_at(source).is_some() {
        return None;
    }
    let allocator = Allocator::default();
    let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
    let kind = SourceType::ts().with_module(true);
    look(&Parser::new(&allocator, source, kind).with_options(options).parse().program);
    Some(())
}

struct Finder<'s> {
    operation: FailedOperation<'s>,
    at: u32,
    line_end: u32,
    /// Rank and span of the expression that most probably caused the error, among those visited so far. A lower
    /// rank is more probable.
    best: Option<(u32, Span)>,
}

impl Finder<'_> {
    /// Considers an expression as the cause of the error. `whole` is the span of the operation, `subject` the
    /// span that the error message shows.
    fn add_candidate(&mut self, whole: Span, subject: Span) {
        let rank = if whole.start <= self.at && self.at < whole.end {
            whole.end - whole.start
        } else if self.at <= whole.start && whole.start < self.line_end {
            // QuickJS reported the position of the statement instead.
            u32::MAX / 2 + (whole.start - self.at)
        } else {
            return;
        };
        if self.best.is_none_or(|(best, _)| rank < best) {
            self.best = Some((rank, subject));
        }
    }
}

impl<'a> Visit<'a> for Finder<'_> {
    fn visit_static_member_expression(&mut self, member: &StaticMemberExpression<'a>) {
        if matches!(self.operation, FailedOperation::Property(name) if name == member.property.name) {
            self.add_candidate(member.span, member.object.span());
        }
        walk::walk_static_member_expression(self, member);
    }

    fn visit_computed_member_expression(&mut self, member: &ComputedMemberExpression<'a>) {
        let is_property = |name: &str| match &member.expression {
            Expression::StringLiteral(text) => text.value == name,
            Expression::NumericLiteral(number) => number.value.to_string() == name,
            _ => true,
        };
        if matches!(self.operation, FailedOperation::Property(name) if is_property(name)) {
            self.add_candidate(member.span, member.object.span());
        }
        walk::walk_computed_member_expression(self, member);
    }

    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        if matches!(self.operation, FailedOperation::Call) {
            self.add_candidate(call.callee.span(), call.callee.span());
        }
        walk::walk_call_expression(self, call);
    }

    fn visit_new_expression(&mut self, made: &NewExpression<'a>) {
        if matches!(self.operation, FailedOperation::New) {
            self.add_candidate(made.span, made.callee.span());
        }
        walk::walk_new_expression(self, made);
    }

    fn visit_for_of_statement(&mut self, statement: &ForOfStatement<'a>) {
        if matches!(self.operation, FailedOperation::Iteration) {
            self.add_candidate(statement.right.span(), statement.right.span());
        }
        walk::walk_for_of_statement(self, statement);
    }

    fn visit_spread_element(&mut self, spread: &SpreadElement<'a>) {
        if matches!(self.operation, FailedOperation::Iteration) {
            self.add_candidate(spread.span, spread.argument.span());
        }
        walk::walk_spread_element(self, spread);
    }

    fn visit_variable_declarator(&mut self, declarator: &VariableDeclarator<'a>) {
        if let Some(init) = &declarator.init {
            match (&declarator.id, self.operation) {
                (BindingPattern::ArrayPattern(_), FailedOperation::Iteration)
                | (BindingPattern::ObjectPattern(_), FailedOperation::Destructuring) => {
                    self.add_candidate(declarator.span, init.span());
                }
                _ => {}
            }
        }
        walk::walk_variable_declarator(self, declarator);
    }
}

#[derive(Default)]
struct BoundNames(Vec<String>);

impl<'a> Visit<'a> for BoundNames {
    fn visit_binding_identifier(&mut self, name: &BindingIdentifier<'a>) {
        if self.0.len() < NAMES_MAX {
            self.0.push(name.name.to_string());
        }
    }
}

#[derive(Default)]
struct NonErrorThrows(Vec<u32>);

impl<'a> Visit<'a> for NonErrorThrows {
    fn visit_throw_statement(&mut self, statement: &ThrowStatement<'a>) {
        let is_non_error = !matches!(
            statement.argument,
            Expression::NewExpression(_) | Expression::Identifier(_) | Expression::CallExpression(_)
        );
        if is_non_error {
            self.0.push(statement.span.start);
        }
        walk::walk_throw_statement(self, statement);
    }
}

#[cfg(test)]
mod tests {
    use super::{FailedOperation, Position, find, only_non_error_throw};

    #[test]
    fn the_subject_is_what_fails() {
        for (source, column, operation, expected) in [
            ("console.log(issue.author.login)", 13, FailedOperation::Property("login"), Some("issue.author")),
            ("return this.user!.login", 1, FailedOperation::Property("login"), Some("this.user!")),
            ("a[0].title + b[0].title", 14, FailedOperation::Property("title"), Some("b[0]")),
            ("rows.fliter((n) => n)", 6, FailedOperation::Call, Some("rows.fliter")),
            ("new (github as any).x()", 6, FailedOperation::New, Some("(github as any).x")),
            ("for (const a of b.c) {}", 17, FailedOperation::Iteration, Some("b.c")),
            ("const [a] = f(b)", 1, FailedOperation::Iteration, Some("f(b)")),
            ("const { a } = b.c", 1, FailedOperation::Destructuring, Some("b.c")),
            ("a.b", 1, FailedOperation::Call, None),
        ] {
            let found = find(source, Position { line: 1, column }, operation);
            assert_eq!(found.as_deref(), expected, "{source}");
        }
    }

    #[test]
    fn a_throw_without_an_error_is_found_where_it_is_alone() {
        assert_eq!(only_non_error_throw("f();\n throw 'a'"), Some(Position { line: 2, column: 2 }));
        assert_eq!(only_non_error_throw("if (f()) throw 'a'; throw 'b'"), None);
        assert_eq!(only_non_error_throw("throw new Error('a')"), None);
    }
}
