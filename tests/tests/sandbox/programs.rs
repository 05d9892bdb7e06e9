//! The programs of `tests/hostile`: each is met with the outcome that its header states, and leaves no trace.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use futures_util::{StreamExt, stream};
use lockhouse_tests::{Attack, Control, Finished, Lockhouse, Outcome, Session, Table, ensure, equal};
use serde_json::{Value, json};

use crate::world::{VARIABLE, World, open_to_all};

/// What one program may use if its header says nothing.
const LIMITS: [&str; 2] = ["timeout_seconds = 20", "memory_mib = 128"];
/// Programs that use up nothing but time run so many at a time.
const AT_ONCE: usize = 8;
/// So many where a program has one thread and starts nothing: the memory that it uses up is its own.
const AT_ONCE_IN_TYPESCRIPT: usize = 2;
/// One tool is not permitted, for those who try to call it past the policy.
const POLICY: &str = "version = 1\n[servers.fixture]\nallow = [\"*\"]\ndeny = [\"delete_everything\"]\n";
/// Nothing of what the seal refuses has other words.
const REFUSED: &str = "Lockhouse sandbox";

#[tokio::test]
async fn attacks_in_python_come_to_what_their_header_says() {
    // What the controls in Python reach shows that the targets are there, and that a trace of them is seen.
    attack("python", 75, &["TCP", "UDP", "abstract socket", "directory", "unix socket"]).await;
}

#[tokio::test]
async fn attacks_in_typescript_come_to_what_their_header_says() {
    attack("typescript", 40, &[]).await;
}

async fn attack(language: &str, at_least: usize, controls_reach: &[&str]) {
    let attacks = Attack::all(language);
    let mut table = Table::new(&format!("{} attacks in {language}", attacks.len()));
    table.row(format!("{at_least} programs or more"), ensure(attacks.len() >= at_least, attacks.len()));
    let mut reached = BTreeSet::new();
    // Programs that need the same server share it.
    let mut servers: BTreeMap<_, Vec<Attack>> = BTreeMap::new();
    for attack in attacks {
        servers.entry((attack.limits.clone(), !attack.preload.is_empty())).or_default().push(attack);
    }
    for ((limits, _), attacks) in servers {
        let preload: BTreeSet<String> = attacks.iter().flat_map(|it| it.preload.clone()).collect();
        let at_once = match language {
            _ if attacks.iter().all(Attack::is_harmless) => AT_ONCE,
            "typescript" => AT_ONCE_IN_TYPESCRIPT,
            _ => 1,
        };
        let site = Site::new(language, &limits, &preload);
        let session = site.serve().await;
        let tried = stream::iter(attacks).map(|attack| site.try_one(&session, attack));
        let tried: Vec<Tried> = tried.buffered(at_once).collect().await;
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

/// What came of one program.
struct Tried {
    rows: Vec<(String, Result<(), String>)>,
    control_reached: BTreeSet<&'static str>,
}

/// A server and what stands around it.
struct Site {
    language: String,
    lockhouse: Lockhouse,
    worlds: tempfile::TempDir,
    secret: String,
}

impl Site {
    fn new(language: &str, limits: &[String], preload: &BTreeSet<String>) -> Self {
        let keys = limits.iter().map(String::as_str);
        let named: Vec<&str> = limits.iter().filter_map(|limit| limit.split(' ').next()).collect();
        let rest = LIMITS.into_iter().filter(|limit| !named.iter().any(|key| limit.starts_with(key)));
        let limits: Vec<&str> = keys.chain(rest).collect();
        let preload = json!(preload);
        let config = format!("[limits]\n{}\n[python]\npreload = {preload}\n", limits.join("\n"));
        let lockhouse = Lockhouse::new().server("fixture", &[]).policy(POLICY).config(&config);
        // Beside the configuration, which is not used where others can write.
        let worlds = tempfile::Builder::new().prefix("lockhouse-worlds-").tempdir().unwrap();
        open_to_all(worlds.path());
        // No program may know it, and none can guess it.
        let random = std::fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap();
        let secret = format!("lockhouse-canary-{}", random.trim().replace('-', ""));
        Self { language: language.to_owned(), lockhouse, worlds, secret }
    }

    async fn serve(&self) -> Session {
        let mut command = self.lockhouse.command(&["serve"]);
        command.env(VARIABLE, &self.secret);
        Session::connect(command, Session::latest()).await
    }

    fn world(&self, name: &str) -> World {
        World::new(self.worlds.path().join(name), &self.secret)
    }

    /// The program inside, inside once more with its error caught, and outside.
    async fn try_one(&self, session: &Session, attack: Attack) -> Tried {
        let world = self.world(&attack.name);
        let program = world.filled(&attack.source);
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
        Tried { rows, control_reached }
    }

    async fn inside(
        &self,
        session: &Session,
        program: &str,
        fits: impl Fn(&Value) -> bool,
    ) -> Result<(), String> {
        let answer = session.run_code(&self.language, program).await;
        let text = answer.to_string();
        let shown: String = text.chars().take(600).collect();
        ensure(fits(&answer), &shown)?;
        ensure(!text.contains(&self.secret), format!("it knows the secret: {shown}"))?;
        let next = session.run_code(&self.language, "1 + 1").await;
        ensure(next["value"] == 2, format!("the next program: {next}"))
    }

    /// The same program with whatever it raises caught, where the seal refuses something in words: those are errors
    /// like any other, after which a program can go on.
    fn catching(&self, program: &str, outcomes: &[Outcome]) -> Option<String> {
        let [Outcome::Failure { statuses, words }] = outcomes else { return None };
        if *statuses != ["error"] || !words.contains(REFUSED) {
            return None;
        }
        match self.language.as_str() {
            // JSON's escapes are Python's.
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

    /// The program as anybody would run it, in a world of its own, which it may change.
    async fn outside(&self, attack: &Attack, world: &World) -> Result<(), String> {
        let program = world.filled(&attack.source);
        let (interpreter, options, ending): (_, &[&str], _) = match self.language.as_str() {
            "python" => ("/usr/bin/python3", &["-I", "-S"], "py"),
            _ if program.contains("require(") => ("node", &[], "cjs"),
            _ => ("node", &[], "mjs"),
        };
        let file = self.lockhouse.file(&format!("programs/{}.{ending}", attack.name), program);
        let mut command = Command::new(interpreter);
        command.args(options).arg(file).current_dir(world.directory()).env(VARIABLE, &self.secret);
        let running = tokio::task::spawn_blocking(move || Finished::of(&mut command, b""));
        let finished = running.await.unwrap();
        ensure(finished.status == Some(0), finished)
    }

    /// What holds for all programs of this server together.
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
