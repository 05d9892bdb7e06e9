//! `lockhouse audit tail`

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use lockhouse_audit::read::{Found, ReadError};
use lockhouse_audit::{Follower, News, SegmentName, segments};

use super::Done;
use super::query::print;
use crate::cli::output;

const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(200);

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// Go on with what is written from now on
    #[arg(short, long)]
    follow: bool,
    /// How many records to begin with; at most about 100 of one process
    #[arg(short = 'n', long, default_value_t = 20, value_name = "RECORDS")]
    lines: usize,
    /// Print the records as they are written
    #[arg(long)]
    json: bool,
}

pub(super) async fn tail(directory: &Path, arguments: &Arguments) -> Done {
    let mut followers = BTreeMap::new();
    let latest = latest(directory, arguments.lines, &mut followers)?;
    if latest.is_empty() && arguments.lines > 0 && !arguments.follow {
        super::wanted::no_records();
    }
    print_all(&latest, arguments);
    while arguments.follow && !output::unread() {
        tokio::time::sleep(LOOK_AGAIN_AFTER).await;
        let names = segments_of(directory)?;
        followers.retain(|name, _| names.contains(name));
        let mut news = Vec::new();
        for name in names {
            let follower = followers.entry(name.clone()).or_insert_with(|| Follower::at_start(name));
            let News { found, disturbed } = follower.next(directory)?;
            if let Some(disturbed) = disturbed {
                eprintln!("lockhouse: WARNING: {disturbed}");
            }
            news.extend(found);
        }
        news.sort_by(|one: &Found, other| one.record.time.cmp(&other.record.time));
        print_all(&news, arguments);
    }
    Ok(ExitCode::SUCCESS)
}

/// None where nothing was recorded yet.
fn segments_of(directory: &Path) -> Result<Vec<SegmentName>, ReadError> {
    match segments(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        names => names.map_err(|source| ReadError { path: directory.to_owned(), source }),
    }
}

/// The latest records, and a follower behind the end of each segment.
fn latest(
    directory: &Path,
    count: usize,
    followers: &mut BTreeMap<SegmentName, Follower>,
) -> Result<Vec<Found>, ReadError> {
    let mut latest: Vec<Found> = Vec::new();
    for name in segments_of(directory)?.into_iter().rev() {
        let mut follower = Follower::near_end(directory, name.clone());
        let News { found, .. } = follower.next(directory)?;
        latest.extend(found.into_iter().filter(|found| super::row::row(&found.record).is_some()));
        latest.sort_by(|one, other| other.record.time.cmp(&one.record.time));
        latest.truncate(count);
        followers.insert(name, follower);
    }
    latest.reverse();
    Ok(latest)
}

fn print_all(found: &[Found], arguments: &Arguments) {
    for found in found {
        let _ = print(found, arguments.json);
    }
}
