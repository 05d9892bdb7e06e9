//! `lockhouse sessions`: what AI clients keep between runs, in every Lockhouse of this user.

use std::process::ExitCode;

use super::{USAGE, orders, table};
use crate::control::{Order, Told, VERSION};
use crate::sessions::{Listed, SessionName};

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
    for (pid, told) in orders::ask_all(&Order::ListSessions(VERSION)).await {
        if let Told::Sessions(listed) = told {
            sessions.extend(listed.into_iter().map(|session| (pid, session)));
        }
    }
    if as_json {
        println!("{:#}", orders::to_json(&sessions));
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
    for (pid, told) in orders::ask_all(&order).await {
        if let Told::Ended(ended) = told {
            count += orders::tell_ended(pid, &ended);
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
