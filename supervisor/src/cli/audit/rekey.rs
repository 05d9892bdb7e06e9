//! `lockhouse audit rekey`: begins a new key of the audit log after the present one was lost.

use std::path::PathBuf;
use std::process::ExitCode;

use lockhouse_audit::{AuditSettings, NewLogKey};

use super::CommandResult;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// A file with the private key of an administrator (Ed25519, PKCS#8, DER), which countersigns the new key
    #[arg(long, value_name = "FILE")]
    administrator_key: Option<PathBuf>,
}

pub(super) fn rekey(settings: &AuditSettings, arguments: &Arguments) -> CommandResult {
    let NewLogKey { key, administrator } =
        lockhouse_audit::rekey(settings, arguments.administrator_key.as_deref())?;
    println!("the audit log continues with the key {}", key.to_hex());
    match administrator {
        Some(administrator) => println!(
            "countersigned; verify with: lockhouse audit verify --administrator {}",
            administrator.to_hex()
        ),
        None => {
            println!("WARNING: without --administrator-key, `lockhouse audit verify` reports this as a fault")
        }
    }
    Ok(ExitCode::SUCCESS)
}
