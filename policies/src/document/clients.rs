//! Parses the policy tables `[clients.NAME]`: limits for one AI client, and further restrictions of the calls that it
//! may make.

use super::limit_keys::{self, LIMIT_KEYS};
use super::reader::{DocumentReader, Key, Value};
use super::servers::servers;
use crate::call::ClientName;
use crate::layer::{ClientTable, Clients};

const CLIENT_KEYS: &str = "a client's table has the keys `servers`, `rate`, `calls_per_execution`, \
     `argument_bytes_per_execution`, `result_bytes_per_execution` and `timeout_seconds`";

pub(super) fn clients(reader: &mut DocumentReader<'_, '_>, key: &Key<'_>, value: &Value<'_>) -> Clients {
    let help = "write one table for each client, under the name that the client sends: [clients.NAME]";
    let Some(tables) = reader.table("clients", key, value, help) else { return Clients::default() };
    let all = tables.iter().filter_map(|(name, value)| client(reader, name, value)).collect();
    Clients::new(all)
}

fn client(reader: &mut DocumentReader<'_, '_>, name: &Key<'_>, value: &Value<'_>) -> Option<ClientTable> {
    let text = name.get_ref().as_ref();
    let (stem, starred) = text.strip_suffix('*').map_or((text, false), |stem| (stem, true));
    let is_valid = !text.is_empty() && !stem.contains('*') && ClientName::new(stem).as_str() == stem;
    if !is_valid {
        let help = "use the name that the client sends, or a prefix of it and `*`; \"*\" applies to all other clients";
        reader.report_error(name.span(), "no client can have this name", "not a valid client name", help);
    }
    let mut client = ClientTable {
        stem: stem.to_owned(),
        starred,
        limits: None,
        servers: None,
        line: reader.line(&name.span()),
    };
    let full = client.table();
    let help = format!("write [{full}] and below it rate = \"60/min\", or [{full}.servers.NAME]");
    let table = reader.table(&full, name, value, help)?;
    for (key, value) in table {
        match key.get_ref().as_ref() {
            "servers" => client.servers = Some(servers(reader, &format!("{full}."), key, value)),
            other if LIMIT_KEYS.contains(&other) => {}
            "allow" | "ask" | "deny" | "rules" => {
                let title = format!("`{}` belongs in the table of a server", key.get_ref());
                let help = format!("write [{full}.servers.NAME], and put it there");
                reader.report_error(key.span(), title, "not a key of a client's table", help);
            }
            _ => reader.unknown_key(key, "a client's table", CLIENT_KEYS),
        }
    }
    client.limits = limit_keys::limits(reader, table);
    is_valid.then_some(client)
}
