//! Marks in a program by which one that does not end can still be placed.
//!
//! QuickJS knows the position of few things: identifiers, calls, operators, and statements that are an expression. It
//! takes an interrupt in a loop for one just before the loop, for the jump back has happened. So marks are statements
//! that come *before* a loop, where they cost its rounds nothing. A program that awaits has no stack at all, so that
//! each `await` notes where it is.

use oxc::allocator::{ArenaVec, TakeIn};
use oxc::ast::ast::{
    AssignmentOperator, AssignmentTarget, BindingIdentifier, Expression, ForOfStatement, IdentifierReference,
    LabeledStatement, NumberBase, Program, SimpleAssignmentTarget, Statement,
};
use oxc::ast::builder::AstBuilder;
use oxc::ast_visit::{VisitMut, walk_mut};
use oxc::span::{GetSpan, SPAN, Span};

/// How the names begin that only the engine may use.
pub(super) const RESERVED: &str = "$lockhouse_";

/// The variable with the byte at which the latest `await` starts.
pub(super) const AWAITING: &str = "$lockhouse_awaiting";

/// Marks a program. It must hold nothing yet that the engine has added.
///
/// # Errors
/// Where it uses a name that only the engine may use.
pub(super) fn mark<'a>(program: &mut Program<'a>, builder: &AstBuilder<'a>) -> Result<(), Span> {
    let mut marks = Marks { builder, reserved: None };
    marks.visit_program(program);
    marks.reserved.map_or(Ok(()), Err)
}

struct Marks<'b, 'a> {
    builder: &'b AstBuilder<'a>,
    /// The first use of a name of ours.
    reserved: Option<Span>,
}

impl<'a> Marks<'_, 'a> {
    /// The mark that belongs before a statement.
    fn before(&self, statement: &Statement<'a>) -> Option<Statement<'a>> {
        let start = statement.span().start;
        // Source maps leave out what is empty.
        let span = Span::new(start, start + 1);
        let nothing = if is_loop(statement) {
            // Code that is there: reading a variable. QuickJS drops constants.
            Expression::new_identifier(span, AWAITING, self.builder)
        } else if is_unplaced(statement) {
            // A position without code.
            Expression::new_numeric_literal(span, 0.0, None, NumberBase::Decimal, self.builder)
        } else {
            return None;
        };
        Some(Statement::new_expression_statement(span, nothing, self.builder))
    }

    /// `(awaiting = start, expression)`.
    fn noted(&self, start: u32, expression: &mut Expression<'a>) {
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

    fn check(&mut self, name: &str, span: Span) {
        if name.starts_with(RESERVED) {
            self.reserved.get_or_insert(span);
        }
    }
}

impl<'a> VisitMut<'a> for Marks<'_, 'a> {
    fn visit_statements(&mut self, statements: &mut ArenaVec<'a, Statement<'a>>) {
        for statement in statements.iter_mut() {
            walk_mut::walk_statement(self, statement);
        }
        if statements.iter().all(|statement| !is_loop(statement) && !is_unplaced(statement)) {
            return;
        }
        let marked = ArenaVec::with_capacity_in(2 * statements.len(), self.builder);
        for statement in std::mem::replace(statements, marked) {
            statements.extend(self.before(&statement));
            statements.push(statement);
        }
    }

    /// One that stands alone, as the body of an `if`, becomes a block with its mark.
    fn visit_statement(&mut self, statement: &mut Statement<'a>) {
        walk_mut::walk_statement(self, statement);
        if let Some(mark) = self.before(statement) {
            let both = ArenaVec::from_array_in([mark, statement.take_in(self.builder)], self.builder);
            // Without a position: source maps would give it to the block, and not again to the mark.
            *statement = Statement::new_block_statement(SPAN, both, self.builder);
        }
    }

    /// The mark comes before the label: `continue` needs its label at the loop.
    fn visit_labeled_statement(&mut self, labeled: &mut LabeledStatement<'a>) {
        walk_mut::walk_statement(self, &mut labeled.body);
    }

    fn visit_expression(&mut self, expression: &mut Expression<'a>) {
        walk_mut::walk_expression(self, expression);
        if let Expression::AwaitExpression(_) = expression {
            self.noted(expression.span().start, expression);
        }
    }

    fn visit_for_of_statement(&mut self, statement: &mut ForOfStatement<'a>) {
        walk_mut::walk_for_of_statement(self, statement);
        if statement.r#await {
            self.noted(statement.span.start, &mut statement.right);
        }
    }

    fn visit_identifier_reference(&mut self, identifier: &mut IdentifierReference<'a>) {
        self.check(&identifier.name, identifier.span);
    }

    fn visit_binding_identifier(&mut self, identifier: &mut BindingIdentifier<'a>) {
        self.check(&identifier.name, identifier.span);
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

/// Whether a statement starts with something that can fail and that QuickJS knows no position of.
fn is_unplaced(statement: &Statement) -> bool {
    let first = match statement {
        Statement::ReturnStatement(statement) => statement.argument.as_ref(),
        Statement::IfStatement(statement) => Some(&statement.test),
        // What takes a value apart can fail, and nothing in it has a position.
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
    first.is_some_and(|first| reads_from_unplaced(first))
}

/// Whether the first thing that an expression does is to read a property of `this` or of a literal.
fn reads_from_unplaced(mut expression: &Expression) -> bool {
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
