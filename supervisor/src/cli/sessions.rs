//! `lockhouse sessions`: what AI clients keep between runs, in every Lockhouse of this user.

use std::process::ExitCode;

use lockhouse_engine::control::{Order, Told, VERSION};
use lockhouse_engine::sessions::{Listed, SessionName};
use lockhouse_policies::printable;

use super::orders::{self, Meant, meant, meant_exactly};
use super::{USAGE, table};

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
        /// The id or the name of the session, or the beginning of the name; the id where several have the name
        #[arg(required_unless_present = "all")]
        session: Option<String>,
        /// All of them
        #[arg(long, conflicts_with = "session")]
        all: bool,
    },
}

/// A session, and the process that has it.
type Of = (u32, Listed);

pub(super) async fn sessions(command: Command) -> ExitCode {
    match command {
        Command::List { json } => list(json).await,
        Command::End { session: Some(session), .. } => end(&session).await,
        Command::End { session: None, .. } => end_all().await,
    }
}

async fn open() -> Vec<Of> {
    let mut sessions = Vec::new();
    for (pid, told) in orders::ask_all(&Order::ListSessions(VERSION)).await {
        if let Told::Sessions(listed) = told {
            sessions.extend(listed.into_iter().map(|session| (pid, session)));
        }
    }
    sessions
}

async fn list(as_json: bool) -> ExitCode {
    let sessions = open().await;
    if as_json {
        println!("{:#}", orders::to_json(&sessions));
    } else if sessions.is_empty() {
        println!("No session is open.");
    } else {
        println!("{}", shown(&sessions));
    }
    ExitCode::SUCCESS
}

fn shown(sessions: &[Of]) -> String {
    let row = |of: &Of| {
        let (pid, Listed { name, owner, language, state, runs, unused_s, age_s, .. }) = of;
        let seconds = |seconds: &u64| format!("{seconds} s");
        vec![
            id(of),
            printable(name),
            printable(owner),
            printable(language),
            printable(state),
            runs.to_string(),
            seconds(unused_s),
            seconds(age_s),
            pid.to_string(),
        ]
    };
    let head = ["id", "session", "owner", "language", "state", "runs", "unused", "age", "lockhouse"];
    table::render(&head, &sessions.iter().map(row).collect::<Vec<_>>())
}

/// What stands for one session among those of all processes.
fn id((pid, session): &Of) -> String {
    format!("{pid}/{}", session.id)
}

async fn end(wanted: &str) -> ExitCode {
    // An id has a character that no name has.
    let is_id = wanted.contains('/');
    if !is_id && let Err(error) = SessionName::new(wanted) {
        eprintln!("lockhouse: {error}");
        return ExitCode::from(USAGE);
    }
    let open = open().await;
    let meant = match is_id {
        true => meant_exactly(&open, wanted, id),
        false => meant(&open, wanted, |(_, session)| session.name.clone()),
    };
    let (pid, session) = match meant {
        Meant::One(one) => one,
        Meant::None => {
            eprintln!(
                "lockhouse: no session {} is open; `lockhouse sessions list` shows those that are",
                printable(wanted)
            );
            return ExitCode::FAILURE;
        }
        Meant::Several(several) => {
            eprintln!("lockhouse: several sessions may be meant, and none was ended; give the id of one:");
            eprintln!("{}", shown(&several));
            return ExitCode::FAILURE;
        }
    };
    match orders::ask_one(pid, &Order::EndSessionWithId(session.id)).await {
        Some(Told::Ended(ended)) if !ended.is_empty() => {
            orders::tell_ended(pid, &ended);
            ExitCode::SUCCESS
        }
        Some(Told::Ended(_)) => {
            eprintln!("lockhouse: the session {} has ended meanwhile", printable(&session.name));
            ExitCode::FAILURE
        }
        _ => {
            eprintln!(
                "lockhouse: the process {pid}, which has the session, did not end it: it is of another version, or busy"
            );
            ExitCode::FAILURE
        }
    }
}

async fn end_all() -> ExitCode {
    for (pid, told) in orders::ask_all(&Order::EndSessions(VERSION)).await {
        if let Told::Ended(ended) = told {
            orders::tell_ended(pid, &ended);
        }
    }
    ExitCode::SUCCESS
}
