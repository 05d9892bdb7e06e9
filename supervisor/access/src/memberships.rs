//! What an authentication proves of a person besides the name, by which roles of the policy apply: groups of this host, and
//! claims of an OAuth token.

use std::ffi::CString;

use nix::unistd::{Group, Uid, User, getgrouplist};
use serde_json::{Map, Value};

/// Maximum number of memberships of one person. Further ones are omitted, so that a role may not apply.
/// Bound: AI clients.
const MEMBERSHIPS_MAX: usize = 256;
/// Maximum length of a claim, in bytes. A longer one is omitted.
const CLAIM_BYTES_MAX: usize = 256;
/// Maximum number of objects in each other in which a claim can be, as `realm_access.roles` is in one.
const LEVELS_MAX: usize = 3;

/// Claims that differ from token to token, or from login to login, and say nothing of a person.
const OF_ONE_TOKEN: [&str; 6] = ["jti", "nonce", "sid", "at_hash", "c_hash", "auth_time"];

/// Returns the groups of a user of this host, each as `group:NAME` and `group:ID`. It may ask a directory service.
pub(super) fn memberships_of_user(uid: u32) -> Vec<String> {
    let Ok(Some(user)) = User::from_uid(Uid::from_raw(uid)) else { return Vec::new() };
    let Ok(name) = CString::new(user.name) else { return Vec::new() };
    let groups = getgrouplist(&name, user.gid).unwrap_or_else(|_| vec![user.gid]);
    let mut memberships = Vec::new();
    for gid in groups.into_iter().take(MEMBERSHIPS_MAX / 2) {
        memberships.push(format!("group:{gid}"));
        let named = Group::from_gid(gid).ok().flatten().map(|group| group.name);
        // A name of digits alone could be taken for an id.
        let named = named.filter(|name| !name.bytes().all(|byte| byte.is_ascii_digit()));
        memberships.extend(named.map(|name| format!("group:{name}")));
    }
    memberships
}

/// Returns the texts among the claims of a token, each as `claim:NAME=VALUE`. The name of one in an object has both names.
pub(super) fn memberships_of_claims(claims: &Map<String, Value>) -> Vec<String> {
    let mut memberships = Vec::new();
    for (name, value) in claims.iter().filter(|(name, _)| !OF_ONE_TOKEN.contains(&name.as_str())) {
        add_claim(&mut memberships, name, value, 1);
    }
    memberships
}

fn add_claim(memberships: &mut Vec<String>, name: &str, value: &Value, level: usize) {
    match value {
        Value::String(text) if memberships.len() < MEMBERSHIPS_MAX => {
            // Nothing before the first `=` may come from the value.
            let claim = format!("claim:{name}={text}");
            if claim.len() <= CLAIM_BYTES_MAX && !name.contains('=') {
                memberships.push(claim);
            }
        }
        Value::Array(values) => {
            for value in values.iter().filter(|value| value.is_string()) {
                add_claim(memberships, name, value, level);
            }
        }
        Value::Object(members) if level < LEVELS_MAX => {
            for (member, value) in members {
                add_claim(memberships, &format!("{name}.{member}"), value, level + 1);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(claims: Value) -> Vec<String> {
        memberships_of_claims(claims.as_object().expect("an object"))
    }

    #[test]
    fn claims_are_texts_lists_of_texts_and_members_of_objects() {
        let claims = json!({
            "department": "support", "groups": ["a", 1, "b", ["c"]], "age": 7,
            "realm_access": {"roles": ["x"], "deep": {"er": "y", "too": {"deep": "z"}}},
            "forged=x": "y", "jti": "0",
        });
        let expected = [
            "claim:department=support",
            "claim:groups=a",
            "claim:groups=b",
            "claim:realm_access.roles=x",
            "claim:realm_access.deep.er=y",
        ];
        assert_eq!(of(claims), expected);
    }

    #[test]
    fn claims_are_bounded() {
        let many: Vec<String> = (0..1_000).map(|number| number.to_string()).collect();
        assert_eq!(of(json!({"groups": many})).len(), MEMBERSHIPS_MAX);
        assert_eq!(of(json!({"long": "x".repeat(CLAIM_BYTES_MAX), "short": "x"})), ["claim:short=x"]);
    }

    #[test]
    fn root_is_in_its_group() {
        let groups = memberships_of_user(0);
        assert!(groups.iter().any(|group| group == "group:0"), "{groups:?}");
        assert_eq!(memberships_of_user(4_000_000_000), Vec::<String>::new());
    }
}
