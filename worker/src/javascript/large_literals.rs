//! Finds integers in a program that a number cannot represent exactly. JavaScript would round them in silence, and a
//! rounded identifier names another object.

use oxc::ast::ast::{NumericLiteral, Program};
use oxc::ast_visit::{Visit, walk};
use oxc::span::Span;

/// The fewest digits of a hexadecimal integer beyond 2^53. Others have more.
const DIGITS_MIN: usize = 14;

/// Returns the place and the message of the first integer literal that is no number exactly.
pub(super) fn find(source: &str, program: &Program) -> Option<(Span, String)> {
    let is_of_number = |byte: &u8| byte.is_ascii_hexdigit() || *byte == b'_';
    let mut runs = source.as_bytes().chunk_by(|a, b| is_of_number(a) == is_of_number(b));
    if !runs.any(|run| run.len() >= DIGITS_MIN) {
        return None;
    }
    let mut literals = Literals { source, found: None };
    literals.visit_program(program);
    literals.found
}

struct Literals<'s> {
    source: &'s str,
    found: Option<(Span, String)>,
}

impl<'a> Visit<'a> for Literals<'_> {
    fn visit_numeric_literal(&mut self, literal: &NumericLiteral<'a>) {
        let written = &self.source[literal.span.start as usize..literal.span.end as usize];
        // The standard library prints all digits of the value, without an exponent.
        let value = format!("{:.0}", literal.value);
        if self.found.is_none() && exact_digits(written).is_some_and(|digits| digits != value) {
            let message = format!(
                "{written} is beyond 2^53 and would become {value}: write {written}n, which is a BigInt and keeps all digits"
            );
            self.found = Some((literal.span, message));
        }
        walk::walk_numeric_literal(self, literal);
    }
}

/// Returns the decimal digits of an integer as it is written; `None` for what is no integer, or is too long.
fn exact_digits(written: &str) -> Option<String> {
    let digits = written.replace('_', "");
    let lower = digits.to_ascii_lowercase();
    let parsed = match lower.get(..2) {
        Some("0x") => u128::from_str_radix(&lower[2..], 16),
        Some("0o") => u128::from_str_radix(&lower[2..], 8),
        Some("0b") => u128::from_str_radix(&lower[2..], 2),
        _ => lower.parse(),
    };
    parsed.ok().map(|integer| integer.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::typescript::translated;

    #[test]
    fn integers_that_a_number_rounds_are_refused() {
        let refused = |source: &str| {
            let translated = translated(source);
            translated.starts_with("SyntaxError: ").then_some(translated)
        };
        let message = "SyntaxError: 7960607143101464577 is beyond 2^53 and would become 7960607143101464576: \
                       write 7960607143101464577n, which is a BigInt and keeps all digits";
        assert_eq!(refused("f({ id: 7960607143101464577 })").as_deref(), Some(message));
        for source in ["0xFFFFFFFFFFFFFFFF", "9_007_199_254_740_993", "-9007199254740993"] {
            assert!(refused(source).is_some(), "{source}");
        }
        for source in [
            "9007199254740992",
            "1152921504606846976",
            "7960607143101464577n",
            "'7960607143101464577'",
            "100000000000000000000",
            "1.7976931348623157e308",
            "0.12345678901234567890",
            "0x20000000000000",
        ] {
            assert_eq!(refused(source), None, "{source}");
        }
    }
}
