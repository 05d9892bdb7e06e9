//! The hosts of a cluster: which ones there are, where the sessions of AI clients are, and connections between hosts.
//!
//! # Parts
//!
//! - [`ClusterSettings`] is the table `[cluster]` of the configuration.
//! - [`Membership`] is the part of this host in the cluster: it keeps the lease of this host, and knows those of the others.
//!   `lease.rs` renews the lease, `signed_lease.rs` has its form, `host_table.rs` decides without I/O which hosts there are.
//! - [`SessionPlaces`] says on which host a session is, and [`LeasedRates`] are the rates of all hosts together.
//! - [`ServerPlaces`] says which host runs a server of which all hosts use one process.
//! - [`SharedItems`] are the logins, skills and result types that all hosts have copies of.
//! - [`AuditCopies`] are copies of the audit log of this host, and [`AuditArchive`] reads those of all hosts.
//! - [`ValueCopies`] are copies of stored values in S3, which survive the host that has made them.
//! - [`HostListener`] and [`connect`] are connections between hosts, over TLS with the keys of both; `host_key.rs` has the key of
//!   this host.
//! - `shared_state.rs` has the state that the hosts share, in NATS JetStream; `state_table.rs` has its tables, `stored_forms.rs` the forms of their keys and values. [`NatsAccount`] is their account there.
//!
//! # Invariants
//!
//! - Nothing here knows a run, a policy or MCP.
//! - Nothing but `shared_state.rs` and `nats_account.rs` knows NATS, and each of its functions takes at most a second.
//! - Nothing but `object_storage.rs` knows S3. No request to it has a condition, since servers differ in what they make of conditions:
//!   each object is written once.
//! - No host acts after its lease could have ended for others: see [`lockhouse_base::fence::Fence`]. Leases are measured by the
//!   own clock of each host, which nobody sets.
//! - No connection between hosts exists without the keys of both, which are in their leases.
//! - No lease counts that was not signed with its key, and while a lease lasts, no other key counts for its name.
//!
//! # Decisions
//!
//! - Logins, skills and learned types are in the files of each host, as without a cluster, and sealed in NATS. So every part reads its
//!   files as before, and only changes that must see all earlier ones take a lock there.
//! - The state in NATS is small, and no run needs it: an id of a run says which host has it
//!   ([`lockhouse_messages::HostTag`]), and hosts exchange requests over connections of their own. Subjects of NATS prove no
//!   sender and drop messages of slow receivers.
//! - The keys of hosts are raw public keys (RFC 7250), not certificates: a lease pins a key, and a certificate would add names
//!   and dates that nobody checks.
//! - A host whose lease has ended ends its process: what others count as lost is gone with it. Its service manager starts it
//!   again, as another life of the host.
//!
//! # Limits
//!
//! A cluster has at most 1,000 hosts. The lease of a host that does not renew it ends after 30 s for others, and after 20 s for
//! itself.
#![allow(missing_docs, reason = "only the crates of this workspace use it; obvious fields need no comment")]

mod audit_archive;
mod audit_copies;
mod audit_part;
mod connections;
mod copied_value;
mod host_key;
mod host_record;
mod host_table;
mod join_error;
mod lease;
mod leased_rates;
mod membership;
mod nats_account;
mod object_storage;
mod revocations;
mod sealed_storage;
mod server_addresses;
mod server_places;
mod session_places;
mod settings;
mod shared_items;
mod shared_state;
mod signed_lease;
mod state_table;
mod stored_forms;
mod value_copies;
mod value_settings;

pub use audit_archive::{AUDITOR, ArchiveError, ArchivedLog, AuditArchive};
pub use audit_copies::AuditCopies;
pub use audit_part::LogId;
pub use connections::{ConnectError, HostConnection, HostListener, Use, connect};
pub use copied_value::{CopiedValue, ValueKind};
pub use host_key::HostKeyError;
pub use host_record::{HostRecord, HostReport};
pub use host_table::{Host, HostStatus, Place};
pub use join_error::JoinError;
pub use lease::{HostLease, LeaseEnd};
pub use leased_rates::LeasedRates;
pub use membership::Membership;
pub use nats_account::{AccountError, NatsAccount};
pub use object_storage::ObjectError;
pub use revocations::TokenDigest;
pub use server_addresses::{InvalidStateAddress, InvalidStorageAddress, StateAddress, StorageAddress};
pub use server_places::{PlaceError, ServerPlace, ServerPlaces, read_server_name};
pub use session_places::{PlaceFault, SessionPlace, SessionPlaces};
pub use settings::{ClusterSettings, HostName, InvalidHostName, StateConnection};
pub use shared_items::{ItemLock, ItemStore, SharedItem, SharedItems, Sharing};
pub use shared_state::Unavailable;
pub use value_copies::{CopyUnreadable, ValueCopies};
pub use value_settings::{
    BucketName, InvalidBucketName, InvalidKeyPrefix, KeyPrefix, StorageCredentials, ValuePlace, ValueSettings,
};
