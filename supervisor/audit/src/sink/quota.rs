//! Limits what one account can write to the audit sink, so that it can neither fill the disk nor hold up others.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Maximum number of connections of one account.
/// Bound: the audit log.
const CONNECTIONS_PER_ACCOUNT_MAX: usize = 64;
/// Maximum number of connections of all accounts.
/// Bound: the audit log.
const CONNECTIONS_MAX: usize = 2_048;
/// The time for which the quota of an account counts.
const WINDOW: Duration = Duration::from_secs(24 * 3_600);

/// What each account uses of the sink. Accounts are counted from their first connection after the start of the sink.
#[derive(Debug)]
pub(super) struct Quotas {
    bytes_per_day: u64,
    connections: usize,
    /// Accounts are local, so that their number is that of the accounts of the host.
    accounts: HashMap<u32, Account>,
}

#[derive(Debug)]
struct Account {
    connections: usize,
    bytes: u64,
    since: Instant,
}

/// Why the sink refuses a connection or a record. The words reach the user of the engine.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(super) enum QuotaError {
    #[error("the account {uid} has {CONNECTIONS_PER_ACCOUNT_MAX} connections already")]
    AccountConnections { uid: u32 },
    #[error("it has {CONNECTIONS_MAX} connections already")]
    Connections,
    #[error(
        "the account {uid} has written its {mib} MiB of this day; its administrator can raise `--quota-mib`"
    )]
    Bytes { uid: u32, mib: u64 },
}

impl Quotas {
    pub(super) fn new(bytes_per_day: u64) -> Self {
        Self { bytes_per_day, connections: 0, accounts: HashMap::new() }
    }

    /// Counts a connection of an account.
    pub(super) fn connect(&mut self, uid: u32, now: Instant) -> Result<(), QuotaError> {
        if self.connections >= CONNECTIONS_MAX {
            return Err(QuotaError::Connections);
        }
        let account = self.accounts.entry(uid).or_insert(Account { connections: 0, bytes: 0, since: now });
        if account.connections >= CONNECTIONS_PER_ACCOUNT_MAX {
            return Err(QuotaError::AccountConnections { uid });
        }
        account.connections += 1;
        self.connections += 1;
        Ok(())
    }

    pub(super) fn disconnect(&mut self, uid: u32) {
        self.connections = self.connections.saturating_sub(1);
        if let Some(account) = self.accounts.get_mut(&uid) {
            account.connections = account.connections.saturating_sub(1);
        }
    }

    /// Counts the bytes that an account is about to write.
    pub(super) fn write(&mut self, uid: u32, bytes: usize, now: Instant) -> Result<(), QuotaError> {
        let account = self.accounts.entry(uid).or_insert(Account { connections: 0, bytes: 0, since: now });
        if now.saturating_duration_since(account.since) >= WINDOW {
            (account.bytes, account.since) = (0, now);
        }
        let total = account.bytes.saturating_add(bytes as u64);
        if total > self.bytes_per_day {
            return Err(QuotaError::Bytes { uid, mib: self.bytes_per_day / (1024 * 1024) });
        }
        account.bytes = total;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_account_cannot_use_what_is_left_for_others() {
        let (mut quotas, now) = (Quotas::new(1024 * 1024), Instant::now());
        for _ in 0..CONNECTIONS_PER_ACCOUNT_MAX {
            quotas.connect(1, now).expect("a connection");
        }
        assert_eq!(quotas.connect(1, now), Err(QuotaError::AccountConnections { uid: 1 }));
        quotas.connect(2, now).expect("another account");
        quotas.disconnect(1);
        quotas.connect(1, now).expect("one has ended");
        quotas.write(1, 1024 * 1024, now).expect("its quota");
        assert_eq!(quotas.write(1, 1, now), Err(QuotaError::Bytes { uid: 1, mib: 1 }));
        quotas.write(2, 1, now).expect("another account");
        quotas.write(1, 1, now + WINDOW).expect("the next day");
    }
}
