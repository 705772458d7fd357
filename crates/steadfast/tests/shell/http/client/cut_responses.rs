//! Responses that are cut at every byte: a call has the right outcome, and never hangs.

use std::time::Instant;

use serde_json::{Value, json};
use steadfast::client::NegotiationMode;
use steadfast::{ErrorKind, Outcome};

use super::*;

/// An event to go on after, a report, and the answer to the call with that id.
fn told(number: usize, id: &Value) -> String {
    let data = match number {
        0 => return "id: e0\nretry: 1\ndata:\n\n".to_owned(),
        1 => json!({"jsonrpc": "2.0", "method": "notifications/progress",
            "params": {"progressToken": 0, "progress": 1}}),
        _ => json!({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete",
            "content": [{"type": "text", "text": "größe"}]}}),
    };
    format!("id: e{number}\ndata: {data}\n\n")
}

fn all_told(id: &Value) -> String {
    (0..3).map(|number| told(number, id)).collect()
}

/// How the end of a body is marked.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ends {
    /// With the connection: a cut looks like an end.
    Closed,
    /// With an empty chunk: a cut is seen.
    Chunked,
}

fn cut(body: &[u8], at: usize, ends: Ends) -> Vec<u8> {
    let sent = &body[..at];
    match ends {
        Ends::Closed => {
            [b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n", sent].concat()
        }
        Ends::Chunked => {
            let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
            // A chunk of all of it, of which some is missing.
            [&head[..], format!("{:x}\r\n", body.len()).as_bytes(), sent].concat()
        }
    }
}

/// Ids begin at the handshake, so the first call has this one.
fn id_of_the_call() -> Value {
    json!(2)
}

#[tokio::test]
async fn a_cut_session_stream_is_resumed_after_its_first_event_id() {
    let whole = all_told(&id_of_the_call()).into_bytes();
    let resumable = told(0, &Value::Null).len();
    for ends in [Ends::Closed, Ends::Chunked] {
        for at in 0..whole.len() {
            let body = whole.clone();
            let (url, requests) = raw(move |_, request| {
                older(request, || match (&*request.method, request.header("last-event-id")) {
                    ("GET", None) => response("405 Method Not Allowed", &[], ""),
                    ("GET", Some(last)) => {
                        let from: usize = last.trim_start_matches('e').parse::<usize>().unwrap() + 1;
                        events(&(from..3).map(|number| told(number, &id_of_the_call())).collect::<String>())
                    }
                    _ => {
                        assert_eq!(request.body["id"], id_of_the_call());
                        cut(&body, at, ends)
                    }
                })
            })
            .await;
            let client = connect(&url, OLDER).await;
            let called = soon(client.call_tool("any", json!({})).into_future()).await;
            if at >= resumable {
                assert_eq!(text(&called.unwrap()), "größe", "{ends:?} at {at}");
            } else {
                let error = called.unwrap_err();
                assert_eq!(
                    (error.kind(), error.outcome()),
                    (ErrorKind::Transport, Outcome::Unknown),
                    "{ends:?} at {at}"
                );
            }
            let requests = requests.lock().unwrap();
            let resumed = requests.iter().filter(|request| request.header("last-event-id").is_some()).count();
            assert_eq!(resumed, usize::from(at >= resumable), "{ends:?} at {at}");
            assert_eq!(requests.iter().filter(|request| request.is("tools/call")).count(), 1, "{ends:?} at {at}");
        }
    }
}

#[tokio::test]
async fn a_cut_stream_of_2026_has_an_unknown_outcome() {
    for ends in [Ends::Closed, Ends::Chunked] {
        let length = all_told(&id_of_the_call()).len();
        for at in (0..=length).rev() {
            let (url, requests) = raw(move |_, request| {
                modern(request, || cut(all_told(&request.body["id"]).as_bytes(), at.min(length), ends))
            })
            .await;
            let client = connect(&url, NegotiationMode::Stateless).await;
            let called = soon(client.call_tool("any", json!({})).into_future()).await;
            let calls = requests.lock().unwrap().iter().filter(|request| request.is("tools/call")).count();
            assert_eq!(calls, 1, "{ends:?} at {at}");
            match called {
                Ok(result) => assert_eq!((text(&result), at), ("größe", length), "{ends:?}"),
                Err(error) => {
                    assert_ne!(at, length, "{error:?}");
                    let known = (error.kind(), error.outcome());
                    assert_eq!(known, (ErrorKind::Transport, Outcome::Unknown), "{ends:?} at {at}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_cut_json_response_has_an_unknown_outcome() {
    let answer = |request: &ReceivedRequest| json_answer(request, &json!({"resultType": "complete", "content": []}));
    let length = {
        let request =
            ReceivedRequest { method: "POST".to_owned(), head: String::new(), body: json!({"id": id_of_the_call()}) };
        answer(&request).len()
    };
    for at in 0..length {
        let (url, _) = raw(move |_, request| {
            modern(request, || {
                let mut bytes = answer(request);
                bytes.truncate(at);
                bytes
            })
        })
        .await;
        let client = connect(&url, NegotiationMode::Stateless).await;
        let error = soon(client.call_tool("any", json!({})).into_future()).await.unwrap_err();
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::Transport, Outcome::Unknown), "at {at}: {error:?}");
    }
}

#[tokio::test]
async fn retry_after_is_respected() {
    let times = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&times);
    let (url, _) = raw(move |_, request| {
        older(request, || match (&*request.method, request.header("last-event-id")) {
            ("GET", None) => response("405 Method Not Allowed", &[], ""),
            ("GET", Some(_)) => {
                seen.lock().unwrap().push(Instant::now());
                events(&told(2, &id_of_the_call()))
            }
            _ => {
                seen.lock().unwrap().push(Instant::now());
                events("id: e0\nretry: 700\ndata:\n\n")
            }
        })
    })
    .await;
    let client = connect(&url, OLDER).await;
    soon(client.call_tool("any", json!({})).into_future()).await.unwrap();
    let times = times.lock().unwrap();
    assert!(times[1] - times[0] >= Duration::from_millis(700), "{:?}", times[1] - times[0]);
}

#[tokio::test]
async fn a_call_times_out_during_retry_after() {
    for retry in [301_000, u64::MAX] {
        let (url, requests) = raw(move |_, request| {
            older(request, || match &*request.method {
                "GET" => response("405 Method Not Allowed", &[], ""),
                _ => events(&format!("id: e0\nretry: {retry}\ndata:\n\n")),
            })
        })
        .await;
        let client = connect(&url, OLDER).await;
        let call = client.call_tool("any", json!({})).timeout(Duration::from_millis(300));
        let error = soon(call.into_future()).await.unwrap_err();
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::TimedOut, Outcome::Unknown), "{error:?}");
        assert!(requests.lock().unwrap().iter().all(|request| request.header("last-event-id").is_none()));
    }
}

/// It would be as impossible the next time.
#[tokio::test]
async fn a_stream_whose_event_id_is_not_a_valid_header_is_not_resumed() {
    let (url, requests) = raw(|_, request| {
        older(request, || match &*request.method {
            "GET" => response("405 Method Not Allowed", &[], ""),
            _ => events("id: e\u{1}\nretry: 1\ndata:\n\n"),
        })
    })
    .await;
    let client = connect(&url, OLDER).await;
    let error = soon(client.call_tool("any", json!({})).into_future()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Transport, Outcome::Unknown), "{error:?}");
    assert!(requests.lock().unwrap().iter().all(|request| request.header("last-event-id").is_none()));
}
