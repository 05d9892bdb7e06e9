//! `lockhouse audit tail`: shows the latest records of the audit log.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use lockhouse_audit::reader::{LocatedRecord, ReadError};
use lockhouse_audit::{NewRecords, SegmentFollower, SegmentName, segments};

use super::CommandResult;
use super::query::print_record;
use crate::cli::output;

const POLL_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// Keep printing new records until Ctrl-C
    #[arg(short, long)]
    follow: bool,
    /// How many of the latest records to show first; at most about 100 from each Lockhouse process
    #[arg(short = 'n', long, default_value_t = 20, value_name = "RECORDS")]
    lines: usize,
    /// Print the records as JSON, as they are stored, with names in place of their ids
    #[arg(long)]
    json: bool,
}

pub(super) async fn tail(directory: &Path, arguments: &Arguments) -> CommandResult {
    let mut followers = BTreeMap::new();
    let latest = latest(directory, arguments.lines, &mut followers)?;
    if latest.is_empty() && arguments.lines > 0 && !arguments.follow {
        super::filter_options::report_no_records();
    }
    print_all(&latest, arguments);
    while arguments.follow && !output::is_closed() {
        tokio::time::sleep(POLL_INTERVAL).await;
        let names = list_segments(directory)?;
        followers.retain(|name, _| names.contains(name));
        let mut news = Vec::new();
        for name in names {
            let follower = followers.entry(name.clone()).or_insert_with(|| SegmentFollower::at_start(name));
            let NewRecords { found, warning } = follower.next(directory)?;
            if let Some(warning) = warning {
                eprintln!("lockhouse: WARNING: {warning}");
            }
            news.extend(found);
        }
        news.sort_by(|one: &LocatedRecord, other| one.record.time.cmp(&other.record.time));
        print_all(&news, arguments);
    }
    Ok(ExitCode::SUCCESS)
}

/// Lists the segments (files) of the audit log. There are none if no audit log exists yet.
fn list_segments(directory: &Path) -> Result<Vec<SegmentName>, ReadError> {
    match segments(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        names => names.map_err(|source| ReadError { path: directory.to_owned(), source }),
    }
}

/// Returns the latest `count` audit records that are not bookkeeping of the log itself (`chain` records). Fills
/// `followers` with one reader for each segment (file) of the log. Each reader continues after the records that were
/// read here.
fn latest(
    directory: &Path,
    count: usize,
    followers: &mut BTreeMap<SegmentName, SegmentFollower>,
) -> Result<Vec<LocatedRecord>, ReadError> {
    let mut latest: Vec<LocatedRecord> = Vec::new();
    for name in list_segments(directory)?.into_iter().rev() {
        let mut follower = SegmentFollower::near_end(directory, name.clone());
        let NewRecords { found, .. } = follower.next(directory)?;
        latest.extend(
            found.into_iter().filter(|found| super::record_line::format_record(&found.record).is_some()),
        );
        latest.sort_by(|one, other| other.record.time.cmp(&one.record.time));
        latest.truncate(count);
        followers.insert(name, follower);
    }
    latest.reverse();
    Ok(latest)
}

fn print_all(found: &[LocatedRecord], arguments: &Arguments) {
    for found in found {
        let _ = print_record(found, arguments.json);
    }
}
