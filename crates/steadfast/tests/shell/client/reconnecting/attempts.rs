//! Reconnecting: attempts, pauses, limits, and closing meanwhile.

use std::task::{Context as Polling, Poll};

use steadfast::runtime::{Runtime, RuntimeTask, Timer, TokioRuntime};
use steadfast::transport::{HangupDirection, Transport};
use steadfast::{ErrorKind, Moment, Outcome};

use super::*;

/// The time of tokio, with leaps.
struct Clock {
    tokio: TokioRuntime,
    ahead: Mutex<Duration>,
}

impl Clock {
    fn new() -> Arc<Self> {
        Arc::new(Self { tokio: TokioRuntime::current().unwrap(), ahead: Mutex::default() })
    }

    fn advance(&self, by: Duration) {
        *self.ahead.lock().unwrap() += by;
    }
}

impl Runtime for Clock {
    fn now(&self) -> Moment {
        self.tokio.now() + *self.ahead.lock().unwrap()
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(Ahead { timer: self.tokio.timer(), by: *self.ahead.lock().unwrap() })
    }

    fn spawn(&self, task: RuntimeTask) {
        self.tokio.spawn(task);
    }

    fn spawn_thread(&self, job: Box<dyn FnOnce() + Send>) {
        self.tokio.spawn_thread(job);
    }
}

/// A timer that was made when the clock was ahead by so much.
struct Ahead {
    timer: Box<dyn Timer>,
    by: Duration,
}

impl Timer for Ahead {
    fn reset(&mut self, when: Option<Moment>) {
        let when = when.map(|when| Moment::after_origin(when.since_origin().saturating_sub(self.by)));
        self.timer.reset(when);
    }

    fn poll(&mut self, cx: &mut std::task::Context<'_>) -> std::task::Poll<()> {
        self.timer.poll(cx)
    }
}

async fn lost(server: &Arc<FakeServer>, on_connect: OnConnect) -> Client {
    let client = server.connect().await;
    server.set(on_connect);
    server.cut();
    soon(client.closed()).await;
    client
}

#[tokio::test]
async fn a_client_reconnects_only_when_a_call_needs_it() {
    let server = FakeServer::willing();
    let client = lost(&server, OnConnect::Accept).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.connections(), 1);
    soon(client.list_tools()).await.unwrap();
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn many_calls_need_one_connection() {
    let server = FakeServer::willing();
    let client = lost(&server, OnConnect::Accept).await;
    let calls: Vec<_> = (0..20).map(|_| tokio::spawn(client.call_tool("pay", json!({})).into_future())).collect();
    for call in calls {
        soon(call).await.unwrap().unwrap();
    }
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_client_without_reconnecting_stays_disconnected() {
    let server = FakeServer::willing();
    let client = soon(server.connecting().reconnect(ReconnectPolicy::never()).into_future()).await.unwrap();
    server.cut();
    soon(client.closed()).await;
    let error = soon(client.list_tools()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Closed, Outcome::NotSent));
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_transport_value_is_used_once_despite_reconnect_settings() {
    let server = FakeServer::willing();
    let here = Arc::clone(&server).open().await.unwrap();
    let connecting =
        Client::connect(here).negotiation(NegotiationMode::Stateless).reconnect(ReconnectPolicy::default());
    let client = soon(connecting.into_future()).await.unwrap();
    server.cut();
    soon(client.closed()).await;
    assert_eq!(soon(client.list_tools()).await.unwrap_err().outcome(), Outcome::NotSent);
}

#[tokio::test]
async fn the_number_of_reconnect_attempts_is_bounded() {
    let server = FakeServer::willing();
    let client = lost(&server, OnConnect::Refuse).await;
    let error = soon(client.call_tool("pay", json!({})).into_future()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Transport, Outcome::NotSent));
    // The life of the first was short, and counts as one.
    assert_eq!(server.connections(), 1 + 4);
    let call = client.call_tool("pay", json!({})).total_timeout(Duration::from_millis(50));
    let error = soon(call.into_future()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::TimedOut, Outcome::NotSent));
    assert_eq!(server.connections(), 1 + 4, "it is not left alone");
}

#[tokio::test]
async fn reconnecting_also_stops_after_a_long_uptime() {
    let server = FakeServer::willing();
    let clock = Clock::new();
    let client = soon(server.connecting().runtime(clock.clone()).into_future()).await.unwrap();
    clock.advance(Duration::from_secs(60));
    server.set(OnConnect::Refuse);
    server.cut();
    soon(client.closed()).await;
    let error = soon(client.call_tool("pay", json!({})).into_future()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Transport, Outcome::NotSent));
    assert_eq!(server.connections(), 1 + 5);
    let call = client.call_tool("pay", json!({})).total_timeout(Duration::from_millis(50));
    assert_eq!(soon(call.into_future()).await.unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(server.connections(), 1 + 5, "it is not left alone");
    // When its time has come, it is tried once more.
    clock.advance(Duration::from_secs(10));
    soon(client.call_tool("pay", json!({})).into_future()).await.unwrap_err();
    assert_eq!(server.connections(), 1 + 6);
    clock.advance(Duration::from_secs(10));
    server.set(OnConnect::Accept);
    soon(client.call_tool("pay", json!({})).into_future()).await.unwrap();
}

#[tokio::test]
async fn the_total_timeout_covers_waiting_for_a_connection() {
    let server = FakeServer::willing();
    let client = lost(&server, OnConnect::Hang).await;
    let call = client.call_tool("pay", json!({})).total_timeout(Duration::from_millis(30));
    let error = soon(call.into_future()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::TimedOut, Outcome::NotSent));
}

#[tokio::test]
async fn a_connector_that_panics_is_an_error_and_not_a_hang() {
    let server = FakeServer::willing();
    let client = lost(&server, OnConnect::Panic).await;
    let error = soon(client.list_tools()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Transport, Outcome::NotSent));
    server.set(OnConnect::Panic);
    let error = soon(server.connecting().into_future()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transport);
}

#[tokio::test]
async fn close_cancels_a_connection_that_is_being_opened() {
    let server = FakeServer::new(|number, request| match number {
        0 => Reply::Result(done(request)),
        // It accepts the connection, and sends nothing.
        _ => Reply::Silence,
    });
    let client = lost(&server, OnConnect::Accept).await;
    let call = tokio::spawn(client.call_tool("pay", json!({})).into_future());
    server.until(|server| server.asked("server/discover").contains(&1)).await;
    soon(client.close()).await;
    let error = soon(call).await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Closed, Outcome::NotSent));
    server.until(|server| server.ended.load(Ordering::SeqCst) == 2).await;
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn no_connection_is_opened_after_close() {
    let server = FakeServer::willing();
    let client = server.connect().await;
    let other = client.clone();
    soon(client.close()).await;
    let error = soon(other.list_tools()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Closed, Outcome::NotSent));
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn no_connection_is_opened_for_calls_that_were_dropped() {
    let server = FakeServer::new(|number, request| match number {
        1 => Reply::Silence,
        _ => Reply::Result(done(request)),
    });
    let client = lost(&server, OnConnect::Accept).await;
    let mut call = Box::pin(client.call_tool("pay", json!({})).start());
    tokio::select! {
        ended = &mut call => panic!("{ended:?}"),
        () = server.until(|server| server.asked("server/discover").contains(&1)) => {}
    }
    drop(call);
    server.until(|server| server.ended.load(Ordering::SeqCst) == 2).await;
    // The next call opens a connection of its own.
    soon(client.list_tools()).await.unwrap();
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn a_server_without_a_response_to_the_probe_gets_a_handshake_also_when_reconnecting() {
    let server = FakeServer::new(|_, request| match request["method"].as_str() {
        Some("server/discover") => Reply::Silence,
        _ => Reply::Result(done(request)),
    });
    let connecting = server.connecting().negotiation(NegotiationMode::Auto).opening_timeout(Duration::from_secs(1));
    let client = soon(connecting.into_future()).await.unwrap();
    assert!(!client.revision().is_stateless());
    server.cut();
    soon(client.closed()).await;
    soon(client.list_tools()).await.unwrap();
    assert_eq!((server.asked("server/discover"), server.asked("initialize")), (vec![0], vec![0, 1]));
}

#[tokio::test]
async fn a_call_that_waits_for_a_hanging_connector_times_out() {
    let server = FakeServer::willing();
    let clock = crate::support::ManualClock::new();
    let connecting = server.connecting().opening_timeout(Duration::from_secs(5)).runtime(Arc::new(clock.clone()));
    let client = soon(connecting.into_future()).await.unwrap();
    server.set(OnConnect::Hang);
    server.cut();
    soon(client.closed()).await;
    let call = tokio::spawn(client.call_tool("pay", json!({})).into_future());
    soon(async {
        while !call.is_finished() {
            clock.move_to(clock.now() + Duration::from_secs(1));
            tokio::task::yield_now().await;
        }
    })
    .await;
    let error = call.await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Transport, Outcome::NotSent));
    assert!(
        format!("{error:?}").contains("connection timed out: the server did not complete the handshake within 5s"),
        "{error:?}"
    );
}

#[tokio::test]
async fn an_abandoned_attempt_counts_as_one() {
    let server = FakeServer::willing();
    let twice = ReconnectPolicy::default().attempts(2).first_pause(Duration::from_millis(1));
    let client = soon(server.connecting().reconnect(twice).into_future()).await.unwrap();
    server.set(OnConnect::Hang);
    server.cut();
    soon(client.closed()).await;
    // Losing the connection so soon was the first failed attempt, and the impatient caller makes the second.
    let impatient = tokio::spawn(client.call_tool("pay", json!({})).into_future());
    let mut changed = server.changed.subscribe();
    soon(changed.wait_for(|_| server.connections() == 2)).await.unwrap();
    impatient.abort();
    let later = client.call_tool("pay", json!({})).total_timeout(Duration::from_millis(300));
    assert_eq!(soon(later.into_future()).await.unwrap_err().outcome(), Outcome::NotSent);
    assert_eq!(server.connections(), 2);
}

/// A connection of which something is left for a while: it takes note of when it is gone.
struct Lingering {
    stream: StreamTransport,
    gone: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Transport for Lingering {
    fn poll_read(&mut self, cx: &mut Polling<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.stream.poll_read(cx, buf)
    }

    fn poll_write(&mut self, cx: &mut Polling<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.stream.poll_write(cx, buf)
    }

    fn poll_flush(&mut self, cx: &mut Polling<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_flush(cx)
    }

    fn poll_hangup(&mut self, cx: &mut Polling<'_>) -> Poll<HangupDirection> {
        self.stream.poll_hangup(cx)
    }

    fn poll_close(&mut self, cx: &mut Polling<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_close(cx)
    }

    fn poll_gone(&mut self, cx: &mut Polling<'_>) -> Poll<()> {
        self.gone.as_mut().poll(cx)
    }
}

#[tokio::test]
async fn no_connection_is_opened_before_an_abandoned_attempt_has_ended() {
    let server = FakeServer::new(|number, request| match number {
        1 => Reply::Silence,
        _ => Reply::Result(done(request)),
    });
    let events = Arc::new(Mutex::new(Vec::new()));
    let (acceptor, log) = (Arc::clone(&server), Arc::clone(&events));
    let open = move || {
        let (number, events) = (acceptor.connections(), Arc::clone(&log));
        events.lock().unwrap().push(("opened", number));
        let opening = Arc::clone(&acceptor).open();
        async move {
            let gone = Box::pin(async move {
                // So long that a caller that does not wait for it gets there first.
                tokio::time::sleep(Duration::from_millis(50)).await;
                events.lock().unwrap().push(("gone", number));
            });
            Ok(Lingering { stream: opening.await?, gone })
        }
    };
    let pauses = ReconnectPolicy::default().first_pause(Duration::from_millis(1));
    let client = soon(Client::connect(open).negotiation(NegotiationMode::Stateless).reconnect(pauses).into_future())
        .await
        .unwrap();
    server.cut();
    soon(client.closed()).await;
    let mut call = Box::pin(client.call_tool("pay", json!({})).start());
    tokio::select! {
        ended = &mut call => panic!("{ended:?}"),
        () = server.until(|server| server.asked("server/discover").contains(&1)) => {}
    }
    drop(call);
    server.until(|server| server.ended.load(Ordering::SeqCst) == 2).await;
    soon(client.list_tools()).await.unwrap();
    let order = [("opened", 0), ("gone", 0), ("opened", 1), ("gone", 1), ("opened", 2)];
    assert_eq!(*events.lock().unwrap(), order);
}
