//! Random sequences of operations have the same results in memory and on disk.

use std::process::Command;

use lockhouse_tests::{CommandOutput, Lockhouse};
use serde_json::{Value, json};

const PYTHON: &str = include_str!("programs/random_operations.py");
const TYPESCRIPT: &str = include_str!("programs/random_operations.ts");
/// The number of sequences of 60 operations.
const SEQUENCES: u64 = 60;

#[tokio::test]
async fn random_operations_have_the_results_of_a_disk() {
    let lockhouse = Lockhouse::new()
        .config("[python]\ninterpreter = \"/usr/bin/python3\"\n[limits]\nshown_bytes = 1048576\n");
    let session = lockhouse.serve().await;
    let directory = tempfile::tempdir().expect("a directory");
    // New sequences in each run of the test; a failure names them.
    let first = fastrand::u64(0..1 << 30);
    let seeds: Vec<u64> = (first..first + SEQUENCES).collect();
    for (language, program) in [("python", PYTHON), ("typescript", TYPESCRIPT)] {
        let (body, last) = program.trim_end().rsplit_once('\n').expect("lines");
        let below = directory.path().join(language);
        std::fs::create_dir(&below).expect("a directory");
        let (inside, outside, mut command) = match language {
            "python" => {
                let head = format!("SEEDS = {}\n{body}\nimport json\n", json!(seeds));
                (
                    format!("{head}json.dumps({last})"),
                    format!("{head}print(json.dumps({last}))"),
                    Command::new("/usr/bin/python3"),
                )
            }
            _ => {
                let head = format!("const SEEDS = {};\n{body}\n", json!(seeds));
                (
                    format!("{head}JSON.stringify({last})"),
                    format!("{head}console.log(JSON.stringify({last}))"),
                    Command::new("node"),
                )
            }
        };
        let file = lockhouse.file(&format!("operations/{language}.mjs"), outside);
        let expected = CommandOutput::run(command.arg(file).current_dir(&below), b"");
        let answer = session.run_code(language, &inside).await;
        let found = answer["value"].as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
        let expected: Value = serde_json::from_str(expected.stdout.trim()).expect("results outside");
        assert_same(language, &seeds, &found.unwrap_or(answer), &expected);
    }
}

/// Panics with the first difference of the results of a sequence.
fn assert_same(language: &str, seeds: &[u64], found: &Value, expected: &Value) {
    let sequences = expected.as_array().expect("a list");
    assert_eq!(sequences.len(), seeds.len(), "{language}");
    for (number, results) in sequences.iter().enumerate() {
        let found = &found[number];
        let results = results.as_array().expect("a list");
        for (step, result) in results.iter().enumerate() {
            assert_eq!(found.get(step), Some(result), "{language}: seed {}, operation {step}", seeds[number]);
        }
    }
}
