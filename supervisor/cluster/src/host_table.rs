//! Which hosts there are: the leases that this host has heard of, and whether they have ended. The table does no I/O.

use std::collections::{BTreeMap, BTreeSet};
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

/// Why the lease of a host is not accepted, as a clause. The first lease that was heard counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LeaseRefusal {
    #[error("it has another key than the host of this name")]
    OtherKey,
    #[error("it is of an earlier life of the host")]
    EarlierLife,
    #[error("another host has the ids that it claims")]
    TagOfOther,
    #[error("there are {HOSTS_MAX} hosts")]
    TooManyHosts,
}

/// The known hosts.
#[derive(Debug)]
pub(crate) struct HostTable {
    own: HostName,
    own_record: HostRecord,
    hosts: BTreeMap<HostName, KnownHost>,
    /// The tags that two hosts claimed before this host heard its own lease: nobody knows which one came first.
    disputed: BTreeSet<HostTag>,
    /// Since when this host has heard its own lease without a longer pause.
    hearing_since: Option<Instant>,
}

#[derive(Debug)]
struct KnownHost {
    record: HostRecord,
    heard: Instant,
}

impl HostTable {
    pub(crate) fn new(own: HostName, own_record: HostRecord) -> Self {
        let (hosts, disputed) = (BTreeMap::new(), BTreeSet::new());
        Self { own, own_record, hosts, disputed, hearing_since: None }
    }

    /// Records a lease that was written now.
    ///
    /// # Errors
    /// [`LeaseRefusal`]
    pub(crate) fn change(
        &mut self,
        name: HostName,
        record: HostRecord,
        now: Instant,
    ) -> Result<(), LeaseRefusal> {
        self.remove_ended(now);
        self.admit(&name, &record)?;
        if name == self.own {
            let has_paused =
                self.hosts.get(&name).is_none_or(|own| now.duration_since(own.heard) > PAUSE_MAX);
            if has_paused {
                self.hearing_since = Some(now);
            }
        }
        match record.has_left {
            true => drop(self.hosts.remove(&name)),
            false => drop(self.hosts.insert(name, KnownHost { record, heard: now })),
        }
        self.remove_ended(now);
        Ok(())
    }

    /// Accepts a lease as one of the host of this name, or refuses it: a host that was taken over writes leases, too.
    fn admit(&mut self, name: &HostName, record: &HostRecord) -> Result<(), LeaseRefusal> {
        let known = match *name == self.own {
            true => Some(&self.own_record),
            false => self.hosts.get(name).map(|known| &known.record),
        };
        match known {
            Some(known) if known.key != record.key => return Err(LeaseRefusal::OtherKey),
            Some(known) if known.tag == record.tag => return Ok(()),
            Some(known) if known.started > record.started => return Err(LeaseRefusal::EarlierLife),
            None if self.hosts.len() >= HOSTS_MAX => return Err(LeaseRefusal::TooManyHosts),
            _ => {}
        }
        if self.own_record.tag == record.tag {
            return Err(LeaseRefusal::TagOfOther);
        }
        if self.others().any(|(_, known)| known.record.tag == record.tag) {
            if self.hearing_since.is_some() {
                return Err(LeaseRefusal::TagOfOther);
            }
            self.disputed.insert(record.tag);
        }
        Ok(())
    }

    /// Removes the leases that have ended: this host has heard its own lease for so long, and those not. While it hears nothing, such
    /// as during a failure of NATS, no lease ends; after that, each host has the whole time to renew its own.
    fn remove_ended(&mut self, now: Instant) {
        let own_heard = self.hosts.get(&self.own).map(|own| own.heard);
        let (Some(own_heard), Some(hearing_since)) = (own_heard, self.hearing_since) else {
            return;
        };
        let heard_until = if now.duration_since(own_heard) <= PAUSE_MAX { now } else { own_heard };
        self.hosts
            .retain(|_, host| heard_until.duration_since(host.heard.max(hearing_since)) < LEASE_LIFETIME);
        let hosts = &self.hosts;
        let claims = |tag: &HostTag| hosts.values().filter(|known| known.record.tag == *tag).count();
        self.disputed.retain(|tag| claims(tag) > 1);
    }

    pub(crate) fn locate(&self, tag: HostTag) -> Place {
        if tag == self.own_record.tag {
            return Place::Here;
        }
        if self.disputed.contains(&tag) {
            return Place::Nowhere;
        }
        self.find(|record| record.tag == tag).map_or(Place::Nowhere, |host| Place::At(Box::new(host)))
    }

    /// Counts another host as alive now: this host has said that it cannot hear whether it is.
    pub(crate) fn note_alive(&mut self, name: &HostName, now: Instant) {
        if let Some(known) = self.hosts.get_mut(name) {
            known.heard = now;
        }
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
            has_left: false,
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

    fn hear(table: &mut HostTable, host: &str, tag: u128, now: Instant) {
        assert_eq!(table.change(name(host), record(tag), now), Ok(()));
    }

    /// Renews the lease of `a`, which is this host, at intervals from one second to another.
    fn hear_own(table: &mut HostTable, begun: Instant, seconds: std::ops::RangeInclusive<u64>) {
        for second in seconds.step_by(4) {
            hear(table, "a", 1, begun + Duration::from_secs(second));
        }
    }

    #[test]
    fn a_lease_ends_only_while_this_host_hears_its_own() {
        let begun = Instant::now();
        let mut table = HostTable::new(name("a"), record(1));
        hear(&mut table, "b", 2, begun);
        assert_eq!([1, 2, 3].map(|tag| place(&table, tag)), ["here", "there", "nowhere"]);
        hear_own(&mut table, begun, 0..=28);
        assert_eq!(place(&table, 2), "there");
        hear_own(&mut table, begun, 32..=32);
        assert_eq!(place(&table, 2), "nowhere");
    }

    #[test]
    fn after_a_pause_each_host_has_the_whole_time_to_renew_its_lease() {
        let begun = Instant::now();
        let mut table = HostTable::new(name("a"), record(1));
        hear(&mut table, "b", 2, begun);
        hear(&mut table, "c", 3, begun);
        hear_own(&mut table, begun, 0..=8);
        // Nothing is heard for an hour, and then this host before the others.
        hear_own(&mut table, begun, 3_600..=3_600);
        assert_eq!([2, 3].map(|tag| place(&table, tag)), ["there", "there"]);
        hear(&mut table, "c", 3, begun + Duration::from_secs(3_603));
        hear_own(&mut table, begun, 3_604..=3_628);
        assert_eq!([2, 3].map(|tag| place(&table, tag)), ["there", "there"]);
        hear_own(&mut table, begun, 3_632..=3_632);
        assert_eq!([2, 3].map(|tag| place(&table, tag)), ["nowhere", "there"]);
    }

    #[test]
    fn another_life_of_a_host_has_none_of_the_ids_of_before() {
        let now = Instant::now();
        let mut table = HostTable::new(name("a"), record(1));
        hear(&mut table, "b", 2, now);
        hear(&mut table, "b", 3, now);
        assert_eq!([2, 3].map(|tag| place(&table, tag)), ["nowhere", "there"]);
        table.change(name("b"), HostRecord { has_left: true, ..record(3) }, now).expect("accepted");
        assert_eq!(place(&table, 3), "nowhere");
    }

    #[test]
    fn the_number_of_hosts_is_bounded() {
        let now = Instant::now();
        let mut table = HostTable::new(name("a"), record(9_999));
        for number in 0..=HOSTS_MAX {
            let heard = table.change(name(&format!("h{number}")), record(number as u128), now);
            let expected = if number < HOSTS_MAX { Ok(()) } else { Err(LeaseRefusal::TooManyHosts) };
            assert_eq!(heard, expected);
        }
        assert_eq!(table.list(now).len(), HOSTS_MAX);
        // A known one still renews its lease.
        hear(&mut table, "h0", 5_000, now);
        assert_eq!(place(&table, 5_000), "there");
    }

    #[test]
    fn a_host_cannot_take_the_name_or_the_ids_of_another() {
        let now = Instant::now();
        let mut table = HostTable::new(name("a"), HostRecord { started: 10, ..record(1) });
        let of_other = |record: HostRecord| HostRecord { key: Base64Bytes(vec![2]), ..record };
        assert_eq!(table.change(name("a"), of_other(record(1)), now), Err(LeaseRefusal::OtherKey));
        assert_eq!(table.change(name("a"), record(7), now), Err(LeaseRefusal::EarlierLife));
        table.change(name("a"), HostRecord { started: 10, ..record(1) }, now).expect("its own");
        table.change(name("b"), HostRecord { started: 10, ..record(2) }, now).expect("the first of its name");
        assert_eq!(table.change(name("b"), of_other(record(2)), now), Err(LeaseRefusal::OtherKey));
        let has_left = HostRecord { has_left: true, ..of_other(record(2)) };
        assert_eq!(table.change(name("b"), has_left, now), Err(LeaseRefusal::OtherKey));
        assert_eq!(table.change(name("b"), record(3), now), Err(LeaseRefusal::EarlierLife));
        assert_eq!(table.change(name("c"), of_other(record(2)), now), Err(LeaseRefusal::TagOfOther));
        assert_eq!(table.change(name("c"), of_other(record(1)), now), Err(LeaseRefusal::TagOfOther));
        assert_eq!(table.list_others().len(), 1);
        assert_eq!([1, 2].map(|tag| place(&table, tag)), ["here", "there"]);
        table.change(name("c"), of_other(record(3)), now).expect("another host");
        assert_eq!(place(&table, 3), "there");
    }

    #[test]
    fn ids_that_two_hosts_claimed_before_this_one_joined_are_those_of_neither() {
        let now = Instant::now();
        let mut table = HostTable::new(name("a"), record(1));
        hear(&mut table, "b", 2, now);
        hear(&mut table, "c", 2, now);
        hear(&mut table, "d", 3, now);
        assert_eq!(table.list_others().len(), 3);
        hear_own(&mut table, now, 0..=0);
        // Both renew their leases.
        ["b", "c"].into_iter().for_each(|host| hear(&mut table, host, 2, now + Duration::from_secs(4)));
        assert_eq!([2, 3].map(|tag| place(&table, tag)), ["nowhere", "there"]);
        table.change(name("c"), HostRecord { has_left: true, ..record(2) }, now).expect("accepted");
        assert_eq!([2, 3].map(|tag| place(&table, tag)), ["there", "there"], "one of them has ended");
    }

    #[test]
    fn a_host_with_a_new_key_is_accepted_when_the_lease_of_the_old_one_has_ended() {
        let begun = Instant::now();
        let mut table = HostTable::new(name("a"), record(1));
        hear(&mut table, "b", 2, begun);
        hear_own(&mut table, begun, 0..=28);
        let new = || HostRecord { key: Base64Bytes(vec![2]), ..record(3) };
        let early = table.change(name("b"), new(), begun + Duration::from_secs(29));
        assert_eq!(early, Err(LeaseRefusal::OtherKey));
        assert_eq!(table.change(name("b"), new(), begun + Duration::from_secs(31)), Ok(()));
        assert_eq!([2, 3].map(|tag| place(&table, tag)), ["nowhere", "there"]);
    }

    #[test]
    fn a_host_that_was_told_that_nobody_can_hear_it_is_alive_for_as_long_as_a_lease() {
        let begun = Instant::now();
        let mut table = HostTable::new(name("a"), record(1));
        hear(&mut table, "b", 2, begun);
        hear_own(&mut table, begun, 0..=16);
        table.note_alive(&name("b"), begun + Duration::from_secs(16));
        hear_own(&mut table, begun, 20..=44);
        assert_eq!(place(&table, 2), "there");
        hear_own(&mut table, begun, 48..=48);
        assert_eq!(place(&table, 2), "nowhere");
    }
}
