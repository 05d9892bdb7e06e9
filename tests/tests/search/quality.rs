//! Tests of how well tool search answers questions in natural language. `make bench-search` prints the measured
//! quality.

use std::time::Duration;

use lockhouse_tests::{Figures, Lockhouse, Table, catalogues, ensure, questions};

#[tokio::test]
async fn most_questions_are_answered_by_one_of_the_first_five_tools() {
    let Some(catalogues) = catalogues() else {
        println!("not tried: LOCKHOUSE_CATALOGUES names no directory with the tools of real servers");
        return;
    };
    let lockhouse = Lockhouse::with_catalogues(&catalogues);
    let session = lockhouse.serve().await;
    session.all_connected().await;
    let (mut tuned, mut held_out) = (Figures::default(), Figures::default());
    for question in questions() {
        let found = session.names_found(&question.words).await;
        let figures = if question.held_out { &mut held_out } else { &mut tuned };
        figures.add(&question, &found, Duration::ZERO);
    }
    let mut table = Table::new("search queries");
    for (name, figures, least) in [("tuned on", &tuned, 100), ("held out", &held_out, 50)] {
        let recall = figures.recall(5);
        table.row(format!("{name}: recall@5"), ensure(recall >= 0.9, recall));
        table.row(format!("{name}: questions"), ensure(figures.count() >= least, figures.count()));
    }
    table.finish();
}

#[tokio::test]
async fn a_tool_is_found_by_synonyms() {
    let lockhouse = Lockhouse::with_fixture();
    let session = lockhouse.serve().await;
    let mut table = Table::new("the tools of the fixture");
    for (words, tool) in [
        ("sum of numbers", "add"),
        ("adding", "add"),
        ("addd", "add"),
        ("fixture.count", "count"),
        ("mcp__fixture__count", "count"),
        ("server:fixture counting", "count"),
    ] {
        let found = session.names_found(words).await;
        let first = format!("fixture.{tool}");
        table.row(words, ensure(found.first() == Some(&first), &found));
    }
    let elsewhere = session.names_found("server:elsewhere add").await;
    table.row("another server has none of them", ensure(elsewhere.is_empty(), &elsewhere));
    table.finish();
}
