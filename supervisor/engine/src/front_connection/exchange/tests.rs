use super::*;

/// A front that takes a response when the test lets it.
#[derive(Default)]
struct SlowFront {
    taken: Arc<Mutex<Vec<ExchangeId>>>,
    reads: Arc<tokio::sync::Notify>,
}

impl FrontEndpoint for SlowFront {
    fn receive(&self, message: ToFront) -> Option<Waiting> {
        let id = message.exchange()?;
        let (taken, reads) = (self.taken.clone(), self.reads.clone());
        Some(Box::pin(async move {
            reads.notified().await;
            taken.lock().push(id);
        }))
    }
}

fn front() -> (Arc<SlowFront>, Weak<dyn FrontEndpoint>) {
    let front = Arc::new(SlowFront::default());
    let weak: Weak<dyn FrontEndpoint> = Arc::downgrade(&(front.clone() as Arc<dyn FrontEndpoint>));
    (front, weak)
}

#[tokio::test]
async fn an_exchange_counts_until_its_response_is_in_the_queue() {
    let (front, weak) = front();
    let exchanges = OpenExchanges::default();
    let ended = exchanges.open(ExchangeId(1), weak.clone(), None);
    let failed = exchanges.open(ExchangeId(2), weak, None);
    let ending = tokio::spawn(ended.end(Response::NotFound));
    drop(failed);
    tokio::task::yield_now().await;
    assert_eq!(exchanges.len(), 2);
    for left in [1, 0] {
        front.reads.notify_one();
        while exchanges.len() > left {
            tokio::task::yield_now().await;
        }
    }
    ending.await.expect("a task");
    let mut taken = front.taken.lock().clone();
    taken.sort();
    assert_eq!(taken, [ExchangeId(1), ExchangeId(2)], "also the response of an exchange that was dropped");
}

#[tokio::test]
async fn a_front_that_disconnects_ends_what_waits_for_its_inputs_or_credit() {
    let (_front, weak) = front();
    let exchanges = OpenExchanges::default();
    let mut exchange = exchanges.open(ExchangeId(1), weak.clone(), None);
    let waiting = exchanges.open(ExchangeId(2), weak, None);
    for _ in 0..EVENTS_AHEAD_MAX {
        assert!(waiting.credit().take().await);
    }
    let waiting = tokio::spawn(async move { waiting.send(Event::ProgressMessage("x".into())).await });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    assert_eq!(exchanges.input(ExchangeId(1), Input::View, 1), Ok(()));
    exchanges.close_all();
    assert!(matches!(exchange.input().await, Some(Input::View)));
    assert!(exchange.input().await.is_none());
    waiting.await.expect("it waits for no credit any more");
}

#[tokio::test]
async fn inputs_and_requests_are_bounded_in_number_and_memory() {
    let (_front, weak) = front();
    let exchanges = OpenExchanges::default();
    let mut many = exchanges.open(ExchangeId(1), weak.clone(), None);
    let queued = (0..=INPUTS_MAX).map(|_| exchanges.input(ExchangeId(1), Input::View, 1));
    assert_eq!(queued.filter(Result::is_err).count(), 1);
    assert!(!exchanges.contains(ExchangeId(1)), "it is closed");
    while many.input().await.is_some() {}

    let mut large = exchanges.open(ExchangeId(2), weak.clone(), None);
    let _other = exchanges.open(ExchangeId(3), weak, None);
    assert_eq!(
        exchanges.input(ExchangeId(2), Input::View, 2 * INPUT_MEMORY_MAX),
        Ok(()),
        "one may be larger"
    );
    assert_eq!(exchanges.input(ExchangeId(3), Input::View, 1), Err(TooManyInputs));
    drop(large.input().await);
    assert_eq!(exchanges.input(ExchangeId(2), Input::View, INPUT_MEMORY_MAX), Ok(()), "the first was taken");

    let half = REQUEST_MEMORY_MAX / 2;
    let reserved = [exchanges.reserve(half), exchanges.reserve(half)];
    assert!(reserved.iter().all(Option::is_some) && exchanges.reserve(1).is_none());
    drop(reserved);
    assert!(exchanges.reserve(2 * REQUEST_MEMORY_MAX).is_some());
}
