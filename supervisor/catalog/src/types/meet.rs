//! Types that hold at once, and types of which one holds.

use serde_json::Value;

use super::{Definition, Field, Object, Shape, Type};

/// Options that are told apart; of more only what they have in common is known.
const OPTIONS_MAX: usize = 64;
/// Values that are told apart.
const VALUES_MAX: usize = 1_000;
/// How deep two types are laid over each other.
const DEPTH_MAX: usize = 6;

/// What at least one of the types permits.
pub(super) fn join(types: impl IntoIterator<Item = Type>) -> Type {
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

/// Whether there was room for them.
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

/// Lays types over each other, as long as there is room for what comes of it.
pub(super) struct Meeting<'a> {
    pub(super) definitions: &'a [Definition],
    /// Parts of types that may still be copied.
    pub(super) room: &'a mut usize,
}

impl Meeting<'_> {
    /// What both types permit. Where they contradict each other as far as types go, [`Type::Never`].
    pub(super) fn meet(&mut self, one: Type, other: Type, depth: usize) -> Type {
        if depth > DEPTH_MAX {
            return one;
        }
        match (one, other) {
            (Type::Any, kind) | (kind, Type::Any) => kind,
            (Type::Never, _) | (_, Type::Never) => Type::Never,
            (one, other) if one == other => one,
            (Type::Union(options), kind) | (kind, Type::Union(options)) => self.each(options, kind, depth),
            (Type::Named(index), kind) | (kind, Type::Named(index)) => {
                let definitions = self.definitions;
                match self.copied(&definitions[index].kind) {
                    Some(known) => self.meet(known, kind, depth + 1),
                    None => kind,
                }
            }
            (Type::Object(one), Type::Object(other)) => Type::Object(self.both(one, other, depth)),
            (Type::Int, Type::Float) | (Type::Float, Type::Int) => Type::Int,
            (Type::Literal(mut values), kind) | (kind, Type::Literal(mut values)) => {
                let shape = Shape { kind, definitions: Vec::new() };
                values.retain(|value| shape.admits(&shape.kind, value));
                if values.is_empty() { Type::Never } else { Type::Literal(values) }
            }
            (Type::List(one), Type::List(other)) => Type::List(Box::new(self.meet(*one, *other, depth + 1))),
            (tuple @ Type::Tuple { .. }, Type::List(_)) | (Type::List(_), tuple @ Type::Tuple { .. }) => {
                tuple
            }
            _ => Type::Never,
        }
    }

    fn copied(&mut self, kind: &Type) -> Option<Type> {
        let room = self.room.checked_sub(weight(kind))?;
        *self.room = room;
        Some(kind.clone())
    }

    /// Each of the options together with another type, those that contradict it left out. If all do, we do not
    /// understand them.
    pub(super) fn each(&mut self, options: Vec<Type>, kind: Type, depth: usize) -> Type {
        let mut met = Vec::new();
        for option in options {
            let Some(kind) = self.copied(&kind) else { return kind };
            met.push(self.meet(option, kind, depth + 1));
        }
        match join(met) {
            Type::Never => kind,
            met => met,
        }
    }

    fn both(&mut self, mut one: Object, other: Object, depth: usize) -> Object {
        one.rest = match (one.rest, other.rest) {
            (Some(rest), more) if one.fields.is_empty() && *rest == Type::Any => more,
            (more, Some(rest)) if other.fields.is_empty() && *rest == Type::Any => more,
            (Some(one), Some(other)) => Some(Box::new(self.meet(*one, *other, depth + 1))),
            (one, other) => one.or(other),
        };
        for field in other.fields {
            match one.fields.iter_mut().find(|known| known.name == field.name) {
                Some(known) => {
                    let kind = std::mem::replace(&mut known.kind, Type::Any);
                    known.kind = self.meet(kind, field.kind, depth + 1);
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

/// The parts of a type.
pub(super) fn weight(kind: &Type) -> usize {
    let inner: usize = match kind {
        Type::Literal(values) => values.len(),
        Type::List(items) => weight(items),
        Type::Tuple { items, rest, .. } => items.iter().map(weight).sum::<usize>() + weight(rest),
        Type::Object(object) => {
            let fields = object.fields.iter().map(|field| 1 + weight(&field.kind)).sum::<usize>();
            fields + object.rest.as_deref().map_or(0, weight)
        }
        Type::Union(options) => options.iter().map(weight).sum(),
        _ => 0,
    };
    1 + inner
}

/// What an object has that is one or the other: what only one of them requires is not required.
pub(super) fn either(mut one: Object, other: Object) -> Object {
    for known in &mut one.fields {
        known.required &= other.fields.iter().any(|field| field.name == known.name && field.required);
    }
    for field in other.fields {
        match one.fields.iter_mut().find(|known| known.name == field.name) {
            Some(known) => {
                let kind = std::mem::replace(&mut known.kind, Type::Any);
                known.kind = join([kind, field.kind]);
            }
            None => one.fields.push(Field { required: false, ..field }),
        }
    }
    one.rest = one.rest.or(other.rest);
    one
}
