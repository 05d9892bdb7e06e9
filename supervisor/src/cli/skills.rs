//! `lockhouse skills`: lists, shows, tests, approves, removes and exports the skills that code has saved.

mod approve;
mod recorded_change;
mod run;
mod test;

use std::path::PathBuf;
use std::process::ExitCode;

use lockhouse_stores::skills::{Name, Origin, Skill, SkillEntry, Skills};
use serde_json::{Value, json};

use self::recorded_change::SkillChange;
use super::confirmation::Confirmation;
use super::terminal::{for_stdout, sanitize, sanitize_lines};
use super::{USAGE, print_config_error, print_error, table};
use lockhouse_config::{self as config, Files};

/// Options of `lockhouse skills`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Use the skills that this AI client has saved over HTTP; `skills list` shows the names of AI clients
    #[arg(long, global = true, value_name = "NAME")]
    client: Option<String>,
}

/// Subcommands of `lockhouse skills`.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// List all skills with their state and origin
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one skill with its code
    Show {
        /// The name of the skill, in snake_case or as the name of its folder
        name: String,
        /// Use an older version
        #[arg(long)]
        version: Option<u32>,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Call a skill in a sandboxed worker, and print its result
    Run(run::Arguments),
    /// Run the tests of skills in a sandboxed worker
    Test(test::Arguments),
    /// Review a draft and approve it, so that code can import it
    Approve {
        /// The name of the skill, in snake_case or as the name of its folder
        name: String,
        #[command(flatten)]
        confirmation: Confirmation,
    },
    /// Remove a skill with all its versions and its draft
    Remove {
        /// The name of the skill, in snake_case or as the name of its folder
        name: String,
        #[command(flatten)]
        confirmation: Confirmation,
    },
    /// Export a skill as a folder in the Agent Skills format
    Export {
        /// The name of the skill, in snake_case or as the name of its folder
        name: String,
        /// The directory in which the skill's folder is created
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// Use an older version
        #[arg(long)]
        version: Option<u32>,
    },
}

/// Runs a subcommand of `lockhouse skills` and returns its exit status.
pub(super) async fn skills(files: &Files, Arguments { command, client }: Arguments) -> ExitCode {
    let settings = match config::load_skill_settings(files) {
        Ok(settings) => settings,
        Err(error) => return print_config_error(&error),
    };
    if !settings.enabled {
        eprintln!(
            "lockhouse: skills are disabled in the configuration: code can neither import nor save any"
        );
    }
    let all = Skills::new(&settings);
    let skills = all.for_client(client.as_deref());
    let result = match command {
        Command::List { json } => {
            let clients = if client.is_none() { all.clients() } else { Vec::new() };
            list(&skills, &clients, json);
            Ok(ExitCode::SUCCESS)
        }
        Command::Show { name, version, json } => show(&skills, &name, version, json),
        Command::Run(_) if client.is_some() => {
            eprintln!("lockhouse: `skills run` runs your own skills and shared ones, not those of --client");
            Err(ExitCode::from(USAGE))
        }
        Command::Run(arguments) => run::run(files, &skills, &arguments).await,
        Command::Test(arguments) => test::test(files, &skills, &arguments).await,
        Command::Approve { name, confirmation } => approve::approve(files, &skills, &name, confirmation),
        Command::Remove { name, confirmation } => remove(files, &skills, &name, confirmation),
        Command::Export { name, out, version } => export(&skills, &name, &out, version),
    };
    result.unwrap_or_else(|status| status)
}

/// Prints the skills (saved functions) in `skills`, including shared ones. Then prints the skills that each AI client
/// in `clients` has saved itself, without the shared ones.
fn list(skills: &Skills, clients: &[String], as_json: bool) {
    let mut entries: Vec<(Option<&str>, SkillEntry)> = Vec::new();
    entries.extend(skills.entries().into_iter().map(|entry| (None, entry)));
    for client in clients {
        let own = skills.for_client(Some(client)).entries().into_iter();
        let own = own.filter(|entry| !matches!(entry.origin, Origin::Shared(_)));
        entries.extend(own.map(|entry| (Some(client.as_str()), entry)));
    }
    if as_json {
        let row = |(client, entry): &(Option<&str>, SkillEntry)| {
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
    let row = |(client, entry): &(Option<&str>, SkillEntry)| {
        let (version, language, text) = match &entry.skill {
            Ok(skill) => (skill.version.to_string(), skill.language.as_str(), skill.description.clone()),
            Err(why) => ("-".to_owned(), "-", why.to_string()),
        };
        vec![
            entry.folder.clone(),
            version,
            language.to_owned(),
            state_name(entry).to_owned(),
            client
                .map_or_else(|| origin_text(&entry.origin), |client| format!("client {}", sanitize(client))),
            text,
        ]
    };
    let rows: Vec<Vec<String>> = entries.iter().map(row).collect();
    println!("{}", table::render(&["name", "version", "language", "state", "from", "description"], &rows));
}

/// Returns the state of a skill as text: whether code can import it, and if not, why.
fn state_name(entry: &SkillEntry) -> &'static str {
    match (&entry.skill, &entry.origin) {
        (Err(_), _) => "not importable",
        (Ok(_), Origin::Draft) => "draft",
        (Ok(_), _) if entry.hidden => "hidden by another",
        (Ok(_), _) => "ready",
    }
}

fn origin_text(origin: &Origin) -> String {
    match origin {
        Origin::Own | Origin::Draft => "own".to_owned(),
        Origin::Shared(directory) => directory.display().to_string(),
    }
}

fn to_json(entry: &SkillEntry) -> Value {
    let mut row = match &entry.skill {
        Ok(skill) => {
            let mut row = skill.summary();
            row["tests"] = skill.tests.is_some().into();
            row
        }
        Err(why) => json!({"name": entry.folder, "reason": why.to_string()}),
    };
    row["state"] = state_name(entry).into();
    row["from"] = origin_text(&entry.origin).into();
    row
}

fn parse_name(name: &str) -> Result<Name, ExitCode> {
    Name::parse(name).map_err(|wrong| {
        eprintln!("lockhouse: {}", sanitize_lines(&wrong.to_string()));
        ExitCode::from(USAGE)
    })
}

/// Loads a skill and returns it with its origin. With `version`, loads that older version; without it, the current
/// version, or the draft if there is no version that code can import.
fn load_skill(skills: &Skills, name: &str, version: Option<u32>) -> Result<(Skill, Origin), ExitCode> {
    let name = parse_name(name)?;
    if let Some(version) = version {
        let older = skills.version(&name, version).map_err(|_| {
            let kept: Vec<String> = skills.older_versions(&name).iter().map(ToString::to_string).collect();
            let kept = if kept.is_empty() { "none".to_owned() } else { kept.join(", ") };
            eprintln!("lockhouse: there is no version {version} of {name}; stored older versions: {kept}");
            ExitCode::from(USAGE)
        })?;
        return Ok((older, Origin::Own));
    }
    skills.load(&name).or_else(|absent| match skills.draft(&name) {
        Ok(draft) => Ok((draft, Origin::Draft)),
        Err(_) => Err(print_error(&absent, USAGE)),
    })
}

fn show(skills: &Skills, name: &str, version: Option<u32>, as_json: bool) -> Result<ExitCode, ExitCode> {
    let (skill, origin) = load_skill(skills, name, version)?;
    let entry =
        SkillEntry { folder: skill.name.to_string(), origin, skill: Ok(skill.clone()), hidden: false };
    let older = skills.older_versions(&skill.name);
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
        ("state", state_name(&entry).to_owned()),
        ("from", origin_text(&entry.origin)),
        ("tags", skill.tags.join(", ")),
        ("description", skill.description.clone()),
        ("import", skill.import_statement()),
    ];
    for (what, text) in lines.iter().filter(|(_, text)| !text.is_empty()) {
        println!("{what:12} {}", for_stdout(text));
    }
    println!("\n{}", for_stdout(skill.code.trim_end()));
    if let Some(tests) = &skill.tests {
        println!("\ntests:\n\n{}", for_stdout(tests.trim_end()));
    }
    if entry.origin != Origin::Draft && skills.draft(&skill.name).is_ok() {
        let name = &skill.name;
        eprintln!("lockhouse: {name} also has a draft; review it with `lockhouse skills approve {name}`");
    }
    Ok(ExitCode::SUCCESS)
}

fn remove(
    files: &Files,
    skills: &Skills,
    name: &str,
    confirmation: Confirmation,
) -> Result<ExitCode, ExitCode> {
    let name = parse_name(name)?;
    let is_own =
        |entry: &SkillEntry| entry.folder == name.as_str() && !matches!(entry.origin, Origin::Shared(_));
    if !skills.entries().iter().any(is_own) {
        match skills.load(&name) {
            Ok((_, origin)) => eprintln!(
                "lockhouse: {name} is shared from {}, which Lockhouse does not modify: remove it there",
                origin_text(&origin)
            ),
            Err(absent) => eprintln!("lockhouse: {absent}"),
        }
        return Err(ExitCode::from(USAGE));
    }
    if !confirmation.confirm(&format!("Remove the skill {name} with all its versions?")) {
        return Ok(confirmation.unconfirmed());
    }
    let change = SkillChange { skills, name: &name, action: "remove", after: None };
    change.make(files, || skills.remove(&name))?;
    println!("removed {name}");
    if let Ok((_, Origin::Shared(directory))) = skills.load(&name) {
        println!("code that imports {name} now gets the skill that is shared from {}", directory.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn export(
    skills: &Skills,
    name: &str,
    out: &std::path::Path,
    version: Option<u32>,
) -> Result<ExitCode, ExitCode> {
    let (skill, origin) = load_skill(skills, name, version)?;
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
            eprintln!("lockhouse: cannot write {}: {error}", out.join(skill.name.as_str()).display());
            Err(ExitCode::from(USAGE))
        }
    }
}
