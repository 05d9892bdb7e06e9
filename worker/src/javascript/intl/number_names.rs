//! Symbols and names of currencies and units in English. The tables come from the Unicode CLDR, version 48.

use super::locale::Locale;

/// `CODE|fraction digits|symbol in en-US|en-GB|en-CA|narrow symbol|name of one|name of several`.
const CURRENCIES: &str = include_str!("currencies.txt");

/// `unit|short, one|short, several|long, one|long, several|narrow, one|narrow, several`, where # is the number.
const UNITS: &str = include_str!("units.txt");

/// The number of fraction digits of a currency that the table lacks.
const FRACTION_DIGITS: u32 = 2;

/// How a currency is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CurrencyDisplay {
    Symbol,
    NarrowSymbol,
    Code,
    Name,
}

fn row<'t>(table: &'t str, name: &str) -> Option<Vec<&'t str>> {
    let found = table.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with('|')));
    found.map(|line| line.split('|').collect())
}

/// Returns the usual number of fraction digits of amounts in a currency.
pub(super) fn fraction_digits(code: &str) -> u32 {
    row(CURRENCIES, code).and_then(|row| row[1].parse().ok()).unwrap_or(FRACTION_DIGITS)
}

/// Returns the text for a currency. `is_one` tells whether the amount is written as 1, which matters for names only.
pub(super) fn currency(code: &str, display: CurrencyDisplay, locale: Locale, is_one: bool) -> String {
    let Some(row) = row(CURRENCIES, code) else { return code.to_owned() };
    let column = match (display, locale) {
        (CurrencyDisplay::Code, _) => 0,
        (CurrencyDisplay::Symbol, Locale::EnGb) => 3,
        (CurrencyDisplay::Symbol, Locale::EnCa) => 4,
        (CurrencyDisplay::Symbol, _) => 2,
        (CurrencyDisplay::NarrowSymbol, _) => 5,
        (CurrencyDisplay::Name, _) if is_one => 6,
        (CurrencyDisplay::Name, _) => 7,
    };
    row[column].to_owned()
}

/// How long the text for a unit is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum UnitDisplay {
    Short,
    Long,
    Narrow,
}

/// Returns whether the table has a unit.
pub(super) fn has_unit(unit: &str) -> bool {
    row(UNITS, unit).is_some()
}

/// Returns the text after a number with a unit. `is_one` tells whether the number is written as 1.
pub(super) fn unit_suffix(unit: &str, display: UnitDisplay, is_one: bool) -> &'static str {
    let column = match display {
        UnitDisplay::Short => 1,
        UnitDisplay::Long => 3,
        UnitDisplay::Narrow => 5,
    };
    let pattern = row(UNITS, unit).map_or("", |row| row[column + usize::from(!is_one)]);
    pattern.strip_prefix('#').unwrap_or(pattern)
}

#[cfg(test)]
mod tests {
    use super::{CURRENCIES, UNITS};

    #[test]
    fn every_row_of_the_tables_is_complete() {
        for line in CURRENCIES.lines() {
            assert_eq!(line.split('|').count(), 8, "{line}");
        }
        for line in UNITS.lines() {
            assert_eq!(line.split('|').count(), 7, "{line}");
            assert!(line.split('|').skip(1).all(|pattern| pattern.starts_with('#')), "{line}");
        }
    }
}
