//! Numbers in policy conditions, compared by value: 1 equals 1.0.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

use super::ConditionResult;

/// A number in a policy or in the arguments of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    Integer(i128),
    /// A finite floating-point number.
    Float(f64),
}

impl Number {
    pub(crate) fn from_json(number: &serde_json::Number) -> Option<Self> {
        let integer = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
        integer.map(Self::Integer).or_else(|| number.as_f64().and_then(Self::float))
    }

    /// Creates a floating-point number. Returns `None` for infinities and NaN, which cannot be compared.
    pub(crate) fn float(float: f64) -> Option<Self> {
        float.is_finite().then_some(Self::Float(float))
    }

    /// Compares two numbers exactly, without rounding large integers to floating point.
    pub(crate) fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Integer(one), Self::Integer(other)) => one.cmp(&other),
            (Self::Float(one), Self::Float(other)) => one.partial_cmp(&other).unwrap_or(Ordering::Equal),
            (Self::Float(_), Self::Integer(_)) => other.compare(self).reverse(),
            (Self::Integer(one), Self::Float(other)) => {
                #[allow(
                    clippy::cast_possible_truncation,
                    reason = "integers here have at most 64 bits, so the cast is exact or saturates beyond all of them"
                )]
                let whole = other.floor() as i128;
                one.cmp(&whole).then(if other.fract() == 0.0 { Ordering::Equal } else { Ordering::Less })
            }
        }
    }
}

pub(super) fn evaluate(min: Option<Number>, max: Option<Number>, value: &Value) -> ConditionResult {
    let Some(number) = value.as_number().and_then(Number::from_json) else {
        return ConditionResult::Unknown("it is not a number");
    };
    let above = min.is_none_or(|min| number.compare(min).is_ge());
    ConditionResult::from_bool(above && max.is_none_or(|max| number.compare(max).is_le()))
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(integer) => integer.fmt(f),
            Self::Float(float) => float.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_by_value() {
        let (int, float) = (Number::Integer, Number::Float);
        for (one, other, expected) in [
            (int(1), float(1.0), Ordering::Equal),
            (int(1), float(1.5), Ordering::Less),
            (int(-1), float(-1.5), Ordering::Greater),
            (int(9_007_199_254_740_993), float(9_007_199_254_740_992.0), Ordering::Greater),
            (int(i128::from(u64::MAX)), float(1e300), Ordering::Less),
            (float(0.0), float(-0.0), Ordering::Equal),
        ] {
            assert_eq!(one.compare(other), expected, "{one} {other}");
            assert_eq!(other.compare(one), expected.reverse(), "{other} {one}");
        }
    }
}
