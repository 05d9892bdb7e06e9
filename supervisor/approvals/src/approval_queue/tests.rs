use lockhouse_base::principal::{Principal, Validity};
use lockhouse_messages::{ApproverAnswer, ApproverDecision};
use lockhouse_policies::{ApprovalRequirement, Call, CallTarget, Policy, Source};
use lockhouse_protocol::{ServerName, ToolName};

use super::*;

fn ask() -> ApprovalQuestion {
    ApprovalQuestion {
        id: 0,
        digest: "d1".into(),
        execution: String::new(),
        client: None,
        seconds: 1.0,
        text: String::new(),
        scopes_text: String::new(),
        scopes: vec![Approval::Once, Approval::Execution],
        calls: Vec::new(),
        diff: None,
        presence: Presence::None,
        required: None,
        roles: Vec::new(),
    }
}

fn answer(id: u64, digest: &str, scope: Approval) -> ApproverAnswer {
    ApproverAnswer {
        id,
        digest: digest.into(),
        decision: ApproverDecision::Approve,
        scope,
        proof: None,
        break_glass: None,
        token: None,
    }
}

const LONG: Duration = Duration::from_secs(20);

#[tokio::test]
async fn the_first_valid_answer_counts_and_every_other_is_refused() {
    let queue = ApprovalQueue::default();
    assert!(!queue.has_approvers());
    let (mut first, second) = (
        queue.watch(WatcherKind::Socket(Approver::Owner(None)), WatcherRole::Approver),
        queue.watch(WatcherKind::Terminal, WatcherRole::Approver),
    );
    let asking = tokio::spawn({
        let queue = queue.clone();
        async move { queue.ask(ask(), Eligibility::default(), LONG).await }
    });
    let Some(ApprovalEvent::Ask(shown)) = first.next().await.as_deref().cloned() else {
        panic!("no question")
    };
    let id = shown.id;
    for (invalid_answer, error) in [
        (answer(id, "d2", Approval::Once), AnswerError::OtherDigest),
        (answer(id, "", Approval::Once), AnswerError::OtherDigest),
        (answer(id, "d1", Approval::Always), AnswerError::Scope),
        (answer(id + 7, "d1", Approval::Once), AnswerError::Unknown),
    ] {
        assert_eq!(first.answer(&invalid_answer, first.approver()), Err(error), "{invalid_answer:?}");
    }
    assert_eq!(second.answer(&answer(id, "d1", Approval::Execution), second.approver()), Ok(()));
    assert_eq!(first.answer(&answer(id, "d1", Approval::Once), first.approver()), Err(AnswerError::Answered));
    let TakenAnswer { outcome, channel, .. } = asking.await.expect("one").expect("an answer");
    assert_eq!(
        (outcome, channel),
        (PromptOutcome::Approved(Approval::Execution), AnswerChannel::Terminal(None))
    );
    assert_eq!(first.next().await.as_deref(), Some(&ApprovalEvent::Gone(id)));
    drop((first, second));
    assert!(!queue.has_approvers());
}

#[tokio::test]
async fn a_closed_question_accepts_no_answer() {
    let queue = ApprovalQueue::default();
    assert_eq!(
        queue.ask(ask(), Eligibility::default(), Duration::from_millis(1)).await.map(|taken| taken.outcome),
        None
    );
    let watcher = queue.watch(WatcherKind::Socket(Approver::Owner(None)), WatcherRole::Approver);
    assert_eq!(
        watcher.answer(&answer(1, "d1", Approval::Once), watcher.approver()),
        Err(AnswerError::Closed)
    );
    // A watcher who connects late receives the pending questions, and is notified when one is closed.
    let mut late = {
        let asking = queue.ask(ask(), Eligibility::default(), LONG);
        tokio::pin!(asking);
        assert!(futures_util::poll!(&mut asking).is_pending());
        queue.watch(WatcherKind::Socket(Approver::Owner(None)), WatcherRole::Approver)
    };
    assert!(matches!(late.next().await.as_deref(), Some(ApprovalEvent::Ask(_))));
    assert!(matches!(late.next().await.as_deref(), Some(ApprovalEvent::Gone(_))));
}

#[tokio::test]
async fn an_observer_sees_questions_and_is_no_approver() {
    let queue = ApprovalQueue::default();
    let mut observer = queue.watch(WatcherKind::Socket(Approver::Owner(None)), WatcherRole::Observer);
    assert!(!queue.has_approvers());
    let asking = queue.ask(ask(), Eligibility::default(), LONG);
    tokio::pin!(asking);
    assert!(futures_util::poll!(&mut asking).is_pending());
    let Some(ApprovalEvent::Ask(shown)) = observer.next().await.as_deref().cloned() else {
        panic!("no question")
    };
    let approval = answer(shown.id, "d1", Approval::Once);
    assert_eq!(observer.answer(&approval, observer.approver()), Err(AnswerError::Observer));
    observer.set_role(WatcherRole::Approver);
    assert!(queue.has_approvers());
    assert_eq!(observer.answer(&approval, observer.approver()), Ok(()), "control: as an approver");
    observer.set_role(WatcherRole::Observer);
    assert!(!queue.has_approvers());
}

const ROLES: &str = r#"
version = 1
[roles.leads]
members = ["ada", "claim:team=leads"]
may = ["approve"]
[roles.leads.servers.bank]
allow = ["pay"]
[roles.emergency]
members = ["eve"]
may = ["approve"]
break_glass = true
[roles.others]
members = ["*"]
may = ["run"]
"#;

fn policy(text: &str) -> Arc<Policy> {
    Arc::new(Policy::parse(Source { path: "policy.toml".into(), text: text.into() }).expect("a policy"))
}

fn principal(name: &str, memberships: &[&str]) -> Principal {
    let principal = Principal::authenticated(&format!("token:{name}"), name, None, Validity::Connection);
    principal.member_of(memberships.iter().map(|text| (*text).to_owned()).collect())
}

fn person(name: &str, memberships: &[&str]) -> Approver {
    Approver::Person { principal: principal(name, memberships), user: None }
}

fn eligibility(requirement: ApprovalRequirement, tool: &str) -> Eligibility {
    let tool = CallTarget::Tool(ToolName::new(tool).expect("a name"));
    let call = Call::new(&ServerName::new("bank").expect("a name"), tool);
    Eligibility::new(requirement, &principal("ada", &[]), vec![call])
}

#[test]
fn roles_decide_whose_approval_counts() {
    let (policy, none) = (policy(ROLES), policy("version = 1\n"));
    let two = ApprovalRequirement { approvers: 2, ..ApprovalRequirement::default() };
    let other = ApprovalRequirement { not_requester: true, ..ApprovalRequirement::default() };
    let owner = Approver::Owner(Some(LocalUser { uid: 0, pid: None, login_uid: None }));
    for (who, tool, requirement, expected) in [
        (person("ada", &[]), "pay", two, Ok(())),
        (person("ada", &[]), "close", two, Err(AnswerError::Role)),
        (person("ada", &[]), "pay", other, Err(AnswerError::Requester)),
        (person("bob", &["claim:team=leads"]), "pay", other, Ok(())),
        (person("bob", &["claim:team=lead"]), "pay", two, Err(AnswerError::Role)),
        (person("eve", &[]), "close", two, Ok(())),
        (owner.clone(), "close", other, Ok(())),
    ] {
        let found = eligibility(requirement, tool).check(&who, &policy);
        assert_eq!(found, expected, "{who:?} {tool} {requirement:?}");
    }
    let without_roles = eligibility(two, "pay");
    assert_eq!(without_roles.check(&person("ada", &[]), &none), Err(AnswerError::Role));
    assert_eq!(without_roles.check(&owner, &none), Ok(()), "control");
}

#[test]
fn each_person_counts_once_and_only_as_long_as_their_role_lasts() {
    let (with_ada, without_ada) = (policy(ROLES), policy(&ROLES.replace("\"ada\", ", "")));
    let two = ApprovalRequirement { approvers: 2, ..ApprovalRequirement::default() };
    let mut question = eligibility(two, "pay");
    assert!(!question.add(person("ada", &[]), &with_ada));
    assert_eq!(question.check(&person("ada", &[]), &with_ada), Err(AnswerError::ApprovedBefore));
    assert!(question.clone().add(person("eve", &[]), &with_ada), "control: two people");
    assert!(!question.add(person("eve", &[]), &without_ada), "one of them may not approve any more");
    assert_eq!(question.approved_by(), ["eve"]);
}

#[test]
fn breaking_the_glass_needs_a_role_for_it() {
    let policy = policy(ROLES);
    let two = ApprovalRequirement { approvers: 2, not_requester: true, ..ApprovalRequirement::default() };
    let question = eligibility(two, "pay");
    assert_eq!(question.check_break_glass(&person("ada", &[]), &policy), Err(AnswerError::BreakGlass));
    assert_eq!(question.check_break_glass(&person("eve", &[]), &policy), Ok(()), "control");
    let without_calls = Eligibility::new(two, &principal("ada", &[]), Vec::new());
    assert_eq!(without_calls.check_break_glass(&person("eve", &[]), &policy), Err(AnswerError::BreakGlass));
    assert_eq!(without_calls.check(&person("eve", &[]), &policy), Err(AnswerError::Role));
}

#[tokio::test]
async fn an_answer_that_changes_the_policy_needs_a_role_for_that() {
    let text =
        ROLES.replace("may = [\"run\"]", "may = [\"approve\", \"policy\"]").replace("[\"*\"]", "[\"eve\"]");
    let queue = ApprovalQueue::default();
    queue.set_policy(policy(&text));
    let offering = ApprovalQuestion { scopes: vec![Approval::Once, Approval::Always], ..ask() };
    let asking = queue.ask(offering, eligibility(ApprovalRequirement::default(), "pay"), LONG);
    tokio::pin!(asking);
    assert!(futures_util::poll!(&mut asking).is_pending());
    let watch = |approver| queue.watch(WatcherKind::Socket(approver), WatcherRole::Approver);
    let (mut ada, eve) = (watch(person("ada", &[])), watch(person("eve", &[])));
    let Some(ApprovalEvent::Ask(shown)) = ada.next().await.as_deref().cloned() else { panic!("no question") };
    let always = answer(shown.id, "d1", Approval::Always);
    assert_eq!(ada.answer(&always, ada.approver()), Err(AnswerError::Scope));
    assert_eq!(eve.answer(&always, eve.approver()), Ok(()), "control");
}

#[tokio::test]
async fn a_person_sees_the_questions_that_a_role_covers() {
    let queue = ApprovalQueue::default();
    queue.set_policy(policy(ROLES));
    let watch = |approver| queue.watch(WatcherKind::Socket(approver), WatcherRole::Approver);
    let (mut ada, mut bob) = (watch(person("ada", &[])), watch(person("bob", &[])));
    let asking = queue.ask(ask(), eligibility(ApprovalRequirement::default(), "pay"), LONG);
    tokio::pin!(asking);
    assert!(futures_util::poll!(&mut asking).is_pending());
    let Some(ApprovalEvent::Ask(shown)) = ada.next().await.as_deref().cloned() else { panic!("no question") };
    assert!(bob.messages.try_recv().is_err(), "no role of bob covers it");
    let approval = answer(shown.id, "d1", Approval::Once);
    assert_eq!(bob.answer(&approval, bob.approver()), Err(AnswerError::Role));
    let refusal = ApproverAnswer { decision: ApproverDecision::Decline, ..approval.clone() };
    assert_eq!(bob.answer(&refusal, bob.approver()), Err(AnswerError::Role));
    let alone = ApproverAnswer { break_glass: Some(" ".into()), ..approval.clone() };
    assert_eq!(ada.answer(&alone, ada.approver()), Err(AnswerError::Reason));
    assert_eq!(ada.answer(&approval, ada.approver()), Ok(()), "control");
}
