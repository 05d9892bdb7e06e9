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

/// Time after which a lock that its holder has not released is free again. It is longer than the longest time for which
/// a host holds one, which is the wait for a token.
const LOCK_LIFETIME: Duration = Duration::from_mins(1);
/// Maximum length of a value, in bytes.
/// Bound: hosts of a cluster.
const VALUE_BYTES_MAX: i32 = 64 * 1024;
/// Maximum length of an item that all hosts share, such as a skill with its tests, in bytes. NATS servers permit messages of 1 MiB.
/// Bound: hosts of a cluster.
const ITEM_BYTES_MAX: i32 = 1_000_000;

/// A table of the state. In NATS, it is a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    /// The lease of each host, under its name. Only that host may write it.
    Hosts,
    /// The place of each session, under its client and name.
    Sessions,
    /// The use of each rate, under a digest of its name.
    Rates,
    /// The tokens that were revoked, under their digests.
    Revocations,
    /// The items that all hosts share, sealed, under digests of their names.
    Items,
    /// The hosts that change an item at present, under the key of the item.
    Locks,
    /// The hosts that run the servers of which all hosts use one process, under digests of the servers' names.
    Servers,
    /// The copies of the audit logs of all hosts, which only an auditor reads.
    AuditCopies,
}

impl Table {
    pub(crate) const ALL: [Self; 8] = [
        Self::Hosts,
        Self::Sessions,
        Self::Rates,
        Self::Revocations,
        Self::Items,
        Self::Locks,
        Self::Servers,
        Self::AuditCopies,
    ];

    pub(crate) fn bucket(self) -> &'static str {
        match self {
            Self::Hosts => "lockhouse_hosts",
            Self::Sessions => "lockhouse_sessions",
            Self::Rates => "lockhouse_rates",
            Self::Revocations => "lockhouse_revocations",
            Self::Items => "lockhouse_items",
            Self::Locks => "lockhouse_locks",
            Self::Servers => "lockhouse_servers",
            Self::AuditCopies => "lockhouse_audit",
        }
    }

    /// The time after which a value that nobody writes again disappears. Zero if it stays.
    pub(crate) fn lifetime(self) -> Duration {
        match self {
            Self::Hosts => LEASE_LIFETIME,
            Self::Sessions => SESSION_LIFETIME,
            Self::Rates => RATE_LIFETIME,
            Self::Revocations | Self::Items | Self::Servers | Self::AuditCopies => Duration::ZERO,
            Self::Locks => LOCK_LIFETIME,
        }
    }

    /// Whether values are only added.
    pub(crate) fn is_archive(self) -> bool {
        self == Self::AuditCopies
    }

    /// The maximum length of a value, in bytes.
    pub(crate) fn value_bytes_max(self) -> i32 {
        match self {
            Self::Items | Self::AuditCopies => ITEM_BYTES_MAX,
            Self::Hosts | Self::Sessions | Self::Rates | Self::Revocations | Self::Locks | Self::Servers => {
                VALUE_BYTES_MAX
            }
        }
    }
}
