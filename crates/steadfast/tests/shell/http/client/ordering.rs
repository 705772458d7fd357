//! Messages that must not overtake each other, though each is a request of its own (L9); and closing (L5).

use std::collections::BTreeSet;
use std::task::{Context, Poll, Waker};

use serde_json::{Value, json};
use steadfast::client::Change;
use steadfast::runtime::{Runtime, RuntimeTask, Timer, TokioRuntime};
use steadfast::transport::http::{
    Authorize, OutgoingHttpRequest, RequestAuthorization, RequestAuthorizationFuture, TransportFetchRequest,
};
use steadfast::{Limits, Moment, SubscriptionFilter};
use tokio::sync::{Notify, watch};

use super::custom_fetch::{Before, LocalFetch, no_delay};
use super::*;

/// Time stands still but for leaps.
#[derive(Clone)]
struct Frozen {
    tokio: TokioRuntime,
    time: Arc<Mutex<(Moment, Vec<Waker>)>>,
}

impl Frozen {
    fn new() -> Arc<Self> {
        let tokio = TokioRuntime::current().unwrap();
        Arc::new(Self { time: Arc::new(Mutex::new((tokio.now(), Vec::new()))), tokio })
    }

    fn leap(&self, by: Duration) {
        let mut time = self.time.lock().unwrap();
        time.0 = time.0 + by;
        let wakers = std::mem::take(&mut time.1);
        drop(time);
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Runtime for Frozen {
    fn now(&self) -> Moment {
        self.time.lock().unwrap().0
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(Leaping { frozen: self.clone(), when: None })
    }

    fn spawn(&self, task: RuntimeTask) {
        self.tokio.spawn(task);
    }

    fn spawn_thread(&self, job: Box<dyn FnOnce() + Send>) {
        self.tokio.spawn_thread(job);
    }
}

struct Leaping {
    frozen: Frozen,
    when: Option<Moment>,
}

impl Timer for Leaping {
    fn reset(&mut self, when: Option<Moment>) {
        self.when = when;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(when) = self.when else { return Poll::Pending };
        let mut time = self.frozen.time.lock().unwrap();
        if when > time.0 {
            time.1.push(cx.waker().clone());
            return Poll::Pending;
        }
        self.when = None;
        Poll::Ready(())
    }
}

/// The methods of the messages that have arrived, in order.
#[derive(Clone)]
struct Arrived(Arc<watch::Sender<Vec<String>>>);

impl Arrived {
    fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Vec::new())))
    }

    fn note(&self, message: &Value) {
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        self.0.send_modify(|all| all.push(method));
    }

    fn place(&self, method: &str) -> Option<usize> {
        self.0.borrow().iter().position(|known| known == method)
    }

    async fn wait(&self, method: &str) {
        let mut all = self.0.subscribe();
        soon(all.wait_for(|all| all.iter().any(|known| known == method))).await.unwrap();
    }
}

const CANCELLED: &str = "notifications/cancelled";

/// A client whose calls of `slow` are let through by the gate, in a time that stands still.
struct Slow {
    clock: Arc<Frozen>,
    client: Client,
    asked: Signal,
    gate: Arc<Notify>,
    arrived: Arrived,
}

impl Slow {
    async fn new() -> Self {
        let (clock, asked, gate, arrived) = (Frozen::new(), Signal::default(), Arc::new(Notify::new()), Arrived::new());
        let (begun, open, noted) = (asked.clone(), Arc::clone(&gate), arrived.clone());
        let fetch = LocalFetch(move |_: &TransportFetchRequest, message: &Value| {
            let (begun, open, noted, message) = (begun.clone(), Arc::clone(&open), noted.clone(), message.clone());
            let passes: Before = Box::pin(async move {
                if message["params"]["name"] == "slow" {
                    begun.set();
                    open.notified().await;
                }
                noted.note(&message);
            });
            passes
        });
        let connecting = Client::connect(HttpTarget::new("http://near/mcp").fetch(fetch)).negotiation(OLDER);
        let runtime: Arc<dyn Runtime> = clock.clone();
        let client = soon(connecting.runtime(runtime).into_future()).await.unwrap();
        Self { clock, client, asked, gate, arrived }
    }

    /// Makes a call and gives it up while it is on its way. The driver knows.
    async fn give_up(&self) {
        let call = self.client.call_tool("slow", json!({})).start();
        soon(self.asked.wait()).await;
        drop(call);
        for _ in 0..2 {
            soon(self.client.call_tool("fence", json!({})).into_future()).await.unwrap();
        }
    }
}

/// A server that reads the cancellation first ignores it, and runs the request.
#[tokio::test]
async fn a_cancellation_does_not_overtake_its_request() {
    let slow = Slow::new().await;
    slow.give_up().await;
    slow.gate.notify_one();
    slow.arrived.wait(CANCELLED).await;
    let all = slow.arrived.0.borrow().clone();
    let calls: Vec<_> = all.iter().filter(|method| *method == "tools/call" || *method == CANCELLED).collect();
    assert_eq!(calls, ["tools/call", "tools/call", "tools/call", CANCELLED], "two fences, the call, and its end");
}

/// A server that responds in JSON sends nothing before its response.
#[tokio::test]
async fn a_request_without_a_response_is_cancelled_after_a_second() {
    let slow = Slow::new().await;
    slow.give_up().await;
    slow.clock.leap(Duration::from_millis(999));
    soon(slow.client.call_tool("fence", json!({})).into_future()).await.unwrap();
    assert_eq!(slow.arrived.place(CANCELLED), None);
    slow.clock.leap(Duration::from_millis(1));
    slow.arrived.wait(CANCELLED).await;
}

#[tokio::test]
async fn a_request_that_was_sent_a_second_ago_is_cancelled_at_once() {
    let slow = Slow::new().await;
    let call = slow.client.call_tool("slow", json!({})).start();
    soon(slow.asked.wait()).await;
    slow.clock.leap(Duration::from_secs(1));
    drop(call);
    slow.arrived.wait(CANCELLED).await;
}

/// More at once than messages may be on their way.
#[tokio::test]
async fn many_cancellations_do_not_overtake_their_requests() {
    let slow = Slow::new().await;
    let calls: Vec<_> = (0..200).map(|_| slow.client.call_tool("slow", json!({})).start()).collect();
    while slow.asked.count() < calls.len() {
        soon(slow.asked.wait()).await;
    }
    drop(calls);
    soon(slow.client.call_tool("fence", json!({})).into_future()).await.unwrap();
    for _ in 0..200 {
        slow.gate.notify_one();
        tokio::task::yield_now().await;
    }
    slow.gate.notify_waiters();
    let mut all = slow.arrived.0.subscribe();
    let done = |all: &Vec<String>| all.iter().filter(|method| *method == CANCELLED).count() == 200;
    let all = soon(all.wait_for(done)).await.unwrap().clone();
    assert_eq!(all.iter().filter(|method| *method == "tools/call").count(), 201, "all of them arrived");
}

/// The ids that cancellations on their way name.
type InFlight = Arc<watch::Sender<BTreeSet<u64>>>;

/// A cancellation that is never taken.
struct UnreadMessage(InFlight, u64);

impl UnreadMessage {
    fn new(all: &InFlight, message: &Value) -> Self {
        let id = message["params"]["requestId"].as_u64().unwrap();
        all.send_modify(|all| all.extend([id]));
        Self(Arc::clone(all), id)
    }
}

impl Drop for UnreadMessage {
    fn drop(&mut self) {
        self.0.send_modify(|all| all.retain(|id| *id != self.1));
    }
}

/// L7: as many calls as the limit allows are dropped, at a server that accepts no cancellations.
#[tokio::test]
async fn unaccepted_cancellations_are_bounded_in_number() {
    let (untaken, calls) = (InFlight::default(), InFlight::default());
    let (cancelled, called) = (Arc::clone(&untaken), Arc::clone(&calls));
    let fetch = LocalFetch(move |_: &TransportFetchRequest, message: &Value| -> Before {
        if message["params"]["name"] == "park" {
            called.send_modify(|all| all.extend(message["id"].as_u64()));
            return Box::pin(std::future::pending());
        }
        if message["method"] != CANCELLED {
            return no_delay();
        }
        let here = UnreadMessage::new(&cancelled, message);
        Box::pin(async move {
            std::future::pending::<()>().await;
            drop(here);
        })
    });
    let clock = Frozen::new();
    let runtime: Arc<dyn Runtime> = clock.clone();
    let connecting = Client::connect(HttpTarget::new("http://near/mcp").fetch(fetch)).negotiation(OLDER);
    let client = soon(connecting.runtime(runtime).into_future()).await.unwrap();
    let parked: Vec<_> = (0..1_100).map(|_| client.call_tool("park", json!({})).start()).collect();
    let all = soon(calls.subscribe().wait_for(|all| all.len() == 1_100)).await.unwrap().clone();
    // They have had the time to arrive.
    clock.leap(Duration::from_secs(1));
    for call in parked {
        drop(call);
    }
    let newest: BTreeSet<u64> = all.into_iter().rev().take(1_024).collect();
    soon(untaken.subscribe().wait_for(|all| *all == newest)).await.unwrap();
}

/// A `TransportFetch` need not keep to the time that it was given.
#[tokio::test]
async fn an_unaccepted_initialized_notification_does_not_delay_later_calls() {
    let (clock, asked) = (Frozen::new(), Signal::default());
    let begun = asked.clone();
    let fetch = LocalFetch(move |_: &TransportFetchRequest, message: &Value| {
        if message["method"] != "notifications/initialized" {
            return no_delay();
        }
        begun.set();
        let hangs: Before = Box::pin(std::future::pending());
        hangs
    });
    let runtime: Arc<dyn Runtime> = clock.clone();
    let connecting = Client::connect(HttpTarget::new("http://near/mcp").fetch(fetch)).negotiation(OLDER);
    let client = soon(connecting.runtime(runtime).into_future()).await.unwrap();
    soon(asked.wait()).await;
    clock.leap(Duration::from_secs(30));
    soon(client.call_tool("any", json!({})).into_future()).await.unwrap();
}

/// Never has a token for calls.
struct Hesitant(Signal);

impl Authorize for Hesitant {
    fn attempt(&self, _: &OutgoingHttpRequest<'_>) -> Box<dyn RequestAuthorization> {
        self.0.set();
        Box::new(Self(self.0.clone()))
    }
}

impl RequestAuthorization for Hesitant {
    fn sign<'a>(&'a mut self, _: &'a mut ::http::HeaderMap) -> RequestAuthorizationFuture<'a, ()> {
        let hesitates = self.0.count() == 4;
        Box::pin(async move { if hesitates { std::future::pending().await } else { Ok(()) } })
    }
}

/// L4: no cancellation is sent for a request that was never sent.
#[tokio::test]
async fn a_call_dropped_before_it_is_sent_is_not_cancelled_on_the_wire() {
    let (arrived, asked) = (Arrived::new(), Signal::default());
    let noted = arrived.clone();
    let fetch = LocalFetch(move |_: &TransportFetchRequest, message: &Value| {
        noted.note(message);
        no_delay()
    });
    let target = HttpTarget::new("http://near/mcp").fetch(fetch).authorize(Hesitant(asked.clone()));
    let client = connect_once(target, OLDER).await;
    // `initialize`, the notification after it, and the GET stream were authorized.
    while asked.count() < 3 {
        soon(asked.wait()).await;
    }
    let call = client.call_tool("any", json!({})).start();
    while asked.count() < 4 {
        soon(asked.wait()).await;
    }
    drop(call);
    for _ in 0..3 {
        soon(client.call_tool("fence", json!({})).into_future()).await.unwrap();
    }
    assert_eq!(arrived.place(CANCELLED), None, "{:?}", arrived.0.borrow());
}

fn to(uri: &str) -> SubscriptionFilter {
    SubscriptionFilter::new().with_resource_subscriptions(vec![uri.to_owned()])
}

/// A hand-written server that delays its response to `unsubscribe`.
async fn reluctant(arrived: &Arrived, answer: &Arc<Notify>) -> String {
    let (arrived, answer) = (arrived.clone(), Arc::clone(answer));
    by_hand(move |request, mut stream| {
        let (arrived, answer) = (arrived.clone(), Arc::clone(&answer));
        async move {
            if request.method == "DELETE" {
                arrived.note(&json!({"method": "DELETE"}));
            }
            arrived.note(&request.body);
            if request.is("resources/unsubscribe") {
                answer.notified().await;
            }
            let answered = older(&request, || match &*request.method {
                "POST" => json_answer(&request, &json!({})),
                _ => response("405 No", &[], ""),
            });
            // The client may have gone.
            let _ = stream.write_all(&answered).await;
        }
    })
    .await
}

/// Otherwise the second stream would never get a notification.
#[tokio::test]
async fn an_unsubscribe_is_not_overtaken_by_a_new_subscribe() {
    let (arrived, answer) = (Arrived::new(), Arc::new(Notify::new()));
    let url = reluctant(&arrived, &answer).await;
    let client = connect(&url, OLDER).await;
    let mut first = client.changes(to("a:1"));
    assert!(matches!(soon(first.next()).await, Some(Ok(Change::Listening(_)))));
    drop(first);
    arrived.wait("resources/unsubscribe").await;
    let mut second = client.changes(to("a:1"));
    // Another resource is not held up, and what comes in this time would be too early.
    let mut other = client.changes(to("a:2"));
    assert!(matches!(soon(other.next()).await, Some(Ok(Change::Listening(_)))));
    let waiting = tokio::time::timeout(Duration::from_millis(300), second.next());
    assert!(waiting.await.is_err(), "it listens before the server has taken back the first");
    answer.notify_one();
    assert!(matches!(soon(second.next()).await, Some(Ok(Change::Listening(_)))));
    let of = |method: &&String| method.starts_with("resources/");
    let all: Vec<_> = arrived.0.borrow().iter().filter(of).cloned().collect();
    let [subscribe, unsubscribe] = ["resources/subscribe", "resources/unsubscribe"];
    assert_eq!(all, [subscribe, unsubscribe, subscribe, subscribe]);
}

/// L5: with room for one request at a time the second waits for it, and is not refused.
#[tokio::test]
async fn every_subscription_is_unsubscribed_with_a_limit_of_one_request() {
    let (arrived, answer) = (Arrived::new(), Arc::new(Notify::new()));
    let url = reluctant(&arrived, &answer).await;
    let mut limits = Limits::default();
    limits.calls = 1;
    let client = soon(Client::connect(&*url).negotiation(OLDER).limits(limits).into_future()).await.unwrap();
    let mut streams = Vec::new();
    for uri in ["a:1", "a:2", "a:3"] {
        let mut changes = client.changes(to(uri));
        assert!(matches!(soon(changes.next()).await, Some(Ok(Change::Listening(_)))));
        streams.push(changes);
    }
    drop(streams);
    for place in 1..=3 {
        let mut all = arrived.0.subscribe();
        let taken_back = |all: &Vec<String>| all.iter().filter(|method| *method == "resources/unsubscribe").count();
        soon(all.wait_for(|all| taken_back(all) == place)).await.unwrap();
        answer.notify_one();
    }
}

/// L5: the last client takes everything with it, whatever the server leaves unanswered.
#[tokio::test]
async fn a_dropped_client_does_not_wait_for_unsubscribing() {
    let (arrived, answer) = (Arrived::new(), Arc::new(Notify::new()));
    let url = reluctant(&arrived, &answer).await;
    let client = connect(&url, OLDER).await;
    let mut changes = client.changes(to("a:1"));
    assert!(matches!(soon(changes.next()).await, Some(Ok(Change::Listening(_)))));
    drop(changes);
    arrived.wait("resources/unsubscribe").await;
    drop(client);
    let left = tokio::time::timeout(Duration::from_secs(5), arrived.wait("DELETE"));
    left.await.expect("the session is kept by somebody who waits");
}

/// L5: in 2025-11-25 a call that becomes a task is cancelled once the task is known.
#[tokio::test]
async fn a_dropped_call_is_read_to_its_end_and_its_task_cancelled() {
    let (asked, answer, arrived) = (Signal::default(), Arc::new(Notify::new()), Arrived::new());
    let (begun, open, noted) = (asked.clone(), Arc::clone(&answer), arrived.clone());
    let url = by_hand(move |request, mut stream| {
        let (begun, open, noted) = (begun.clone(), Arc::clone(&open), noted.clone());
        async move {
            noted.note(&request.body);
            let task = json!({"taskId": "one", "status": "working", "createdAt": "2025-11-25T00:00:00Z",
                "lastUpdatedAt": "2025-11-25T00:00:00Z", "ttl": 1000});
            let result = match request.body["method"].as_str() {
                Some("initialize") => json!({"protocolVersion": "2025-11-25",
                    "serverInfo": {"name": "raw", "version": "1"},
                    "capabilities": {"tools": {}, "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}}}),
                Some("tools/list") => json!({"tools": [{"name": "long", "inputSchema": {"type": "object"},
                    "execution": {"taskSupport": "required"}}]}),
                Some("tools/call") => {
                    begun.set();
                    open.notified().await;
                    json!({ "task": task })
                }
                Some("tasks/cancel") => task,
                _ => return drop(stream.write_all(&response("405 No", &[], "")).await),
            };
            // The client may have hung up.
            let _ = stream.write_all(&json_answer(&request, &result)).await;
        }
    })
    .await;
    let client = connect(&url, OLDER).await;
    soon(client.list_tools()).await.unwrap();
    let call = client.call_tool("long", json!({})).start();
    soon(asked.wait()).await;
    drop(call);
    soon(client.list_tools()).await.unwrap();
    answer.notify_one();
    arrived.wait("tasks/cancel").await;
    assert_eq!(arrived.place(CANCELLED), None, "{:?}", arrived.0.borrow());
}

/// Delays a 404 until it is released.
#[derive(Clone)]
struct Slowly {
    asked: Signal,
    gate: Arc<Notify>,
}

impl Authorize for Slowly {
    fn attempt(&self, _: &OutgoingHttpRequest<'_>) -> Box<dyn RequestAuthorization> {
        Box::new(self.clone())
    }
}

impl RequestAuthorization for Slowly {
    fn sign<'a>(&'a mut self, _: &'a mut ::http::HeaderMap) -> RequestAuthorizationFuture<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn answered<'a>(
        &'a mut self,
        status: ::http::StatusCode,
        _: &'a ::http::HeaderMap,
    ) -> RequestAuthorizationFuture<'a, bool> {
        Box::pin(async move {
            if status == ::http::StatusCode::NOT_FOUND {
                self.asked.set();
                self.gate.notified().await;
            }
            Ok(false)
        })
    }
}

/// L5: nothing waits in a session that the server reported as lost, also if the call that got the 404 was dropped.
#[tokio::test]
async fn a_lost_session_is_noticed_although_the_call_was_dropped() {
    let (reached, lost, opened) = (Signal::default(), Arc::new(Notify::new()), Signal::default());
    let (begun, gate, handshakes) = (reached.clone(), Arc::clone(&lost), opened.clone());
    let url = by_hand(move |request, mut stream| {
        let (begun, gate, handshakes) = (begun.clone(), Arc::clone(&gate), handshakes.clone());
        async move {
            if request.is("initialize") {
                handshakes.set();
            }
            if request.body["params"]["name"] == "lost" {
                begun.set();
                gate.notified().await;
                return drop(stream.write_all(&response("404 Not Found", &[], "")).await);
            }
            let answered = older(&request, || match request.body["method"].as_str() {
                Some("tools/call") => json_answer(&request, &json!({"content": []})),
                Some(CANCELLED) => response("202 Accepted", &[], ""),
                _ => response("405 No", &[], ""),
            });
            // The client may have gone.
            let _ = stream.write_all(&answered).await;
        }
    })
    .await;
    let (clock, slowly) = (Frozen::new(), Slowly { asked: Signal::default(), gate: Arc::new(Notify::new()) });
    let runtime: Arc<dyn Runtime> = clock.clone();
    let connecting = Client::connect(HttpTarget::new(&url).authorize(slowly.clone())).negotiation(OLDER);
    // Time stands still while a call waits.
    let connecting = connecting.reconnect(ReconnectPolicy::default().first_pause(Duration::ZERO));
    let client = soon(connecting.runtime(runtime).into_future()).await.unwrap();
    let fence = || async { soon(client.call_tool("fence", json!({})).into_future()).await.unwrap() };
    let call = client.call_tool("lost", json!({})).start();
    soon(reached.wait()).await;
    drop(call);
    fence().await;
    lost.notify_one();
    soon(slowly.asked.wait()).await;
    fence().await;
    slowly.gate.notify_one();
    soon(async {
        while opened.count() < 2 {
            // One that meets the end of the session may be lost with it.
            let _ = client.call_tool("fence", json!({})).into_future().await;
            clock.leap(Duration::from_secs(1));
        }
    })
    .await;
}
