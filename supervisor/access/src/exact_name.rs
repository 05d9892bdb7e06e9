//! Names of clients that an issuer has chosen, and that are the same in a policy and a log as in the credential.

/// Whether a name is shown as it is: printable ASCII, because in other scripts two names could look the same, and of at most `chars_max`
/// characters, because a policy and the log truncate a longer one, so that two clients could have one name.
pub(super) fn is_exact_name(name: &str, chars_max: usize) -> bool {
    (1..=chars_max).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic())
}
