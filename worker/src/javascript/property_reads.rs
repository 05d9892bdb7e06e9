//! Finds all places of a program that read a property of an object.

use oxc::ast::AstKind;
use oxc::ast::ast::{Expression, ObjectProperty};
use oxc::semantic::NodeId;
use oxc::span::{GetSpan, Span};

use super::value_origin::{Declarations, TakenApart};

/// A place of a program that reads a property.
pub(super) enum ReadPlace<'a> {
    /// An expression, such as `row.Name`: its place, the expression before the property, and the property.
    Expression(Span, &'a Expression<'a>, String),
    /// A name in a pattern, as in `rows.map(({ Name }) => Name)`: its place, the property, and the object.
    Pattern(Span, String, TakenApart),
}

impl<'a> Declarations<'_, 'a> {
    /// Returns all places that read a property, without those of called functions and of assignments.
    pub(super) fn property_reads(&self) -> impl Iterator<Item = ReadPlace<'a>> {
        let nodes = self.semantic.nodes().iter();
        nodes.filter_map(|node| self.read_place(node.id(), node.kind()))
    }

    fn read_place(&self, node: NodeId, kind: AstKind<'a>) -> Option<ReadPlace<'a>> {
        match kind {
            AstKind::StaticMemberExpression(member) => {
                let place =
                    ReadPlace::Expression(member.span, &member.object, member.property.name.to_string());
                self.is_read(node, member.span).then_some(place)
            }
            AstKind::ComputedMemberExpression(member) => {
                let Expression::StringLiteral(key) = &member.expression else { return None };
                let place = ReadPlace::Expression(member.span, &member.object, key.value.to_string());
                self.is_read(node, member.span).then_some(place)
            }
            AstKind::BindingProperty(property) => {
                let pattern = self.semantic.nodes().parent_id(node);
                let name = property.key.static_name()?.into_owned();
                Some(ReadPlace::Pattern(property.key.span(), name, self.taken_apart(pattern)))
            }
            _ => None,
        }
    }

    /// Returns whether a member expression is not the function of a call and not assigned.
    fn is_read(&self, node: NodeId, span: Span) -> bool {
        match self.semantic.nodes().parent_kind(node) {
            AstKind::CallExpression(call) => call.callee.span() != span,
            AstKind::AssignmentExpression(assignment) => assignment.left.span() != span,
            AstKind::UpdateExpression(_) => false,
            _ => true,
        }
    }

    /// Returns the keys of the object literals, without those whose value is a property of the same name.
    pub(super) fn defined_keys(&self) -> Vec<String> {
        let properties = self.semantic.nodes().iter().filter_map(|node| node.kind().as_object_property());
        let named =
            properties.filter_map(|property| Some((property.key.static_name()?.into_owned(), property)));
        named.filter(|(name, property)| !copies(property, name)).map(|(name, _)| name).collect()
    }
}

/// Returns whether the value of a property is a property or a variable of the same name.
fn copies(property: &ObjectProperty, name: &str) -> bool {
    match property.value.get_inner_expression() {
        Expression::StaticMemberExpression(member) => member.property.name == name,
        Expression::Identifier(variable) => variable.name == name,
        _ => false,
    }
}
