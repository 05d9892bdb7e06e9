//! `lockhouse cluster audit`: verifies the copies of the audit logs of all hosts.

use std::collections::BTreeSet;
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use lockhouse_audit::reader::{Filter, records};
use lockhouse_cluster::{AUDITOR, ArchivedLog, AuditArchive, HostName, LogId, StateAddress, StateConnection};
use serde_json::{Value, json};

use crate::cli::audit::verify::{VerifiedCopy, verify_copy};
use crate::cli::{UNAVAILABLE, print_error, table};

/// A fault counts if it is still there after this time. Hosts copy what is new every 3 s.
const SETTLE_TIME: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// A NATS server of the cluster; may be given several times
    #[arg(long, required = true, value_name = "tls://HOST:PORT")]
    nats: Vec<StateAddress>,
    /// The file with the seed of the auditor's NKEY, which `cluster account` has written
    #[arg(long, value_name = "FILE")]
    nkey: Option<PathBuf>,
    /// PEM file with the certificates that must have issued those of the NATS servers [default: those that the system trusts]
    #[arg(long, value_name = "FILE")]
    nats_ca: Option<PathBuf>,
    /// The folder into which the copies are written, which must not exist or be empty: HOST/LOG
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    /// Hosts of which there must be copies, beside those that are members now
    #[arg(value_name = "HOST")]
    hosts: Vec<HostName>,
}

/// The copy of one log.
struct Report {
    host: HostName,
    log: LogId,
    folder: PathBuf,
    verified: VerifiedCopy,
    /// The time of the last record. `None` if there is none.
    last: Option<String>,
}

pub(super) async fn audit(arguments: &Arguments) -> ExitCode {
    match verify(arguments).await {
        Ok(status) => status,
        Err(error) => print_error(error.as_ref(), UNAVAILABLE),
    }
}

async fn verify(arguments: &Arguments) -> Result<ExitCode, Box<dyn Error>> {
    if std::fs::read_dir(&arguments.out).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(format!("{} is not empty, and nothing was written", arguments.out.display()).into());
    }
    let nkey = arguments.nkey.as_ref().map(|path| read_seed(path)).transpose()?;
    let connection = StateConnection {
        name: AUDITOR.parse()?,
        servers: arguments.nats.clone(),
        nkey,
        authorities: arguments.nats_ca.clone(),
    };
    let (mut reports, mut members) = fetch(&connection, &arguments.out).await?;
    if reports.iter().any(|report| !report.verified.faults.is_empty()) {
        // A host may have copied only a part of what belongs together.
        tokio::time::sleep(SETTLE_TIME).await;
        std::fs::remove_dir_all(&arguments.out)?;
        (reports, members) = fetch(&connection, &arguments.out).await?;
    }
    let copied: BTreeSet<&HostName> = reports.iter().map(|report| &report.host).collect();
    let expected: BTreeSet<&HostName> = arguments.hosts.iter().chain(&members).collect();
    let missing: Vec<&HostName> = expected.difference(&copied).copied().collect();
    match arguments.json {
        true => println!("{:#}", to_json(&reports, &missing)),
        false => print(&reports, &missing),
    }
    let is_sound = missing.is_empty() && reports.iter().all(|report| report.verified.faults.is_empty());
    Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Reads and verifies all copies. Returns the hosts that are members now, too.
async fn fetch(
    connection: &StateConnection,
    out: &Path,
) -> Result<(Vec<Report>, Vec<HostName>), Box<dyn Error>> {
    let AuditArchive { logs, members } = AuditArchive::fetch(connection, out).await?;
    let reports = logs.into_iter().map(|(of, log)| report(of, log)).collect::<Result<_, _>>()?;
    Ok((reports, members))
}

fn read_seed(path: &Path) -> Result<String, Box<dyn Error>> {
    let seed = std::fs::read_to_string(path);
    let seed = seed.map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?;
    Ok(seed.trim().to_owned())
}

fn report((host, log): (HostName, LogId), copy: ArchivedLog) -> Result<Report, Box<dyn Error>> {
    let mut verified = verify_copy(&copy.folder)?;
    let broken: BTreeSet<&String> = copy.broken.iter().collect();
    verified.faults.extend(broken.iter().map(|file| format!("FAULT  {file}  a part of its copy is missing")));
    let last = records(&copy.folder, &Filter::default())?.filter_map(Result::ok).last();
    let last = last.map(|located| located.record.time);
    Ok(Report { host, log, folder: copy.folder, verified, last })
}

fn print(reports: &[Report], missing: &[&HostName]) {
    let row = |report: &Report| {
        let Report { host, log, verified, last, .. } = report;
        vec![
            host.to_string(),
            log.to_string(),
            verified.segments.to_string(),
            verified.records.to_string(),
            verified.unsigned.to_string(),
            last.clone().unwrap_or_default(),
            if verified.faults.is_empty() { "verified" } else { "MODIFIED" }.to_owned(),
        ]
    };
    let head = ["host", "log", "segments", "records", "unsigned", "last record", "state"];
    println!("{}", table::render(&head, &reports.iter().map(row).collect::<Vec<_>>()));
    for report in reports {
        for fault in &report.verified.faults {
            println!("{}: {fault}", report.folder.display());
        }
    }
    for host in missing {
        println!("{host}: there is no copy of its audit log");
    }
}

fn to_json(reports: &[Report], missing: &[&HostName]) -> Value {
    let logs = reports.iter().map(|report| {
        let Report { host, log, folder, verified, last } = report;
        json!({
            "host": host.as_str(), "log": log.to_string(), "folder": folder, "segments": verified.segments,
            "records": verified.records, "unsigned": verified.unsigned, "last": last, "faults": verified.faults,
        })
    });
    let missing: Vec<&str> = missing.iter().map(|host| host.as_str()).collect();
    json!({"logs": logs.collect::<Vec<_>>(), "missing": missing})
}
