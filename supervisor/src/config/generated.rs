//! What is made of the declared keys for people and programs: the reference in `docs/configuration.md`, the configuration that
//! packages install, and a JSON schema.

use serde_json::{Value, json};

use super::document::Document;
use super::keys::{DeclaredTable, TableSpec, reference};
use super::server_keys;

const HEAD: &str = "\
# The configuration of Lockhouse. Nothing here is in force until its # is deleted: that of the key, and that of the table above it.
# A value is the default unless its comment says otherwise or it names something of your own; a key that is not known is an
# error with its line. `lockhouse-service doctor` says whether the file can be used, `systemctl reload lockhouse` puts it in force.
# In full: /usr/share/doc/lockhouse/configuration.md. Who may call what is in policy.toml beside this file.

";

/// The tables of the file with an example of each kind of server, as commented TOML.
fn tables(is_wanted: impl Fn(&TableSpec) -> bool) -> String {
    let (declared, examples) = (Document::spec(), server_keys::examples());
    let wanted = declared.all().into_iter().chain(&examples).filter(|table| is_wanted(table));
    wanted.map(reference::toml).collect::<Vec<_>>().join("\n")
}

/// The configuration that packages install: every key, commented out.
pub(crate) fn packaged_configuration() -> String {
    let comment = |line: &str| if line.is_empty() { "\n".to_owned() } else { format!("#{line}\n") };
    let tables: String = tables(|_| true).lines().map(comment).collect();
    let servers: String =
        reference::list(&server_keys::of_any()).lines().map(|line| format!("#   {line}\n")).collect();
    format!("{HEAD}{tables}\n# Any server can have these as well:\n{servers}")
}

/// The JSON schema of the file.
pub(crate) fn json_schema() -> Value {
    let properties: serde_json::Map<String, Value> =
        server_keys::all().map(|key| (key.name.to_owned(), key.spec().to_schema())).collect();
    let mut schema = Document::spec().to_schema();
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "The configuration of Lockhouse".into();
    schema["description"] = "config.toml".into();
    schema["properties"]["servers"] = json!({
        "type": "object",
        "propertyNames": {"pattern": "^[A-Za-z0-9_-]{1,128}$"},
        "additionalProperties": {
            "type": "object", "additionalProperties": false, "properties": properties,
            "oneOf": [{"required": ["command"]}, {"required": ["url"]}],
        },
    });
    schema
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use lockhouse_policies::Source;

    use super::*;
    use crate::config::references::Surroundings;

    /// A table whose keys take whole sentences to explain.
    const LONG_TABLE: &str = "http.limits";
    const BEGIN: &str = "<!-- Generated from the keys declared in supervisor/src/config. -->\n";
    const END: &str = "<!-- End of what is generated. -->\n";

    /// Text with the parts between the marks replaced, in their order.
    fn with_parts(text: &str, parts: &[String]) -> String {
        let mut rest = text;
        let mut made = String::new();
        for part in parts {
            let (before, after) = rest.split_once(BEGIN).expect("the mark of a part");
            let (_, after) = after.split_once(END).expect("the mark of its end");
            made += &format!("{before}{BEGIN}{part}{END}");
            rest = after;
        }
        made + rest
    }

    /// Written anew with `INSTA_UPDATE=always cargo nextest run -p lockhouse the_documentation`.
    #[test]
    fn the_documentation_says_what_is_declared() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/configuration.md");
        let written = std::fs::read_to_string(&path).expect("a file");
        let limits = Document::spec();
        let limits = limits.all().into_iter().find(|table| table.path == LONG_TABLE).expect("a table");
        let parts = [
            format!("```toml\n{}```\n", tables(|table| table.path != LONG_TABLE)),
            reference::markdown(&server_keys::of_any()),
            reference::markdown(limits),
        ];
        let expected = with_parts(&written, &parts);
        if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
            std::fs::write(&path, &expected).expect("a file");
            return;
        }
        for (index, (written, expected)) in written.lines().zip(expected.lines()).enumerate() {
            assert_eq!(written, expected, "docs/configuration.md:{}", index + 1);
        }
        assert_eq!(written.len(), expected.len(), "docs/configuration.md");
    }

    #[test]
    fn every_key_has_a_sentence_and_an_example_that_can_be_used() {
        let declared = Document::spec();
        for table in declared.all() {
            for key in &table.keys {
                let name = format!("{}.{}", table.path, key.name);
                assert!(!key.about.is_empty(), "{name} has no sentence");
                let value = key.example.or(key.default.as_deref()).unwrap_or_default();
                assert!(!value.is_empty(), "{name} has neither a default nor an example");
                if table.keys.iter().any(|key| key.is_required) {
                    continue;
                }
                let header = if table.path.is_empty() { String::new() } else { format!("[{}]", table.path) };
                let text = format!("{header}\n{} = {value}\n", key.name);
                let source = Source { path: "config.toml".into(), text };
                let read = Document::parse(&source, &Surroundings::default());
                assert!(read.is_ok(), "{name}: {}", read.expect_err("faults"));
            }
        }
    }

    #[test]
    fn the_schema_admits_what_is_valid_and_nothing_with_an_obvious_fault() {
        let validator = jsonschema::validator_for(&json_schema()).expect("a schema");
        let is_valid = |toml: &str| {
            let value: Value = toml::from_str(toml).expect("TOML");
            validator.is_valid(&value)
        };
        for toml in [
            "",
            "servers_files = ['x']\n[limits]\ncalls = 3\n[http]\nauth = ['peer', 'oauth']\nusers = ['ada', 7]\n",
            "[servers.x]\ncommand = 'y'\nstart = 'lazy'\nqueue = 0\n[servers.y]\nurl = 'https://z'\noauth = {scopes = ['s']}\n",
        ] {
            assert!(is_valid(toml), "{toml}");
        }
        for toml in [
            "[limts]\n",
            "[limits]\ncall = 3\n",
            "[limits]\ncalls = 0\n",
            "[limits]\ncalls = '3'\n",
            "[clients]\nruns = '3'\n",
            "[http.tls]\nkey = 'k'\n",
            "[servers.x]\ncommand = 'y'\nurl = 'https://z'\n",
            "[servers.x]\ncommand = 'y'\nqueue = -1\n",
            "[servers.x]\ncommand = 'y'\nstart = 'later'\n",
            "[servers.x]\ncommand = 'y'\nsandbox = {reads = []}\n",
            "[servers.'x y']\ncommand = 'y'\n",
        ] {
            assert!(!is_valid(toml), "{toml}");
        }
    }

    #[test]
    fn a_default_that_is_written_changes_nothing() {
        let declared = Document::spec();
        for table in declared.all().into_iter().filter(|table| !table.path.is_empty()) {
            let keys = table.keys.iter().filter_map(|key| Some((key.name, key.default.as_ref()?)));
            let keys: String = keys.map(|(name, default)| format!("{name} = {default}\n")).collect();
            if table.keys.iter().any(|key| key.is_required) || keys.is_empty() {
                continue;
            }
            let source = Source { path: "config.toml".into(), text: format!("[{}]\n{keys}", table.path) };
            let read = Document::parse(&source, &Surroundings::default());
            let read = read.unwrap_or_else(|faults| panic!("{faults}"));
            assert_eq!(read.that_need_a_restart(&Document::default()), Vec::<&str>::new(), "{keys}");
        }
    }
}
