use std::time::UNIX_EPOCH;

use lockhouse_base::sealing_key::{Purpose, SealingKeys};

use super::*;
use crate::copied_value::ValueKind;
use crate::value_settings::{StorageCredentials, ValuePlace, ValueSettings};

/// Returns the copies at a server that is not there.
fn copies(bytes_max: u64) -> ValueCopies {
    let place = ValuePlace {
        endpoint: "http://127.0.0.1:1".parse().expect("an address"),
        bucket: "values".parse().expect("a name"),
        region: "us-east-1".to_owned(),
        prefix: "lockhouse".parse().expect("a prefix"),
    };
    let credentials = StorageCredentials { access_key: "access".to_owned(), secret_key: "secret".to_owned() };
    let sealing = SealingKeys::derive(&"k".repeat(32), Purpose::ValueCopies).expect("keys");
    let sealed = SealedStorage::new(&ValueSettings { place, credentials, sealing }).expect("a client");
    ValueCopies::begin_with(Arc::new(sealed), bytes_max, Duration::from_secs(60))
}

fn value(owner: Owner, json: &Arc<str>) -> CopiedValue {
    CopiedValue {
        owner,
        kind: ValueKind::Value,
        handle: "a".to_owned(),
        expires: UNIX_EPOCH,
        json: json.clone(),
    }
}

/// The writers do not run before the test waits.
#[tokio::test]
async fn the_values_that_wait_are_limited_in_number_and_bytes() {
    let owner = Owner::of_digest([1; 16]);
    let (many, small) = (copies(1_000), "1".into());
    for _ in 0..WAITING_MAX {
        many.offer(value(owner, &small));
    }
    assert_eq!((many.0.waiting.borrow().count, many.failure()), (WAITING_MAX, None));
    many.offer(value(owner, &small));
    assert_eq!(many.0.waiting.borrow().count, WAITING_MAX);
    assert!(many.failure().is_some_and(|reason| reason.starts_with("too many values wait")));

    let half = usize::try_from(WAITING_BYTES_MAX / 2 + 1).expect("a size");
    let (large, half) = (copies(WAITING_BYTES_MAX), "x".repeat(half).into());
    large.offer(value(owner, &half));
    large.offer(value(owner, &half));
    assert_eq!(large.0.waiting.borrow().count, 1);
    assert!(large.failure().is_some());
}

#[tokio::test]
async fn values_that_no_other_host_could_serve_are_not_copied() {
    let (copies, small) = (copies(10), "1".into());
    for owner in [Owner::LOCAL, Owner::of_connection(1)] {
        copies.offer(value(owner, &small));
        assert_eq!(copies.read(owner, "a").await, Ok(None));
    }
    assert_eq!((copies.0.waiting.borrow().count, copies.failure()), (0, None));
    copies.offer(value(Owner::of_digest([1; 16]), &"x".repeat(11).into()));
    assert_eq!(copies.0.waiting.borrow().count, 0);
    assert_eq!(copies.failure().as_deref(), Some("a value is too long for a copy"));
}

#[tokio::test]
async fn a_server_that_is_away_is_said() {
    let (copies, owner) = (copies(10), Owner::of_digest([1; 16]));
    copies.offer(value(owner, &"1".into()));
    copies.finish().await;
    assert_eq!(copies.0.waiting.borrow().count, 0);
    let unreachable = ObjectError::Unreachable;
    assert_eq!(copies.failure(), Some(unreachable.to_string()));
    assert_eq!(copies.read(owner, "a").await, Err(unreachable.into()));
}
