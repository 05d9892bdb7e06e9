//! Computes intersections and unions of types.

use serde_json::Value;

use super::{Definition, Field, Object, ParsedSchema, Type};

/// Maximum number of options in a union. A larger union becomes [`Type::Any`].
const OPTIONS_MAX: usize = 64;
/// Maximum number of values in a literal type. A union with more values becomes [`Type::Any`].
const VALUES_MAX: usize = 1_000;
/// Maximum nesting depth to which types are intersected. At greater depth, the first of the two types is used.
const DEPTH_MAX: usize = 6;

/// Returns the union of the types, without duplicates. Returns [`Type::Any`] if it has too many options or values.
pub(super) fn union(types: impl IntoIterator<Item = Type>) -> Type {
    let mut options: Vec<Type> = Vec::new();
    let mut pending: Vec<Type> = types.into_iter().collect();
    pending.reverse();
    while let Some(kind) = pending.pop() {
        match kind {
            Type::Any => return Type::Any,
            Type::Never => {}
            Type::Union(nested) => pending.extend(nested.into_iter().rev()),
            Type::Literal(values) => {
                if !add_literals(&mut options, values) {
                    return Type::Any;
                }
            }
            kind if options.contains(&kind) => {}
            _ if options.len() == OPTIONS_MAX => return Type::Any,
            kind => options.push(kind),
        }
    }
    match options.len() {
        0 => Type::Never,
        1 => options.swap_remove(0),
        _ => Type::Union(options),
    }
}

/// Adds values to the literal type among the options of a union. Returns false if that type then has too many values.
fn add_literals(options: &mut Vec<Type>, more: Vec<Value>) -> bool {
    let known = options.iter_mut().find_map(|option| match option {
        Type::Literal(values) => Some(values),
        _ => None,
    });
    let Some(values) = known else {
        options.push(Type::Literal(more));
        return true;
    };
    for value in more {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values.len() <= VALUES_MAX
}

/// Computes intersections of types. Limits the number of parts that are copied, because hostile schemas can cause many
/// copies.
pub(super) struct Intersection<'a> {
    pub(super) definitions: &'a [Definition],
    /// The number of parts of types that may still be copied.
    pub(super) copies_left: &'a mut usize,
}

impl Intersection<'_> {
    /// Returns the intersection of two types, or [`Type::Never`] if no value has both types. But if one of them is a
    /// union of which no option fits the other type, returns the other type. `depth` is the nesting depth of the types.
    pub(super) fn intersect(&mut self, one: Type, other: Type, depth: usize) -> Type {
        if depth > DEPTH_MAX {
            return one;
        }
        match (one, other) {
            (Type::Any, kind) | (kind, Type::Any) => kind,
            (Type::Never, _) | (_, Type::Never) => Type::Never,
            (one, other) if one == other => one,
            (Type::Union(options), kind) | (kind, Type::Union(options)) => {
                self.intersect_options(options, kind, depth)
            }
            (Type::Named(index), kind) | (kind, Type::Named(index)) => {
                let definitions = self.definitions;
                match self.copy(&definitions[index].kind) {
                    Some(known) => self.intersect(known, kind, depth + 1),
                    None => kind,
                }
            }
            (Type::Object(one), Type::Object(other)) => {
                Type::Object(self.intersect_objects(one, other, depth))
            }
            (Type::Int, Type::Float) | (Type::Float, Type::Int) => Type::Int,
            (Type::Literal(mut values), kind) | (kind, Type::Literal(mut values)) => {
                let parsed = ParsedSchema { kind, definitions: Vec::new() };
                values.retain(|value| parsed.admits(&parsed.kind, value));
                if values.is_empty() { Type::Never } else { Type::Literal(values) }
            }
            (Type::List(one), Type::List(other)) => {
                Type::List(Box::new(self.intersect(*one, *other, depth + 1)))
            }
            (tuple @ Type::Tuple { .. }, Type::List(_)) | (Type::List(_), tuple @ Type::Tuple { .. }) => {
                tuple
            }
            _ => Type::Never,
        }
    }

    fn copy(&mut self, kind: &Type) -> Option<Type> {
        let copies_left = self.copies_left.checked_sub(size(kind))?;
        *self.copies_left = copies_left;
        Some(kind.clone())
    }

    /// Returns the union of the intersections of each option with the type `kind`. `depth` is the nesting depth of the
    /// types. Returns `kind` if every intersection is empty, or if too many parts of types were copied.
    pub(super) fn intersect_options(&mut self, options: Vec<Type>, kind: Type, depth: usize) -> Type {
        let mut intersected = Vec::new();
        for option in options {
            let Some(kind) = self.copy(&kind) else { return kind };
            intersected.push(self.intersect(option, kind, depth + 1));
        }
        match union(intersected) {
            Type::Never => kind,
            intersected => intersected,
        }
    }

    fn intersect_objects(&mut self, mut one: Object, other: Object, depth: usize) -> Object {
        one.rest = match (one.rest, other.rest) {
            (Some(rest), more) if one.fields.is_empty() && *rest == Type::Any => more,
            (more, Some(rest)) if other.fields.is_empty() && *rest == Type::Any => more,
            (Some(one), Some(other)) => Some(Box::new(self.intersect(*one, *other, depth + 1))),
            (one, other) => one.or(other),
        };
        for field in other.fields {
            match one.fields.iter_mut().find(|known| known.name == field.name) {
                Some(known) => {
                    let kind = std::mem::replace(&mut known.kind, Type::Any);
                    known.kind = self.intersect(kind, field.kind, depth + 1);
                    known.required |= field.required;
                    known.default = known.default.take().or(field.default);
                    if known.description.is_empty() {
                        known.description = field.description;
                    }
                }
                None => one.fields.push(field),
            }
        }
        one
    }
}

/// Returns the number of parts that a type consists of, including itself.
pub(super) fn size(kind: &Type) -> usize {
    let inner: usize = match kind {
        Type::Literal(values) => values.len(),
        Type::List(items) => size(items),
        Type::Tuple { items, rest, .. } => items.iter().map(size).sum::<usize>() + size(rest),
        Type::Object(object) => {
            let fields = object.fields.iter().map(|field| 1 + size(&field.kind)).sum::<usize>();
            fields + object.rest.as_deref().map_or(0, size)
        }
        Type::Union(options) => options.iter().map(size).sum(),
        _ => 0,
    };
    1 + inner
}

/// Returns an object type that has the fields of both objects. A field is required if both objects require it. A field
/// of both objects has the union of its two types.
pub(super) fn union_objects(mut one: Object, other: Object) -> Object {
    for known in &mut one.fields {
        known.required &= other.fields.iter().any(|field| field.name == known.name && field.required);
    }
    for field in other.fields {
        match one.fields.iter_mut().find(|known| known.name == field.name) {
            Some(known) => {
                let kind = std::mem::replace(&mut known.kind, Type::Any);
                known.kind = union([kind, field.kind]);
            }
            None => one.fields.push(Field { required: false, ..field }),
        }
    }
    one.rest = one.rest.or(other.rest);
    one
}
