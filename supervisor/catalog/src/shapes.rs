//! What results of tools without an output schema look like: names of fields and types that were seen, never a value.
//!
//! A name that a result has may itself be a value: maps have people, dates and ids for keys. So a name is kept only
//!
//! 1. if it looks like a field's name ([`names::is_field_name`]): a short identifier without long numbers,
//! 2. if it was not written anywhere as a value: neither in the arguments of the call nor in the result,
//! 3. if it was seen in two objects at the same place. Until then it is nowhere but in memory,
//! 4. and if the object is not a map by its looks: many names, or two and more whose values are objects of the same fields, or
//!    three and more that are all numbers.
//!
//! One name of the first two kinds makes the whole object a map, and what is a map stays one: `dict[str, T]`, whose names are
//! forgotten. An object that shares no name with one that was seen before is a map, too.

mod names;
mod sample;
mod shape;
mod store;

#[cfg(test)]
mod tests;

pub use store::{Lesson, Shapes};
