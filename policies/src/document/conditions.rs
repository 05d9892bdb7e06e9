//! `when`: what a rule asks of arguments.

use toml::de::{DeTable, DeValue};

use super::reader::{Key, Reader, Value, integer, kind_of};
use crate::condition::{Condition, Glob, Host, Number, Root, Scalar, Test};

/// The most conditions of one rule.
const CONDITIONS_MAX: usize = 20;

/// The longest name of an argument and the longest text of a condition, in bytes.
const TEXT_BYTES_MAX: usize = 4096;

const CONDITION_KEYS: &str = "a condition is a value, a list of values, or a table with one of `is`, `min` and `max`, \
     `pattern`, `under` and `host`, and `optional` besides; an argument inside of another one is named in quotes: \
     \"filter.owner\" = \"acme\"";

/// `None`: something is wrong with them, so that the rule means nothing.
pub(super) fn when(reader: &mut Reader<'_, '_>, key: &Key<'_>, value: &Value<'_>) -> Option<Vec<Condition>> {
    let help = "name arguments and what they must be: when = { owner = \"acme\", repo = [\"app\", \"web\"] }";
    let table = reader.table("when", key, value, help)?;
    if table.len() > CONDITIONS_MAX {
        let title = format!("a rule has at most {CONDITIONS_MAX} conditions");
        reader.refuse(key.span(), title, "too many", "leave out those that the others imply");
        return None;
    }
    let mut written: Vec<_> = table.iter().collect();
    written.sort_by_key(|(name, _)| name.span().start);
    // Each is read, so that all errors are told.
    let conditions: Vec<_> =
        written.into_iter().map(|(name, value)| condition(reader, name, value)).collect();
    conditions.into_iter().collect()
}

fn condition(reader: &mut Reader<'_, '_>, name: &Key<'_>, value: &Value<'_>) -> Option<Condition> {
    let argument = name.get_ref().to_string();
    if argument.is_empty() || argument.len() > TEXT_BYTES_MAX || argument.split('.').any(str::is_empty) {
        let help = "use the name as the tool's schema has it; dots lead into objects: \"filter.owner\"";
        reader.refuse(name.span(), "this names no argument", "not a name of an argument", help);
        return None;
    }
    let (test, optional) = match value.get_ref() {
        DeValue::Table(table) => table_condition(reader, name, table)?,
        _ => (Test::OneOf(scalars(reader, value)?), false),
    };
    Some(Condition { argument, test, optional, span: name.span() })
}

fn table_condition(reader: &mut Reader<'_, '_>, name: &Key<'_>, table: &DeTable<'_>) -> Option<(Test, bool)> {
    let (mut tests, mut optional, mut sound) = (Vec::new(), false, true);
    let (mut min, mut max) = (None, None);
    for (key, value) in table {
        let test = match key.get_ref().as_ref() {
            "is" => scalars(reader, value).map(Test::OneOf),
            "pattern" => texts(reader, value, |text| Ok(Glob::new(text))).map(Test::Pattern),
            "under" => texts(reader, value, Root::new).map(Test::Under),
            "host" => texts(reader, value, Host::new).map(Test::Host),
            bound @ ("min" | "max") => {
                let number = number(reader, value);
                sound &= number.is_some();
                *(if bound == "min" { &mut min } else { &mut max }) = number;
                continue;
            }
            "optional" => {
                optional = value.get_ref().as_bool().unwrap_or_default();
                if value.get_ref().as_bool().is_none() {
                    let title = format!("`optional` must be true or false, not {}", kind_of(value));
                    let help = "write optional = true where a call without this argument fits too";
                    reader.refuse(value.span(), title, "expected true or false", help);
                    sound = false;
                }
                continue;
            }
            _ => {
                reader.unknown_key(key, "a condition", CONDITION_KEYS);
                None
            }
        };
        sound &= test.is_some();
        tests.extend(test);
    }
    if let (Some(min), Some(max)) = (min, max)
        && min.compare(max).is_gt()
    {
        reader.refuse(name.span(), "no number is in this range", "`min` is above `max`", "exchange the two");
        return None;
    }
    if min.is_some() || max.is_some() {
        tests.push(Test::Range { min, max });
    }
    if !sound {
        return None;
    }
    if tests.len() != 1 {
        let title = match tests.len() {
            0 => format!("the condition on `{}` asks for nothing", name.get_ref()),
            _ => format!("the condition on `{}` asks for several things", name.get_ref()),
        };
        reader.refuse(name.span(), title, "expected one condition", CONDITION_KEYS);
        return None;
    }
    tests.pop().map(|test| (test, optional))
}

fn scalars(reader: &mut Reader<'_, '_>, value: &Value<'_>) -> Option<Vec<Scalar>> {
    several(reader, value, |reader, value| {
        let scalar = match value.get_ref() {
            DeValue::String(text) => Some(Scalar::Text(text.to_string())),
            DeValue::Boolean(boolean) => Some(Scalar::Boolean(*boolean)),
            DeValue::Integer(_) | DeValue::Float(_) => return number(reader, value).map(Scalar::Number),
            _ => None,
        };
        if scalar.is_none() {
            let title = format!("an argument cannot be compared with {}", kind_of(value));
            let help = "use a string, a number, true or false, or a list of these";
            reader.refuse(value.span(), title, "expected a value", help);
        }
        scalar
    })
}

fn texts<T>(
    reader: &mut Reader<'_, '_>,
    value: &Value<'_>,
    parse: impl Fn(&str) -> Result<T, &'static str>,
) -> Option<Vec<T>> {
    several(reader, value, |reader, value| {
        let Some(text) = value.get_ref().as_str() else {
            let title = format!("this must be a string, not {}", kind_of(value));
            reader.refuse(value.span(), title, "expected a string", "write it in quotes");
            return None;
        };
        let parsed = if text.len() > TEXT_BYTES_MAX { Err("it is too long") } else { parse(text) };
        let help = "a folder is like \"/srv/docs\", a host like \"api.github.com\" or \"*.example.com\"";
        parsed
            .map_err(|why| reader.refuse(value.span(), format!("this can fit nothing: {why}"), why, help))
            .ok()
    })
}

/// One, or a list of at least one.
fn several<T>(
    reader: &mut Reader<'_, '_>,
    value: &Value<'_>,
    mut read: impl FnMut(&mut Reader<'_, '_>, &Value<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let (mut all, mut sound) = (Vec::new(), true);
    for value in Reader::one_or_more(value).iter() {
        if !reader.has_room(value.span()) {
            return None;
        }
        match read(reader, value) {
            Some(one) => all.push(one),
            None => sound = false,
        }
    }
    if sound && all.is_empty() {
        reader.refuse(value.span(), "nothing is in this list", "it can fit nothing", "name at least one");
        return None;
    }
    sound.then_some(all)
}

fn number(reader: &mut Reader<'_, '_>, value: &Value<'_>) -> Option<Number> {
    let whole = integer(value).map(|integer| Number::Integer(integer.into()));
    let number = whole.or_else(|| scalar_float(value).and_then(Number::float));
    if number.is_none() {
        reader.refuse(
            value.span(),
            "this must be a finite number",
            "expected a number",
            "write it without quotes, such as 10 or 0.5",
        );
    }
    number
}

/// A finite number with a fraction.
pub(super) fn scalar_float(value: &Value<'_>) -> Option<f64> {
    let float = value.get_ref().as_float()?;
    float.as_str().parse::<f64>().ok().filter(|float| float.is_finite())
}
