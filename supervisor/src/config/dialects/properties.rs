//! Whatever a file has, reading it ends in servers or in words, and the words hold no secret.

use lockhouse_policies::Source;
use lockhouse_upstream::{Reach, ServerLimits};
use proptest::prelude::*;

use super::golden::files;
use super::tree::parse_toml;
use super::{read, read_own};
use crate::config::references::Surroundings;

const SECRET: &str = "SEKRET-VALUE";

fn surroundings() -> Surroundings {
    let secret = |name: &str| (name.to_owned(), format!("{SECRET}\n{SECRET}"));
    let environment = ["A", "GITHUB_TOKEN", "MODE", "LOCKHOUSE_INPUT_GIVEN", "HOME"].map(secret).into();
    Surroundings { environment, home: Some("/nonexistent".into()), directory: "/srv/app".into() }
}

/// Everything that a person may be shown of a file.
fn words(text: &str) -> String {
    let source = Source { path: "servers".into(), text: text.into() };
    let surroundings = surroundings();
    let own = parse_toml(&source).and_then(|root| read_own(&source, root.get_ref(), &surroundings));
    let mut words = own.map_or_else(|faults| faults.to_string(), |_| String::new());
    match read(&source, &surroundings) {
        Err(faults) => words += &faults.to_string(),
        Ok(None) => {}
        Ok(Some(listing)) => {
            words += &format!("{listing:?}");
            for listed in listing.servers {
                match listed
                    .entry
                    .and_then(|entry| entry.resolve(&surroundings, ServerLimits::default(), String::new()))
                {
                    Ok(mut definition) => {
                        // Whoever lists processes sees the program: what damage makes of it is no secret that leaks.
                        if let Reach::Stdio(command) = &mut definition.reach {
                            command.program.clear();
                        }
                        words += &format!("{definition:?}");
                    }
                    Err(reason) => words += &reason.to_string(),
                }
            }
        }
    }
    words
}

fn golden() -> Vec<String> {
    let entries = std::fs::read_dir(files()).expect("files").map(|entry| entry.expect("an entry").path());
    entries.filter(|path| path.is_file()).map(|path| std::fs::read_to_string(path).expect("a file")).collect()
}

/// Pieces of which files are made.
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
        let told = words(&pieces.concat());
        prop_assert!(!told.contains(SECRET), "{told}");
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
        let told = words(&format!("{}{instead}{}", &file[..start], &file[end..]));
        prop_assert!(!told.contains(SECRET), "{told}");
    }
}
