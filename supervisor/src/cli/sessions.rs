//! `lockhouse sessions`: what AI clients keep between runs, in every Lockhouse of this user.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use interprocess::local_socket::tokio::Stream;
use interprocess::local_socket::traits::tokio::Stream as _;
use interprocess::local_socket::{GenericFilePath, ToFsName};
use serde_json::json;
use tokio::io::BufReader;

use super::{USAGE, table};
use crate::control::{self, LINE_BYTES_MAX, Order, Told, VERSION, place, read_line, write_line};
use crate::sessions::{Listed, SessionName};

/// How long a Lockhouse may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// List the sessions that are open
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// End a session: its worker is killed, and its AI client is told at its next run
    #[command(arg_required_else_help = true)]
    End {
        /// The name of the session
        #[arg(required_unless_present = "all")]
        name: Option<String>,
        /// All of them
        #[arg(long, conflicts_with = "name")]
        all: bool,
    },
}

pub(super) async fn sessions(command: Command) -> ExitCode {
    match command {
        Command::List { json } => list(json).await,
        Command::End { name, .. } => end(name).await,
    }
}

async fn list(as_json: bool) -> ExitCode {
    let mut sessions: Vec<(u32, Listed)> = Vec::new();
    for (pid, told) in ask_all(&Order::ListSessions(VERSION)).await {
        if let Told::Sessions(listed) = told {
            sessions.extend(listed.into_iter().map(|session| (pid, session)));
        }
    }
    if as_json {
        let row = |(pid, session): &(u32, Listed)| {
            let mut row = serde_json::to_value(session).unwrap_or_default();
            row["pid"] = (*pid).into();
            row
        };
        println!("{:#}", json!(sessions.iter().map(row).collect::<Vec<_>>()));
    } else if sessions.is_empty() {
        println!("No session is open.");
    } else {
        let row = |(pid, session): &(u32, Listed)| {
            let Listed { name, language, state, runs, unused_s, age_s } = session;
            let seconds = |seconds: &u64| format!("{seconds} s");
            let (unused, age) = (seconds(unused_s), seconds(age_s));
            vec![
                name.clone(),
                language.clone(),
                state.clone(),
                runs.to_string(),
                unused,
                age,
                pid.to_string(),
            ]
        };
        let head = ["session", "language", "state", "runs", "unused", "age", "lockhouse"];
        println!("{}", table::render(&head, &sessions.iter().map(row).collect::<Vec<_>>()));
    }
    ExitCode::SUCCESS
}

async fn end(name: Option<String>) -> ExitCode {
    let order = match name.as_deref().map(SessionName::new) {
        None => Order::EndSessions(VERSION),
        Some(Ok(name)) => Order::EndSession(name.to_string()),
        Some(Err(error)) => {
            eprintln!("lockhouse: {error}");
            return ExitCode::from(USAGE);
        }
    };
    let mut count = 0;
    for (pid, told) in ask_all(&order).await {
        let Told::Ended(names) = told else { continue };
        for name in names {
            println!("{name}: ended (lockhouse {pid})");
            count += 1;
        }
    }
    match name {
        Some(name) if count == 0 => {
            eprintln!("lockhouse: no session {name} is open; `lockhouse sessions list` shows those that are");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Asks every Lockhouse of this user. One that does not answer has no sessions that could be told of.
async fn ask_all(order: &Order) -> Vec<(u32, Told)> {
    let mut answers = Vec::new();
    for (pid, path) in place::everywhere().iter().flat_map(|directory| place::sockets(directory)) {
        if let Ok(Some(told)) = tokio::time::timeout(PATIENCE, ask(&path, order)).await {
            answers.push((pid, told));
        }
    }
    answers.sort_by_key(|(pid, _)| *pid);
    answers
}

async fn ask(path: &Path, order: &Order) -> Option<Told> {
    let stream = Stream::connect(path.to_fs_name::<GenericFilePath>().ok()?).await.ok()?;
    if !control::is_trusted(&stream) {
        return None;
    }
    let (mut from, mut to) = (BufReader::new(&stream), &stream);
    write_line(&mut to, order).await.ok()?;
    let line = read_line(&mut from, LINE_BYTES_MAX).await.ok()??;
    serde_json::from_str(&line).ok()
}
