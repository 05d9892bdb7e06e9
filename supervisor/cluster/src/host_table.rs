//! Which hosts there are: the leases that this host has heard of, and whether they have ended. The table does no I/O.

use std::collections::BTreeMap;
use std::time::Duration;

use lockhouse_messages::HostTag;
use tokio::time::Instant;

use crate::host_record::HostRecord;
use crate::settings::HostName;
use crate::state_table::LEASE_LIFETIME;

/// Maximum number of hosts. Further ones are not noticed.
/// Bound: hosts of a cluster.
const HOSTS_MAX: usize = 1_000;

/// After a longer pause between two renewals of its own lease, a host may have missed those of the others too.
const PAUSE_MAX: Duration = Duration::from_secs(12);

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
    /// Since when this host has heard its own lease without a longer pause.
    hearing_since: Option<Instant>,
}

#[derive(Debug)]
struct KnownHost {
    record: HostRecord,
    heard: Instant,
}

impl HostTable {
    pub(crate) fn new(own: HostName, own_tag: HostTag) -> Self {
        Self { own, own_tag, hosts: BTreeMap::new(), hearing_since: None }
    }

    /// Records a lease that was written now, or that a host has given up.
    pub(crate) fn change(&mut self, name: HostName, record: Option<HostRecord>, now: Instant) {
        if name == self.own {
            let has_paused =
                self.hosts.get(&name).is_none_or(|own| now.duration_since(own.heard) > PAUSE_MAX);
            if has_paused {
                self.hearing_since = Some(now);
            }
        }
        match record {
            Some(record) if self.hosts.contains_key(&name) || self.hosts.len() < HOSTS_MAX => {
                self.hosts.insert(name, KnownHost { record, heard: now });
            }
            Some(_) => {}
            None => drop(self.hosts.remove(&name)),
        }
        self.remove_ended();
    }

    /// Removes the leases that have ended: this host has heard its own lease for so long, and those not. While it hears nothing, such
    /// as during a failure of NATS, no lease ends; after that, each host has the whole time to renew its own.
    fn remove_ended(&mut self) {
        let own_heard = self.hosts.get(&self.own).map(|own| own.heard);
        let (Some(own_heard), Some(hearing_since)) = (own_heard, self.hearing_since) else {
            return;
        };
        self.hosts.retain(|_, host| own_heard.duration_since(host.heard.max(hearing_since)) < LEASE_LIFETIME);
    }

    pub(crate) fn locate(&self, tag: HostTag) -> Place {
        if tag == self.own_tag {
            return Place::Here;
        }
        self.find(|record| record.tag == tag).map_or(Place::Nowhere, |host| Place::At(Box::new(host)))
    }

    /// Returns another host.
    pub(crate) fn find(&self, is_it: impl Fn(&HostRecord) -> bool) -> Option<Host> {
        self.others().find(|(_, known)| is_it(&known.record)).map(host)
    }

    /// Returns the other hosts.
    pub(crate) fn list_others(&self) -> Vec<Host> {
        self.others().map(host).collect()
    }

    /// Returns the number of hosts, with this one.
    pub(crate) fn count(&self) -> usize {
        self.others().count() + 1
    }

    fn others(&self) -> impl Iterator<Item = (&HostName, &KnownHost)> {
        self.hosts.iter().filter(|(name, _)| **name != self.own)
    }

    pub(crate) fn list(&self, now: Instant) -> Vec<HostStatus> {
        let status = |(name, known): (&HostName, &KnownHost)| HostStatus {
            host: host((name, known)),
            heard: now.duration_since(known.heard),
            is_this: *name == self.own,
        };
        self.hosts.iter().map(status).collect()
    }
}

fn host((name, known): (&HostName, &KnownHost)) -> Host {
    Host { name: name.clone(), record: known.record.clone() }
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

    /// Renews the lease of `a`, which is this host, at intervals from one second to another.
    fn hear_own(table: &mut HostTable, begun: Instant, seconds: std::ops::RangeInclusive<u64>) {
        for second in seconds.step_by(4) {
            table.change(name("a"), Some(record(1)), begun + Duration::from_secs(second));
        }
    }

    #[test]
    fn a_lease_ends_only_while_this_host_hears_its_own() {
        let begun = Instant::now();
        let mut table = HostTable::new(name("a"), HostTag::of_bits(1));
        table.change(name("b"), Some(record(2)), begun);
        assert_eq!([1, 2, 3].map(|tag| place(&table, tag)), ["here", "there", "nowhere"]);
        hear_own(&mut table, begun, 0..=28);
        assert_eq!(place(&table, 2), "there");
        hear_own(&mut table, begun, 32..=32);
        assert_eq!(place(&table, 2), "nowhere");
    }

    #[test]
    fn after_a_pause_each_host_has_the_whole_time_to_renew_its_lease() {
        let begun = Instant::now();
        let mut table = HostTable::new(name("a"), HostTag::of_bits(1));
        table.change(name("b"), Some(record(2)), begun);
        table.change(name("c"), Some(record(3)), begun);
        hear_own(&mut table, begun, 0..=8);
        // Nothing is heard for an hour, and then this host before the others.
        hear_own(&mut table, begun, 3_600..=3_600);
        assert_eq!([2, 3].map(|tag| place(&table, tag)), ["there", "there"]);
        table.change(name("c"), Some(record(3)), begun + Duration::from_secs(3_603));
        hear_own(&mut table, begun, 3_604..=3_628);
        assert_eq!([2, 3].map(|tag| place(&table, tag)), ["there", "there"]);
        hear_own(&mut table, begun, 3_632..=3_632);
        assert_eq!([2, 3].map(|tag| place(&table, tag)), ["nowhere", "there"]);
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
