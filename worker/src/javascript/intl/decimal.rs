//! Decimal numbers of any size, which are rounded exactly.

/// A number as its decimal digits. Zero has no digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    pub(super) is_negative: bool,
    /// Digits from 0 to 9, without zeros at either end.
    digits: Vec<u8>,
    /// How many of the digits are before the decimal point. May be negative or exceed the number of digits.
    point: i64,
}

/// Directions in which a number between two possible results is rounded, as in ECMA-402.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RoundingMode {
    Ceil,
    Floor,
    Expand,
    Trunc,
    HalfCeil,
    HalfFloor,
    HalfExpand,
    HalfTrunc,
    HalfEven,
}

/// Maximum absolute exponent of a number. JavaScript's own exponents have three digits.
const EXPONENT_MAX: i32 = 10_000;

impl Decimal {
    /// Parses a number as JavaScript writes it, such as `-1.5e-7`. Returns `None` for any other text.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (is_negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let exponent: i32 = exponent.parse().ok().filter(|exponent: &i32| exponent.abs() <= EXPONENT_MAX)?;
        let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits: Vec<u8> = integer
            .bytes()
            .chain(fraction.bytes())
            .map(|byte| byte.is_ascii_digit().then(|| byte - b'0'))
            .collect::<Option<_>>()?;
        if digits.is_empty() {
            return None;
        }
        let mut number = Self { is_negative, digits, point: integer.len() as i64 + i64::from(exponent) };
        number.normalize();
        Some(number)
    }

    pub(super) fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// The power of ten of the first digit; 0 for zero.
    pub(super) fn magnitude(&self) -> i64 {
        if self.is_zero() { 0 } else { self.point - 1 }
    }

    /// Multiplies by a power of ten.
    pub(super) fn shift(&mut self, power: i64) {
        if !self.is_zero() {
            self.point += power;
        }
    }

    /// Rounds to a number of digits after the decimal point.
    pub(super) fn round_to_fraction(&mut self, digits: u32, mode: RoundingMode) {
        self.round(self.point + i64::from(digits), mode);
    }

    /// Rounds to a number of digits.
    pub(super) fn round_to_significant(&mut self, digits: u32, mode: RoundingMode) {
        self.round(i64::from(digits), mode);
    }

    fn round(&mut self, kept: i64, mode: RoundingMode) {
        if self.is_zero() || kept >= self.digits.len() as i64 {
            return;
        }
        let is_up = self.rounds_up(kept, mode);
        self.digits.truncate(usize::try_from(kept).unwrap_or(0));
        if is_up {
            if kept <= 0 {
                self.digits = vec![1];
                self.point += 1 - kept;
            } else {
                self.increment();
            }
        }
        self.normalize();
    }

    /// Returns whether the digits after the first `kept` ones are rounded away from zero.
    fn rounds_up(&self, kept: i64, mode: RoundingMode) -> bool {
        let index = usize::try_from(kept).ok();
        let first = index.and_then(|index| self.digits.get(index)).copied().unwrap_or(0);
        let has_more = index.is_none_or(|index| index + 1 < self.digits.len());
        let half = first.cmp(&5).then(if has_more {
            std::cmp::Ordering::Greater
        } else {
            std::cmp::Ordering::Equal
        });
        let is_odd =
            index.and_then(|index| index.checked_sub(1)).is_some_and(|last| self.digits[last] % 2 == 1);
        match mode {
            RoundingMode::Ceil => !self.is_negative,
            RoundingMode::Floor => self.is_negative,
            RoundingMode::Expand => true,
            RoundingMode::Trunc => false,
            RoundingMode::HalfCeil => half.is_gt() || half.is_eq() && !self.is_negative,
            RoundingMode::HalfFloor => half.is_gt() || half.is_eq() && self.is_negative,
            RoundingMode::HalfExpand => half.is_ge(),
            RoundingMode::HalfTrunc => half.is_gt(),
            RoundingMode::HalfEven => half.is_gt() || half.is_eq() && is_odd,
        }
    }

    fn increment(&mut self) {
        for digit in self.digits.iter_mut().rev() {
            *digit += 1;
            if *digit < 10 {
                return;
            }
            *digit = 0;
        }
        self.digits.insert(0, 1);
        self.point += 1;
    }

    fn normalize(&mut self) {
        let zeros = self.digits.iter().take_while(|digit| **digit == 0).count();
        self.digits.drain(..zeros);
        self.point -= zeros as i64;
        while self.digits.last() == Some(&0) {
            self.digits.pop();
        }
        if self.digits.is_empty() {
            self.point = 0;
        }
    }

    /// Returns the digits before the decimal point, at least `minimum` of them.
    pub(super) fn integer(&self, minimum: u32) -> String {
        let digits = (0..self.point).map(|at| self.digit(at)).collect::<String>();
        format!("{digits:0>width$}", width = minimum as usize)
    }

    /// Returns the digits after the decimal point, at least `minimum` of them.
    pub(super) fn fraction(&self, minimum: u32) -> String {
        let digits = (self.point..self.digits.len() as i64).map(|at| self.digit(at)).collect::<String>();
        format!("{digits:0<width$}", width = minimum as usize)
    }

    fn digit(&self, at: i64) -> char {
        let digit = usize::try_from(at).ok().and_then(|at| self.digits.get(at)).copied().unwrap_or(0);
        char::from(b'0' + digit)
    }

    /// How many digits a number has from its first one to its last one before the decimal point, or after it.
    pub(super) fn fraction_for_significant(&self, minimum: u32) -> u32 {
        u32::try_from(i64::from(minimum) - self.magnitude() - 1).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Decimal, RoundingMode};

    fn rounded(text: &str, digits: u32, mode: RoundingMode) -> String {
        let mut number = Decimal::parse(text).expect("a number");
        number.round_to_fraction(digits, mode);
        format!("{}.{}", number.integer(1), number.fraction(0))
    }

    #[test]
    fn numbers_are_rounded_by_their_shortest_decimal() {
        for (text, digits, expected) in [
            ("1.005", 2, "1.01"),
            ("0.5", 0, "1."),
            ("0.049", 1, "0."),
            ("0.05", 1, "0.1"),
            ("0.001", 1, "0."),
            ("999.9", 0, "1000."),
            ("1e21", 0, "1000000000000000000000."),
            ("1.5e-7", 20, "0.00000015"),
            ("0", 2, "0."),
        ] {
            assert_eq!(rounded(text, digits, RoundingMode::HalfExpand), expected, "{text}");
        }
        assert_eq!(rounded("0.001", 0, RoundingMode::Expand), "1.");
        assert_eq!(rounded("2.5", 0, RoundingMode::HalfEven), "2.");
        assert_eq!(rounded("3.5", 0, RoundingMode::HalfEven), "4.");
        assert_eq!(rounded("-1.5", 0, RoundingMode::HalfCeil), "1.");
    }

    #[test]
    fn other_texts_are_no_numbers() {
        for text in ["", "-", "e1", "1e", "0x1", "1 2", "NaN", "1e99999999999"] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
    }
}
