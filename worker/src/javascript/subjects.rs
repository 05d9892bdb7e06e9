//! The part of a program's text that an error of the engine is about, where its words name less than people need.

use oxc::allocator::Allocator;
use oxc::ast::ast::{
    BindingIdentifier, BindingPattern, CallExpression, ComputedMemberExpression, Expression, ForOfStatement,
    NewExpression, Program, SpreadElement, StaticMemberExpression, ThrowStatement, VariableDeclarator,
};
use oxc::ast_visit::{Visit, walk};
use oxc::parser::{ParseOptions, Parser};
use oxc::span::{GetSpan, SourceType, Span};

use super::positions::Place;

/// Characters of an expression that are shown.
const SHOWN_CHARACTERS: usize = 60;

/// Programs above this size are not parsed once more.
const PARSED_BYTES: usize = 256 * 1024;

/// Names that a program binds, at most.
const NAMES_MAX: usize = 2_000;

/// What fails.
#[derive(Clone, Copy)]
pub(super) enum Failing<'a> {
    /// Taking this property: the subject is what lacks it.
    Property(&'a str),
    /// A call: the subject is what is called.
    Call,
    /// `new`: the subject is the constructor.
    New,
    /// A loop, a list that is taken apart, or one that is spread: the subject is what is gone through.
    Iteration,
    /// An object that is taken apart: the subject is that.
    Destructuring,
}

/// The subject of what fails at a place, as it stands in the text.
pub(super) fn find(source: &str, place: Place, failing: Failing) -> Option<String> {
    let at = u32::try_from(place.byte(source)?).ok()?;
    let rest = &source[at as usize..];
    let line_end = at + u32::try_from(rest.find('\n').unwrap_or(rest.len())).ok()?;
    let mut finder = Finder { failing, at, line_end, best: None };
    parsed(source, |program| finder.visit_program(program))?;
    let (_, span) = finder.best?;
    let words: Vec<&str> = source.get(span.start as usize..span.end as usize)?.split_whitespace().collect();
    let text = words.join(" ");
    Some(match text.char_indices().nth(SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    })
}

/// The names that a program binds.
pub(super) fn names(source: &str) -> Vec<String> {
    let mut names = Names::default();
    parsed(source, |program| names.visit_program(program));
    names.0
}

/// Where the one thing that is no error is thrown, if there is one alone.
pub(super) fn only_odd_throw(source: &str) -> Option<Place> {
    let mut throws = Throws::default();
    parsed(source, |program| throws.visit_program(program))?;
    match throws.0.as_slice() {
        [start] => Some(Place::of(source, *start as usize)),
        _ => None,
    }
}

fn parsed(source: &str, look: impl FnOnce(&Program)) -> Option<()> {
    if source.len() > PARSED_BYTES || super::nesting::too_deep_at(source).is_some() {
        return None;
    }
    let allocator = Allocator::default();
    let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
    let kind = SourceType::ts().with_module(true);
    look(&Parser::new(&allocator, source, kind).with_options(options).parse().program);
    Some(())
}

struct Finder<'s> {
    failing: Failing<'s>,
    at: u32,
    line_end: u32,
    /// The lower, the likelier.
    best: Option<(u32, Span)>,
}

impl Finder<'_> {
    /// A candidate: what is around the failing operation, and its subject.
    fn offer(&mut self, whole: Span, subject: Span) {
        let rank = if whole.start <= self.at && self.at < whole.end {
            whole.end - whole.start
        } else if self.at <= whole.start && whole.start < self.line_end {
            // QuickJS knows no position of it: the statement's.
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
        if matches!(self.failing, Failing::Property(name) if name == member.property.name) {
            self.offer(member.span, member.object.span());
        }
        walk::walk_static_member_expression(self, member);
    }

    fn visit_computed_member_expression(&mut self, member: &ComputedMemberExpression<'a>) {
        let is_it = |name: &str| match &member.expression {
            Expression::StringLiteral(text) => text.value == name,
            Expression::NumericLiteral(number) => number.value.to_string() == name,
            _ => true,
        };
        if matches!(self.failing, Failing::Property(name) if is_it(name)) {
            self.offer(member.span, member.object.span());
        }
        walk::walk_computed_member_expression(self, member);
    }

    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        if matches!(self.failing, Failing::Call) {
            self.offer(call.callee.span(), call.callee.span());
        }
        walk::walk_call_expression(self, call);
    }

    fn visit_new_expression(&mut self, made: &NewExpression<'a>) {
        if matches!(self.failing, Failing::New) {
            self.offer(made.span, made.callee.span());
        }
        walk::walk_new_expression(self, made);
    }

    fn visit_for_of_statement(&mut self, statement: &ForOfStatement<'a>) {
        if matches!(self.failing, Failing::Iteration) {
            self.offer(statement.right.span(), statement.right.span());
        }
        walk::walk_for_of_statement(self, statement);
    }

    fn visit_spread_element(&mut self, spread: &SpreadElement<'a>) {
        if matches!(self.failing, Failing::Iteration) {
            self.offer(spread.span, spread.argument.span());
        }
        walk::walk_spread_element(self, spread);
    }

    fn visit_variable_declarator(&mut self, declarator: &VariableDeclarator<'a>) {
        if let Some(init) = &declarator.init {
            match (&declarator.id, self.failing) {
                (BindingPattern::ArrayPattern(_), Failing::Iteration)
                | (BindingPattern::ObjectPattern(_), Failing::Destructuring) => {
                    self.offer(declarator.span, init.span());
                }
                _ => {}
            }
        }
        walk::walk_variable_declarator(self, declarator);
    }
}

#[derive(Default)]
struct Names(Vec<String>);

impl<'a> Visit<'a> for Names {
    fn visit_binding_identifier(&mut self, name: &BindingIdentifier<'a>) {
        if self.0.len() < NAMES_MAX {
            self.0.push(name.name.to_string());
        }
    }
}

#[derive(Default)]
struct Throws(Vec<u32>);

impl<'a> Visit<'a> for Throws {
    fn visit_throw_statement(&mut self, statement: &ThrowStatement<'a>) {
        let is_odd = !matches!(
            statement.argument,
            Expression::NewExpression(_) | Expression::Identifier(_) | Expression::CallExpression(_)
        );
        if is_odd {
            self.0.push(statement.span.start);
        }
        walk::walk_throw_statement(self, statement);
    }
}

#[cfg(test)]
mod tests {
    use super::{Failing, Place, find, only_odd_throw};

    #[test]
    fn the_subject_is_what_fails() {
        for (source, column, failing, expected) in [
            ("console.log(issue.author.login)", 13, Failing::Property("login"), Some("issue.author")),
            ("return this.user!.login", 1, Failing::Property("login"), Some("this.user!")),
            ("a[0].title + b[0].title", 14, Failing::Property("title"), Some("b[0]")),
            ("rows.fliter((n) => n)", 6, Failing::Call, Some("rows.fliter")),
            ("new (github as any).x()", 6, Failing::New, Some("(github as any).x")),
            ("for (const a of b.c) {}", 17, Failing::Iteration, Some("b.c")),
            ("const [a] = f(b)", 1, Failing::Iteration, Some("f(b)")),
            ("const { a } = b.c", 1, Failing::Destructuring, Some("b.c")),
            ("a.b", 1, Failing::Call, None),
        ] {
            let found = find(source, Place { line: 1, column }, failing);
            assert_eq!(found.as_deref(), expected, "{source}");
        }
    }

    #[test]
    fn a_throw_without_an_error_is_found_where_it_is_alone() {
        assert_eq!(only_odd_throw("f();\n throw 'a'"), Some(Place { line: 2, column: 2 }));
        assert_eq!(only_odd_throw("if (f()) throw 'a'; throw 'b'"), None);
        assert_eq!(only_odd_throw("throw new Error('a')"), None);
    }
}
