//! Finds out where the value of an expression comes from: from the result of which tool, and by which steps.

use oxc::ast::AstKind;
use oxc::ast::ast::{
    BindingPattern, CallExpression, ChainElement, Expression, IdentifierReference, ReturnStatement,
};
use oxc::semantic::{NodeId, Semantic};
use oxc::span::{GetSpan, Span};
use serde::Serialize;

/// Maximum number of declarations and calls that are followed from one expression.
const DEPTH_MAX: u32 = 12;

/// Methods of an array that return some of its items, and those that return one of them.
const SOME_ITEMS: [&str; 7] = ["filter", "slice", "sort", "toSorted", "reverse", "toReversed", "concat"];
const ONE_ITEM: [&str; 5] = ["find", "findLast", "at", "pop", "shift"];

/// Where a value comes from.
#[derive(Debug, Serialize)]
pub(super) struct Origin {
    #[serde(flatten)]
    root: Root,
    /// The steps from the root to the value: the name of a property, or `None` for an item of an array.
    steps: Vec<Option<String>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Root {
    /// The result of the tool with this name.
    Tool(String),
    /// A variable that an earlier run of the session may have left.
    Variable(String),
    /// An object literal with these keys.
    Keys(Vec<String>),
}

impl Origin {
    fn new(root: Root) -> Self {
        Self { root, steps: Vec::new() }
    }

    fn then(mut self, steps: impl IntoIterator<Item = Option<String>>) -> Self {
        self.steps.extend(steps);
        self
    }
}

/// The object that a pattern takes apart.
#[derive(Default)]
pub(super) struct TakenApart {
    /// The place of its expression; `None` for an item of a list.
    pub(super) expression: Option<Span>,
    pub(super) origin: Option<Origin>,
}

/// The declarations and functions of a parsed program.
pub(super) struct Declarations<'p, 'a> {
    pub(super) semantic: &'p Semantic<'a>,
}

impl<'a> Declarations<'_, 'a> {
    /// Returns where the value of an expression comes from; `None` if the text of the program does not tell.
    pub(super) fn origin(&self, expression: &'a Expression<'a>) -> Option<Origin> {
        self.follow(expression, 0)
    }

    fn follow(&self, expression: &'a Expression<'a>, depth: u32) -> Option<Origin> {
        let depth = (depth < DEPTH_MAX).then_some(depth + 1)?;
        match expression.get_inner_expression() {
            Expression::AwaitExpression(awaited) => self.follow(&awaited.argument, depth),
            Expression::Identifier(name) => self.of_variable(name, depth),
            Expression::StaticMemberExpression(member) => {
                Some(self.follow(&member.object, depth)?.then([Some(member.property.name.to_string())]))
            }
            Expression::ComputedMemberExpression(member) => {
                Some(self.follow(&member.object, depth)?.then([static_key(&member.expression)]))
            }
            Expression::ChainExpression(chain) => match &chain.expression {
                ChainElement::StaticMemberExpression(member) => {
                    Some(self.follow(&member.object, depth)?.then([Some(member.property.name.to_string())]))
                }
                ChainElement::CallExpression(call) => self.of_call(call, depth),
                _ => None,
            },
            Expression::CallExpression(call) => self.of_call(call, depth),
            Expression::ObjectExpression(object) => {
                let properties = object.properties.iter().filter_map(|property| property.as_property());
                let keys = properties.filter_map(|property| property.key.static_name());
                Some(Origin::new(Root::Keys(keys.map(|key| key.into_owned()).collect())))
            }
            _ => None,
        }
    }

    fn of_variable(&self, name: &IdentifierReference<'a>, depth: u32) -> Option<Origin> {
        let variable = || Some(Origin::new(Root::Variable(name.name.to_string())));
        let Some((node, kind)) = self.declaration(name) else { return variable() };
        match kind {
            AstKind::VariableDeclarator(declarator) => {
                let steps = steps_to(&declarator.id, &name.name)?;
                let origin = match &declarator.init {
                    Some(init) => self.follow(init, depth),
                    None => self.of_loop(node, depth),
                };
                origin.map(|origin| origin.then(steps)).or_else(variable)
            }
            AstKind::FormalParameter(parameter) => {
                let steps = steps_to(&parameter.pattern, &name.name)?;
                Some(self.of_parameter(node, depth)?.then(steps))
            }
            _ => None,
        }
    }

    /// Returns the object that a pattern takes apart; nothing is known of it for a pattern in a pattern.
    pub(super) fn taken_apart(&self, pattern: NodeId) -> TakenApart {
        let parent = self.semantic.nodes().parent_node(pattern);
        let item = |origin| TakenApart { expression: None, origin };
        match parent.kind() {
            AstKind::VariableDeclarator(declarator) => match &declarator.init {
                Some(init) => TakenApart { expression: Some(init.span()), origin: self.follow(init, 0) },
                None => item(self.of_loop(parent.id(), 0)),
            },
            AstKind::FormalParameter(_) => item(self.of_parameter(parent.id(), 0)),
            _ => TakenApart::default(),
        }
    }

    /// Returns the origin of the variable of a `for … of` loop.
    fn of_loop(&self, declarator: NodeId, depth: u32) -> Option<Origin> {
        let nodes = self.semantic.nodes();
        match nodes.parent_kind(nodes.parent_id(declarator)) {
            AstKind::ForOfStatement(repeated) => Some(self.follow(&repeated.right, depth)?.then([None])),
            _ => None,
        }
    }

    /// Returns the origin of the first parameter of a function that is called for each item of an array, as by `map`.
    fn of_parameter(&self, parameter: NodeId, depth: u32) -> Option<Origin> {
        let nodes = self.semantic.nodes();
        let parameters = nodes.parent_node(parameter);
        let AstKind::FormalParameters(list) = parameters.kind() else { return None };
        let is_first = list.items.first()?.node_id.get() == parameter;
        let function = nodes.parent_node(parameters.id());
        let AstKind::CallExpression(call) = nodes.parent_kind(function.id()) else { return None };
        let Expression::StaticMemberExpression(member) = call.callee.get_inner_expression() else {
            return None;
        };
        is_first.then(|| Some(self.follow(&member.object, depth)?.then([None])))?
    }

    fn of_call(&self, call: &'a CallExpression<'a>, depth: u32) -> Option<Origin> {
        if let Some(tool) = self.called_tool(call) {
            return Some(Origin::new(Root::Tool(tool)));
        }
        match call.callee.get_inner_expression() {
            Expression::StaticMemberExpression(member) => {
                let name = member.property.name.as_str();
                let origin = || self.follow(&member.object, depth);
                if SOME_ITEMS.contains(&name) {
                    return origin();
                }
                ONE_ITEM.contains(&name).then(origin)?.map(|origin| origin.then([None]))
            }
            Expression::Identifier(name) => {
                self.results(self.function_named(name)?).first().and_then(|value| self.follow(value, depth))
            }
            _ => None,
        }
    }

    /// Returns the name of the tool that a call calls: that of a property of a server, or an imported name.
    fn called_tool(&self, call: &'a CallExpression<'a>) -> Option<String> {
        match call.callee.get_inner_expression() {
            Expression::StaticMemberExpression(member) => {
                let mut root = member.object.get_inner_expression();
                while let Expression::StaticMemberExpression(inner) = root {
                    root = inner.object.get_inner_expression();
                }
                let Expression::Identifier(root) = root else { return None };
                let is_import = |kind| {
                    matches!(
                        kind,
                        AstKind::ImportDefaultSpecifier(_)
                            | AstKind::ImportNamespaceSpecifier(_)
                            | AstKind::ImportSpecifier(_)
                    )
                };
                let is_server = self.declaration(root).is_none_or(|(_, kind)| is_import(kind));
                is_server.then(|| member.property.name.to_string())
            }
            Expression::Identifier(name) => match self.declaration(name) {
                Some((_, AstKind::ImportSpecifier(import))) => Some(import.imported.name().to_string()),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the declaration of the variable, parameter, function or import that a name refers to; `None` for a global
    /// name.
    pub(super) fn declaration(&self, name: &IdentifierReference<'a>) -> Option<(NodeId, AstKind<'a>)> {
        let reference = self.semantic.scoping().get_reference(name.reference_id.get()?);
        let node = self.semantic.symbol_declaration(reference.symbol_id()?);
        Some((node.id(), node.kind()))
    }

    /// Returns the function of the program that a name refers to.
    pub(super) fn function_named(&self, name: &IdentifierReference<'a>) -> Option<NodeId> {
        match self.declaration(name)? {
            (node, AstKind::Function(_)) => Some(node),
            (_, AstKind::VariableDeclarator(declarator)) => function_node(declarator.init.as_ref()?),
            _ => None,
        }
    }

    /// Returns the expressions whose values a function returns; for `None`, those that the program itself returns.
    pub(super) fn returned(&self, function: Option<NodeId>) -> Vec<&'a ReturnStatement<'a>> {
        let nodes = self.semantic.nodes();
        let is_function = |id: &NodeId| {
            matches!(nodes.kind(*id), AstKind::Function(_) | AstKind::ArrowFunctionExpression(_))
        };
        let of_function = |id| nodes.ancestor_ids(id).find(is_function) == function;
        let returns = nodes.iter().filter_map(|node| Some((node.id(), node.kind().as_return_statement()?)));
        returns.filter(|(id, _)| of_function(*id)).map(|(_, statement)| statement).collect()
    }

    /// Returns the expressions whose values a function of the program returns.
    pub(super) fn results(&self, function: NodeId) -> Vec<&'a Expression<'a>> {
        if let AstKind::ArrowFunctionExpression(arrow) = self.semantic.nodes().kind(function)
            && let Some(value) = arrow.body.as_expression()
        {
            return vec![value];
        }
        self.returned(Some(function))
            .into_iter()
            .filter_map(|statement| statement.argument.as_ref())
            .collect()
    }
}

/// Returns the node of an expression that is a function.
pub(super) fn function_node(expression: &Expression) -> Option<NodeId> {
    match expression.get_inner_expression() {
        Expression::ArrowFunctionExpression(function) => Some(function.node_id.get()),
        Expression::FunctionExpression(function) => Some(function.node_id.get()),
        _ => None,
    }
}

/// Returns the text of a string literal that is a key; `None` for the number of an item and every other expression.
fn static_key(key: &Expression) -> Option<String> {
    match key {
        Expression::StringLiteral(text) => Some(text.value.to_string()),
        _ => None,
    }
}

/// Returns the steps from a value to the part that a pattern binds to `name`. Returns `None` if it does not bind the name.
pub(super) fn steps_to(pattern: &BindingPattern, name: &str) -> Option<Vec<Option<String>>> {
    match pattern {
        BindingPattern::BindingIdentifier(bound) => (bound.name == name).then(Vec::new),
        BindingPattern::AssignmentPattern(with_default) => steps_to(&with_default.left, name),
        BindingPattern::ObjectPattern(object) => object.properties.iter().find_map(|property| {
            let inner = steps_to(&property.value, name)?;
            Some([vec![property.key.static_name().map(|key| key.into_owned())], inner].concat())
        }),
        BindingPattern::ArrayPattern(array) => {
            let inner = array.elements.iter().flatten().find_map(|element| steps_to(element, name))?;
            Some([vec![None], inner].concat())
        }
    }
}
