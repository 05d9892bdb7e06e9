//! The `requestState` of a suspended request: 64 hexadecimal digits. In a cluster, they name the run and its host, so that a
//! request with the answers may reach any host.

use data_encoding::HEXLOWER;
use lockhouse_messages::HostTag;
use lockhouse_protocol::ExecutionId;
use rmcp::model::JsonObject;
use sha2::{Digest, Sha256};

/// Number of digits of the id of a run, and of the digest of the arguments after it.
const RUN_DIGITS: usize = 32;
const DIGEST_DIGITS: usize = 12;
const DIGITS: usize = 64;

/// Generates a handle of 64 hexadecimal digits from 256 random bits, which nobody can guess. In a cluster, the last ten are those
/// of the host. `None` if the kernel provides no random numbers.
pub(crate) fn new_handle(host: Option<HostTag>) -> Option<String> {
    let mut bits = [0; 32];
    getrandom::fill(&mut bits).ok()?;
    let mut handle = HEXLOWER.encode(&bits);
    if let Some(host) = host {
        handle.replace_range(DIGITS - HostTag::DIGITS.., &host.to_string());
    }
    Some(handle)
}

/// Generates the state of a suspended request of this run, whose request has these arguments.
pub(super) fn of_run(run: ExecutionId, arguments: &JsonObject) -> Option<String> {
    let mut state = new_handle(Some(HostTag::of_execution(run)))?;
    state.replace_range(..RUN_DIGITS, &format!("{:032x}", run.0));
    state.replace_range(RUN_DIGITS..RUN_DIGITS + DIGEST_DIGITS, &digest(arguments));
    Some(state)
}

/// Returns the run of a state that [`of_run`] has made for a request with these arguments.
pub(super) fn run_of(state: &str, arguments: &JsonObject) -> Option<ExecutionId> {
    if state.len() != DIGITS || state.get(RUN_DIGITS..RUN_DIGITS + DIGEST_DIGITS)? != digest(arguments) {
        return None;
    }
    let run = ExecutionId(u128::from_str_radix(state.get(..RUN_DIGITS)?, 16).ok()?);
    (HostTag::of_id(state)? == HostTag::of_execution(run)).then_some(run)
}

fn digest(arguments: &JsonObject) -> String {
    // A map of JSON can be written.
    let text = serde_json::to_vec(arguments).unwrap_or_default();
    let mut digest = HEXLOWER.encode(&Sha256::digest(text));
    digest.truncate(DIGEST_DIGITS);
    digest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments(code: &str) -> JsonObject {
        json!({"code": code}).as_object().expect("a map").clone()
    }

    #[test]
    fn a_state_names_its_run_for_the_same_arguments_alone() {
        let run = ExecutionId(0x0190_a1b2_c3d4_7e5f_8a9b_c0ab_cdef_0123);
        let state = of_run(run, &arguments("1")).expect("random numbers");
        assert!(state.len() == DIGITS && state.ends_with("abcdef0123"), "{state}");
        assert_ne!(Some(&state), of_run(run, &arguments("1")).as_ref(), "two requests of one run");
        assert_eq!(run_of(&state, &arguments("1")), Some(run));
        assert_eq!(run_of(&state, &arguments("2")), None);
        let other = state.replace("abcdef0123", "abcdef0124");
        for wrong in [&*new_handle(None).expect("random numbers"), &state[1..], "", "é", &other[..63]] {
            assert_eq!(run_of(wrong, &arguments("1")), None, "{wrong}");
        }
    }

    #[test]
    fn each_digit_of_a_handle_is_random() {
        let handles: Vec<String> = (0..64).map(|_| new_handle(None).expect("random numbers")).collect();
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        assert!(
            handles.iter().all(|handle| handle.len() == DIGITS && handle.bytes().all(is_digit)),
            "{handles:?}"
        );
        for at in 0..DIGITS {
            let first = handles[0].as_bytes()[at];
            assert!(handles.iter().any(|handle| handle.as_bytes()[at] != first), "digit {at}: {handles:?}");
        }
    }
}
