//! Finds the expressions of a program that made its value undefined, or the members of its value, such as `r.Name`.

use oxc::allocator::Allocator;
use oxc::ast::AstKind;
use oxc::ast::ast::{
    Argument, ArrayExpressionElement, BindingPattern, CallExpression, ChainElement,
    ExportDefaultDeclarationKind, Expression, IdentifierReference, ObjectExpression, Program, Statement,
};
use oxc::parser::{ParseOptions, Parser};
use oxc::semantic::{NodeId, SemanticBuilder};
use oxc::span::{GetSpan, SourceType, Span};
use serde::Serialize;

use super::error_expression::{PARSED_BYTES_MAX, expression_text};
use super::final_value::does_nothing;
use super::property_reads::ReadPlace;
use super::value_origin::{Declarations, Origin, TakenApart, function_node, steps_to};

/// Maximum number of expressions that are reported.
const EXPRESSIONS_MAX: usize = 6;
/// Maximum number of reads of properties that are examined, if the value does not tell which of them made it undefined.
const READS_MAX: usize = 200;
/// Maximum number of declarations and calls that are followed from one expression.
const DEPTH_MAX: u32 = 8;

/// The expressions that made a value undefined.
#[derive(Debug, Default, Serialize)]
pub(super) struct UndefinedExpressions {
    /// Reads of properties.
    pub(super) reads: Vec<PropertyRead>,
    /// The texts of other expressions, such as calls.
    calls: Vec<String>,
    /// The names of functions of the program that return nothing.
    functions: Vec<String>,
    /// All reads of properties in the program, for a value with empty objects in it.
    others: Vec<PropertyRead>,
    /// The keys of the object literals of the program. They are no missing names.
    defined: Vec<String>,
    /// Whether the program ends with an expression or with `return`.
    pub(super) ends_with_value: bool,
}

/// An expression that reads a property.
#[derive(Debug, Serialize)]
pub(super) struct PropertyRead {
    /// The text of the expression, such as `r.Name`.
    text: String,
    /// The text of the expression before the property, here `r`.
    object: String,
    property: String,
    /// Where the object comes from; `None` if the text of the program does not tell.
    origin: Option<Origin>,
    /// The expression before the property, if it reads a property as well: that one may be missing, as in `r.Name.length`.
    before: Option<Box<PropertyRead>>,
}

/// Returns the expressions that may have made the value of a program undefined. Returns no expressions for a program that
/// is too large or too deeply nested to be parsed again.
pub(super) fn find(source: &str) -> UndefinedExpressions {
    if source.len() > PARSED_BYTES_MAX || super::nesting_limit::too_deep_at(source).is_some() {
        return UndefinedExpressions::default();
    }
    let allocator = Allocator::default();
    let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
    let parser = Parser::new(&allocator, source, SourceType::ts().with_module(true)).with_options(options);
    let program: &Program = allocator.alloc(parser.parse().program);
    let semantic = SemanticBuilder::new().with_build_nodes(true).build(program).semantic;
    let mut finder = Finder {
        source,
        program: Declarations { semantic: &semantic },
        found: UndefinedExpressions::default(),
    };
    finder.final_value(program);
    finder.add_others();
    let mut found = finder.found;
    found.reads.truncate(EXPRESSIONS_MAX);
    found.calls.truncate(EXPRESSIONS_MAX);
    found.functions.truncate(EXPRESSIONS_MAX);
    found
}

struct Finder<'s, 'p, 'a> {
    source: &'s str,
    program: Declarations<'p, 'a>,
    found: UndefinedExpressions,
}

impl<'a> Finder<'_, '_, 'a> {
    /// Adds the expressions of the value that the program returns: of its last expression, of `return`, or of the
    /// function that is called at its end.
    fn final_value(&mut self, program: &'a Program<'a>) {
        for returned in self.program.returned(None) {
            returned.argument.iter().for_each(|value| self.add(value, 0));
        }
        let last = program.body.iter().rev().find(|statement| !does_nothing(statement));
        self.found.ends_with_value = match last {
            Some(Statement::ReturnStatement(last)) => last.argument.is_some(),
            last => matches!(last, Some(Statement::ExpressionStatement(_))),
        };
        match last {
            Some(Statement::ExpressionStatement(last)) => self.add(&last.expression, 0),
            Some(Statement::ExportDefaultDeclaration(export)) => match &export.declaration {
                ExportDefaultDeclarationKind::FunctionDeclaration(function) => {
                    self.add_results(function.node_id.get(), "the exported function", 0);
                }
                other => other.as_expression().into_iter().for_each(|value| self.add(value, 0)),
            },
            _ => self.main_function(program),
        }
    }

    /// Adds the expressions that the function `main` returns, which is called if the program does not end with an expression.
    fn main_function(&mut self, program: &'a Program<'a>) {
        for statement in &program.body {
            if let Statement::FunctionDeclaration(function) = statement
                && function.id.as_ref().is_some_and(|name| name.name == "main")
            {
                self.add_results(function.node_id.get(), "main()", 0);
            }
        }
    }

    /// Adds all reads of properties, and the names that the program defines itself.
    fn add_others(&mut self) {
        let reads = self.program.property_reads().take(READS_MAX).map(|place| match place {
            ReadPlace::Expression(span, object, property) => self.read_of(span, object, &property),
            ReadPlace::Pattern(span, property, TakenApart { expression, origin }) => {
                let object = expression.map_or("each item".to_owned(), |object| self.text(object));
                PropertyRead { text: self.text(span), object, property, origin, before: None }
            }
        });
        self.found.others = reads.collect();
        self.found.defined = self.program.defined_keys();
    }

    fn add_members(&mut self, object: &'a ObjectExpression<'a>, depth: u32) {
        for property in object.properties.iter().filter_map(|property| property.as_property()) {
            self.add(&property.value, depth);
        }
    }

    fn add(&mut self, expression: &'a Expression<'a>, depth: u32) {
        if depth == DEPTH_MAX {
            return;
        }
        let depth = depth + 1;
        match expression.get_inner_expression() {
            Expression::AwaitExpression(awaited) => self.add(&awaited.argument, depth),
            Expression::StaticMemberExpression(_)
            | Expression::ComputedMemberExpression(_)
            | Expression::ChainExpression(_) => match self.read(expression) {
                Some(read) => self.add_read(read),
                None => self.add_text(self.text(expression.span())),
            },
            Expression::Identifier(name) => self.add_variable(name, depth),
            Expression::ConditionalExpression(branch) => {
                self.add(&branch.consequent, depth);
                self.add(&branch.alternate, depth);
            }
            Expression::LogicalExpression(both) => {
                self.add(&both.left, depth);
                self.add(&both.right, depth);
            }
            Expression::ObjectExpression(object) => self.add_members(object, depth),
            Expression::ArrayExpression(array) => {
                array
                    .elements
                    .iter()
                    .filter_map(ArrayExpressionElement::as_expression)
                    .for_each(|item| self.add(item, depth));
            }
            Expression::CallExpression(call) => self.add_call(call, depth),
            Expression::AssignmentExpression(assignment) => self.add(&assignment.right, depth),
            function => {
                if let Some(function) = function_node(function) {
                    self.add_results(function, "the function", depth);
                }
            }
        }
    }

    fn add_variable(&mut self, name: &'a IdentifierReference<'a>, depth: u32) {
        if let Some(function) = self.program.function_named(name) {
            self.add_results(function, &format!("{}()", name.name), depth);
            return;
        }
        let Some((_, AstKind::VariableDeclarator(declarator))) = self.program.declaration(name) else {
            return;
        };
        let Some(init) = &declarator.init else { return };
        if matches!(declarator.id, BindingPattern::BindingIdentifier(_)) {
            self.add(init, depth);
        } else if let Some([Some(key)]) = steps_to(&declarator.id, &name.name).as_deref() {
            self.add_read(self.read_of(name.span, init, key));
        }
    }

    fn add_call(&mut self, call: &'a CallExpression<'a>, depth: u32) {
        let first = call.arguments.first().and_then(Argument::as_expression);
        match call.callee.get_inner_expression() {
            Expression::StaticMemberExpression(member) => {
                let is_of = |name: &str| matches!(&member.object, Expression::Identifier(object) if object.name == name);
                match (member.property.name.as_str(), first) {
                    ("map" | "flatMap", Some(argument)) if function_node(argument).is_some() => {
                        let label = format!("the function given to .{}", member.property.name);
                        function_node(argument)
                            .into_iter()
                            .for_each(|function| self.add_results(function, &label, depth));
                    }
                    ("all", Some(argument)) if is_of("Promise") => self.add(argument, depth),
                    _ if is_of("console") => {}
                    _ => self.add_text(self.text(call.span)),
                }
            }
            Expression::Identifier(name) => match self.program.function_named(name) {
                Some(function) => self.add_results(function, &format!("{}()", name.name), depth),
                None => self.add_text(self.text(call.span)),
            },
            _ => self.add_text(self.text(call.span)),
        }
    }

    /// Adds the expressions that a function returns. If it returns none, adds that; `label` names the function.
    fn add_results(&mut self, function: NodeId, label: &str, depth: u32) {
        let results = self.program.results(function);
        if results.is_empty() {
            self.found.functions.push(label.to_owned());
        }
        results.into_iter().for_each(|value| self.add(value, depth));
    }

    /// Returns the read of a property with a name that the text of the program tells.
    fn read(&self, expression: &'a Expression<'a>) -> Option<PropertyRead> {
        let (object, property) = match expression.get_inner_expression() {
            Expression::StaticMemberExpression(member) => (&member.object, member.property.name.as_str()),
            Expression::ComputedMemberExpression(member) => match &member.expression {
                Expression::StringLiteral(key) => (&member.object, key.value.as_str()),
                _ => return None,
            },
            Expression::ChainExpression(chain) => match &chain.expression {
                ChainElement::StaticMemberExpression(member) => {
                    (&member.object, member.property.name.as_str())
                }
                _ => return None,
            },
            _ => return None,
        };
        Some(self.read_of(expression.span(), object, property))
    }

    fn read_of(&self, whole: Span, object: &'a Expression<'a>, property: &str) -> PropertyRead {
        PropertyRead {
            text: self.text(whole),
            object: self.text(object.get_inner_expression().span()),
            property: property.to_owned(),
            origin: self.program.origin(object),
            before: self.read(object).map(Box::new),
        }
    }

    fn add_read(&mut self, read: PropertyRead) {
        if self.found.reads.iter().all(|other| other.text != read.text) {
            self.found.reads.push(read);
        }
    }

    fn add_text(&mut self, text: String) {
        if !self.found.calls.contains(&text) {
            self.found.calls.push(text);
        }
    }

    fn text(&self, span: Span) -> String {
        expression_text(self.source, span).unwrap_or_default()
    }
}
