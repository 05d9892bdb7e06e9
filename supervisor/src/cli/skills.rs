//! `lockhouse skills`

mod approve;
mod test;

use std::path::PathBuf;
use std::process::ExitCode;

use lockhouse_gate::skills::{Entry, Name, Origin, Skill, Skills};
use serde_json::{Value, json};

use super::consent::Consent;
use super::terminal::{for_stdout, harmless};
use super::{UNAVAILABLE, USAGE, complain, complain_config, table};
use crate::config::{self, Files};

/// What to do, and with whose.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Those that this AI client has saved over HTTP, as `skills list` shows its name
    #[arg(long, global = true, value_name = "NAME")]
    client: Option<String>,
}

/// What to do with saved skills.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Every skill, its state and where it comes from
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// One skill with its code
    Show {
        /// As code or its folder writes it
        name: String,
        /// An older version
        #[arg(long)]
        version: Option<u32>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Run the tests that were saved with skills, as any program runs
    Test(test::Arguments),
    /// Look at a draft, and let code import it
    Approve {
        /// As code or its folder writes it
        name: String,
        #[command(flatten)]
        consent: Consent,
    },
    /// Remove a skill with all of its versions, and its draft
    Remove {
        /// As code or its folder writes it
        name: String,
        #[command(flatten)]
        consent: Consent,
    },
    /// Write a skill as a folder in the Agent Skills format, for others to use
    Export {
        /// As code or its folder writes it
        name: String,
        /// Where the folder goes
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// An older version
        #[arg(long)]
        version: Option<u32>,
    },
}

/// Does it.
pub(super) async fn skills(files: &Files, Arguments { command, client }: Arguments) -> ExitCode {
    let settings = match config::load_skill_settings(files) {
        Ok(settings) => settings,
        Err(error) => return complain_config(&error),
    };
    if !settings.enabled {
        eprintln!(
            "lockhouse: skills are turned off in the configuration: code can neither import nor save any"
        );
    }
    let all = Skills::new(&settings);
    let skills = all.of(client.as_deref());
    let done = match command {
        Command::List { json } => {
            let clients = if client.is_none() { all.clients() } else { Vec::new() };
            list(&skills, &clients, json);
            Ok(ExitCode::SUCCESS)
        }
        Command::Show { name, version, json } => show(&skills, &name, version, json),
        Command::Test(arguments) => test::test(files, &skills, &arguments).await,
        Command::Approve { name, consent } => approve::approve(&skills, &name, consent),
        Command::Remove { name, consent } => remove(&skills, &name, consent),
        Command::Export { name, out, version } => export(&skills, &name, &out, version),
    };
    done.unwrap_or_else(|status| status)
}

/// Those of whoever runs Lockhouse, or of the client that was named; and after the former those of every client.
fn list(skills: &Skills, clients: &[String], as_json: bool) {
    let mut entries: Vec<(Option<&str>, Entry)> = Vec::new();
    entries.extend(skills.entries().into_iter().map(|entry| (None, entry)));
    for client in clients {
        let own = skills.of(Some(client)).entries().into_iter();
        let own = own.filter(|entry| !matches!(entry.origin, Origin::Shared(_)));
        entries.extend(own.map(|entry| (Some(client.as_str()), entry)));
    }
    if as_json {
        let row = |(client, entry): &(Option<&str>, Entry)| {
            let mut row = to_json(entry);
            if let Some(client) = client {
                row["client"] = (*client).into();
            }
            row
        };
        let rows: Value = entries.iter().map(row).collect();
        println!("{}", for_stdout(&format!("{rows:#}")));
        return;
    }
    if entries.is_empty() {
        eprintln!("lockhouse: no skill is saved; code saves one with skills.save");
        return;
    }
    let row = |(client, entry): &(Option<&str>, Entry)| {
        let (version, language, told) = match &entry.skill {
            Ok(skill) => (skill.version.to_string(), skill.language.as_str(), skill.description.clone()),
            Err(why) => ("-".to_owned(), "-", why.to_string()),
        };
        vec![
            entry.folder.clone(),
            version,
            language.to_owned(),
            state(entry).to_owned(),
            client.map_or_else(|| from(&entry.origin), |client| format!("client {}", harmless(client))),
            told,
        ]
    };
    let rows: Vec<Vec<String>> = entries.iter().map(row).collect();
    println!("{}", table::render(&["name", "version", "language", "state", "from", "description"], &rows));
}

/// Whether code can import it, in a word.
fn state(entry: &Entry) -> &'static str {
    match (&entry.skill, &entry.origin) {
        (Err(_), _) => "not importable",
        (Ok(_), Origin::Draft) => "draft",
        (Ok(_), _) if entry.hidden => "hidden by another",
        (Ok(_), _) => "ready",
    }
}

fn from(origin: &Origin) -> String {
    match origin {
        Origin::Own | Origin::Draft => "own".to_owned(),
        Origin::Shared(directory) => directory.display().to_string(),
    }
}

fn to_json(entry: &Entry) -> Value {
    let mut row = match &entry.skill {
        Ok(skill) => {
            let mut row = skill.summary();
            row["tests"] = skill.tests.is_some().into();
            row
        }
        Err(why) => json!({"name": entry.folder, "reason": why.to_string()}),
    };
    row["state"] = state(entry).into();
    row["from"] = from(&entry.origin).into();
    row
}

fn named(name: &str) -> Result<Name, ExitCode> {
    Name::of(name).map_err(|wrong| {
        eprintln!("lockhouse: {}", harmless(&wrong.to_string()));
        ExitCode::from(USAGE)
    })
}

/// The skill of that name; where none can be imported, its draft.
fn found(skills: &Skills, name: &str, version: Option<u32>) -> Result<(Skill, Origin), ExitCode> {
    let name = named(name)?;
    if let Some(version) = version {
        let older = skills.version(&name, version).map_err(|_| {
            let kept: Vec<String> = skills.older(&name).iter().map(ToString::to_string).collect();
            let kept = if kept.is_empty() { "none".to_owned() } else { kept.join(", ") };
            eprintln!(
                "lockhouse: there is no version {version} of {name}; older versions that are kept: {kept}"
            );
            ExitCode::from(USAGE)
        })?;
        return Ok((older, Origin::Own));
    }
    skills.load(&name).or_else(|absent| match skills.draft(&name) {
        Ok(draft) => Ok((draft, Origin::Draft)),
        Err(_) => Err(complain(&absent, USAGE)),
    })
}

fn show(skills: &Skills, name: &str, version: Option<u32>, as_json: bool) -> Result<ExitCode, ExitCode> {
    let (skill, origin) = found(skills, name, version)?;
    let entry = Entry { folder: skill.name.to_string(), origin, skill: Ok(skill.clone()), hidden: false };
    let older = skills.older(&skill.name);
    if as_json {
        let mut row = to_json(&entry);
        row["code"] = skill.code.into();
        row["tests"] = skill.tests.into();
        row["older_versions"] = json!(older);
        println!("{}", for_stdout(&format!("{row:#}")));
        return Ok(ExitCode::SUCCESS);
    }
    let kept: Vec<String> = older.iter().map(ToString::to_string).collect();
    let lines = [
        ("name", skill.name.to_string()),
        ("version", skill.version.to_string()),
        ("older", kept.join(", ")),
        ("language", skill.language.as_str().to_owned()),
        ("state", state(&entry).to_owned()),
        ("from", from(&entry.origin)),
        ("tags", skill.tags.join(", ")),
        ("description", skill.description.clone()),
        ("import", skill.import()),
    ];
    for (what, told) in lines.iter().filter(|(_, told)| !told.is_empty()) {
        println!("{what:12} {}", for_stdout(told));
    }
    println!("\n{}", for_stdout(skill.code.trim_end()));
    if let Some(tests) = &skill.tests {
        println!("\ntests:\n\n{}", for_stdout(tests.trim_end()));
    }
    if entry.origin != Origin::Draft && skills.draft(&skill.name).is_ok() {
        let name = &skill.name;
        eprintln!(
            "lockhouse: a draft of {name} waits as well; look at it with `lockhouse skills approve {name}`"
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn remove(skills: &Skills, name: &str, consent: Consent) -> Result<ExitCode, ExitCode> {
    let name = named(name)?;
    let is_own = |entry: &Entry| entry.folder == name.as_str() && !matches!(entry.origin, Origin::Shared(_));
    if !skills.entries().iter().any(is_own) {
        match skills.load(&name) {
            Ok((_, origin)) => eprintln!(
                "lockhouse: {name} is shared from {}, which Lockhouse does not write to: remove it there",
                from(&origin)
            ),
            Err(absent) => eprintln!("lockhouse: {absent}"),
        }
        return Err(ExitCode::from(USAGE));
    }
    if !consent.given(&format!("Remove the skill {name} with all of its versions?")) {
        return Ok(ExitCode::SUCCESS);
    }
    skills.remove(&name).map_err(|error| complain(&error, UNAVAILABLE))?;
    println!("{name} is removed");
    if let Ok((_, Origin::Shared(directory))) = skills.load(&name) {
        println!("code that imports {name} now gets the one that is shared from {}", directory.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn export(
    skills: &Skills,
    name: &str,
    out: &std::path::Path,
    version: Option<u32>,
) -> Result<ExitCode, ExitCode> {
    let (skill, origin) = found(skills, name, version)?;
    if origin == Origin::Draft {
        eprintln!(
            "lockhouse: {} is a draft; approve it first: lockhouse skills approve {}",
            skill.name, skill.name
        );
        return Err(ExitCode::from(USAGE));
    }
    match Skills::export(&skill, out) {
        Ok(path) => {
            println!("{}", path.display());
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            eprintln!("lockhouse: {} is not written: {error}", out.join(skill.name.as_str()).display());
            Err(ExitCode::from(USAGE))
        }
    }
}
