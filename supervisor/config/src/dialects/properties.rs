//! Property tests of the servers file parser: parsing any file yields servers or diagnostics, and no diagnostic
//! contains a secret.

use lockhouse_policies::Source;
use lockhouse_upstream::{Endpoint, ServerLimits};
use proptest::prelude::*;

use super::document_tree::parse_toml;
use super::golden::files;
use super::{Author, read, read_own};
use crate::placeholders::Environment;

const SECRET: &str = "SEKRET-VALUE";

fn environment() -> Environment {
    let secret = |name: &str| (name.to_owned(), format!("{SECRET}\n{SECRET}"));
    let variables = ["A", "GITHUB_TOKEN", "MODE", "LOCKHOUSE_INPUT_GIVEN", "HOME"].map(secret).into();
    Environment {
        variables,
        home: Some("/nonexistent".into()),
        directory: "/srv/app".into(),
        ..Environment::default()
    }
}

/// Parses a servers file and returns every text about the file that may be displayed, such as diagnostics and debug
/// output.
fn displayed_text(text: &str) -> String {
    let source = Source { path: "servers".into(), text: text.into() };
    let environment = environment();
    let own =
        parse_toml(&source).and_then(|root| read_own(&source, root.get_ref(), &environment, Author::User));
    let mut output = own.map_or_else(|faults| faults.to_string(), |_| String::new());
    match read(&source, &environment) {
        Err(faults) => output += &faults.to_string(),
        Ok(None) => {}
        Ok(Some(listing)) => {
            output += &format!("{listing:?}");
            for listed in listing.servers {
                match listed
                    .entry
                    .and_then(|entry| entry.resolve(&environment, ServerLimits::default(), String::new()))
                {
                    Ok(mut definition) => {
                        // The program name is visible in any process list, so it is no leaked secret, even in a
                        // damaged file.
                        if let Endpoint::Stdio(command) = &mut definition.endpoint {
                            command.program.clear();
                        }
                        output += &format!("{definition:?}");
                    }
                    Err(reason) => output += &reason.to_string(),
                }
            }
        }
    }
    output
}

fn golden() -> Vec<String> {
    let entries = std::fs::read_dir(files()).expect("files").map(|entry| entry.expect("an entry").path());
    entries.filter(|path| path.is_file()).map(|path| std::fs::read_to_string(path).expect("a file")).collect()
}

/// Generates the fragments from which the servers files of these tests are assembled.
fn piece() -> impl Strategy<Value = String> {
    let known = [
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"",
        "'",
        "=",
        "\n",
        "\\",
        "//",
        "/*",
        "*/",
        "#",
        "mcpServers",
        "servers",
        "mcp",
        "\"command\": \"x\"",
        "\"env\": {\"T\": \"${A}\"}",
        "\"url\": \"https://x/${A}\"",
        "\"headers\": {\"X\": \"${env:A}\"}",
        "[servers.x]",
        "[mcp_servers.x]",
        "command = \"${env:A}\"",
        "env = {T = \"${env:A}\"}",
        "${A}",
        "$A",
        "{env:A}",
        "${env:A}",
        "${file:/etc/hostname}",
        "null",
        "true",
        "0",
        "-1e999",
        "\u{feff}",
        "é",
    ];
    prop_oneof![proptest::sample::select(known.to_vec()).prop_map(str::to_owned), ".{0,4}"]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_panics_or_shows_a_secret(pieces in prop::collection::vec(piece(), 0..40)) {
        let text = displayed_text(&pieces.concat());
        prop_assert!(!text.contains(SECRET), "{text}");
    }

    #[test]
    fn no_damage_to_a_real_file_panics_or_shows_a_secret(
        file in proptest::sample::select(golden()),
        at in any::<prop::sample::Index>(),
        length in 0_usize..40,
        instead in piece(),
    ) {
        let start = file.floor_char_boundary(at.index(file.len() + 1));
        let end = file.ceil_char_boundary((start + length).min(file.len()));
        let text = displayed_text(&format!("{}{instead}{}", &file[..start], &file[end..]));
        prop_assert!(!text.contains(SECRET), "{text}");
    }
}
