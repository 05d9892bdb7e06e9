//! Writes numbers as `Intl.NumberFormat` does.

use super::Part;
use super::decimal::Decimal;
use super::number_names::{self, CurrencyDisplay};
use super::number_options::{Grouping, Notation, NumberOptions, Precision, SignDisplay, Style};

/// Exponents of the largest word of the compact notation, and its words.
const COMPACT_MAX: i64 = 12;
const COMPACT_SHORT: [&str; 4] = ["K", "M", "B", "T"];
const COMPACT_LONG: [&str; 4] = ["thousand", "million", "billion", "trillion"];

/// What separates a currency's code from the number.
const NO_BREAK_SPACE: &str = "\u{a0}";

/// A number that has been rounded, with the power of ten that its notation writes separately.
struct Rounded {
    number: Decimal,
    exponent: i64,
}

/// Splits the text of a number into the parts of `formatToParts`. `text` is the number as JavaScript writes it.
pub(super) fn parts(options: &NumberOptions, text: &str) -> Vec<Part> {
    let (is_negative, body, is_zero, is_one) = match Decimal::parse(text) {
        Some(number) => {
            let Rounded { number, exponent } = round(options, number);
            let is_zero = number.is_zero();
            let body = digits(options, &number, exponent);
            let is_one = body.len() == 1 && body[0].1 == "1";
            (number.is_negative, body, is_zero, is_one)
        }
        None if text.ends_with("Infinity") => {
            (text.starts_with('-'), vec![("infinity", "∞".to_owned())], false, false)
        }
        None => (false, vec![("nan", "NaN".to_owned())], true, false),
    };
    let is_nan = body[0].0 == "nan";
    let sign = match options.sign {
        SignDisplay::Auto => is_negative.then_some("-"),
        SignDisplay::Always => Some(if is_negative { "-" } else { "+" }),
        SignDisplay::Never => None,
        SignDisplay::ExceptZero => (!is_zero && !is_nan).then_some(if is_negative { "-" } else { "+" }),
        SignDisplay::Negative => (is_negative && !is_zero).then_some("-"),
    };
    styled(options, sign, body, is_one)
}

/// Rounds a number, and splits off the power of ten that the notation writes separately.
fn round(options: &NumberOptions, mut number: Decimal) -> Rounded {
    if matches!(options.style, Style::Percent) {
        number.shift(2);
    }
    let mut exponent = exponent_for(options.notation, number.magnitude());
    let rounded_at = |exponent: i64| {
        let mut shifted = number.clone();
        shifted.shift(-exponent);
        round_digits(options, &mut shifted);
        shifted
    };
    let mut rounded = rounded_at(exponent);
    // Rounding may add a digit, as from 999.9 to 1K.
    let after = exponent_for(options.notation, rounded.magnitude() + exponent);
    if !rounded.is_zero() && after != exponent {
        exponent = after;
        rounded = rounded_at(exponent);
    }
    Rounded { number: rounded, exponent }
}

fn exponent_for(notation: Notation, magnitude: i64) -> i64 {
    let thousands = magnitude.div_euclid(3) * 3;
    match notation {
        Notation::Standard => 0,
        Notation::Scientific => magnitude,
        Notation::Engineering => thousands,
        Notation::CompactShort | Notation::CompactLong => thousands.clamp(0, COMPACT_MAX),
    }
}

fn round_digits(options: &NumberOptions, number: &mut Decimal) {
    match options.precision {
        Precision::Fraction { maximum, .. } => number.round_to_fraction(maximum, options.mode),
        Precision::Significant { maximum, .. } => number.round_to_significant(maximum, options.mode),
        Precision::Compact if number.magnitude() >= 1 => number.round_to_fraction(0, options.mode),
        Precision::Compact => number.round_to_significant(2, options.mode),
    }
}

fn digits(options: &NumberOptions, number: &Decimal, exponent: i64) -> Vec<Part> {
    let minimum_fraction = match options.precision {
        Precision::Fraction { minimum, .. } => minimum,
        Precision::Significant { minimum, .. } => number.fraction_for_significant(minimum),
        Precision::Compact => 0,
    };
    let mut fraction = number.fraction(minimum_fraction);
    if options.strips_zeros_of_integers && fraction.bytes().all(|byte| byte == b'0') {
        fraction.clear();
    }
    let mut parts = grouped(options.grouping, &number.integer(options.minimum_integer));
    if !fraction.is_empty() {
        parts.extend([("decimal", ".".to_owned()), ("fraction", fraction)]);
    }
    match options.notation {
        Notation::Standard => {}
        Notation::Scientific | Notation::Engineering => {
            parts.push(("exponentSeparator", "E".to_owned()));
            if exponent < 0 {
                parts.push(("exponentMinusSign", "-".to_owned()));
            }
            parts.push(("exponentInteger", exponent.unsigned_abs().to_string()));
        }
        Notation::CompactShort | Notation::CompactLong => {
            let is_long = options.notation == Notation::CompactLong;
            let words = if is_long { COMPACT_LONG } else { COMPACT_SHORT };
            let word = usize::try_from(exponent / 3 - 1).ok().and_then(|index| words.get(index));
            if let Some(word) = word {
                parts.extend(is_long.then(|| ("literal", " ".to_owned())));
                parts.push(("compact", (*word).to_owned()));
            }
        }
    }
    parts
}

/// Splits the digits before the decimal point into groups of three.
fn grouped(grouping: Grouping, digits: &str) -> Vec<Part> {
    let has_groups = match grouping {
        Grouping::Never => false,
        Grouping::Always => digits.len() > 3,
        Grouping::Min2 => digits.len() > 4,
    };
    if !has_groups {
        return vec![("integer", digits.to_owned())];
    }
    let mut parts = Vec::new();
    let mut end = (digits.len() - 1) % 3 + 1;
    let mut start = 0;
    while start < digits.len() {
        if start > 0 {
            parts.push(("group", ",".to_owned()));
        }
        parts.push(("integer", digits[start..end].to_owned()));
        (start, end) = (end, end + 3);
    }
    parts
}

/// Adds the sign, and the currency, percent sign or unit.
fn styled(options: &NumberOptions, sign: Option<&str>, body: Vec<Part>, is_one: bool) -> Vec<Part> {
    let literal = |text: &str| ("literal", text.to_owned());
    let sign_part = |sign: &str| (if sign == "-" { "minusSign" } else { "plusSign" }, sign.to_owned());
    let mut parts = Vec::with_capacity(body.len() + 4);
    match &options.style {
        Style::Currency { code, display, is_accounting } if *display != CurrencyDisplay::Name => {
            let currency = number_names::currency(code, *display, options.locale, is_one);
            let has_parentheses =
                *is_accounting && sign == Some("-") && options.notation == Notation::Standard;
            match sign {
                Some(_) if has_parentheses => parts.push(literal("(")),
                Some(sign) => parts.push(sign_part(sign)),
                None => {}
            }
            let is_digit = matches!(body[0].0, "integer");
            let needs_space =
                is_digit && currency.ends_with(|last: char| last.is_alphabetic() || last == '.');
            parts.push(("currency", currency));
            parts.extend(needs_space.then(|| literal(NO_BREAK_SPACE)));
            parts.extend(body);
            parts.extend(has_parentheses.then(|| literal(")")));
        }
        style => {
            parts.extend(sign.map(sign_part));
            parts.extend(body);
            match style {
                Style::Decimal => {}
                Style::Percent => parts.push(("percentSign", "%".to_owned())),
                Style::Currency { code, display, .. } => {
                    let name = number_names::currency(code, *display, options.locale, is_one);
                    parts.extend([literal(" "), ("currency", name)]);
                }
                Style::Unit { unit, display } => {
                    let suffix = number_names::unit_suffix(unit, *display, is_one);
                    let name = suffix.trim_start();
                    parts.extend((name.len() < suffix.len()).then(|| literal(" ")));
                    parts.push(("unit", name.to_owned()));
                }
            }
        }
    }
    parts
}
