//! Which hosts there are: the leases that this host has heard of, and whether they have ended. The table does no I/O.

use std::collections::BTreeMap;
use std::time::Duration;

use lockhouse_messages::HostTag;
use tokio::time::Instant;

use crate::host_record::HostRecord;
use crate::settings::HostName;
use crate::shared_state::LEASE_LIFETIME;

/// Maximum number of hosts. Further ones are not noticed.
/// Bound: hosts of a cluster.
const HOSTS_MAX: usize = 1_000;

/// Another host.
#[derive(Clone, Debug)]
pub struct Host {
    pub name: HostName,
    pub record: HostRecord,
}

/// A host for reports.
#[derive(Clone, Debug)]
pub struct HostStatus {
    pub host: Host,
    /// Time since its lease was heard of.
    pub heard: Duration,
    pub is_this: bool,
}

/// Where an id leads.
#[derive(Clone, Debug)]
pub enum Place {
    Here,
    At(Box<Host>),
    /// No host of the cluster made the id, or that life of the host has ended.
    Nowhere,
}

/// The known hosts.
#[derive(Debug)]
pub(crate) struct HostTable {
    own: HostName,
    own_tag: HostTag,
    hosts: BTreeMap<HostName, KnownHost>,
}

#[derive(Debug)]
struct KnownHost {
    record: HostRecord,
    heard: Instant,
}

impl HostTable {
    pub(crate) fn new(own: HostName, own_tag: HostTag) -> Self {
        Self { own, own_tag, hosts: BTreeMap::new() }
    }

    /// Records a lease that was written now, or that a host has given up.
    pub(crate) fn change(&mut self, name: HostName, record: Option<HostRecord>, now: Instant) {
        match record {
            Some(record) if self.hosts.contains_key(&name) || self.hosts.len() < HOSTS_MAX => {
                self.hosts.insert(name, KnownHost { record, heard: now });
            }
            Some(_) => {}
            None => drop(self.hosts.remove(&name)),
        }
        let ended: Vec<HostName> = self
            .hosts
            .iter()
            .filter(|(_, host)| self.has_ended(host))
            .map(|(name, _)| name.clone())
            .collect();
        for name in ended {
            self.hosts.remove(&name);
        }
    }

    /// Whether a lease has ended: this host has heard its own lease for so long after that one. While it hears nothing, such as
    /// during a failure of NATS, no lease ends.
    fn has_ended(&self, host: &KnownHost) -> bool {
        self.hosts.get(&self.own).is_some_and(|own| own.heard.duration_since(host.heard) >= LEASE_LIFETIME)
    }

    pub(crate) fn locate(&self, tag: HostTag) -> Place {
        if tag == self.own_tag {
            return Place::Here;
        }
        let found = self.others().find(|host| host.record.tag == tag);
        found.map_or(Place::Nowhere, |host| Place::At(Box::new(host)))
    }

    /// Returns the other hosts.
    pub(crate) fn others(&self) -> impl Iterator<Item = Host> {
        let others = self.hosts.iter().filter(|(name, _)| **name != self.own);
        others.map(|(name, host)| Host { name: name.clone(), record: host.record.clone() })
    }

    pub(crate) fn list(&self, now: Instant) -> Vec<HostStatus> {
        let status = |(name, known): (&HostName, &KnownHost)| HostStatus {
            host: Host { name: name.clone(), record: known.record.clone() },
            heard: now.duration_since(known.heard),
            is_this: *name == self.own,
        };
        self.hosts.iter().map(status).collect()
    }
}

#[cfg(test)]
mod tests {
    use lockhouse_messages::Base64Bytes;

    use super::*;
    use crate::host_record::HostReport;

    fn name(name: &str) -> HostName {
        name.parse().expect("a name")
    }

    fn record(tag: u128) -> HostRecord {
        HostRecord {
            tag: HostTag::of_bits(tag),
            address: ([127, 0, 0, 1], 7400).into(),
            key: Base64Bytes(vec![1]),
            version: "0".into(),
            started: 0,
            clock: 0,
            report: HostReport::default(),
        }
    }

    fn place(table: &HostTable, tag: u128) -> &'static str {
        match table.locate(HostTag::of_bits(tag)) {
            Place::Here => "here",
            Place::At(_) => "there",
            Place::Nowhere => "nowhere",
        }
    }

    #[test]
    fn a_lease_ends_only_while_this_host_hears_its_own() {
        let begun = Instant::now();
        let mut table = HostTable::new(name("a"), HostTag::of_bits(1));
        table.change(name("a"), Some(record(1)), begun);
        table.change(name("b"), Some(record(2)), begun);
        assert_eq!([1, 2, 3].map(|tag| place(&table, tag)), ["here", "there", "nowhere"]);
        // Nothing is heard for an hour, and then `c` before all others.
        let later = begun + Duration::from_secs(3_600);
        table.change(name("c"), Some(record(3)), later);
        assert_eq!([1, 2, 3].map(|tag| place(&table, tag)), ["here", "there", "there"]);
        // From here on, this host is heard, and `b` has not been for an hour.
        table.change(name("a"), Some(record(1)), later);
        assert_eq!([1, 2, 3].map(|tag| place(&table, tag)), ["here", "nowhere", "there"]);
        table.change(name("a"), Some(record(1)), later + LEASE_LIFETIME - Duration::from_secs(1));
        assert_eq!(place(&table, 3), "there");
        table.change(name("a"), Some(record(1)), later + LEASE_LIFETIME);
        assert_eq!(place(&table, 3), "nowhere");
    }

    #[test]
    fn another_life_of_a_host_has_none_of_the_ids_of_before() {
        let now = Instant::now();
        let mut table = HostTable::new(name("a"), HostTag::of_bits(1));
        table.change(name("b"), Some(record(2)), now);
        table.change(name("b"), Some(record(3)), now);
        assert_eq!([2, 3].map(|tag| place(&table, tag)), ["nowhere", "there"]);
        table.change(name("b"), None, now);
        assert_eq!(place(&table, 3), "nowhere");
    }

    #[test]
    fn the_number_of_hosts_is_bounded() {
        let now = Instant::now();
        let mut table = HostTable::new(name("a"), HostTag::of_bits(0));
        for number in 0..=HOSTS_MAX {
            table.change(name(&format!("h{number}")), Some(record(number as u128)), now);
        }
        assert_eq!(table.list(now).len(), HOSTS_MAX);
        // A known one still renews its lease.
        table.change(name("h0"), Some(record(5_000)), now);
        assert_eq!(place(&table, 5_000), "there");
    }
}
