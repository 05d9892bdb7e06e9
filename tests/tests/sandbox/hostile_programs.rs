//! Runs the hostile programs in `tests/hostile` in the sandbox. Each must have the outcome that its header states, and
//! must not reach any of its targets.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use futures_util::{StreamExt, stream};
use lockhouse_tests::{Attack, CommandOutput, Control, Lockhouse, Outcome, Session, Table, ensure, equal};
use serde_json::{Value, json};

use crate::packages::environments;
use crate::packages::libraries::wait_until_loaded;
use crate::sandbox::attack_targets::{AttackTargets, SECRET_VARIABLE, make_world_writable};

/// The resource limits of a hostile program. Those that its header sets apply instead.
const LIMITS: [&str; 2] = ["timeout_seconds = 20", "memory_mib = 128"];
/// The packages of the workers, for attacks in Python with packages: those with the most compiled code.
const PACKAGES: [&str; 5] = ["numpy", "pandas", "matplotlib", "pyarrow", "lxml"];
/// The number of hostile programs that run at the same time if none of them exhausts memory or another resource.
const CONCURRENT: usize = 8;
/// The number of hostile TypeScript programs that run at the same time if some of them exhaust resources. It is more
/// than one because each program has one thread and exhausts only its own memory.
const CONCURRENT_TYPESCRIPT: usize = 2;
/// A policy that denies one tool, for hostile programs that try to call it anyway.
const POLICY: &str = "version = 1\n[servers.fixture]\nallow = [\"*\"]\ndeny = [\"delete_everything\"]\n";
/// A text that is part of every message by which the sandbox refuses an action.
const REFUSED: &str = "Lockhouse sandbox";

#[tokio::test]
async fn attacks_in_python_have_the_outcome_of_their_header() {
    // The controls in Python reach these targets, which shows that the targets exist and that traces are detected.
    attack("python", 75, &["TCP", "UDP", "abstract socket", "directory", "unix socket"], None).await;
}

#[tokio::test]
async fn attacks_in_python_with_packages_have_the_same_outcome() {
    let Some(environment) = environments::of_pypi() else { return };
    attack("python", 75, &["TCP", "UDP", "abstract socket", "directory", "unix socket"], Some(&environment))
        .await;
}

#[tokio::test]
async fn attacks_in_typescript_have_the_outcome_of_their_header() {
    attack("typescript", 40, &[], None).await;
}

/// Runs all attacks in a language; in Python, in workers with the packages of `environment` if it is given.
async fn attack(language: &str, at_least: usize, controls_reach: &[&str], environment: Option<&Path>) {
    let mut attacks = Attack::all(language);
    if environment.is_some() {
        attacks = attacks.into_iter().map(Attack::with_packages).collect();
    }
    let mut table = Table::new(&format!("{} attacks in {language}", attacks.len()));
    table.row(format!("{at_least} programs or more"), ensure(attacks.len() >= at_least, attacks.len()));
    let mut reached = BTreeSet::new();
    // Programs with equal server configurations share one server.
    let mut servers: BTreeMap<_, Vec<Attack>> = BTreeMap::new();
    for attack in attacks {
        servers.entry((attack.limits.clone(), !attack.preload.is_empty())).or_default().push(attack);
    }
    for ((limits, _), attacks) in servers {
        let preload: BTreeSet<String> = attacks.iter().flat_map(|it| it.preload.clone()).collect();
        let at_once = match language {
            _ if attacks.iter().all(Attack::is_harmless) => CONCURRENT,
            "typescript" => CONCURRENT_TYPESCRIPT,
            _ => 1,
        };
        let site = AttackServer::new(language, &limits, &preload, environment);
        let session = site.serve().await;
        if environment.is_some() {
            wait_until_loaded(&session).await;
        }
        let tried = stream::iter(attacks).map(|attack| site.run_attack(&session, attack));
        let tried: Vec<AttackResult> = tried.buffered(at_once).collect().await;
        for tried in tried {
            tried.rows.into_iter().for_each(|(name, outcome)| table.row(name, outcome));
            reached.extend(tried.control_reached);
        }
        site.close(session, &mut table, &format!("{limits:?} {preload:?}")).await;
    }
    let missing: Vec<_> = controls_reach.iter().filter(|what| !reached.contains(*what)).collect();
    table.row("the controls reach every kind of target", equal(missing, Vec::new()));
    table.finish();
}

/// The results of one hostile program: its rows for the test's table, and the targets that it reached in its control
/// run without the sandbox.
struct AttackResult {
    rows: Vec<(String, Result<(), String>)>,
    control_reached: BTreeSet<&'static str>,
}

/// A Lockhouse test fixture, and the directory in which each hostile program that runs in it has its targets.
struct AttackServer {
    language: String,
    lockhouse: Lockhouse,
    worlds: tempfile::TempDir,
    secret: String,
    /// A line that is added to each program: a comment that selects the workers, or nothing.
    selection: &'static str,
}

impl AttackServer {
    fn new(
        language: &str,
        limits: &[String],
        preload: &BTreeSet<String>,
        environment: Option<&Path>,
    ) -> Self {
        let keys = limits.iter().map(String::as_str);
        let named: Vec<&str> = limits.iter().filter_map(|limit| limit.split(' ').next()).collect();
        let rest = LIMITS.into_iter().filter(|limit| !named.iter().any(|key| limit.starts_with(key)));
        let limits: Vec<&str> = keys.chain(rest).collect();
        let preload = json!(preload);
        let mut config = format!("[limits]\n{}\n[python]\npreload = {preload}\n", limits.join("\n"));
        if let Some(environment) = environment {
            config += &format!("environment = {environment:?}\npackages = {PACKAGES:?}\n");
        }
        let selection = if environment.is_some() { "\n# import numpy" } else { "" };
        let lockhouse = Lockhouse::new().server("fixture", &[]).policy(POLICY).config(&config);
        // Outside the configuration directory, which Lockhouse does not use if others can write to it, and outside of
        // /tmp, which programs have in memory.
        let worlds = tempfile::Builder::new().prefix("lockhouse-worlds-").tempdir_in("/var/tmp").unwrap();
        make_world_writable(worlds.path());
        // A random secret, which no program can know or guess.
        let random = std::fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap();
        let secret = format!("lockhouse-canary-{}", random.trim().replace('-', ""));
        Self { language: language.to_owned(), lockhouse, worlds, secret, selection }
    }

    async fn serve(&self) -> Session {
        let mut command = self.lockhouse.command(&["serve"]);
        command.env(SECRET_VARIABLE, &self.secret);
        Session::connect(command, Session::latest()).await
    }

    fn world(&self, name: &str) -> AttackTargets {
        AttackTargets::new(self.worlds.path().join(name), &self.secret)
    }

    /// Runs a hostile program in the sandbox, once more in the sandbox with its errors caught, and as a control outside
    /// the sandbox.
    async fn run_attack(&self, session: &Session, attack: Attack) -> AttackResult {
        let world = self.world(&attack.name);
        let program = world.fill_placeholders(&attack.source);
        let name = format!("{}: {}", attack.name, attack.what);
        let mut rows =
            vec![(name.clone(), self.inside(session, &program, |answer| attack.is_met_by(answer)).await)];
        if let Some(catching) = self.catching(&program, &attack.outcomes) {
            let is_caught = |answer: &Value| answer["status"] == "ok" && answer["value"] == "caught";
            rows.push((format!("{name}: caught"), self.inside(session, &catching, is_caught).await));
        }
        rows.push((format!("{name}: no trace"), equal(world.reached(), BTreeSet::new())));
        let mut control_reached = BTreeSet::new();
        match attack.control {
            Control::OutsideAsRoot if !is_root() => {
                println!("left out, since only root can: {name}: control")
            }
            Control::Outside | Control::OutsideAsRoot => {
                let world = self.world(&format!("{}-control", attack.name));
                rows.push((format!("{name}: control outside"), self.outside(&attack, &world).await));
                control_reached = world.reached();
            }
            Control::None => {}
        }
        AttackResult { rows, control_reached }
    }

    async fn inside(
        &self,
        session: &Session,
        program: &str,
        is_expected: impl Fn(&Value) -> bool,
    ) -> Result<(), String> {
        let answer = session.run_code(&self.language, &format!("{program}{}", self.selection)).await;
        let text = answer.to_string();
        let shown: String = text.chars().take(600).collect();
        ensure(is_expected(&answer), &shown)?;
        ensure(!text.contains(&self.secret), format!("it knows the secret: {shown}"))?;
        let next = session.run_code(&self.language, &format!("1 + 1{}", self.selection)).await;
        ensure(next["value"] == 2, format!("the next program: {next}"))
    }

    /// Returns the hostile program wrapped in code that catches its error. A program must be able to catch every error
    /// that the sandbox causes. Returns `None` if the program's expected outcome is not such an error, or if the
    /// program cannot be wrapped.
    fn catching(&self, program: &str, outcomes: &[Outcome]) -> Option<String> {
        let [Outcome::Failure { statuses, words }] = outcomes else { return None };
        if *statuses != ["error"] || !words.contains(REFUSED) {
            return None;
        }
        match self.language.as_str() {
            // JSON strings are valid Python literals.
            "python" => Some(format!(
                "it = ''\ntry: exec({}, {{'__name__': '__main__'}})\nexcept Exception: it = 'caught'\nit",
                json!(program)
            )),
            _ if program.lines().any(|line| line.starts_with("import ")) => None,
            _ => Some(format!(
                "let it = '';\ntry {{ await (async () => {{\n{program}\n}})(); }} catch {{ it = 'caught'; }}\nit"
            )),
        }
    }

    /// Runs the hostile program without a sandbox, as a control. The program may change the targets `world`, because no
    /// other run uses them.
    async fn outside(&self, attack: &Attack, world: &AttackTargets) -> Result<(), String> {
        let program = world.fill_placeholders(&attack.source);
        let (interpreter, options, ending): (_, &[&str], _) = match self.language.as_str() {
            "python" => ("/usr/bin/python3", &["-I", "-S"], "py"),
            _ if program.contains("require(") => ("node", &[], "cjs"),
            _ => ("node", &[], "mjs"),
        };
        let file = self.lockhouse.file(&format!("programs/{}.{ending}", attack.name), program);
        let mut command = Command::new(interpreter);
        command.args(options).arg(file).current_dir(world.directory()).env(SECRET_VARIABLE, &self.secret);
        let running = tokio::task::spawn_blocking(move || CommandOutput::run(&mut command, b""));
        let finished = running.await.unwrap();
        ensure(finished.status == Some(0), finished)
    }

    /// Stops the Lockhouse server and checks what all its hostile programs together must not have caused: a call of the
    /// denied tool, a panic, or the secret in the log. Adds the results to `table`; `row` begins their names.
    async fn close(&self, session: Session, table: &mut Table, row: &str) {
        let code = match self.language.as_str() {
            "python" => "from mcp_tools.fixture import count\ncount().get('delete_everything', 0)",
            _ => "(await fixture.count({})).delete_everything ?? 0",
        };
        let counted = session.run_code(&self.language, code).await;
        table
            .row(format!("{row}: the denied tool was never called"), ensure(counted["value"] == 0, &counted));
        let ended = session.close().await;
        let wrong = ended.stderr.contains(&self.secret) || ended.stderr.contains("panicked");
        table.row(
            format!("{row}: the server ends in order"),
            ensure(ended.status == Some(0) && !wrong, ended),
        );
    }
}

fn is_root() -> bool {
    nix::unistd::Uid::effective().is_root()
}
