//! Checks `tests/properties/*.json`, the properties that Lockhouse promises, each with the tests that prove it: the rows are
//! complete, and the tests exist. The threat model cites properties by their ids.

use std::collections::BTreeSet;

use lockhouse_tests::{Table, ensure, equal};
use serde::Deserialize;

use crate::citations::{Row, check_path, exists, names_below, paths, quoted, read, tables};

const FOLDER: &str = "tests/properties";
const THREAT_MODEL: &str = "docs/security/threat-model.md";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Topic {
    title: String,
    property: Vec<Property>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Property {
    /// How other documents cite the property.
    id: String,
    /// One sentence.
    property: String,
    /// What provides the property.
    layers: String,
    /// Attacks and tests, as [`exists`] reads them.
    tests: Vec<String>,
}

impl Property {
    /// Checks the row. The errors name what is missing.
    fn check(&self) -> Result<(), String> {
        ensure(!self.property.is_empty() && !self.layers.is_empty(), "a text is missing")?;
        ensure(!self.tests.is_empty(), "no test")?;
        let once: BTreeSet<&String> = self.tests.iter().collect();
        equal(once.len(), self.tests.len())?;
        let fault = |test: &String| exists(test).err().map(|fault| format!("{test}: {fault}"));
        let faults: Vec<String> = self.tests.iter().filter_map(fault).collect();
        ensure(faults.is_empty(), faults)?;
        paths(&self.layers).into_iter().try_for_each(check_path)
    }
}

fn topics() -> Vec<Topic> {
    let parse = |name| {
        let path = format!("{FOLDER}/{name}");
        serde_json::from_str(&read(&path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    names_below(FOLDER).into_iter().map(parse).collect()
}

#[test]
fn each_property_names_tests_that_exist() {
    let mut table = Table::new("properties");
    for property in topics().iter().flat_map(|topic| &topic.property) {
        table.row(&property.id, property.check());
    }
    table.finish();
}

#[test]
fn each_property_has_its_own_id_and_sentence() {
    let topics = topics();
    let properties: Vec<&Property> = topics.iter().flat_map(|topic| &topic.property).collect();
    let different = |text: fn(&Property) -> &str| {
        properties.iter().map(|property| text(property)).collect::<BTreeSet<_>>().len()
    };
    let mut table = Table::new("each once");
    table.row("ids", equal(different(|property| &property.id), properties.len()));
    table.row("sentences", equal(different(|property| &property.property), properties.len()));
    table.row("topics have titles", ensure(topics.iter().all(|topic| !topic.title.is_empty()), "a title"));
    table.finish();
}

/// Checks the last column of each table of the threat model: ids of properties. Each property answers a threat.
#[test]
fn the_threat_model_cites_each_property() {
    let topics = topics();
    let ids: BTreeSet<&str> =
        topics.iter().flat_map(|topic| &topic.property).map(|property| property.id.as_str()).collect();
    let document = read(THREAT_MODEL);
    let rows: Vec<Row> = tables(&document, "Threats").into_iter().flatten().collect();
    let cited = |row: &Row| quoted(row.last().expect("cells")).map(str::to_owned).collect::<Vec<String>>();
    let mut table = Table::new(THREAT_MODEL);
    for row in &rows {
        let unknown: Vec<String> = cited(row).into_iter().filter(|id| !ids.contains(id.as_str())).collect();
        table.row(&row[0], ensure(unknown.is_empty() && !cited(row).is_empty(), unknown));
    }
    let all: BTreeSet<String> = rows.iter().flat_map(cited).collect();
    let left_out: Vec<&&str> = ids.iter().filter(|id| !all.contains(**id)).collect();
    table.row("each property", ensure(left_out.is_empty(), left_out));
    table.finish();
}

#[test]
fn citations_of_missing_tests_are_detected() {
    let mut table = Table::new("citations of missing tests");
    for wrong in [
        "sandbox ablation::no_such_test",
        "sandbox nowhere::each_attack_is_contained_by_exactly_the_layers_in_its_header",
        "elsewhere ablation::each_attack_is_contained_by_exactly_the_layers_in_its_header",
        "sandbox ablation::check",
        "sandbox ablation::each_attack",
        "lockhouse pool::seal::every_field_that_differs_is_refused",
        "hostile/native/no_such_attack.c",
        "hostile/native/no_such*.c",
        "hostile/elsewhere/read_file.c",
        "each_attack_is_contained_by_exactly_the_layers_in_its_header",
    ] {
        table.row(wrong, ensure(exists(wrong).is_err(), "it was found"));
    }
    table.finish();
}
