//! The account of a cluster in NATS: a key for each host, and permissions by which each host writes its own lease only.

use std::fmt::Write;

use crate::settings::HostName;
use crate::shared_state::inbox_prefix;
use crate::state_table::Table;

/// The account: what the servers of NATS and the hosts are configured with.
#[derive(Clone, Debug)]
pub struct NatsAccount {
    /// The configuration of a NATS server.
    pub configuration: String,
    /// The seed of the NKEY of each host and of the auditor, which is its secret.
    pub seeds: Vec<(HostName, String)>,
}

/// No key can be generated.
#[derive(Debug, thiserror::Error)]
#[error("no NKEY can be generated: {0}")]
pub struct KeyError(String);

impl NatsAccount {
    /// Makes an account with new keys for these hosts, and for an auditor, who can only read leases and copies of audit logs.
    ///
    /// # Errors
    /// [`KeyError`]
    pub fn generate(hosts: &[HostName], auditor: &HostName) -> Result<Self, KeyError> {
        let (mut users, mut seeds) = (String::new(), Vec::new());
        let hosts = hosts.iter().map(|host| (host, permissions_of_host(host)));
        for (name, permissions) in hosts.chain([(auditor, permissions_of_auditor())]) {
            let key = nkeys::KeyPair::new_user();
            let seed = key.seed().map_err(|error| KeyError(error.to_string()))?;
            // Nothing fails when it writes to a string.
            let _ = write!(users, "{}", user(name, &key.public_key(), &permissions));
            seeds.push((name.clone(), seed));
        }
        Ok(Self { configuration: format!("{HEAD}{users}{TAIL}"), seeds })
    }
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
    users: [
";
const TAIL: &str = "    ]\n  }\n}\n";

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
