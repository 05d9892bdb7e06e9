//! Values that an argument may have to equal.

use std::fmt;

use serde_json::Value;

use super::{Judged, Number};

/// A text, a number or a truth value.
#[derive(Clone, Debug)]
pub(crate) enum Scalar {
    Text(String),
    Number(Number),
    Boolean(bool),
}

/// A value of a type that none of them has cannot be judged.
pub(super) fn judge(scalars: &[Scalar], value: &Value) -> Judged {
    let mut comparable = false;
    for scalar in scalars {
        match scalar.equals(value) {
            Some(true) => return Judged::Met,
            Some(false) => comparable = true,
            None => {}
        }
    }
    if comparable { Judged::NotMet } else { Judged::Unknown("it is of another type") }
}

impl Scalar {
    fn equals(&self, value: &Value) -> Option<bool> {
        match (self, value) {
            (Self::Text(text), Value::String(value)) => Some(text == value),
            (Self::Number(number), Value::Number(value)) => {
                Some(Number::of(value).is_some_and(|value| number.compare(value).is_eq()))
            }
            (Self::Boolean(boolean), Value::Bool(value)) => Some(boolean == value),
            _ => None,
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Number(number) => number.fmt(f),
            Self::Boolean(boolean) => boolean.fmt(f),
        }
    }
}
