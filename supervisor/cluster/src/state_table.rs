//! The tables of the state that the hosts of a cluster share.

use std::time::Duration;

/// Time after its last renewal after which the lease of a host has ended for the other hosts. A NATS cluster that elects a leader
/// refuses writes for up to 11 s.
pub(crate) const LEASE_LIFETIME: Duration = Duration::from_secs(30);
/// Time after the last run in a session after which its name has no place any more. It is longer than any session lasts without
/// a run.
const SESSION_LIFETIME: Duration = Duration::from_hours(48);
/// Time after its last use after which a rate is forgotten. No period of a rate is longer.
const RATE_LIFETIME: Duration = Duration::from_hours(48);

/// A table of the state. In NATS, it is a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    /// The lease of each host, under its name. Only that host may write it.
    Hosts,
    /// The place of each session, under its client and name.
    Sessions,
    /// What was used of each rate, under a digest of its name.
    Rates,
    /// The tokens that were revoked, under their digests.
    Revocations,
}

impl Table {
    pub(crate) const ALL: [Self; 4] = [Self::Hosts, Self::Sessions, Self::Rates, Self::Revocations];

    pub(crate) fn bucket(self) -> &'static str {
        match self {
            Self::Hosts => "lockhouse_hosts",
            Self::Sessions => "lockhouse_sessions",
            Self::Rates => "lockhouse_rates",
            Self::Revocations => "lockhouse_revocations",
        }
    }

    /// The time after which a value that nobody writes again disappears. Zero if it stays.
    pub(crate) fn lifetime(self) -> Duration {
        match self {
            Self::Hosts => LEASE_LIFETIME,
            Self::Sessions => SESSION_LIFETIME,
            Self::Rates => RATE_LIFETIME,
            Self::Revocations => Duration::ZERO,
        }
    }
}
