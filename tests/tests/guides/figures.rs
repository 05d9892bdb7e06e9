//! Figures that README.md names are those that the demo measures.

use lockhouse_tests::Lockhouse;

use super::blocks::page;

/// The numbers of a line, in their order.
fn numbers(line: &str) -> Vec<f64> {
    line.split_whitespace().filter_map(|word| word.trim_matches(['(', ')', ',']).parse().ok()).collect()
}

#[test]
fn the_readme_has_the_figures_of_the_demo() {
    let shown = Lockhouse::new().run(&["demo"]).stdout;
    let row = shown.lines().find(|line| line.starts_with("Which customers") && line.ends_with('%'));
    let row = numbers(row.unwrap_or_else(|| panic!("the demo has a row: {shown}")));
    let definitions = shown.lines().find(|line| line.starts_with("One by one: the definitions"));
    let definitions =
        numbers(definitions.unwrap_or_else(|| panic!("and the size of the definitions: {shown}")));
    let (calls, rows_mb, context_kb) = (row[0], (row[1] - definitions[0]) / 1e6, row[2] / 1e3);
    let sentence = format!(
        "In the demo {calls} calls bring {rows_mb:.1} MB of rows into the program and {context_kb:.1} KB into the model's context."
    );
    assert!(page("README.md").contains(&sentence), "README.md should say: {sentence}");
}
