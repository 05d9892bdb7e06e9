//! The account of a cluster in NATS: a key for each host, and permissions by which each host writes its own lease only.

use crate::audit_archive::AUDITOR;
use crate::settings::HostName;
use crate::shared_state::inbox_prefix;
use crate::state_table::Table;

/// The account: what the servers of NATS and the hosts are configured with.
#[derive(Clone, Debug)]
pub struct NatsAccount {
    /// The configuration of a NATS server.
    pub configuration: String,
    /// The seeds of the NKEYs that were made: those of the hosts, and that of the auditor with a new account. Each is a secret.
    pub seeds: Vec<(HostName, String)>,
}

/// An account cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    #[error("no NKEY can be generated: {0}")]
    Key(#[from] nkeys::error::Error),
    #[error("there are two hosts of the name {0}")]
    TwoOfOneName(HostName),
    #[error("`{AUDITOR}` is the name of the auditor, and not of a host")]
    NameOfAuditor,
    #[error("it has no line `{}` with a line `{}` after it", FIRST_LINE.trim(), LAST_LINE.trim())]
    NoUsers,
    #[error(
        "line {0} is none that `lockhouse cluster account` has written: put other users in an account of their own"
    )]
    OtherLine(usize),
}

/// A user of the account, and its public key.
type User = (HostName, String);

/// A user of the account, and the seed of its NKEY, which is a secret.
type Seed = (HostName, String);

impl NatsAccount {
    /// Makes an account with new keys for these hosts, and for an auditor, who can only read leases and copies of audit logs.
    ///
    /// # Errors
    /// [`AccountError`]
    pub fn generate(hosts: &[HostName]) -> Result<Self, AccountError> {
        let auditor: HostName = AUDITOR.parse().map_err(|_| AccountError::NameOfAuditor)?;
        let (added, mut seeds) = new_keys(&[], hosts)?;
        let (key, seed) = new_key()?;
        seeds.push((auditor.clone(), seed));
        let users: Vec<User> = added.into_iter().chain([(auditor, key)]).collect();
        Ok(Self { configuration: format!("{HEAD}{FIRST_LINE}{}{LAST_LINE}{TAIL}", rendered(&users)), seeds })
    }

    /// Adds hosts to the account in the configuration of a NATS server, whose users keep their keys and get the permissions of this
    /// version. Everything else in the configuration stays as it is.
    ///
    /// # Errors
    /// [`AccountError`]
    pub fn update(configuration: &str, hosts: &[HostName]) -> Result<Self, AccountError> {
        let (head, rest) = configuration.split_once(FIRST_LINE).ok_or(AccountError::NoUsers)?;
        // From the beginning of a line: lists of permissions end alike.
        let (section, tail) = rest.split_once(&format!("\n{LAST_LINE}")).ok_or(AccountError::NoUsers)?;
        let known =
            parsed(section).map_err(|line| AccountError::OtherLine(head.lines().count() + 1 + line))?;
        let (added, seeds) = new_keys(&known, hosts)?;
        let (auditors, known): (Vec<User>, Vec<User>) =
            known.into_iter().partition(|(name, _)| name.as_str() == AUDITOR);
        let users: Vec<User> = known.into_iter().chain(added).chain(auditors).collect();
        Ok(Self { configuration: format!("{head}{FIRST_LINE}{}{LAST_LINE}{tail}", rendered(&users)), seeds })
    }
}

/// Makes a key for each of these hosts. Returns the users, and their seeds.
fn new_keys(known: &[User], hosts: &[HostName]) -> Result<(Vec<User>, Vec<Seed>), AccountError> {
    let (mut users, mut seeds) = (Vec::<User>::new(), Vec::new());
    for host in hosts {
        if host.as_str() == AUDITOR {
            return Err(AccountError::NameOfAuditor);
        }
        if known.iter().chain(&users).any(|(name, _)| name == host) {
            return Err(AccountError::TwoOfOneName(host.clone()));
        }
        let (key, seed) = new_key()?;
        users.push((host.clone(), key));
        seeds.push((host.clone(), seed));
    }
    Ok((users, seeds))
}

/// Returns a new public key, and its seed.
fn new_key() -> Result<(String, String), AccountError> {
    let key = nkeys::KeyPair::new_user();
    Ok((key.public_key(), key.seed()?))
}

/// Reads the users that [`rendered`] has written, in this version or an earlier one. Returns the number of the first other line.
fn parsed(section: &str) -> Result<Vec<User>, usize> {
    const OTHERS: [&str; 5] = ["{", "}", "permissions {", "publish: [", "]"];
    let is_list = |line: &str| line.starts_with('"') || line.starts_with("subscribe: [\"");
    let (mut users, mut name) = (Vec::new(), None);
    for (number, line) in section.lines().enumerate() {
        let line = line.trim();
        if let Some(text) = line.strip_prefix("# ") {
            name = Some(text.parse::<HostName>().map_err(|_| number + 1)?);
        } else if let Some(key) = line.strip_prefix("nkey: ") {
            let is_key = nkeys::KeyPair::from_public_key(key).is_ok();
            let name = name.take().filter(|_| is_key).ok_or(number + 1)?;
            users.push((name, key.to_owned()));
        } else if !OTHERS.contains(&line) && !is_list(line) {
            return Err(number + 1);
        }
    }
    Ok(users)
}

fn rendered(users: &[User]) -> String {
    let permissions = |name: &HostName| match name.as_str() {
        AUDITOR => permissions_of_auditor(),
        _ => permissions_of_host(name),
    };
    users.iter().map(|(name, key)| user(name, key, &permissions(name))).collect()
}

const HEAD: &str = "\
# NATS server for a cluster of Lockhouse hosts: see docs/cluster.md of Lockhouse.
port: 4222
jetstream {
  store_dir: \"/var/lib/nats\"
  # Each write is on the disk before it is acknowledged.
  sync_interval: always
}
tls {
  cert_file: \"/etc/nats/server.pem\"
  key_file: \"/etc/nats/server.key\"
}
accounts {
  LOCKHOUSE {
    jetstream: enabled
";
/// The lines around the users.
const FIRST_LINE: &str = "    users: [\n";
const LAST_LINE: &str = "    ]\n";
const TAIL: &str = "  }\n}\n";

/// Returns the subjects that a host may publish to.
fn permissions_of_host(host: &HostName) -> Vec<String> {
    let mut publish = Vec::new();
    for table in Table::ALL {
        let bucket = table.bucket();
        publish.extend(["STREAM.INFO", "STREAM.CREATE"].map(|operation| of_stream(operation, bucket)));
        // Nobody but the auditor reads audit logs of others.
        publish.extend((!table.is_archive()).then(|| of_stream("STREAM.MSG.GET", bucket)));
        publish.push(match table {
            Table::Hosts => format!("$KV.{bucket}.{host}"),
            Table::AuditCopies => format!("$KV.{bucket}.{host}.>"),
            Table::Sessions
            | Table::Rates
            | Table::Revocations
            | Table::Items
            | Table::Locks
            | Table::Servers => {
                format!("$KV.{bucket}.>")
            }
        });
    }
    // Those that every host watches.
    for table in [Table::Hosts, Table::Revocations, Table::Items] {
        publish.extend(permissions_to_watch(table));
    }
    publish
}

fn permissions_of_auditor() -> Vec<String> {
    let of_all = Table::ALL.map(|table| of_stream("STREAM.INFO", table.bucket()));
    let watched = [Table::Hosts, Table::AuditCopies].into_iter().flat_map(permissions_to_watch);
    of_all.into_iter().chain(watched).collect()
}

fn permissions_to_watch(table: Table) -> Vec<String> {
    let bucket = table.bucket();
    let create = of_stream("CONSUMER.CREATE", bucket);
    let managed =
        ["INFO", "DELETE"].map(|operation| of_stream(&format!("CONSUMER.{operation}"), bucket) + ".*");
    let flow = format!("$JS.FC.KV_{bucket}.>");
    [format!("{create}.>"), create].into_iter().chain(managed).chain([flow]).collect()
}

fn of_stream(operation: &str, bucket: &str) -> String {
    format!("$JS.API.{operation}.KV_{bucket}")
}

fn user(name: &HostName, key: &str, publish: &[String]) -> String {
    let publish: Vec<String> = publish.iter().map(|subject| format!("            \"{subject}\"\n")).collect();
    format!(
        "      # {name}\n      {{\n        nkey: {key}\n        permissions {{\n          publish: [\n{}          ]\n          \
         subscribe: [\"{}.>\"]\n        }}\n      }}\n",
        publish.concat(),
        inbox_prefix(name)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<HostName> {
        names.iter().map(|name| name.parse().expect("a name")).collect()
    }

    #[test]
    fn an_update_keeps_keys_and_adds_hosts() {
        let made = NatsAccount::generate(&names(&["h1", "h2"])).expect("an account");
        let of = |configuration: &str| {
            let (_, rest) = configuration.split_once(FIRST_LINE).expect("users");
            parsed(rest.split_once("\n    ]\n").expect("their end").0).expect("users")
        };
        // An operator has edited the file, and an earlier version gave fewer permissions.
        let edited = made.configuration.replace("port: 4222", "port: 4333\nserver_name: n1");
        let edited = edited.replace("            \"$KV.lockhouse_items.>\"\n", "");
        let updated = NatsAccount::update(&edited, &names(&["h3"])).expect("an update");
        let [before, after] = [&made.configuration, &updated.configuration].map(|text| of(text));
        assert_eq!(before.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["h1", "h2", AUDITOR]);
        assert_eq!(
            after.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
            ["h1", "h2", "h3", AUDITOR]
        );
        assert!(before.iter().all(|user| after.contains(user)), "{before:?} {after:?}");
        assert_eq!(updated.seeds.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["h3"]);
        assert_eq!(updated.configuration.matches("\"$KV.lockhouse_items.>\"").count(), 3);
        assert!(
            updated.configuration.starts_with("# NATS server")
                && updated.configuration.contains("port: 4333")
        );
        let again = NatsAccount::update(&updated.configuration, &[]).expect("an update");
        assert_eq!(again.configuration, updated.configuration);
    }

    #[test]
    fn what_cannot_be_updated_is_said() {
        let made = NatsAccount::generate(&names(&["h1"])).expect("an account").configuration;
        let reason =
            |configuration: &str, hosts: &[&str]| match NatsAccount::update(configuration, &names(hosts)) {
                Ok(_) => "updated".to_owned(),
                Err(error) => error.to_string(),
            };
        let with_user = made.replace(FIRST_LINE, "    users: [\n      {user: a, password: b}\n");
        let line = with_user.lines().position(|line| line.contains("user: a")).expect("the line") + 1;
        for (configuration, hosts, expected) in [
            (made.as_str(), &["h2"][..], "updated".to_owned()),
            (&made, &["h1"], "there are two hosts of the name h1".to_owned()),
            (&made, &["h2", "h2"], "there are two hosts of the name h2".to_owned()),
            (&made, &["auditor"], "`auditor` is the name of the auditor, and not of a host".to_owned()),
            ("port: 4222\n", &["h2"], "it has no line `users: [` with a line `]` after it".to_owned()),
            (
                &with_user,
                &["h2"],
                format!(
                    "line {line} is none that `lockhouse cluster account` has written: put other users in an account of their own"
                ),
            ),
        ] {
            assert_eq!(reason(configuration, hosts), expected);
        }
        let two = NatsAccount::generate(&names(&["h1", "h1"])).map(|_| ()).map_err(|error| error.to_string());
        assert_eq!(two, Err("there are two hosts of the name h1".to_owned()));
    }
}
