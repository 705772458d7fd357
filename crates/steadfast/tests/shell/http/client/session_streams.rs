//! The streams of a server of the older revisions.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use steadfast::client::Change;
use steadfast::{ErrorKind, Limits, Outcome, SubscriptionFilter};
use tokio::sync::Barrier;

use super::*;

fn nothing(request: &ReceivedRequest) -> Vec<u8> {
    json_answer(request, &json!({"content": []}))
}

/// As [`older`], by a server that has no sessions.
fn without_session(request: &ReceivedRequest, answer: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
    let answered = String::from_utf8(older(request, answer)).unwrap();
    answered.replace("mcp-session-id: s1\r\n", "").into_bytes()
}

#[tokio::test]
async fn a_refused_get_stream_without_a_session_is_not_a_lost_session() {
    for status in ["404 Not Found", "405 Method Not Allowed", "400 Bad Request", "200 OK"] {
        let asked = Signal::default();
        let get = asked.clone();
        let (url, requests) = raw(move |_, request| {
            if request.method == "GET" {
                get.set();
                return response(status, &[], "");
            }
            without_session(request, || nothing(request))
        })
        .await;
        let client = connect(&url, OLDER).await;
        soon(asked.wait()).await;
        for _ in 0..3 {
            soon(client.call_tool("any", json!({})).into_future()).await.unwrap();
        }
        soon(client.close()).await;
        assert!(requests.lock().unwrap().iter().all(|request| request.method != "DELETE"), "{status}");
    }
}

#[tokio::test]
async fn a_404_to_the_get_stream_ends_the_connection() {
    let (url, _) = raw(|_, request| {
        older(request, || if request.method == "GET" { response("404 Not Found", &[], "") } else { nothing(request) })
    })
    .await;
    let client = connect_once(HttpTarget::new(&url), OLDER).await;
    soon(client.closed()).await;
}

/// Resuming a response notices it too: a new session is opened, and an idempotent request is retried there.
#[tokio::test]
async fn an_unknown_session_while_resuming_is_a_lost_session() {
    let begun = Arc::new(AtomicUsize::new(0));
    let sessions = Arc::clone(&begun);
    let (url, _) = raw(move |_, request| {
        if request.is("initialize") {
            sessions.fetch_add(1, Ordering::SeqCst);
        }
        let again = sessions.load(Ordering::SeqCst) > 1;
        older(request, || match (&*request.method, request.header("last-event-id")) {
            ("GET", Some(_)) => response("404 Not Found", &[], ""),
            ("GET", None) => response("405 No", &[], ""),
            _ if request.is("tools/call") && !again => events("id: 1\nretry: 1\ndata:\n\n"),
            _ => nothing(request),
        })
    })
    .await;
    let client = connect(&url, OLDER).await;
    soon(client.call_tool("any", json!({})).idempotent().into_future()).await.unwrap();
    assert_eq!(begun.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_stream_that_ends_without_a_response_or_event_id_has_an_unknown_outcome() {
    for body in ["", ": nothing\n\n", "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n"] {
        let (url, requests) = raw(move |_, request| {
            older(request, || if request.method == "GET" { response("405 No", &[], "") } else { events(body) })
        })
        .await;
        let client = connect(&url, OLDER).await;
        let error = soon(client.call_tool("any", json!({})).into_future()).await.unwrap_err();
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::Transport, Outcome::Unknown), "{body:?}");
        assert_eq!(requests.lock().unwrap().iter().filter(|request| request.is("tools/call")).count(), 1);
    }
}

/// A 202 is not a response to a request.
#[tokio::test]
async fn a_request_that_is_only_accepted_is_not_answered() {
    let (url, _) = raw(|_, request| {
        older(request, || {
            if request.method == "GET" { response("405 No", &[], "") } else { response("202 Accepted", &[], "") }
        })
    })
    .await;
    let client = connect(&url, OLDER).await;
    let error = soon(client.call_tool("any", json!({})).into_future()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Transport, Outcome::Unknown));
    let (url, _) = raw(|_, _| response("202 Accepted", &[], "")).await;
    let error = soon(Client::connect(&*url).negotiation(OLDER).into_future()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Transport, Outcome::NotSent));
}

#[tokio::test]
async fn an_error_status_without_a_body_is_a_refusal() {
    for status in ["400 Bad Request", "403 Forbidden", "409 Conflict", "413 Too Large", "422 What", "429 Slow Down"] {
        let (url, _) = raw(move |_, request| {
            older(request, || {
                if request.method == "GET" { response("405 No", &[], "") } else { response(status, &[], "") }
            })
        })
        .await;
        let client = connect(&url, OLDER).await;
        let error = soon(client.call_tool("any", json!({})).into_future()).await.unwrap_err();
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::Refused, Outcome::Refused), "{status}");
        assert!(why(&error).contains(&status[..3]), "{}", why(&error));
    }
}

/// Some servers answer it with a stream on which they go on to speak.
#[tokio::test]
async fn the_handshake_is_complete_once_initialized_is_accepted() {
    let url = by_hand(|request, mut stream| async move {
        if request.is("notifications/initialized") {
            let _ = stream.write_all(&events(": welcome\n\n")).await;
            return std::future::pending().await;
        }
        let answer =
            older(&request, || if request.method == "GET" { response("405 No", &[], "") } else { nothing(&request) });
        let _ = stream.write_all(&answer).await;
    })
    .await;
    let client = connect(&url, OLDER).await;
    soon(client.call_tool("any", json!({})).into_future()).await.unwrap();
}

fn ping(number: usize) -> String {
    format!("data: {{\"jsonrpc\":\"2.0\",\"id\":\"p{number}\",\"method\":\"ping\"}}\n\n")
}

/// More answers than are on their way at once, and all of those arrive at the same moment.
#[tokio::test]
async fn a_burst_of_messages_does_not_stall_what_follows() {
    let (barrier, count, all) = (Arc::new(Barrier::new(64)), Arc::new(AtomicUsize::new(0)), Signal::default());
    let done = all.clone();
    let url = by_hand(move |request, mut stream| {
        let (barrier, count, done) = (Arc::clone(&barrier), Arc::clone(&count), done.clone());
        async move {
            if request.method == "GET" {
                let _ = stream.write_all(&events(&(0..200).map(ping).collect::<String>())).await;
                return std::future::pending().await;
            }
            let answer = older(&request, || response("202 Accepted", &[], ""));
            if request.body.get("result").is_some() {
                let number = count.fetch_add(1, Ordering::SeqCst);
                if number < 64 {
                    barrier.wait().await;
                }
                if number == 199 {
                    done.set();
                }
            }
            let _ = stream.write_all(&answer).await;
        }
    })
    .await;
    let _client = connect(&url, OLDER).await;
    soon(all.wait()).await;
}

/// L7: a server that asks and does not take the answers is not read from, until it does.
#[tokio::test]
async fn a_server_that_does_not_accept_responses_is_not_read_from() {
    let blocked = Signal::default();
    let signal = blocked.clone();
    let url = by_hand(move |request, mut stream| {
        let signal = signal.clone();
        async move {
            if request.method == "GET" {
                let _ = stream.write_all(&events("")).await;
                let pings: String = (0..1000).map(ping).collect();
                // The buffer is full when no more is read; a slow reader looks the same, which does no harm.
                while let Ok(written) =
                    tokio::time::timeout(Duration::from_secs(1), stream.write_all(pings.as_bytes())).await
                {
                    if written.is_err() {
                        return;
                    }
                }
                signal.set();
                return std::future::pending().await;
            }
            if request.body.get("result").is_some() {
                return std::future::pending().await;
            }
            let _ = stream.write_all(&older(&request, || nothing(&request))).await;
        }
    })
    .await;
    let mut limits = Limits::default();
    limits.outbox_bytes = 4 * 1024;
    let client = soon(Client::connect(&*url).negotiation(OLDER).limits(limits).into_future()).await.unwrap();
    soon(blocked.wait()).await;
    soon(client.close()).await;
}

/// What a server tells of its changes is on a stream of its own.
#[tokio::test]
async fn listening_is_reported_only_when_the_stream_is_open() {
    let gets = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&gets);
    let (url, _) = raw(move |_, request| {
        older(request, || match request.method.as_str() {
            "GET" if counted.fetch_add(1, Ordering::SeqCst) == 0 => response("503 Service Unavailable", &[], ""),
            "GET" => events(": here\n\n"),
            _ => response("200 OK", &[], ""),
        })
    })
    .await;
    let client = connect(&url, OLDER).await;
    let mut changes = client.changes(SubscriptionFilter::new().with_tools_list_changed(true));
    let first = soon(changes.next()).await.unwrap().unwrap();
    assert!(matches!(first, Change::Listening(_)), "{first:?}");
    assert!(gets.load(Ordering::SeqCst) > 1, "the stream was not open yet");
}
