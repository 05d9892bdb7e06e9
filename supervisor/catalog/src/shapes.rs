//! Infers the result types of tools without an output schema from the results of earlier calls. Stores field names and
//! types, but never values.
//!
//! A key may itself be personal data, because maps have people, dates and ids as keys. Therefore the name of a key is
//! stored in the file and shown only if all of these conditions are true:
//!
//! 1. The key looks like a field name ([`field_names::is_field_name`]): a short identifier without long numbers.
//! 2. The key does not occur as a value in the arguments of the call or in the result.
//! 3. Two objects at the same place of the result had the key. A key of only one object stays in memory.
//! 4. The object does not look like a map. A map has many keys, or at least two values that are objects with the same
//!    fields, or at least three values that are all numbers.
//!
//! If a key does not fulfil condition 1 or 2, the whole object counts as a map, `dict[str, T]`, whose keys are not
//! stored. An object also counts as a map if it shares no key with the objects seen before at the same place. A place
//! that had a map once stays a map.

mod field_names;
mod sample;
mod shape;
mod store;

#[cfg(test)]
mod tests;

pub use store::{ResultShapes, ShapeObservation};
