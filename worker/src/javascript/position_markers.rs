//! Inserts marker statements into a program, so that its position is known when it is interrupted or fails.
//!
//! QuickJS records positions only for identifiers, calls, operators and expression statements. It attributes
//! an interrupt in a loop to the code before the loop, since the jump back has happened already. A marker is
//! therefore a statement *before* the loop, where it costs nothing per iteration. A program that awaits has
//! no stack, so each `await` records its position in a variable.

use oxc::allocator::{ArenaVec, TakeIn};
use oxc::ast::ast::{
    AssignmentOperator, AssignmentTarget, BindingIdentifier, Expression, ForOfStatement, IdentifierReference,
    LabeledStatement, NumberBase, Program, SimpleAssignmentTarget, Statement,
};
use oxc::ast::builder::AstBuilder;
use oxc::ast_visit::{VisitMut, walk_mut};
use oxc::span::{GetSpan, SPAN, Span};

/// Prefix of names that are reserved for generated code, so that submitted code must not use them.
pub(super) const RESERVED: &str = "$lockhouse_";

/// Name of the variable in generated code that holds the byte offset of the most recent `await` in the submitted code.
pub(super) const AWAITING: &str = "$lockhouse_awaiting";

/// Inserts markers into a program. The program must not contain generated code yet.
///
/// # Errors
/// The span of a name that is reserved for the engine.
pub(super) fn insert_markers<'a>(program: &mut Program<'a>, builder: &AstBuilder<'a>) -> Result<(), Span> {
    let mut inserter = MarkerInserter { builder, reserved: None };
    inserter.visit_program(program);
    inserter.reserved.map_or(Ok(()), Err)
}

struct MarkerInserter<'b, 'a> {
    builder: &'b AstBuilder<'a>,
    /// Where the program first uses a name that is reserved for the engine; `None` if it does not.
    reserved: Option<Span>,
}

impl<'a> MarkerInserter<'_, 'a> {
    /// Returns the marker that records the position of a statement. Returns `None` if QuickJS records the position
    /// without a marker.
    fn marker_before(&self, statement: &Statement<'a>) -> Option<Statement<'a>> {
        let start = statement.span().start;
        // Source maps omit empty spans.
        let span = Span::new(start, start + 1);
        let expression = if is_loop(statement) {
            // QuickJS removes constants, so the marker must be code: it reads a variable.
            Expression::new_identifier(span, AWAITING, self.builder)
        } else if lacks_position(statement) {
            // A constant, which sets a position without generating code.
            Expression::new_numeric_literal(span, 0.0, None, NumberBase::Decimal, self.builder)
        } else {
            return None;
        };
        Some(Statement::new_expression_statement(span, expression, self.builder))
    }

    /// Replaces an expression by `($lockhouse_awaiting = start, expression)`, which records the byte offset `start` of
    /// an `await`.
    fn record_await(&self, start: u32, expression: &mut Expression<'a>) {
        let (span, builder) = (expression.span(), self.builder);
        let target = SimpleAssignmentTarget::new_assignment_target_identifier(span, AWAITING, builder);
        let byte = Expression::new_numeric_literal(span, start.into(), None, NumberBase::Decimal, builder);
        let note = Expression::new_assignment_expression(
            span,
            AssignmentOperator::Assign,
            AssignmentTarget::from(target),
            byte,
            builder,
        );
        let both = ArenaVec::from_array_in([note, expression.take_in(builder)], builder);
        *expression = Expression::new_sequence_expression(span, both, builder);
    }

    fn check_name(&mut self, name: &str, span: Span) {
        if name.starts_with(RESERVED) {
            self.reserved.get_or_insert(span);
        }
    }
}

impl<'a> VisitMut<'a> for MarkerInserter<'_, 'a> {
    fn visit_statements(&mut self, statements: &mut ArenaVec<'a, Statement<'a>>) {
        for statement in statements.iter_mut() {
            walk_mut::walk_statement(self, statement);
        }
        if statements.iter().all(|statement| !is_loop(statement) && !lacks_position(statement)) {
            return;
        }
        let marked = ArenaVec::with_capacity_in(2 * statements.len(), self.builder);
        for statement in std::mem::replace(statements, marked) {
            statements.extend(self.marker_before(&statement));
            statements.push(statement);
        }
    }

    /// Turns a single statement, such as the body of an `if`, into a block of a marker and the statement.
    fn visit_statement(&mut self, statement: &mut Statement<'a>) {
        walk_mut::walk_statement(self, statement);
        if let Some(marker) = self.marker_before(statement) {
            let both = ArenaVec::from_array_in([marker, statement.take_in(self.builder)], self.builder);
            // The block has no span: otherwise the source map would assign the position to the block instead of the
            // marker.
            *statement = Statement::new_block_statement(SPAN, both, self.builder);
        }
    }

    /// Inserts no marker between a label and its loop, since `continue LABEL` requires the label at the loop
    /// itself.
    fn visit_labeled_statement(&mut self, labeled: &mut LabeledStatement<'a>) {
        walk_mut::walk_statement(self, &mut labeled.body);
    }

    fn visit_expression(&mut self, expression: &mut Expression<'a>) {
        walk_mut::walk_expression(self, expression);
        if let Expression::AwaitExpression(_) = expression {
            self.record_await(expression.span().start, expression);
        }
    }

    fn visit_for_of_statement(&mut self, statement: &mut ForOfStatement<'a>) {
        walk_mut::walk_for_of_statement(self, statement);
        if statement.r#await {
            self.record_await(statement.span.start, &mut statement.right);
        }
    }

    fn visit_identifier_reference(&mut self, identifier: &mut IdentifierReference<'a>) {
        self.check_name(&identifier.name, identifier.span);
    }

    fn visit_binding_identifier(&mut self, identifier: &mut BindingIdentifier<'a>) {
        self.check_name(&identifier.name, identifier.span);
    }
}

fn is_loop(mut statement: &Statement) -> bool {
    while let Statement::LabeledStatement(labeled) = statement {
        statement = &labeled.body;
    }
    matches!(
        statement,
        Statement::DoWhileStatement(_)
            | Statement::ForInStatement(_)
            | Statement::ForOfStatement(_)
            | Statement::ForStatement(_)
            | Statement::WhileStatement(_)
    )
}

/// Returns whether a statement starts with an operation that can fail but whose position QuickJS does not record.
fn lacks_position(statement: &Statement) -> bool {
    let first = match statement {
        Statement::ReturnStatement(statement) => statement.argument.as_ref(),
        Statement::IfStatement(statement) => Some(&statement.test),
        // Destructuring can fail, and nothing in it has a position.
        Statement::VariableDeclaration(declaration)
            if declaration.declarations.first().is_some_and(|one| one.id.is_destructuring_pattern()) =>
        {
            return true;
        }
        Statement::VariableDeclaration(declaration) => {
            declaration.declarations.first().and_then(|declarator| declarator.init.as_ref())
        }
        _ => None,
    };
    first.is_some_and(|first| reads_property_without_position(first))
}

/// Whether the first operation of an expression reads a property of `this` or of a literal.
fn reads_property_without_position(mut expression: &Expression) -> bool {
    let mut reads = false;
    loop {
        expression = match expression {
            Expression::StaticMemberExpression(member) => {
                reads = true;
                &member.object
            }
            Expression::ComputedMemberExpression(member) => {
                reads = true;
                &member.object
            }
            Expression::CallExpression(call) => &call.callee,
            Expression::BinaryExpression(binary) => &binary.left,
            Expression::LogicalExpression(logical) => &logical.left,
            Expression::ConditionalExpression(conditional) => &conditional.test,
            Expression::UnaryExpression(unary) => &unary.argument,
            Expression::ParenthesizedExpression(inner) => &inner.expression,
            Expression::TSAsExpression(inner) => &inner.expression,
            Expression::TSNonNullExpression(inner) => &inner.expression,
            Expression::TSSatisfiesExpression(inner) => &inner.expression,
            Expression::Identifier(_) | Expression::NewExpression(_) => return false,
            _ => return reads,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::super::typescript::translated;

    #[test]
    fn loops_are_marked_before_they_start() {
        for (source, expected) in [
            ("f(); for (;;) {}", "f();\n$lockhouse_awaiting;\nfor (;;) {}"),
            ("a: b: while (x) continue a", "\n$lockhouse_awaiting;\na: b: while (x) continue a;"),
            ("if (x) do y(); while (z)", "if (x) {\n\t$lockhouse_awaiting;\n\tdo"),
            ("switch (x) { case 1: for (y of z);}", "case 1:\n\t\t$lockhouse_awaiting;\n\t\tfor"),
            ("for await (x of y) {}", "for await (x of ($lockhouse_awaiting = 0, y)) {}"),
            ("f();\nawait 0; g()", "$lockhouse_awaiting = 5, await 0;"),
            ("class A { m() { return this.a.b } }", "\t\t0;\n\t\treturn this.a.b;"),
        ] {
            let javascript = translated(source);
            assert!(javascript.contains(expected), "{source} became {javascript}");
        }
    }

    #[test]
    fn what_is_placed_gets_no_mark() {
        assert!(!translated("return x.y; const a = 0; if (f(this.a)) {}").contains("0;\nreturn"));
    }

    #[test]
    fn names_of_the_engine_are_refused() {
        for source in ["$lockhouse_awaiting = 1", "let \\u0024lockhouse_awaiting", "f($lockhouse_module)"] {
            assert!(translated(source).starts_with("SyntaxError: names"), "{source}");
        }
        assert!(!translated("f('$lockhouse_awaiting').$lockhouse_awaiting").starts_with("SyntaxError"));
    }
}
