//! Parts of edits of a policy's text that approvals and commands share. This module does no I/O.

use lockhouse_policies::Effect;
use similar::TextDiff;
use toml_edit::Item;

use super::untrusted_text;

/// Number of context lines around each change in a diff.
const CONTEXT: usize = 2;
/// Maximum length of a line of a diff, in characters. Longer lines are truncated.
const DIFF_LINE_CHARS_MAX: usize = 300;

/// Returns the line at this byte offset, counted from 1.
pub fn line_at(text: &str, offset: usize) -> usize {
    1 + text[..text.floor_char_boundary(offset)].matches('\n').count()
}

/// Changes the effect of the rule with this index in the policy's `rules`. Returns `None` if the rule cannot be edited.
pub fn set_rule_effect(rules: &mut Item, index: usize, wanted: Effect) -> Option<()> {
    let effect = match rules {
        Item::ArrayOfTables(tables) => tables.get_mut(index)?.get_mut("effect")?.as_value_mut()?,
        Item::Value(inline) => {
            inline.as_array_mut()?.get_mut(index)?.as_inline_table_mut()?.get_mut("effect")?
        }
        _ => return None,
    };
    let decor = effect.decor().clone();
    *effect = wanted.as_str().into();
    *effect.decor_mut() = decor;
    Some(())
}

/// Returns the unified diff of two versions of the policy file at `path`, with hidden characters escaped and long
/// lines truncated.
pub fn unified_diff(path: &str, before: &str, after: &str) -> String {
    let diff = TextDiff::from_lines(before, after);
    let mut unified = diff.unified_diff();
    let unified = unified.context_radius(CONTEXT).header(path, path).to_string();
    unified
        .lines()
        .map(|line| untrusted_text::one_line(line, DIFF_LINE_CHARS_MAX))
        .collect::<Vec<_>>()
        .join("\n")
}
