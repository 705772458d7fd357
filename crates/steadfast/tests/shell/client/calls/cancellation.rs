//! Cancellation: calls that are dropped or time out.

use steadfast::{ErrorKind, Outcome};

use crate::client::*;

#[tokio::test]
async fn a_dropped_call_is_cancelled_by_its_id_and_a_late_response_is_ignored() {
    for era in ERAS {
        let (client, mut server) = RecordingServer::connected(era, |connecting| connecting).await;
        let mut call = Box::pin(client.call_tool("t", json!({})).start());
        let request = tokio::select! {
            ended = &mut call => panic!("{ended:?}"),
            request = server.until("tools/call") => request,
        };
        drop(call);
        let cancelled = server.next().await.unwrap();
        assert_eq!(cancelled["method"], "notifications/cancelled", "{era:?} {cancelled}");
        assert_eq!(cancelled["params"]["requestId"], request["id"]);
        assert!(cancelled.get("id").is_none());
        server.answer(&request, json!({"resultType": "complete", "content": []})).await;
        server.is_quiet(&client).await;
    }
}

#[tokio::test]
async fn a_call_with_a_response_is_not_cancelled() {
    let (client, mut server) = RecordingServer::connected(NegotiationMode::Stateless, |connecting| connecting).await;
    let mut call = Box::pin(client.call_tool("t", json!({})).start());
    let answered = async {
        let request = server.until("tools/call").await;
        server.answer(&request, json!({"resultType": "complete", "content": []})).await;
    };
    soon(async { tokio::join!(&mut call, answered) }).await.0.unwrap();
    drop(call);
    server.is_quiet(&client).await;
}

#[tokio::test]
async fn each_call_has_its_own_timeout_and_is_cancelled_after_it() {
    for era in ERAS {
        let (client, mut server) = RecordingServer::connected(era, |connecting| connecting).await;
        let call = client.call_tool("t", json!({})).timeout(Duration::from_millis(50));
        let waiting = async {
            let request = server.until("tools/call").await;
            let cancelled = server.next().await.unwrap();
            assert_eq!(cancelled["params"]["requestId"], request["id"], "{cancelled}");
        };
        let error = with(call.into_future(), waiting).await.unwrap_err();
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::TimedOut, Outcome::Unknown));
    }
}

#[tokio::test]
async fn a_connect_that_is_dropped_sends_no_cancellation() {
    for era in ERAS {
        let (connecting, mut server) = RecordingServer::new();
        let mut connecting = connecting.negotiation(era).into_future();
        tokio::select! {
            ended = &mut connecting => panic!("{ended:?}"),
            _ = server.next() => {}
        }
        drop(connecting);
        server.read_to_the_end().await;
        assert_eq!(server.received.len(), 1, "{:?}", server.received);
    }
}

#[tokio::test]
async fn an_input_request_that_the_server_cancels_is_not_answered() {
    let (asked, dropped) = (Signal::default(), Signal::default());
    let (begun, gone) = (asked.clone(), dropped.clone());
    let (client, mut server) = RecordingServer::connected(OLDER, move |connecting| {
        connecting.on_roots(move |_| {
            let (begun, guard) = (begun.clone(), gone.on_drop());
            async move {
                let _guard = guard;
                begun.set();
                std::future::pending().await
            }
        })
    })
    .await;
    server.raw.send(&json!({"jsonrpc": "2.0", "id": "r", "method": "roots/list"})).await;
    soon(asked.wait()).await;
    server.tell("notifications/cancelled", json!({"requestId": "r", "reason": "not needed"})).await;
    soon(dropped.wait()).await;
    server.is_quiet(&client).await;
}
