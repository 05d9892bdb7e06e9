//! Parses the key `when` of a policy rule: the conditions on a call's arguments.

use toml::de::{DeTable, DeValue};

use super::reader::{DocumentReader, Key, Value, integer, kind_of};
use crate::condition::{Condition, ConditionTest, Glob, HostPattern, Number, RootFolder, Scalar};

/// The maximum number of conditions of one policy rule.
/// Bound: configuration and policy.
const CONDITIONS_MAX: usize = 20;

/// The maximum length in bytes of an argument name in a policy condition, and of a text in `pattern`, `under` or
/// `host`.
/// Bound: configuration and policy.
const TEXT_BYTES_MAX: usize = 4096;

const CONDITION_KEYS: &str = "a condition is a value, a list of values, or a table with one of `is`, `min` and `max`, \
     `pattern`, `under` and `host`, and optionally `optional`; quote the name of a nested argument: \
     \"filter.owner\" = \"acme\"";

/// Parses the key `when` of a policy rule. Returns `None`, after reporting the errors, unless the value is a table of
/// at most [`CONDITIONS_MAX`] valid conditions; the rule is then dropped.
pub(super) fn when(
    reader: &mut DocumentReader<'_, '_>,
    key: &Key<'_>,
    value: &Value<'_>,
) -> Option<Vec<Condition>> {
    let help = "name arguments and what they must be: when = { owner = \"acme\", repo = [\"app\", \"web\"] }";
    let table = reader.table("when", key, value, help)?;
    if table.len() > CONDITIONS_MAX {
        let title = format!("a rule has at most {CONDITIONS_MAX} conditions");
        reader.report_error(key.span(), title, "too many", "remove conditions that others imply");
        return None;
    }
    let mut written: Vec<_> = table.iter().collect();
    written.sort_by_key(|(name, _)| name.span().start);
    // All are parsed before any is rejected, so that all errors are reported.
    let conditions: Vec<_> =
        written.into_iter().map(|(name, value)| condition(reader, name, value)).collect();
    conditions.into_iter().collect()
}

fn condition(reader: &mut DocumentReader<'_, '_>, name: &Key<'_>, value: &Value<'_>) -> Option<Condition> {
    let argument = name.get_ref().to_string();
    if argument.is_empty() || argument.len() > TEXT_BYTES_MAX || argument.split('.').any(str::is_empty) {
        let help =
            "use the argument's name from the tool's schema; a dot leads into an object: \"filter.owner\"";
        reader.report_error(name.span(), "this is not the name of an argument", "not an argument name", help);
        return None;
    }
    let (test, optional) = match value.get_ref() {
        DeValue::Table(table) => table_condition(reader, name, table)?,
        _ => (ConditionTest::OneOf(scalars(reader, value)?), false),
    };
    Some(Condition { argument, test, optional, span: name.span() })
}

fn table_condition(
    reader: &mut DocumentReader<'_, '_>,
    name: &Key<'_>,
    table: &DeTable<'_>,
) -> Option<(ConditionTest, bool)> {
    let (mut tests, mut optional, mut valid) = (Vec::new(), false, true);
    let (mut min, mut max) = (None, None);
    for (key, value) in table {
        let test = match key.get_ref().as_ref() {
            "is" => scalars(reader, value).map(ConditionTest::OneOf),
            "pattern" => texts(reader, value, |text| Ok(Glob::new(text))).map(ConditionTest::Pattern),
            "under" => texts(reader, value, RootFolder::new).map(ConditionTest::Under),
            "host" => texts(reader, value, HostPattern::new).map(ConditionTest::Host),
            bound @ ("min" | "max") => {
                let number = number(reader, value);
                valid &= number.is_some();
                *(if bound == "min" { &mut min } else { &mut max }) = number;
                continue;
            }
            "optional" => {
                optional = value.get_ref().as_bool().unwrap_or_default();
                if value.get_ref().as_bool().is_none() {
                    let title = format!("`optional` must be true or false, not {}", kind_of(value));
                    let help = "write optional = true if calls without this argument meet the condition too";
                    reader.report_error(value.span(), title, "expected true or false", help);
                    valid = false;
                }
                continue;
            }
            _ => {
                reader.unknown_key(key, "a condition", CONDITION_KEYS);
                None
            }
        };
        valid &= test.is_some();
        tests.extend(test);
    }
    if let (Some(min), Some(max)) = (min, max)
        && min.compare(max).is_gt()
    {
        reader.report_error(
            name.span(),
            "no number is in this range",
            "`min` is above `max`",
            "swap the two",
        );
        return None;
    }
    if min.is_some() || max.is_some() {
        tests.push(ConditionTest::Range { min, max });
    }
    if !valid {
        return None;
    }
    if tests.len() != 1 {
        let title = match tests.len() {
            0 => format!("the condition on `{}` is empty", name.get_ref()),
            _ => format!("the condition on `{}` combines several tests", name.get_ref()),
        };
        reader.report_error(name.span(), title, "expected one condition", CONDITION_KEYS);
        return None;
    }
    tests.pop().map(|test| (test, optional))
}

fn scalars(reader: &mut DocumentReader<'_, '_>, value: &Value<'_>) -> Option<Vec<Scalar>> {
    several(reader, value, |reader, value| {
        let scalar = match value.get_ref() {
            DeValue::String(text) if text.len() > TEXT_BYTES_MAX => {
                let title = format!("this text is longer than {TEXT_BYTES_MAX} bytes");
                let help = "name its beginning: pattern = \"BEGINNING*\"";
                reader.report_error(value.span(), title, "too long", help);
                return None;
            }
            DeValue::String(text) => Some(Scalar::Text(text.to_string())),
            DeValue::Boolean(boolean) => Some(Scalar::Boolean(*boolean)),
            DeValue::Integer(_) | DeValue::Float(_) => return number(reader, value).map(Scalar::Number),
            _ => None,
        };
        if scalar.is_none() {
            let title = format!("an argument cannot be compared with {}", kind_of(value));
            let help = "use a string, a number, true or false, or a list of these";
            reader.report_error(value.span(), title, "expected a value", help);
        }
        scalar
    })
}

fn texts<T>(
    reader: &mut DocumentReader<'_, '_>,
    value: &Value<'_>,
    parse: impl Fn(&str) -> Result<T, &'static str>,
) -> Option<Vec<T>> {
    several(reader, value, |reader, value| {
        let Some(text) = value.get_ref().as_str() else {
            let title = format!("this must be a string, not {}", kind_of(value));
            reader.report_error(value.span(), title, "expected a string", "write it in quotes");
            return None;
        };
        let parsed = if text.len() > TEXT_BYTES_MAX { Err("it is too long") } else { parse(text) };
        let help = "write a folder as \"/srv/docs\", a host as \"api.github.com\" or \"*.example.com\"";
        parsed
            .map_err(|why| {
                reader.report_error(value.span(), format!("this can match nothing: {why}"), why, help)
            })
            .ok()
    })
}

/// Parses a single value, or each element of a list, with `read`. Returns `None`, after reporting the errors, when a
/// value is invalid, the list is empty, or the document has too many patterns and values.
fn several<T>(
    reader: &mut DocumentReader<'_, '_>,
    value: &Value<'_>,
    mut read: impl FnMut(&mut DocumentReader<'_, '_>, &Value<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let (mut all, mut valid) = (Vec::new(), true);
    for value in DocumentReader::one_or_more(value).iter() {
        if !reader.count_pattern(value.span()) {
            return None;
        }
        match read(reader, value) {
            Some(one) => all.push(one),
            None => valid = false,
        }
    }
    if valid && all.is_empty() {
        reader.report_error(
            value.span(),
            "nothing is in this list",
            "it can fit nothing",
            "name at least one",
        );
        return None;
    }
    valid.then_some(all)
}

fn number(reader: &mut DocumentReader<'_, '_>, value: &Value<'_>) -> Option<Number> {
    let whole = integer(value).map(|integer| Number::Integer(integer.into()));
    let number = whole.or_else(|| scalar_float(value).and_then(Number::float));
    if number.is_none() {
        reader.report_error(
            value.span(),
            "this must be a finite number",
            "expected a number",
            "write it without quotes, such as 10 or 0.5",
        );
    }
    number
}

/// Returns the TOML value as a floating-point number; `None` if it is not a float or is not finite.
pub(super) fn scalar_float(value: &Value<'_>) -> Option<f64> {
    let float = value.get_ref().as_float()?;
    float.as_str().parse::<f64>().ok().filter(|float| float.is_finite())
}
