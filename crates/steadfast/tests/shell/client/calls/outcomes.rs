//! A caller always learns the outcome (law L10), and waiting calls end with the connection (L5).

use serde_json::json;
use steadfast::client::NegotiationMode;
use steadfast::prelude::*;
use steadfast::transport::memory;
use steadfast::{ClientCapabilities, ErrorKind, ListRootsResult, Outcome, Revision};

use crate::{Signal, echo, forever, server, soon};

#[tokio::test]
async fn a_call_that_waits_when_the_connection_closes_has_an_unknown_outcome() {
    let (begun, dropped) = (Signal::default(), Signal::default());
    let (here, there) = memory::pair(1024);
    let served = tokio::spawn(server([forever(&begun, &dropped)]).serve(there).into_future());
    let client = Client::connect(here).await.unwrap();
    let call = client.call_tool("forever", json!({})).start();
    soon(begun.wait()).await;
    served.abort();
    let error = soon(call).await.unwrap_err();
    assert!(matches!(error.outcome(), Outcome::Unknown | Outcome::Refused), "{error}");
    soon(dropped.wait()).await;
}

#[tokio::test]
async fn a_call_on_a_closed_connection_was_never_sent() {
    let client = Client::connect(server([echo()])).await.unwrap();
    let other = client.clone();
    soon(client.close()).await;
    let error = soon(other.call_tool("echo", json!({"text": "x"})).into_future()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Closed, Outcome::NotSent));
}

#[tokio::test]
async fn input_requests_of_two_handlers_fail_when_the_client_disconnects() {
    let ended = Signal::default();
    let seen = ended.clone();
    let ask = ServerTool::new("ask").cooperative().handler(move |ctx: Context| {
        let seen = seen.clone();
        async move {
            let error = ctx.roots().await.unwrap_err();
            // The client may still have refused the request before it closed.
            assert!(matches!(error.kind(), ErrorKind::Closed | ErrorKind::Refused), "{error}");
            seen.set();
        }
    });
    let asked = Signal::default();
    let heard = asked.clone();
    let client = Client::connect(server([ask]))
        .negotiation(NegotiationMode::Handshake(Revision::V2025_11_25))
        .capabilities(ClientCapabilities::new().with_roots(false))
        .on_roots(move |_| {
            heard.set();
            std::future::pending::<Result<ListRootsResult, steadfast::Error>>()
        })
        .await
        .unwrap();
    let calls = [client.call_tool("ask", json!({})).start(), client.call_tool("ask", json!({})).start()];
    soon(asked.wait()).await;
    soon(async {
        while asked.count() < 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    soon(client.close()).await;
    soon(async {
        while ended.count() < 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    for call in calls {
        assert!(soon(call).await.is_err());
    }
}

#[tokio::test]
async fn connecting_to_an_unresponsive_server_times_out() {
    let (here, _there) = memory::pair(1024);
    let connecting = Client::connect(here).opening_timeout(std::time::Duration::from_millis(20));
    let error = soon(connecting.into_future()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}
