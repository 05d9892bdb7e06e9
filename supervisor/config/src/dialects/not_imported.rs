//! Finds the keys of a server in an AI client's file that have no counterpart in Lockhouse, so that `lockhouse import`
//! can name them.

use super::fields::Fields;
use super::placeholder_syntax::PlaceholderSyntax;
use crate::skip_reason::SkipReason;

/// Keys of an OAuth table whose values are addresses. Lockhouse does not import them, because it learns the addresses
/// from the server's metadata.
const ADDRESS_KEYS: [&str; 5] =
    ["authorizationUrl", "tokenUrl", "registrationUrl", "issuer", "authServerMetadataUrl"];

/// Describes each key of a server's OAuth table that Lockhouse does not import. Returns an empty list if it imports all
/// of them.
pub(super) fn oauth_keys(fields: Fields<'_>) -> Result<Vec<String>, SkipReason> {
    let mut found = Vec::new();
    let is_table = fields.get("oauth").is_some_and(|node| node.table().is_some());
    let Some(oauth) = (if is_table { fields.subtable("oauth")? } else { None }) else { return Ok(found) };
    let addresses = ADDRESS_KEYS.iter().filter(|key| oauth.has(key));
    found.extend(
        addresses.map(|key| format!("oauth.{key}: the address comes from the server's own metadata")),
    );
    if fields.syntax == PlaceholderSyntax::Braces && oauth.has("clientId") && !oauth.has("clientSecret") {
        found.push(
            "the OAuth client secret: Claude Code stores it elsewhere; set client_secret below the server's oauth if it has one"
                .into(),
        );
    }
    Ok(found)
}

/// Describes each setting in the entry of a Codex server that Lockhouse does not import. `unset` contains those names
/// in `env_vars` for which no environment variable is set now.
pub(super) fn codex_keys(fields: Fields<'_>, unset: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    if !unset.is_empty() {
        let names = unset.join(", ");
        found.push(format!("env_vars: {names} not set; import again when set, or add to the server's env"));
    }
    if fields.has("oauth_resource") {
        found.push("oauth_resource: the resource is the server's URL".into());
    }
    found
}
