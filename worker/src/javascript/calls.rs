//! Where the calls of a program stand.
//!
//! QuickJS takes a call for being where the last thing in its arguments was that it knows a position of, which may be lines below
//! the name of what is called. This finds the way back.

use oxc::ast::ast::{
    ArrowFunctionExpression, CallExpression, Expression, Function, NewExpression, Program, ThrowStatement,
};
use oxc::ast_visit::{Visit, walk};
use oxc::span::{GetSpan, Span};
use oxc::syntax::scope::ScopeFlags;

/// The calls of a program, by bytes of its text.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: Vec<Call>,
    functions: Vec<Span>,
    /// Within a `throw`.
    throws: bool,
}

#[derive(Debug)]
struct Call {
    whole: Span,
    arguments: Span,
    /// Where the name of what is called starts.
    name: u32,
    is_thrown: bool,
}

impl Calls {
    /// Those of a program as it was submitted.
    pub(super) fn of(program: &Program) -> Self {
        let mut calls = Self::default();
        calls.visit_program(program);
        calls
    }

    /// The name of the innermost call in whose arguments a byte is; of those that make what is thrown alone, if need be.
    pub(super) fn around(&self, byte: u32, thrown_alone: bool) -> Option<u32> {
        let has = |span: &Span| span.start <= byte && byte < span.end;
        let length = |span: &Span| span.end - span.start;
        let call =
            self.calls.iter().filter(|call| has(&call.whole)).min_by_key(|call| length(&call.whole))?;
        let function = self.functions.iter().filter(|span| has(span)).min_by_key(|span| length(span));
        // In a function among the arguments, the frame is that function's.
        let is_within =
            |function: &Span| call.arguments.start <= function.start && function.end <= call.arguments.end;
        let is_its = has(&call.arguments) && !function.is_some_and(is_within);
        (is_its && (call.is_thrown || !thrown_alone)).then_some(call.name)
    }

    fn add(&mut self, callee: &Expression, whole: Span) {
        let arguments = Span::new(callee.span().end, whole.end);
        let is_thrown = std::mem::take(&mut self.throws);
        self.calls.push(Call { whole, arguments, name: name_start(callee), is_thrown });
    }
}

/// Where the name starts that says what is called.
fn name_start(callee: &Expression) -> u32 {
    match callee {
        Expression::StaticMemberExpression(member) => member.property.span.start,
        Expression::ParenthesizedExpression(inner) => name_start(&inner.expression),
        Expression::TSAsExpression(inner) => name_start(&inner.expression),
        Expression::TSNonNullExpression(inner) => name_start(&inner.expression),
        other => other.span().start,
    }
}

impl<'a> Visit<'a> for Calls {
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
    use super::super::positions::Place;
    use super::super::typescript::translate;

    #[test]
    fn a_call_is_where_its_name_is() {
        let source = "f(\n  a,\n  g.h(b),\n  (x) => x.y,\n  c,\n);\nthrow new E(d);";
        let Ok(translated) = translate(source, false) else { panic!("it is valid") };
        let of_call = |line, column, thrown_alone| {
            let place = translated.positions.of_call(Place { line, column }, thrown_alone);
            (place.line, place.column)
        };
        for (line, column, expected) in [
            (2, 3, (1, 1)),
            (5, 3, (1, 1)),
            // The name of a call among the arguments, and what is among its own.
            (3, 5, (3, 5)),
            (3, 7, (3, 5)),
            // A function among the arguments.
            (4, 10, (4, 10)),
            (7, 13, (7, 11)),
        ] {
            assert_eq!(of_call(line, column, false), expected, "{line}:{column}");
        }
        assert_eq!((of_call(2, 3, true), of_call(7, 13, true)), ((2, 3), (7, 11)));
    }
}
