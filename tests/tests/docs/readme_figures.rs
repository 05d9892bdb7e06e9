//! Tests that the figures in README.md match those that `lockhouse demo` measures.

use lockhouse_tests::Lockhouse;

use super::code_blocks::page;

/// Returns all numbers in a line of text, in order.
fn numbers(line: &str) -> Vec<f64> {
    line.split_whitespace().filter_map(|word| word.trim_matches(['(', ')', ',']).parse().ok()).collect()
}

#[test]
fn the_readme_figures_match_the_demo() {
    let printed = Lockhouse::new().run(&["demo"]).stdout;
    let row = printed.lines().find(|line| line.starts_with("Which customers") && line.ends_with('%'));
    let row = numbers(row.unwrap_or_else(|| panic!("the demo has a row: {printed}")));
    let definitions = printed.lines().find(|line| line.starts_with("Direct tool calls: the definitions"));
    let definitions =
        numbers(definitions.unwrap_or_else(|| panic!("and the size of the definitions: {printed}")));
    let (calls, rows_mb, context_kb) = (row[0], (row[1] - definitions[0]) / 1e6, row[2] / 1e3);
    let sentence = format!(
        "In the demo {calls} calls bring {rows_mb:.1} MB of rows into the program and {context_kb:.0} KB into the model's context."
    );
    assert!(page("README.md").contains(&sentence), "README.md should say: {sentence}");
}
