//! The setting of Codex that keeps Lockhouse's tools out of Codex's own code mode, in which JavaScript of the model
//! calls tools. Codex accepts `code_mode` of `[features]` as a boolean and as a table with `enabled`.

use lockhouse_config::{ExposeMode, toml_tables};
use toml_edit::{Array, DocumentMut, InlineTable, Item, TableLike, Value};

/// The key of `code_mode` that lists the namespaces of tools that only the model calls, and not code in Codex's code
/// mode.
const DIRECT_ONLY: &str = "direct_only_tool_namespaces";
const NAMESPACE: &str = "mcp__lockhouse";
const FEATURES: &str = "features";
const CODE_MODE: &str = "code_mode";
/// The key of `[features]` that switches the code mode on and hides all other tools.
const CODE_MODE_ONLY: &str = "code_mode_only";
const ENABLED: &str = "enabled";

/// Sets the key [`DIRECT_ONLY`] as the mode requires it, and returns the lines of `code_mode` before and after, or
/// `None` if nothing changed. If only programs of `run_code` use the servers, Lockhouse's tools are kept out of the code
/// mode, but only where the file switches it on: otherwise a line `code_mode = true`, added later, would repeat a key.
/// A key that the user has set is not changed. In the other modes, the code mode may call Lockhouse's tools.
pub(super) fn update(document: &mut DocumentMut, mode: ExposeMode) -> Option<(String, String)> {
    let before = shown(document);
    match mode {
        ExposeMode::Code => restrict(document),
        ExposeMode::Direct | ExposeMode::Both => release(document),
    }
    let after = shown(document);
    (before != after).then_some((before, after))
}

/// Whether the file keeps Lockhouse's tools out of the code mode.
pub(super) fn is_restricted(document: &DocumentMut) -> bool {
    let namespaces =
        toml_tables::find(document, &[FEATURES, CODE_MODE, DIRECT_ONLY]).and_then(Item::as_array);
    namespaces.is_some_and(|namespaces| namespaces.iter().any(is_own))
}

/// Whether the file switches the code mode on.
fn is_on(document: &DocumentMut) -> bool {
    let flag = |path: &[&str]| toml_tables::find(document, path).and_then(Item::as_bool);
    let code_mode = flag(&[FEATURES, CODE_MODE]).or_else(|| flag(&[FEATURES, CODE_MODE, ENABLED]));
    code_mode == Some(true) || flag(&[FEATURES, CODE_MODE_ONLY]) == Some(true)
}

/// Takes Lockhouse's namespace out of the key [`DIRECT_ONLY`], with what is empty then.
pub(super) fn release(document: &mut DocumentMut) {
    if !is_restricted(document) {
        return;
    }
    let Some(code_mode) = toml_tables::find_mut(document, &[FEATURES, CODE_MODE]) else { return };
    if let Some(namespaces) = code_mode.get_mut(DIRECT_ONLY).and_then(Item::as_array_mut) {
        namespaces.retain(|namespace| !is_own(namespace));
        if namespaces.is_empty() {
            code_mode.remove(DIRECT_ONLY);
        }
    }
    if code_mode.is_empty() {
        toml_tables::remove(document, FEATURES, CODE_MODE);
    } else if let Some(Item::Value(value)) =
        toml_tables::find_mut(document, &[FEATURES]).and_then(|features| features.get_mut(CODE_MODE))
        && let Some(enabled) = only_enabled(value)
    {
        replace(value, enabled.into());
    }
}

/// Adds Lockhouse's namespace to a code mode that is on, as the key [`DIRECT_ONLY`], if the key is not set.
pub(super) fn restrict(document: &mut DocumentMut) {
    if !is_on(document) {
        return;
    }
    let Some(features) = toml_tables::find_mut(document, &[FEATURES]) else { return };
    let namespaces = || Value::Array(Array::from_iter([NAMESPACE]));
    let inline = |enabled: Option<bool>| {
        let mut table = InlineTable::new();
        enabled.into_iter().for_each(|enabled| drop(table.insert(ENABLED, enabled.into())));
        table.insert(DIRECT_ONLY, namespaces());
        Value::InlineTable(table)
    };
    match features.get_mut(CODE_MODE) {
        None => drop(features.insert(CODE_MODE, Item::Value(inline(None)))),
        Some(Item::Value(value)) if value.is_bool() => {
            let enabled = value.as_bool();
            replace(value, inline(enabled));
        }
        Some(item) => {
            let Some(table) = item.as_table_like_mut().filter(|table| !table.contains_key(DIRECT_ONLY))
            else {
                return;
            };
            table.insert(DIRECT_ONLY, Item::Value(namespaces()));
        }
    }
}

fn is_own(namespace: &Value) -> bool {
    namespace.as_str() == Some(NAMESPACE)
}

/// Returns the boolean that means the same as an inline table with no other key than `enabled`.
fn only_enabled(value: &Value) -> Option<bool> {
    let table = value.as_inline_table().filter(|table| table.len() == 1)?;
    table.get(ENABLED)?.as_bool()
}

/// Replaces a value, and keeps the spaces and the comment around it.
fn replace(value: &mut Value, mut other: Value) {
    *other.decor_mut() = value.decor().clone();
    *value = other;
}

/// Returns the lines of `code_mode` as they are shown to the user. Empty if the file has none.
fn shown(document: &DocumentMut) -> String {
    match toml_tables::find(document, &[FEATURES, CODE_MODE]) {
        None | Some(Item::None) => String::new(),
        Some(Item::Value(value)) => {
            format!("\n[{FEATURES}]\n{CODE_MODE} = {}\n", value.clone().decorated("", ""))
        }
        Some(item) => {
            let table = item.as_table_like();
            let line = |key| {
                let value = table.and_then(|table: &dyn TableLike| table.get(key))?;
                Some(format!("{key} = {}\n", value.to_string().trim()))
            };
            let lines: String = [ENABLED, DIRECT_ONLY].into_iter().filter_map(line).collect();
            format!("\n[{FEATURES}.{CODE_MODE}]\n{lines}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(text: &str, mode: ExposeMode) -> String {
        let mut document: DocumentMut = text.parse().expect("valid TOML");
        update(&mut document, mode);
        let text = document.to_string();
        assert!(text.parse::<DocumentMut>().is_ok(), "{text}");
        text
    }

    /// Each form in which Codex 0.169 accepts the switch of its code mode, and what mode `code` makes of it.
    #[test]
    fn lockhouse_is_kept_out_of_a_code_mode_that_is_on_and_comes_back() {
        let ours = "direct_only_tool_namespaces = [\"mcp__lockhouse\"]";
        for (text, expected) in [
            (
                "[features]\ncode_mode = true # c\nother = 1\n",
                format!("[features]\ncode_mode = {{ enabled = true, {ours} }} # c\nother = 1\n"),
            ),
            (
                "[features]\ncode_mode_only = true\n",
                format!("[features]\ncode_mode_only = true\ncode_mode = {{ {ours} }}\n"),
            ),
            (
                "[features]\ncode_mode = false\ncode_mode_only = true\n",
                format!("[features]\ncode_mode = {{ enabled = false, {ours} }}\ncode_mode_only = true\n"),
            ),
            (
                "[features.code_mode]\nenabled = true # c\n\n[tui]\n",
                format!("[features.code_mode]\nenabled = true # c\n{ours}\n\n[tui]\n"),
            ),
            (
                "features.code_mode.enabled = true\n",
                format!("features.code_mode.enabled = true\nfeatures.code_mode.{ours}\n"),
            ),
            (
                "features = { code_mode = true }\n",
                format!("features = {{ code_mode = {{ enabled = true, {ours} }} }}\n"),
            ),
        ] {
            let kept_out = changed(text, ExposeMode::Code);
            assert_eq!(kept_out, expected);
            assert_eq!(changed(&kept_out, ExposeMode::Code), expected, "a second time");
            for mode in [ExposeMode::Direct, ExposeMode::Both] {
                assert_eq!(changed(&kept_out, mode), text, "and back");
            }
        }
    }

    #[test]
    fn other_settings_stay() {
        for (text, mode) in [
            ("", ExposeMode::Code),
            ("model = \"x\"\n", ExposeMode::Direct),
            ("[features]\ncode_mode = false\n", ExposeMode::Code),
            ("[features.code_mode]\nenabled = false\n", ExposeMode::Code),
            ("[features.code_mode]\nenabled = true\ndirect_only_tool_namespaces = []\n", ExposeMode::Code),
            (
                "[features.code_mode]\nenabled = true\ndirect_only_tool_namespaces = [\"mcp__a\"]\n",
                ExposeMode::Both,
            ),
            // As earlier versions wrote it.
            ("[features.code_mode]\ndirect_only_tool_namespaces = [\"mcp__lockhouse\"]\n", ExposeMode::Code),
            ("features = 1\n", ExposeMode::Code),
        ] {
            assert_eq!(changed(text, mode), text);
        }
    }

    #[test]
    fn only_lockhouse_is_taken_out_of_the_list() {
        for (text, expected) in [
            (
                "[features.code_mode]\ndirect_only_tool_namespaces = [\"mcp__a\", \"mcp__lockhouse\"]\n",
                "[features.code_mode]\ndirect_only_tool_namespaces = [\"mcp__a\"]\n",
            ),
            ("[a]\n\n[features.code_mode]\ndirect_only_tool_namespaces = [\"mcp__lockhouse\"]\n", "[a]\n"),
        ] {
            assert_eq!(changed(text, ExposeMode::Direct), expected);
        }
    }
}
