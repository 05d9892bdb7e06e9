//! Positions of the function calls in a program.
//!
//! QuickJS reports a call at the last position that it recorded within the arguments, possibly many lines below the
//! function name. This module maps such a position back to the name of the called function.

use oxc::ast::ast::{
    ArrowFunctionExpression, CallExpression, Expression, Function, NewExpression, Program, ThrowStatement,
};
use oxc::ast_visit::{Visit, walk};
use oxc::span::{GetSpan, Span};
use oxc::syntax::scope::ScopeFlags;

/// The calls and functions of a program, as byte ranges of its text.
#[derive(Debug, Default)]
pub(super) struct CallPositions {
    calls: Vec<Call>,
    functions: Vec<Span>,
    /// Whether the expression that is visited next is the operand of a `throw` statement.
    throws: bool,
}

#[derive(Debug)]
struct Call {
    whole: Span,
    arguments: Span,
    /// Byte offset of the called function's name.
    name: u32,
    is_thrown: bool,
}

impl CallPositions {
    /// Collects the calls of a submitted program.
    pub(super) fn collect(program: &Program) -> Self {
        let mut calls = Self::default();
        calls.visit_program(program);
        calls
    }

    /// Returns the byte offset of the function name in the innermost call around the offset `byte`. Returns `None` if
    /// `byte` is not among the arguments of that call, or is in a function among them. With `thrown_alone`, also
    /// returns `None` if that call does not create a thrown value, as in `throw new Error(…)`.
    pub(super) fn enclosing_call(&self, byte: u32, thrown_alone: bool) -> Option<u32> {
        let has = |span: &Span| span.start <= byte && byte < span.end;
        let length = |span: &Span| span.end - span.start;
        let call =
            self.calls.iter().filter(|call| has(&call.whole)).min_by_key(|call| length(&call.whole))?;
        let function = self.functions.iter().filter(|span| has(span)).min_by_key(|span| length(span));
        // A position in a function among the arguments belongs to the frame of that function.
        let is_within =
            |function: &Span| call.arguments.start <= function.start && function.end <= call.arguments.end;
        let is_argument = has(&call.arguments) && !function.is_some_and(is_within);
        (is_argument && (call.is_thrown || !thrown_alone)).then_some(call.name)
    }

    fn add(&mut self, callee: &Expression, whole: Span) {
        let arguments = Span::new(callee.span().end, whole.end);
        let is_thrown = std::mem::take(&mut self.throws);
        self.calls.push(Call { whole, arguments, name: name_start(callee), is_thrown });
    }
}

/// Returns the byte offset of the name in a callee expression, such as that of `search` in `github.search`.
fn name_start(callee: &Expression) -> u32 {
    match callee {
        Expression::StaticMemberExpression(member) => member.property.span.start,
        Expression::ParenthesizedExpression(inner) => name_start(&inner.expression),
        Expression::TSAsExpression(inner) => name_start(&inner.expression),
        Expression::TSNonNullExpression(inner) => name_start(&inner.expression),
        other => other.span().start,
    }
}

impl<'a> Visit<'a> for CallPositions {
    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        self.throws = false;
        self.add(&call.callee, call.span);
        walk::walk_call_expression(self, call);
    }

    fn visit_new_expression(&mut self, made: &NewExpression<'a>) {
        self.add(&made.callee, made.span);
        walk::walk_new_expression(self, made);
    }

    fn visit_throw_statement(&mut self, statement: &ThrowStatement<'a>) {
        self.throws = matches!(statement.argument, Expression::NewExpression(_));
        walk::walk_throw_statement(self, statement);
        self.throws = false;
    }

    fn visit_function(&mut self, function: &Function<'a>, flags: ScopeFlags) {
        self.functions.push(function.span);
        walk::walk_function(self, function, flags);
    }

    fn visit_arrow_function_expression(&mut self, function: &ArrowFunctionExpression<'a>) {
        self.functions.push(function.span);
        walk::walk_arrow_function_expression(self, function);
    }
}

#[cfg(test)]
mod tests {
    use super::super::source_map::Position;
    use super::super::typescript::translate;

    #[test]
    fn a_call_is_where_its_name_is() {
        let source = "f(\n  a,\n  g.h(b),\n  (x) => x.y,\n  c,\n);\nthrow new E(d);";
        let Ok(translated) = translate(source, false) else { panic!("it is valid") };
        let call_position = |line, column, thrown_alone| {
            let position = translated.source_map.call_position(Position { line, column }, thrown_alone);
            (position.line, position.column)
        };
        for (line, column, expected) in [
            (2, 3, (1, 1)),
            (5, 3, (1, 1)),
            // The name of a call among the arguments, and a position among the arguments of that call.
            (3, 5, (3, 5)),
            (3, 7, (3, 5)),
            // A position in a function among the arguments.
            (4, 10, (4, 10)),
            (7, 13, (7, 11)),
        ] {
            assert_eq!(call_position(line, column, false), expected, "{line}:{column}");
        }
        assert_eq!((call_position(2, 3, true), call_position(7, 13, true)), ((2, 3), (7, 11)));
    }
}
