//! Keeps the top-level declarations of a program for later runs of its session.
//!
//! Declarations become assignments to properties of one object. All programs of the session run in its scope
//! (`with`), so functions of earlier runs see later assignments, and names can be declared again. A name is
//! created when its declaration runs, so a program that fails before that does not create it. Functions and
//! `var` variables are created at the start of the program, as in JavaScript.

use oxc::allocator::{ArenaBox, ArenaVec, GetAllocator, TakeIn};
use oxc::ast::ast::{
    Argument, ArrowFunctionExpression, AssignmentOperator, AssignmentTarget, AssignmentTargetMaybeDefault,
    AssignmentTargetProperty, AssignmentTargetRest, BindingPattern, BindingRestElement, CallExpression,
    Class, ClassType, Expression, ForInStatement, ForOfStatement, ForStatement, ForStatementInit,
    ForStatementLeft, Function, FunctionType, NumberBase, Program, Statement, UnaryOperator,
    VariableDeclaration, VariableDeclarationKind,
};
use oxc::ast::builder::AstBuilder;
use oxc::ast_visit::{VisitMut, walk_mut};
use oxc::semantic::ScopeFlags;
use oxc::span::{GetSpan, SPAN, Span};

use super::position_markers::RESERVED;

/// Name by which generated code refers to the object that holds the session's variables.
pub(super) const SCOPE: &str = "$lockhouse_scope";
/// Name of the JavaScript function that creates variables of the session.
pub(super) const DECLARE: &str = "$lockhouse_declare";

/// Rewrites the top-level declarations of a program, so that they create variables of the session. Imports must have
/// been removed already.
pub(super) fn persist_declarations<'a>(program: &mut Program<'a>, builder: &AstBuilder<'a>) {
    let mut names = DeclarationRewriter { builder, vars: Vec::new() };
    let empty = ArenaVec::with_capacity_in(2 * program.body.len() + 1, builder);
    let (mut functions, mut body) = (Vec::new(), Vec::new());
    for mut statement in std::mem::replace(&mut program.body, empty) {
        match &mut statement {
            Statement::FunctionDeclaration(function) => functions.extend(names.rewrite_function(function)),
            Statement::ClassDeclaration(class) => body.extend(names.rewrite_class(class)),
            Statement::VariableDeclaration(declaration) if is_persistent(declaration) => {
                body.extend(names.rewrite_declaration(declaration));
            }
            _ => {
                names.visit_statement(&mut statement);
                body.push(statement);
            }
        }
    }
    let vars = std::mem::take(&mut names.vars);
    if !vars.is_empty() {
        program.body.push(names.declare(vars));
    }
    program.body.extend(functions);
    program.body.extend(body);
    CallRewriter { builder }.visit_program(program);
}

fn is_persistent(declaration: &VariableDeclaration) -> bool {
    use VariableDeclarationKind::{Const, Let, Var};
    matches!(declaration.kind, Var | Let | Const)
}

struct DeclarationRewriter<'b, 'a> {
    builder: &'b AstBuilder<'a>,
    /// Names that `var` statements outside of functions declare, including those in blocks.
    vars: Vec<String>,
}

impl<'a> DeclarationRewriter<'_, 'a> {
    /// Generates the statement that creates variables of the session, such as `declare("a", "b");`.
    fn declare(&self, names: Vec<String>) -> Statement<'a> {
        let argument = |name: String| {
            let name = self.builder.allocator().alloc_str(&name);
            Argument::from(Expression::new_string_literal(SPAN, name, None, self.builder))
        };
        let arguments = ArenaVec::from_iter_in(names.into_iter().map(argument), self.builder);
        let callee = Expression::new_identifier(SPAN, DECLARE, self.builder);
        let call = Expression::new_call_expression(SPAN, callee, None, arguments, false, self.builder);
        Statement::new_expression_statement(SPAN, call, self.builder)
    }

    fn assignment(&self, span: Span, left: AssignmentTarget<'a>, right: Expression<'a>) -> Expression<'a> {
        Expression::new_assignment_expression(span, AssignmentOperator::Assign, left, right, self.builder)
    }

    /// Rewrites a function to `declare("f"); f = function () {};`. The function is anonymous, so that `f` refers to the
    /// session's variable inside the function, too.
    fn rewrite_function(&mut self, function: &mut Function<'a>) -> Vec<Statement<'a>> {
        let Some(id) = function.id.take() else { return Vec::new() };
        function.r#type = FunctionType::FunctionExpression;
        let span = function.span;
        let value = ArenaBox::new_in(function.take_in(self.builder), self.builder);
        self.declare_and_assign(span, id.name.as_str(), Expression::FunctionExpression(value))
    }

    fn rewrite_class(&mut self, class: &mut Class<'a>) -> Vec<Statement<'a>> {
        let Some(name) = class.id.as_ref().map(|id| id.name.to_string()) else { return Vec::new() };
        class.r#type = ClassType::ClassExpression;
        let span = class.span;
        let value = ArenaBox::new_in(class.take_in(self.builder), self.builder);
        self.declare_and_assign(span, &name, Expression::ClassExpression(value))
    }

    fn declare_and_assign(&self, span: Span, name: &str, value: Expression<'a>) -> Vec<Statement<'a>> {
        let text = self.builder.allocator().alloc_str(name);
        let target = AssignmentTarget::new_assignment_target_identifier(span, text, self.builder);
        let assignment = self.assignment(span, target, value);
        let statement = Statement::new_expression_statement(span, assignment, self.builder);
        vec![self.declare(vec![name.to_owned()]), statement]
    }

    /// Rewrites a top-level variable declaration to statements that create variables of the session and assign to them.
    /// For a `var`, only the assignment is returned and the names are added to [`Self::vars`], because such variables
    /// are created at the start of the program.
    fn rewrite_declaration(&mut self, declaration: &mut VariableDeclaration<'a>) -> Vec<Statement<'a>> {
        let mut names = Vec::new();
        let assigned = self.assignments(declaration, &mut names);
        if declaration.kind == VariableDeclarationKind::Var {
            self.vars.append(&mut names);
        }
        let declare = (!names.is_empty()).then(|| self.declare(names));
        declare
            .into_iter()
            .chain(assigned.map(|assigned| self.statement(declaration.span, assigned)))
            .collect()
    }

    fn statement(&self, span: Span, expression: Expression<'a>) -> Statement<'a> {
        Statement::new_expression_statement(span, expression, self.builder)
    }

    /// Converts the initializers of a declaration into one assignment expression; `None` if nothing is assigned.
    /// Appends the declared names to `names`. A `var` without initializer assigns nothing, a `let` without initializer
    /// assigns undefined.
    fn assignments(
        &mut self,
        declaration: &mut VariableDeclaration<'a>,
        names: &mut Vec<String>,
    ) -> Option<Expression<'a>> {
        let is_var = declaration.kind == VariableDeclarationKind::Var;
        let mut assignments = Vec::new();
        for declarator in &mut declaration.declarations {
            let span = declarator.span;
            let target = self.assignment_target(declarator.id.take_in(self.builder), names);
            let value = match declarator.init.take() {
                Some(value) => value,
                None if is_var => continue,
                None => self.undefined(),
            };
            assignments.push(self.assignment(span, target, value));
        }
        match assignments.len() {
            0 | 1 => assignments.pop(),
            _ => {
                let all = ArenaVec::from_iter_in(assignments, self.builder);
                Some(Expression::new_sequence_expression(declaration.span, all, self.builder))
            }
        }
    }

    fn undefined(&self) -> Expression<'a> {
        let zero = Expression::new_numeric_literal(SPAN, 0.0, None, NumberBase::Decimal, self.builder);
        Expression::new_unary_expression(SPAN, UnaryOperator::Void, zero, self.builder)
    }

    /// Converts a binding pattern into an assignment target. Appends the names in the pattern to `names`.
    fn assignment_target(
        &self,
        pattern: BindingPattern<'a>,
        names: &mut Vec<String>,
    ) -> AssignmentTarget<'a> {
        let span = pattern.span();
        match pattern {
            BindingPattern::BindingIdentifier(id) => {
                names.push(id.name.to_string());
                AssignmentTarget::new_assignment_target_identifier(span, id.name, self.builder)
            }
            BindingPattern::ObjectPattern(object) => {
                let object = object.unbox();
                let property = |property: oxc::ast::ast::BindingProperty<'a>| {
                    let value = self.target_with_default(property.value, names);
                    let (span, key, computed) = (property.span, property.key, property.computed);
                    AssignmentTargetProperty::new_assignment_target_property_property(
                        span,
                        key,
                        value,
                        computed,
                        self.builder,
                    )
                };
                let properties =
                    ArenaVec::from_iter_in(object.properties.into_iter().map(property), self.builder);
                let rest = object.rest.map(|rest| self.rest_target(rest.unbox(), names));
                AssignmentTarget::new_object_assignment_target(span, properties, rest, self.builder)
            }
            BindingPattern::ArrayPattern(array) => {
                let array = array.unbox();
                let element = |element: Option<BindingPattern<'a>>| {
                    element.map(|pattern| self.target_with_default(pattern, names))
                };
                let elements = ArenaVec::from_iter_in(array.elements.into_iter().map(element), self.builder);
                let rest = array.rest.map(|rest| self.rest_target(rest.unbox(), names));
                AssignmentTarget::new_array_assignment_target(span, elements, rest, self.builder)
            }
            // Occurs only within other patterns, which `target_with_default` handles.
            BindingPattern::AssignmentPattern(pattern) => self.assignment_target(pattern.unbox().left, names),
        }
    }

    fn target_with_default(
        &self,
        pattern: BindingPattern<'a>,
        names: &mut Vec<String>,
    ) -> AssignmentTargetMaybeDefault<'a> {
        match pattern {
            BindingPattern::AssignmentPattern(pattern) => {
                let pattern = pattern.unbox();
                let target = self.assignment_target(pattern.left, names);
                AssignmentTargetMaybeDefault::new_assignment_target_with_default(
                    pattern.span,
                    target,
                    pattern.right,
                    self.builder,
                )
            }
            pattern => AssignmentTargetMaybeDefault::from(self.assignment_target(pattern, names)),
        }
    }

    fn rest_target(
        &self,
        rest: BindingRestElement<'a>,
        names: &mut Vec<String>,
    ) -> ArenaBox<'a, AssignmentTargetRest<'a>> {
        AssignmentTargetRest::boxed(rest.span, self.assignment_target(rest.argument, names), self.builder)
    }

    /// Converts a `var` declaration in a block or loop into an assignment expression; `None` if nothing is assigned.
    /// Adds the declared names to [`Self::vars`].
    fn rewrite_var(&mut self, declaration: &mut VariableDeclaration<'a>) -> Option<Expression<'a>> {
        let mut names = Vec::new();
        let assigned = self.assignments(declaration, &mut names);
        self.vars.append(&mut names);
        assigned
    }

    fn rewrite_loop_variable(&mut self, left: &mut ForStatementLeft<'a>) {
        let ForStatementLeft::VariableDeclaration(declaration) = left else { return };
        let mut names = Vec::new();
        if let (VariableDeclarationKind::Var, Some(declarator)) =
            (declaration.kind, declaration.declarations.first_mut())
        {
            let target = self.assignment_target(declarator.id.take_in(self.builder), &mut names);
            *left = ForStatementLeft::from(target);
        }
        self.vars.append(&mut names);
    }
}

/// Visits all statements of the program and rewrites `var` declarations in blocks and loops. Functions are not visited,
/// because a `var` inside a function is local to it.
impl<'a> VisitMut<'a> for DeclarationRewriter<'_, 'a> {
    fn visit_statement(&mut self, statement: &mut Statement<'a>) {
        walk_mut::walk_statement(self, statement);
        if let Statement::VariableDeclaration(declaration) = statement
            && declaration.kind == VariableDeclarationKind::Var
        {
            let span = declaration.span;
            *statement = match self.rewrite_var(declaration) {
                Some(assigned) => self.statement(span, assigned),
                None => Statement::new_empty_statement(span, self.builder),
            };
        }
    }

    fn visit_for_statement(&mut self, statement: &mut ForStatement<'a>) {
        walk_mut::walk_for_statement(self, statement);
        if let Some(ForStatementInit::VariableDeclaration(declaration)) = &mut statement.init
            && declaration.kind == VariableDeclarationKind::Var
        {
            statement.init = self.rewrite_var(declaration).map(ForStatementInit::from);
        }
    }

    fn visit_for_in_statement(&mut self, statement: &mut ForInStatement<'a>) {
        walk_mut::walk_for_in_statement(self, statement);
        self.rewrite_loop_variable(&mut statement.left);
    }

    fn visit_for_of_statement(&mut self, statement: &mut ForOfStatement<'a>) {
        walk_mut::walk_for_of_statement(self, statement);
        self.rewrite_loop_variable(&mut statement.left);
    }

    fn visit_function(&mut self, _function: &mut Function<'a>, _flags: ScopeFlags) {}

    fn visit_arrow_function_expression(&mut self, _function: &mut ArrowFunctionExpression<'a>) {}

    fn visit_class(&mut self, _class: &mut Class<'a>) {}
}

/// Rewrites calls `f()` to `(0, f)()`. Otherwise a function that is found in the scope of a `with` statement would get
/// the object of that statement as `this`.
struct CallRewriter<'b, 'a> {
    builder: &'b AstBuilder<'a>,
}

impl<'a> VisitMut<'a> for CallRewriter<'_, 'a> {
    fn visit_call_expression(&mut self, call: &mut CallExpression<'a>) {
        walk_mut::walk_call_expression(self, call);
        if let Expression::Identifier(callee) = &call.callee
            && !callee.name.starts_with(RESERVED)
            && callee.name != "eval"
        {
            let span = callee.span;
            let zero = Expression::new_numeric_literal(SPAN, 0.0, None, NumberBase::Decimal, self.builder);
            let both = ArenaVec::from_array_in([zero, call.callee.take_in(self.builder)], self.builder);
            call.callee = Expression::new_sequence_expression(span, both, self.builder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::typescript::translated_in_session;

    #[test]
    fn declarations_become_assignments() {
        for (source, expected) in [
            ("let a = 1", "$lockhouse_declare(\"a\");\na = 1;"),
            ("let a", "$lockhouse_declare(\"a\");\na = void 0;"),
            ("var a", "$lockhouse_declare(\"a\");\n"),
            ("const f = () => 1, b = f()", "$lockhouse_declare(\"f\", \"b\");\nf = () => 1, b = (0, f)();"),
            ("g(); function g() { return g }", "$lockhouse_declare(\"g\");\ng = function() {"),
            ("class A { static a = A }", "$lockhouse_declare(\"A\");\nA = class A {"),
            ("const {a, b: [c = 1, ...d], ...e} = f", "$lockhouse_declare(\"a\", \"c\", \"d\", \"e\");\n({"),
            ("if (x) { var y = 1 }", "$lockhouse_declare(\"y\");\nif (x) {\n\ty = 1;"),
            ("for (var i = 0; i < 3; i++) {}", "for (i = 0;"),
            ("for (var [k, v] of m) {}", "for ([k, v] of m)"),
            ("for (let i of m) { let j = i }", "for (let i of m) {\n\tlet j = i;"),
            ("enum E { A }", "$lockhouse_declare(\"E\");\nE = "),
            ("import { a } from 'm'", "$lockhouse_declare(\"a\"); a = $lockhouse_module(\"m\")[\"a\"];"),
        ] {
            let javascript = translated_in_session(source);
            assert!(javascript.contains(expected), "{source} became {javascript}");
        }
        let local = translated_in_session("function f() { var a = 1; let b = 2; return a + b }");
        assert!(local.contains("var a = 1;") && local.contains("let b = 2;"), "{local}");
    }
}
