//! Requests and notifications that are not in the specification.

use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use serde_json::json;
use steadfast::client::{ConnectBuilder, NegotiationMode};
use steadfast::model::{Notification, Request, code};
use steadfast::prelude::*;
use steadfast::server::ServerBuilder;
use steadfast::transport::memory;
use steadfast::{Error, ErrorKind, Method, Outcome, Revision};
use tokio::sync::{mpsc, oneshot};

use crate::support::RawPeer;
use crate::{echo, soon, text};

/// `acme/double`
enum Double {}

impl Request for Double {
    const METHOD: Method = Method::vendor_request("acme/double");
    type Params = Number;
    type Result = Number;
}

/// `notifications/acme/number`
enum Announce {}

impl Notification for Announce {
    const METHOD: Method = Method::vendor_notification("notifications/acme/number");
    type Params = Number;
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Number {
    value: u32,
}

fn number(value: u32) -> Number {
    Number { value }
}

fn builder() -> ServerBuilder {
    Server::builder("acme", "1.0.0").tool(echo())
}

fn doubling() -> ServerBuilder {
    builder().on_request::<Double>(|Number { value }, _| async move { Ok(number(2 * value)) })
}

fn modes() -> impl Iterator<Item = NegotiationMode> {
    let stateful = Revision::ALL.iter().filter(|revision| !revision.is_stateless());
    stateful.map(|revision| NegotiationMode::Handshake(*revision)).chain([NegotiationMode::Stateless])
}

/// The ways to a server: in memory in every revision, over HTTP with and without a session.
async fn each_way(server: &Server, settings: impl Fn(ConnectBuilder) -> ConnectBuilder) -> Vec<Client> {
    let mut clients = Vec::new();
    for mode in modes() {
        let connecting = settings(Client::connect(server.clone()).negotiation(mode));
        clients.push(soon(connecting.into_future()).await.unwrap());
    }
    for mode in [NegotiationMode::Handshake(Revision::V2025_11_25), NegotiationMode::Stateless] {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        tokio::spawn(server.clone().serve_http_on(listener).run());
        let connecting = settings(Client::connect(url).negotiation(mode));
        clients.push(soon(connecting.into_future()).await.unwrap());
    }
    clients
}

#[tokio::test]
async fn a_request_of_a_vendor_reaches_its_handler_in_every_revision() {
    let server = doubling().build();
    for client in each_way(&server, |connecting| connecting).await {
        let doubled = soon(client.call::<Double>(number(21)).into_future()).await.unwrap();
        assert_eq!(doubled, number(42), "{:?}", client.revision());
        client.close().await;
    }
}

#[tokio::test]
async fn a_request_without_a_handler_is_an_unknown_method() {
    let server = builder().build();
    for client in each_way(&server, |connecting| connecting).await {
        let error = soon(client.call::<Double>(number(1)).into_future()).await.unwrap_err();
        assert_eq!(error.refusal().map(|refusal| refusal.code), Some(code::METHOD_NOT_FOUND));
        assert_eq!(error.outcome(), Outcome::Refused);
    }
}

#[tokio::test]
async fn parameters_that_cannot_be_decoded_are_invalid_and_a_panic_is_an_internal_error() {
    let server = builder()
        .on_request::<Double>(|Number { value }, _| async move {
            assert!(value != 13, "secret");
            Err(Error::invalid_params("odd"))
        })
        .build();
    let (here, there) = memory::pair(1 << 16);
    tokio::spawn(server.serve(there).into_future());
    let mut peer = RawPeer::new(here);
    for (id, mut params) in [(1_usize, json!({"value": "x"})), (2, json!({"value": 13})), (3, json!({"value": 1}))] {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        params["_meta"] = meta;
        peer.send(&json!({"jsonrpc": "2.0", "id": id, "method": "acme/double", "params": params})).await;
        let response = soon(peer.line()).await.unwrap();
        assert_eq!(response["error"]["code"], json!([-32602, -32603, -32602][id - 1]), "{response}");
        assert!(!response.to_string().contains("secret"));
    }
}

#[tokio::test]
async fn dropping_a_call_of_a_vendors_method_cancels_its_handler() {
    let (started, mut starts) = mpsc::unbounded_channel();
    let (cancelled, mut cancels) = mpsc::unbounded_channel();
    let server = builder()
        .on_request::<Double>(move |number, ctx| {
            let cancelled = cancelled.clone();
            ctx.on_cancel(async move { cancelled.send(()).unwrap() });
            started.send(()).unwrap();
            async move {
                std::future::pending::<()>().await;
                Ok(number)
            }
        })
        .build();
    for client in each_way(&server, |connecting| connecting).await {
        let call = client.call::<Double>(number(1)).start();
        let call = tokio::spawn(call);
        soon(starts.recv()).await.unwrap();
        call.abort();
        // A hangup over HTTP with a session is no cancellation by itself: the client sends one.
        soon(cancels.recv()).await.unwrap();
    }
}

#[tokio::test]
async fn a_server_calls_a_vendors_method_of_its_client_up_to_2025_11_25() {
    let asks = ServerTool::new("asks").handler(|ctx: Context| async move {
        let doubled = ctx.call::<Double>(number(4)).await?;
        Ok::<_, ToolError>(doubled.value.to_string())
    });
    let server = builder().tool(asks).build();
    let settings = |connecting: ConnectBuilder| {
        connecting.on_request::<Double>(|Number { value }, _| async move { Ok(number(2 * value)) })
    };
    for client in each_way(&server, settings).await {
        let answer = soon(client.call_tool("asks", ()).into_future()).await;
        if client.revision().is_stateless() {
            assert!(answer.is_err() || answer.is_ok_and(|answer| answer.is_error()), "no server sends requests there");
        } else {
            assert_eq!(text(&answer.unwrap()), "8");
        }
    }
}

#[tokio::test]
async fn notifications_of_a_request_arrive_in_order_before_its_result_and_none_is_merged() {
    let counts = ServerTool::new("counts").handler(|ctx: Context| async move {
        for value in [1, 1, 2, 3] {
            ctx.notify::<Announce>(&number(value)).unwrap();
        }
        "done"
    });
    let server = builder().tool(counts).build();
    let (sender, mut received) = mpsc::unbounded_channel();
    let settings = move |connecting: ConnectBuilder| {
        let sender = sender.clone();
        connecting.on_notification::<Announce>(move |number, _| {
            sender.send(number.value).unwrap();
            async {}
        })
    };
    for client in each_way(&server, settings).await {
        soon(client.call_tool("counts", ()).into_future()).await.unwrap();
        let mut values = Vec::new();
        while values.len() < 4 {
            values.push(soon(received.recv()).await.unwrap());
        }
        assert_eq!(values, [1, 1, 2, 3], "{:?}", client.revision());
    }
}

#[tokio::test]
async fn notifications_of_a_client_reach_the_server_and_say_who_sent_them() {
    let (sender, mut received) = mpsc::unbounded_channel();
    let server = builder()
        .on_notification::<Announce>(move |number, from| {
            sender.send((number.value, from.revision())).unwrap();
            async {}
        })
        .build();
    let mut refused = 0;
    for client in each_way(&server, |connecting| connecting).await {
        let sent = client.notify::<Announce>(&number(7));
        if let Err(error) = sent {
            assert!(client.revision().is_stateless());
            refused += 1;
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            continue;
        }
        let (value, revision) = soon(received.recv()).await.unwrap();
        assert_eq!((value, revision), (7, client.revision()));
    }
    assert_eq!(refused, 1, "over HTTP since 2026-07-28 there is no such notification");
}

#[tokio::test]
async fn a_handler_of_notifications_that_hangs_or_panics_delays_no_request_and_loses_no_later_notification() {
    let (sender, mut received) = mpsc::unbounded_channel();
    let (release, gate) = oneshot::channel::<()>();
    let gate = Arc::new(Mutex::new(Some(gate)));
    let server = builder()
        .on_notification::<Announce>(move |number, _| {
            let gate = gate.lock().unwrap().take();
            assert!(number.value != 13, "a handler that panics");
            let sender = sender.clone();
            async move {
                if let Some(gate) = gate {
                    gate.await.unwrap();
                }
                sender.send(number.value).unwrap();
            }
        })
        .build();
    let client = Client::connect(server).await.unwrap();
    for value in [1, 13, 2] {
        client.notify::<Announce>(&number(value)).unwrap();
    }
    assert_eq!(text(&soon(client.call_tool("echo", json!({"text": "x"})).into_future()).await.unwrap()), "x");
    release.send(()).unwrap();
    assert_eq!(soon(received.recv()).await, Some(1));
    assert_eq!(soon(received.recv()).await, Some(2));
}

#[tokio::test]
async fn a_handler_of_notifications_does_not_outlive_its_connection() {
    struct OnDrop(Option<oneshot::Sender<()>>);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            let _ = self.0.take().unwrap().send(());
        }
    }
    let (dropped, was_dropped) = oneshot::channel();
    let (started, starts) = oneshot::channel();
    let state = Arc::new(Mutex::new(Some((OnDrop(Some(dropped)), started))));
    let server = builder()
        .on_notification::<Announce>(move |_, _| {
            let (on_drop, started) = state.lock().unwrap().take().unwrap();
            async move {
                started.send(()).unwrap();
                std::future::pending::<()>().await;
                drop(on_drop);
            }
        })
        .build();
    let client = Client::connect(server).await.unwrap();
    client.notify::<Announce>(&number(1)).unwrap();
    soon(starts).await.unwrap();
    client.close().await;
    soon(was_dropped).await.unwrap();
}

#[tokio::test]
async fn a_client_that_is_closed_sends_no_notification() {
    let client = Client::connect(builder().build()).await.unwrap();
    let other = client.clone();
    client.close().await;
    let error = other.notify::<Announce>(&number(1)).unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Closed, Outcome::NotSent));
}

#[tokio::test]
async fn parameters_that_are_no_object_are_not_sent() {
    enum Bare {}
    impl Notification for Bare {
        const METHOD: Method = Method::vendor_notification("notifications/acme/bare");
        type Params = u32;
    }
    let client = Client::connect(builder().build()).await.unwrap();
    assert_eq!(client.notify::<Bare>(&7).unwrap_err().kind(), ErrorKind::Encode);
}
