//! What this process is in a cluster: the tag of its host, which ends each id that it gives an AI client, and whether it may act.
//! A process that has joined no cluster makes ids of random bits, and may always act.

use std::sync::OnceLock;

use lockhouse_messages::HostTag;

use crate::fence::Fence;

static OWN: OnceLock<OwnHost> = OnceLock::new();

struct OwnHost {
    tag: HostTag,
    fence: Fence,
}

/// Sets what this process is, when it has joined a cluster: before it makes the first id. Later calls have no effect.
pub fn set(tag: HostTag, fence: Fence) {
    let _ = OWN.set(OwnHost { tag, fence });
}

/// Returns the tag of this host. `None` without a cluster.
#[must_use]
pub fn tag() -> Option<HostTag> {
    OWN.get().map(|own| own.tag)
}

/// Returns random bits as an id of this host.
#[must_use]
pub fn mark(random: u128) -> u128 {
    tag().map_or(random, |tag| tag.mark(random))
}

/// Whether this host may act: no other host can count it as ended.
#[must_use]
pub fn may_act() -> bool {
    OWN.get().is_none_or(|own| own.fence.is_open())
}
