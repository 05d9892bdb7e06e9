//! Scalar values in policy conditions. An argument meets such a condition if it equals one of the values.

use std::fmt;

use serde_json::Value;

use super::{ConditionResult, Number};

/// A value with which an argument is compared: a text, a number or a boolean.
#[derive(Clone, Debug)]
pub(crate) enum Scalar {
    Text(String),
    Number(Number),
    Boolean(bool),
}

/// Compares the value of an argument with each scalar. The condition is met if one scalar is equal to the value. The
/// condition cannot be evaluated if no scalar has the type of the value.
pub(super) fn evaluate(scalars: &[Scalar], value: &Value) -> ConditionResult {
    let mut comparable = false;
    for scalar in scalars {
        match scalar.equals(value) {
            Some(true) => return ConditionResult::Met,
            Some(false) => comparable = true,
            None => {}
        }
    }
    if comparable { ConditionResult::NotMet } else { ConditionResult::Unknown("it has another type") }
}

impl Scalar {
    fn equals(&self, value: &Value) -> Option<bool> {
        match (self, value) {
            (Self::Text(text), Value::String(value)) => Some(text == value),
            (Self::Number(number), Value::Number(value)) => {
                Some(Number::from_json(value).is_some_and(|value| number.compare(value).is_eq()))
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
