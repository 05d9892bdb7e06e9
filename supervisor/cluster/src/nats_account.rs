//! The account of a cluster in NATS: a key for each host, and permissions by which each host writes its own lease only.

use std::fmt::Write;

use crate::settings::HostName;
use crate::shared_state::inbox_prefix;
use crate::state_table::Table;

/// What the servers of NATS and the hosts need.
#[derive(Clone, Debug)]
pub struct NatsAccount {
    /// The configuration of a NATS server.
    pub configuration: String,
    /// The seed of each host's NKEY, which is its secret.
    pub seeds: Vec<(HostName, String)>,
}

/// No key can be generated.
#[derive(Debug, thiserror::Error)]
#[error("no NKEY can be generated: {0}")]
pub struct KeyError(String);

impl NatsAccount {
    /// Makes an account with new keys for these hosts.
    ///
    /// # Errors
    /// [`KeyError`]
    pub fn generate(hosts: &[HostName]) -> Result<Self, KeyError> {
        let (mut users, mut seeds) = (String::new(), Vec::new());
        for host in hosts {
            let key = nkeys::KeyPair::new_user();
            let seed = key.seed().map_err(|error| KeyError(error.to_string()))?;
            // Nothing fails when it writes to a string.
            let _ = write!(users, "{}", user(host, &key.public_key()));
            seeds.push((host.clone(), seed));
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

fn user(host: &HostName, key: &str) -> String {
    let mut publish = Vec::new();
    for table in Table::ALL {
        let bucket = table.bucket();
        publish.extend(
            ["STREAM.INFO", "STREAM.CREATE", "STREAM.MSG.GET"]
                .map(|operation| format!("$JS.API.{operation}.KV_{bucket}")),
        );
        publish.push(match table {
            Table::Hosts => format!("$KV.{bucket}.{host}"),
            Table::Sessions | Table::Rates | Table::Revocations | Table::Items | Table::Locks => {
                format!("$KV.{bucket}.>")
            }
        });
    }
    // Those that every host watches.
    for bucket in [Table::Hosts, Table::Revocations, Table::Items].map(Table::bucket) {
        let create = format!("$JS.API.CONSUMER.CREATE.KV_{bucket}");
        publish.extend([format!("{create}.>"), create]);
        publish.extend(
            ["INFO", "DELETE"].map(|operation| format!("$JS.API.CONSUMER.{operation}.KV_{bucket}.*")),
        );
        publish.push(format!("$JS.FC.KV_{bucket}.>"));
    }
    let publish: Vec<String> = publish.iter().map(|subject| format!("            \"{subject}\"\n")).collect();
    format!(
        "      # {host}\n      {{\n        nkey: {key}\n        permissions {{\n          publish: [\n{}          ]\n          \
         subscribe: [\"{}.>\"]\n        }}\n      }}\n",
        publish.concat(),
        inbox_prefix(host)
    )
}
