//! `[clients.NAME]`: what one AI client is permitted of what everyone is, and its limits.

use super::limits::{self, LIMIT_KEYS};
use super::reader::{Key, Reader, Value};
use super::servers::servers;
use crate::call::ClientName;
use crate::layer::{ClientTable, Clients};

const CLIENT_KEYS: &str = "a client's table has the keys `servers`, `rate`, `calls_per_execution`, \
     `argument_bytes_per_execution`, `result_bytes_per_execution` and `timeout_seconds`";

pub(super) fn clients(reader: &mut Reader<'_, '_>, key: &Key<'_>, value: &Value<'_>) -> Clients {
    let help = "write one table for each client, by the name that it calls itself: [clients.NAME]";
    let Some(tables) = reader.table("clients", key, value, help) else { return Clients::default() };
    let all = tables.iter().filter_map(|(name, value)| client(reader, name, value)).collect();
    Clients::new(all)
}

fn client(reader: &mut Reader<'_, '_>, name: &Key<'_>, value: &Value<'_>) -> Option<ClientTable> {
    let text = name.get_ref().as_ref();
    let (stem, starred) = text.strip_suffix('*').map_or((text, false), |stem| (stem, true));
    let can_be = !text.is_empty() && !stem.contains('*') && ClientName::of(stem).as_str() == stem;
    if !can_be {
        let help =
            "use the name that the client gives itself, or its beginning and a `*`; \"*\" is for all others";
        reader.refuse(name.span(), "no client is called so", "not a client's name", help);
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
                let title = format!("`{}` belongs into the table of a server", key.get_ref());
                let help = format!("write [{full}.servers.NAME], and put it there");
                reader.refuse(key.span(), title, "not a key of a client's table", help);
            }
            _ => reader.unknown_key(key, "a client's table", CLIENT_KEYS),
        }
    }
    client.limits = limits::limits(reader, table);
    can_be.then_some(client)
}
