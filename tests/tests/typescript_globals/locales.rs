//! Formats of numbers and dates, and the order of texts: the values of Node.js, or an error that says what there is.

use lockhouse_tests::{Lockhouse, Table, ensure};
use serde_json::Value;

/// Expressions with their values in Node.js. The first line has its version.
const CASES: &str = include_str!("locale_cases.tsv");
/// How many expressions one program evaluates.
const AT_ONCE: usize = 60;

/// What the sandbox does not have: expressions with the words that their errors must have.
const REFUSED: &[(&str, &[&str])] = &[
    ("(1234.5).toLocaleString('de-DE')", &["RangeError", "de-DE", "en-US"]),
    ("new Intl.NumberFormat('fr-CA')", &["RangeError", "fr-CA", "en-US"]),
    ("(1).toLocaleString('sv-SE')", &["RangeError", "sv-SE for numbers", "en-US"]),
    ("new Date(0).toLocaleDateString('sv-SE', { month: 'long' })", &["RangeError", "sv-SE", "en-US"]),
    ("new Date(0).toLocaleDateString('ja-JP')", &["RangeError", "ja-JP", "sv-SE"]),
    ("'a'.localeCompare('b', 'sv')", &["RangeError", "sv-SE", "en-US"]),
    ("'a'.localeCompare('b', 'de', { numeric: true })", &["RangeError", "de", "en-US"]),
    ("'i'.toLocaleUpperCase('tr')", &["RangeError", "tr"]),
    ("(1).toLocaleString('en_US')", &["RangeError", "Incorrect locale information"]),
    (
        "new Date(0).toLocaleString('en-US', { timeZone: 'Mars/Base' })",
        &["RangeError", "Mars/Base", "Europe/Prague"],
    ),
    ("new Date(0).toLocaleString('en-US', { era: 'short' })", &["RangeError", "era"]),
    (
        "new Date(0).toLocaleString('en-US', { calendar: 'japanese' })",
        &["RangeError", "calendar japanese", "gregory"],
    ),
    ("new Date(0).toLocaleString('en-GB', { hour12: true })", &["RangeError", "en-GB", "en-US"]),
    (
        "new Date(0).toLocaleString('en-US', { year: 'numeric', day: 'numeric' })",
        &["RangeError", "combination"],
    ),
    ("new Date(0).toLocaleTimeString('en-US', { dateStyle: 'short' })", &["TypeError", "dateStyle"]),
    ("new Intl.DateTimeFormat('en-US').format(NaN)", &["RangeError", "Invalid time value"]),
    ("new Intl.DateTimeFormat('en-US').formatRange(0, 1)", &["RangeError", "formatRange"]),
    ("(1).toLocaleString('en-US', { style: 'currency' })", &["TypeError", "Currency code is required"]),
    ("(1).toLocaleString('en-US', { style: 'unit', unit: 'parsec' })", &["RangeError", "parsec"]),
    ("(1).toLocaleString('en-US', { style: 'words' })", &["RangeError", "words", "percent"]),
    ("(1).toLocaleString('en-US', { maximumFractionDigits: 101 })", &["RangeError", "maximumFractionDigits"]),
    (
        "(1).toLocaleString('en-US', { numberingSystem: 'arab' })",
        &["RangeError", "numberingSystem arab", "latn"],
    ),
    ("(1).toLocaleString('en-GB', { notation: 'compact' })", &["RangeError", "notation compact", "en-US"]),
    ("new Intl.PluralRules('en')", &["RangeError", "Intl.PluralRules", "Intl.NumberFormat"]),
    ("new Intl.RelativeTimeFormat('en')", &["RangeError", "Intl.RelativeTimeFormat"]),
    ("Number.prototype.toLocaleString.call('1')", &["TypeError"]),
    ("Intl.NumberFormat.prototype.resolvedOptions.call({})", &["TypeError", "Intl.NumberFormat"]),
];

/// A program that evaluates expressions to their values or errors.
fn program(expressions: &[&str]) -> String {
    let functions: Vec<String> = expressions.iter().map(|text| format!("() => ({text}),\n")).collect();
    let caught = "(f) => { try { return f() } catch (e) { return `${e.name}: ${e.message}` } }";
    format!("[\n{}].map({caught})", functions.concat())
}

#[tokio::test]
async fn locale_functions_give_the_values_of_node() {
    let lockhouse = Lockhouse::new();
    let session = lockhouse.serve().await;
    let mut table = Table::new("values of Node.js");
    let (version, lines) = CASES.split_once('\n').expect("lines");
    assert!(version.starts_with("# Node.js "), "{version}");
    let cases: Vec<(&str, &str)> = lines.lines().filter_map(|line| line.split_once('\t')).collect();
    assert!(cases.len() >= 150, "{} cases", cases.len());
    for cases in cases.chunks(AT_ONCE) {
        let expressions: Vec<&str> = cases.iter().map(|(expression, _)| *expression).collect();
        let answer = session.run_code("typescript", &program(&expressions)).await;
        for (index, (expression, expected)) in cases.iter().enumerate() {
            let expected: Value = serde_json::from_str(expected).expect("JSON");
            let got = &answer["value"][index];
            table.row(*expression, ensure(*got == expected, (got, &expected, &answer["error"])));
        }
        table.row("without a message", ensure(answer.get("stderr").is_none(), &answer["stderr"]));
    }
    table.finish();
}

#[tokio::test]
async fn other_locales_and_options_are_errors_that_name_them() {
    let lockhouse = Lockhouse::new();
    let session = lockhouse.serve().await;
    let mut table = Table::new("errors");
    let expressions: Vec<&str> = REFUSED.iter().map(|(expression, _)| *expression).collect();
    let answer = session.run_code("typescript", &program(&expressions)).await;
    for (index, (expression, words)) in REFUSED.iter().enumerate() {
        let got = answer["value"][index].as_str().unwrap_or_default();
        table.row(*expression, ensure(words.iter().all(|word| got.contains(word)), (got, &answer["error"])));
    }
    table.finish();
}

#[tokio::test]
async fn a_program_that_replaces_built_in_functions_breaks_only_itself() {
    let lockhouse = Lockhouse::new();
    let session = lockhouse.serve().await;
    let hostile = "Object.prototype.timeZone = 'Mars/Base'; WeakMap.prototype.get = () => [() => 'wrong']; \
                   String.prototype.toWellFormed = () => 'de'; Function.prototype.call = () => 'wrong'; \
                   Map.prototype.get = () => 'wrong'; Array.from = () => []; 1";
    let code = "[(1234.5).toLocaleString('en-US'), new URL('http://a/b?c=1').searchParams.get('c'), Buffer.from('a').toString('hex')]";
    let broken = session.run_code("typescript", hostile).await;
    let next = session.run_code("typescript", code).await;
    let mut table = Table::new("after a hostile program");
    table.row("the program", ensure(broken["status"] == "ok", &broken));
    table.row("the next program", ensure(next["value"] == serde_json::json!(["1,234.5", "1", "61"]), &next));
    table.finish();
}
