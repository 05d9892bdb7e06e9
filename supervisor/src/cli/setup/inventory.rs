//! Shows the servers that `lockhouse setup` has found.

use lockhouse_config::Environment;
use lockhouse_protocol::ServerName;
use lockhouse_setup::{Inventory, Verdict};

use crate::cli::import::{show_losses, show_project_files};
use crate::cli::{print_config_error, table};

/// Prints each server once, with the AI clients that have it, and a summary.
pub(super) fn show(inventory: &Inventory, environment: &Environment) {
    for error in &inventory.unreadable {
        print_config_error(error);
    }
    let mut rows: Vec<(Option<&ServerName>, Vec<String>)> = Vec::new();
    for found in &inventory.servers {
        let (name, client) = (found.name(), found.client.name());
        let known = rows.iter_mut().find(|(known, _)| known.is_some() && *known == name);
        match known {
            Some((_, cells)) if cells[1].split(", ").any(|known| known == client) => {}
            Some((_, cells)) => cells[1] += &format!(", {client}"),
            None => {
                let outcome = match &found.candidate.verdict {
                    Verdict::Same { .. } => "in Lockhouse already".to_owned(),
                    _ => found.candidate.outcome().replacen("imported", "can be taken over", 1),
                };
                let shown = name.map_or(found.candidate.name.as_str(), ServerName::as_str).to_owned();
                rows.push((name, vec![shown, client.to_owned(), found.candidate.reach.clone(), outcome]));
            }
        }
    }
    if !rows.is_empty() {
        let cells: Vec<Vec<String>> = rows.iter().map(|(_, cells)| cells.clone()).collect();
        println!("{}", table::render(&["server", "AI clients", "command or URL", "state"], &cells));
    }
    inventory.servers.iter().for_each(|found| show_losses(&found.candidate));
    show_project_files(environment, "copy its servers with lockhouse import --from");
    let new = inventory.servers.iter().filter(|found| found.candidate.imported().is_some()).count();
    let refused = rows.iter().filter(|(name, _)| name.is_none()).count();
    println!(
        "{} in {}: {new} can be taken over, {} in Lockhouse already, {refused} cannot be taken over\n",
        counted(rows.len(), "server"),
        counted(inventory.files, "file"),
        rows.len() - new - refused,
    );
}

/// Returns a number with its noun, such as `2 servers`.
pub(super) fn counted(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}
