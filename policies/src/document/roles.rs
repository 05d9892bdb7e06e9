//! Parses the policy tables `[roles.NAME]`: what people may do with a service.

use std::collections::BTreeSet;
use std::ops::Range;

use toml::de::DeTable;

use super::limit_keys::{self, LIMIT_KEYS};
use super::reader::{DocumentReader, Key, Value, kind_of};
use super::servers::servers;
use crate::printable::printable;
use crate::role::{RoleKind, RoleTable};

/// The maximum number of roles of one policy document.
/// Bound: configuration and policy.
const ROLES_MAX: usize = 256;
/// The maximum length of the name of a role, in characters.
const NAME_CHARS_MAX: usize = 64;

const ROLE_KEYS: &str = "a role has the keys `members`, `may`, `break_glass`, `servers`, `together`, and limits of each member, \
     such as `rate`";
const MEMBER_FORMS: &str = "a member is the name of a token, \"user:NAME\", \"oauth:SUBJECT\", \"certificate:NAME\", \"group:NAME\" (a group of this \
     host) or \"claim:NAME=VALUE\" (of an OAuth token), or the beginning of one and `*`";

pub(super) fn roles(reader: &mut DocumentReader<'_, '_>, key: &Key<'_>, value: &Value<'_>) -> Vec<RoleTable> {
    let help = "write one table for each role, under a name of your own: [roles.NAME]";
    let Some(tables) = reader.table("roles", key, value, help) else { return Vec::new() };
    if tables.len() > ROLES_MAX {
        let title = format!("the policy has more than {ROLES_MAX} roles");
        reader.report_error(key.span(), title, "too many", "give a role more members");
        return Vec::new();
    }
    let mut roles: Vec<RoleTable> =
        tables.iter().filter_map(|(name, value)| role(reader, name, value)).collect();
    // The first role of a person restricts what that person calls.
    roles.sort_by_key(|role| role.line);
    roles
}

fn role(reader: &mut DocumentReader<'_, '_>, name: &Key<'_>, value: &Value<'_>) -> Option<RoleTable> {
    let text = name.get_ref().as_ref();
    let is_valid = |name: &str| {
        !name.is_empty()
            && name.len() <= NAME_CHARS_MAX
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    if !is_valid(text) {
        let help = format!("use 1 to {NAME_CHARS_MAX} of the characters A-Z a-z 0-9 _ -");
        reader.report_error(name.span(), "no role can have this name", "not a valid name of a role", help);
        return None;
    }
    let full = format!("roles.{text}");
    let table =
        reader.table(&full, name, value, format!("write [{full}] and below it members = [\"...\"]"))?;
    report_missing_keys(reader, name, table);
    let mut role = RoleTable {
        name: text.to_owned(),
        members: Vec::new(),
        may: BTreeSet::new(),
        break_glass: false,
        servers: None,
        each: limit_keys::limits(reader, table),
        together: None,
        line: reader.line(&name.span()),
    };
    let mut restricted_at = None;
    for (key, value) in table {
        match key.get_ref().as_ref() {
            "members" => role.members = members(reader, value),
            "may" => role.may = may(reader, value),
            "break_glass" => role.break_glass = flag(reader, key, value),
            "servers" => {
                restricted_at = Some(key.span());
                role.servers = Some(servers(reader, &format!("{full}."), key, value));
            }
            "together" => {
                role.together = limit_keys::table(reader, &format!("{full}.together"), key, value);
            }
            other if LIMIT_KEYS.contains(&other) => {}
            _ => reader.unknown_key(key, "a role", ROLE_KEYS),
        }
    }
    report_contradictions(reader, &role, name.span(), restricted_at);
    Some(role)
}

fn report_missing_keys(reader: &mut DocumentReader<'_, '_>, name: &Key<'_>, table: &DeTable<'_>) {
    for key in ["members", "may"] {
        if !table.contains_key(key) {
            let help = match key {
                "members" => MEMBER_FORMS,
                _ => {
                    "say what its members may do: may = [\"run\"], or \"approve\", \"policy\", \"audit\", \"operate\""
                }
            };
            reader.report_error(name.span(), format!("this role has no `{key}`"), "it is missing", help);
        }
    }
}

fn report_contradictions(
    reader: &mut DocumentReader<'_, '_>,
    role: &RoleTable,
    name: Range<usize>,
    restricted_at: Option<Range<usize>>,
) {
    if let Some(span) = restricted_at
        && !role.may.iter().all(|kind| kind.has_calls())
    {
        let title = "only `run` and `approve` can be restricted to servers";
        let help = "give `policy`, `audit` and `operate` to a role of their own, without `servers`";
        reader.report_error(span, title, "it restricts calls", help);
    }
    if role.break_glass && !role.may.contains(&RoleKind::Approve) {
        let title = "only a role with `approve` can have `break_glass`";
        let help = "add \"approve\" to `may`, or remove `break_glass`";
        reader.report_error(name, title, "it approves nothing", help);
    }
}

fn texts<'v>(
    reader: &mut DocumentReader<'_, '_>,
    key: &str,
    value: &'v Value<'_>,
    help: &str,
) -> Vec<(&'v str, Range<usize>)> {
    let Some(list) = value.get_ref().as_array() else {
        let title = format!("`{key}` must be a list of strings, not {}", kind_of(value));
        reader.report_error(value.span(), title, "expected a list", help);
        return Vec::new();
    };
    let mut texts = Vec::new();
    for value in list.iter() {
        match value.get_ref().as_str() {
            Some(text) => texts.push((text, value.span())),
            None => {
                let title = format!("`{key}` must be a list of strings, not of {}", kind_of(value));
                reader.report_error(value.span(), title, "expected a string", help);
            }
        }
    }
    texts
}

fn members(reader: &mut DocumentReader<'_, '_>, value: &Value<'_>) -> Vec<(String, bool)> {
    let mut members = Vec::new();
    for (text, span) in texts(reader, "members", value, MEMBER_FORMS) {
        if !reader.count_pattern(span.clone()) {
            break;
        }
        let (stem, is_starred) = text.strip_suffix('*').map_or((text, false), |stem| (stem, true));
        let kind = stem.split_once(':').map(|(kind, _)| kind);
        let is_known =
            kind.is_none_or(|kind| ["user", "oauth", "certificate", "group", "claim"].contains(&kind));
        let is_claim = kind != Some("claim") || is_starred || stem.contains('=');
        if text.is_empty() || stem.contains('*') || !is_known || !is_claim {
            let title = format!("nobody can be the member \"{}\"", printable(text));
            reader.report_error(span, title, "not a member", MEMBER_FORMS);
            continue;
        }
        members.push((stem.to_owned(), is_starred));
    }
    members
}

fn may(reader: &mut DocumentReader<'_, '_>, value: &Value<'_>) -> BTreeSet<RoleKind> {
    let help = "use \"run\", \"approve\", \"policy\", \"audit\" or \"operate\"";
    let mut kinds = BTreeSet::new();
    for (text, span) in texts(reader, "may", value, help) {
        match RoleKind::NAMES.into_iter().find(|(name, _)| *name == text) {
            Some((_, kind)) => _ = kinds.insert(kind),
            None => {
                let title = format!("`may` cannot have \"{}\"", printable(text));
                reader.report_error(span, title, "not known", help);
            }
        }
    }
    kinds
}

fn flag(reader: &mut DocumentReader<'_, '_>, key: &Key<'_>, value: &Value<'_>) -> bool {
    let flag = value.get_ref().as_bool();
    if flag.is_none() {
        let title = format!("`{}` must be true or false, not {}", key.get_ref(), kind_of(value));
        reader.report_error(value.span(), title, "expected true or false", "write break_glass = true");
    }
    flag.unwrap_or_default()
}
