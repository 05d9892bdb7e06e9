//! Infers the result types of tools without an output schema from observed results. It stores field names and types,
//! but never values.
//!
//! A key may itself be personal data, because maps have people, dates and ids as keys. So the name of a key is stored
//! only
//!
//! 1. if it looks like a field name ([`field_names::is_field_name`]): a short identifier without long numbers,
//! 2. if it occurs nowhere as a value: neither in the arguments of the call nor in the result,
//! 3. if two objects at the same place had it (until then it stays in memory only), and
//! 4. if the object does not look like a map: a map has many keys, or at least two values that are objects with the
//!    same fields, or at least three values that are all numbers.
//!
//! If a key does not fulfil 1 or 2, the whole object counts as a map, `dict[str, T]`, whose keys are not stored. So
//! does an object that shares no key with the objects seen before at the same place. A place that had a map once stays
//! a map.

mod field_names;
mod sample;
mod shape;
mod store;

#[cfg(test)]
mod tests;

pub use store::{ResultShapes, ShapeObservation};
