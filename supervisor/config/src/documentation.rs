//! Generates texts from the declared configuration keys: the reference in `docs/configuration.md`, the configuration
//! file that packages install, and the JSON schema of `config.toml`.

use lockhouse_host_files::FILES_NAMES;
use serde_json::{Value, json};

use super::config_toml::ConfigToml;
use super::keys::{DeclaredTable, TableSpec, rendering};
use super::server_keys;

const HEAD: &str = "\
# Configuration of Lockhouse. All keys are commented out: to set one, delete the # before it and before the header of its table.
# The values are the defaults, unless a comment gives another default or the value is an example. Unknown keys are errors.
# `lockhouse-service doctor` checks this file, and `systemctl reload lockhouse` applies it.
# Reference: /usr/share/doc/lockhouse/configuration.md. Permissions are in policy.toml in the same directory.

";

/// Renders the selected tables of `config.toml` as commented TOML, with an example of each kind of server.
fn tables(is_selected: impl Fn(&TableSpec) -> bool) -> String {
    let (declared, examples) = (ConfigToml::spec(), server_keys::examples());
    let selected = declared.all().into_iter().chain(&examples).filter(|table| is_selected(table));
    selected.map(rendering::toml).collect::<Vec<_>>().join("\n")
}

/// Renders the configuration file that packages install, in which every key is commented out.
pub fn packaged_configuration() -> String {
    let comment = |line: &str| if line.is_empty() { "\n".to_owned() } else { format!("#{line}\n") };
    let tables: String = tables(|_| true).lines().map(comment).collect();
    let servers: String =
        rendering::list(&server_keys::common_keys()).lines().map(|line| format!("#   {line}\n")).collect();
    format!("{HEAD}{tables}\n# Further keys of all servers:\n{servers}")
}

/// Generates the JSON schema of `config.toml`.
pub fn json_schema() -> Value {
    let properties: serde_json::Map<String, Value> =
        server_keys::all().map(|key| (key.name.to_owned(), key.spec().to_schema())).collect();
    let mut schema = ConfigToml::spec().to_schema();
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "The configuration of Lockhouse".into();
    schema["description"] = "config.toml".into();
    let upstream = json!({
        "type": "object", "additionalProperties": false, "properties": properties,
        "oneOf": [{"required": ["command"]}, {"required": ["url"]}],
    });
    let of_files: serde_json::Map<String, Value> =
        server_keys::FILES_KEYS.iter().map(|key| (key.name.to_owned(), key.spec().to_schema())).collect();
    let built_in = json!({
        "type": "object", "additionalProperties": false, "properties": of_files,
        "anyOf": [{"required": ["read"]}, {"required": ["write"]}],
    });
    let named: serde_json::Map<String, Value> = FILES_NAMES
        .iter()
        .map(|name| ((*name).to_owned(), json!({"anyOf": [&upstream, &built_in]})))
        .collect();
    schema["properties"]["servers"] = json!({
        "type": "object",
        "propertyNames": {"pattern": "^[A-Za-z0-9_-]{1,128}$"},
        "properties": named,
        "additionalProperties": upstream,
    });
    schema
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use lockhouse_policies::Source;

    use super::*;
    use crate::placeholders::Environment;

    /// The configuration table that docs/configuration.md shows as a Markdown table instead of a TOML example, because the
    /// descriptions of its keys are long.
    const LONG_TABLE: &str = "http.limits";
    const BEGIN: &str = "<!-- Generated from the keys declared in supervisor/config/src. -->\n";
    const END: &str = "<!-- End of what is generated. -->\n";

    /// Replaces the generated sections of a document, which are between the marks [`BEGIN`] and [`END`], by `parts` in
    /// the same order.
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

    /// Tests that `docs/configuration.md` matches the declared keys. To regenerate the document: `INSTA_UPDATE=always
    /// cargo nextest run -p lockhouse-config the_documentation`.
    #[test]
    fn the_documentation_says_what_is_declared() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
        let written = std::fs::read_to_string(&path).expect("a file");
        let limits = ConfigToml::spec();
        let limits = limits.all().into_iter().find(|table| table.path == LONG_TABLE).expect("a table");
        let parts = [
            format!("```toml\n{}```\n", tables(|table| table.path != LONG_TABLE)),
            rendering::markdown(&server_keys::common_keys()),
            rendering::markdown(limits),
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
    fn every_key_has_a_description_and_a_usable_example() {
        let declared = ConfigToml::spec();
        for table in declared.all() {
            for key in &table.keys {
                let name = format!("{}.{}", table.path, key.name);
                assert!(!key.description.is_empty(), "{name} has no description");
                let value = key.example.or(key.default.as_deref()).unwrap_or_default();
                assert!(!value.is_empty(), "{name} has neither a default nor an example");
                if table.keys.iter().any(|key| key.is_required) {
                    continue;
                }
                let header = if table.path.is_empty() { String::new() } else { format!("[{}]", table.path) };
                let text = format!("{header}\n{} = {value}\n", key.name);
                let source = Source { path: "config.toml".into(), text };
                let read = ConfigToml::parse(&source, &Environment::default());
                assert!(read.is_ok(), "{name}: {}", read.expect_err("faults"));
            }
        }
    }

    #[test]
    fn the_schema_accepts_valid_files_and_rejects_obvious_faults() {
        let validator = jsonschema::validator_for(&json_schema()).expect("a schema");
        let is_valid = |toml: &str| {
            let value: Value = toml::from_str(toml).expect("TOML");
            validator.is_valid(&value)
        };
        for toml in [
            "",
            "servers_files = ['x']\n[limits]\ncalls = 3\n[http]\nauth = ['peer', 'oauth']\nusers = ['ada', 7]\n",
            "[servers.files]\nread = ['/d']\nfile_mib = 3\n",
            "[servers.files]\ncommand = 'y'\n",
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
            "[servers.x]\nread = ['/d']\n",
            "[servers.files]\nread = '/d'\n",
        ] {
            assert!(!is_valid(toml), "{toml}");
        }
    }

    #[test]
    fn writing_a_default_changes_nothing() {
        let declared = ConfigToml::spec();
        for table in declared.all().into_iter().filter(|table| !table.path.is_empty()) {
            let keys = table.keys.iter().filter_map(|key| Some((key.name, key.default.as_ref()?)));
            let keys: String = keys.map(|(name, default)| format!("{name} = {default}\n")).collect();
            if table.keys.iter().any(|key| key.is_required) || keys.is_empty() {
                continue;
            }
            let source = Source { path: "config.toml".into(), text: format!("[{}]\n{keys}", table.path) };
            let read = ConfigToml::parse(&source, &Environment::default());
            let read = read.unwrap_or_else(|faults| panic!("{faults}"));
            assert_eq!(read.tables_requiring_restart(&ConfigToml::default()), Vec::<&str>::new(), "{keys}");
        }
    }
}
