//! Pings that a client sends, with a manual clock.

use steadfast::runtime::Runtime as _;

use super::*;
use crate::support::LogLines;
use crate::support::{EVERY, ManualClock};

async fn pinging(era: NegotiationMode) -> (Client, RecordingServer, ManualClock) {
    let clock = ManualClock::new();
    let runtime = Arc::new(clock.clone());
    let (client, server) =
        RecordingServer::connected(era, |connecting| connecting.ping_interval(EVERY).runtime(runtime)).await;
    (client, server, clock)
}

#[tokio::test]
async fn a_server_is_pinged_at_the_interval_and_dropped_without_a_response() {
    let heard = LogLines::default();
    let _guard = tracing::subscriber::set_default(heard.clone());
    let (client, mut server, clock) = pinging(OLDER).await;
    for answered in [true, false, true] {
        clock.beat(false).await;
        let ping = server.next().await.expect("the connection goes on while pings are answered");
        assert_eq!(ping["method"], "ping", "{ping}");
        // A result or an error: both are signs of life.
        if answered {
            server.answer(&ping, json!({})).await;
        } else {
            server.refuse(&ping, -32601, Value::Null).await;
        }
    }
    clock.beat(false).await;
    assert_eq!(server.next().await.unwrap()["method"], "ping");
    assert!(!heard.text().contains("ping"), "{}", heard.text());
    // This one is not answered.
    clock.beat(true).await;
    server.read_to_the_end().await;
    soon(client.closed()).await;
    assert!(heard.text().contains("ping timed out"), "{}", heard.text());
}

#[tokio::test]
async fn no_ping_is_sent_by_default_or_in_2026() {
    let (client, mut server, clock) = pinging(NegotiationMode::Stateless).await;
    clock.move_to(clock.now() + EVERY + EVERY);
    server.is_quiet(&client).await;
    let clock = ManualClock::new();
    let runtime = Arc::new(clock.clone());
    let (client, mut server) = RecordingServer::connected(OLDER, |connecting| connecting.runtime(runtime)).await;
    clock.move_to(clock.now() + EVERY + EVERY);
    server.is_quiet(&client).await;
}

#[tokio::test]
async fn a_server_that_stops_reading_pings_is_dropped() {
    let (client, _host, clock) = pinging(OLDER).await;
    // More than the transport buffers: the ping waits in the queue after it.
    let call = client.call_tool("large", json!({"text": "x".repeat(1 << 18)})).start();
    let closed = tokio::spawn({
        let client = client.clone();
        async move { client.closed().await }
    });
    soon(async {
        while !closed.is_finished() {
            clock.move_to(clock.now() + EVERY);
            tokio::task::yield_now().await;
        }
    })
    .await;
    drop(call);
}
