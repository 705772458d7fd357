//! Up to 2025-11-25: messages, streams and the ids of sessions.

use super::*;

fn get(session: &str) -> Sent {
    Sent::new("GET").with("mcp-session-id", session)
}

#[tokio::test]
async fn a_batch_is_refused_in_revisions_without_batches() {
    let service = service([echo()]);
    let session = open(&service, "2025-11-25").await;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    for body in [json!([ping]).to_string(), format!("{ping}{ping}"), format!("{ping}\n{ping}"), String::new()] {
        let response = Sent::in_session(&session, &ping).with_body(&body).to(&service).await;
        let answer = (status(&response), self::body(response).await);
        assert_eq!(answer.0, 400, "{body}: {}", answer.1);
    }
    assert_eq!(status(&Sent::in_session(&session, &ping).to(&service).await), 200);
}

#[tokio::test]
async fn a_response_of_the_client_is_accepted_with_202() {
    let tool = ServerTool::new("roots").handler(|ctx: Context| async move {
        let roots = ctx.roots().await?;
        Ok::<_, ToolError>(roots.roots.len())
    });
    let service = service([tool]);
    let session = open(&service, "2025-11-25").await;
    let mut events = Events::of(Sent::in_session(&session, &call(1, "roots", json!({}))).to(&service).await);
    let asked = events.message().await.unwrap();
    assert_eq!(asked["method"], "roots/list");
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": [{"uri": "file:///a"}]}});
    let response = Sent::in_session(&session, &answer).to(&service).await;
    assert_eq!((status(&response), body(response).await), (202, Value::Null));
    let rest = events.all().await;
    assert_eq!((rest.len(), &rest[0]["result"]["content"][0]["text"]), (1, &json!("1")));
}

#[tokio::test]
async fn notifications_and_responses_that_are_refused_have_an_error_status() {
    let service = service([]);
    let session = open(&service, "2025-11-25").await;
    let note = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    for message in [note, answer] {
        let refused = [
            ("no session", Sent::post(&message), 400),
            ("an unknown session", Sent::in_session("no-such", &message), 404),
            ("a bad revision", Sent::in_session(&session, &message).with("mcp-protocol-version", "x"), 400),
            ("no JSON", Sent::in_session(&session, &message).with_body("{"), 400),
        ];
        for (what, sent, code) in refused {
            assert_eq!(status(&sent.to(&service).await), code, "{what}: {message}");
        }
    }
}

#[tokio::test]
async fn each_stream_has_messages_of_its_request_and_the_get_stream_has_the_rest() {
    let gate = Signal::default();
    let server = server([talker(&gate)]);
    let service = HttpService::new(server.clone(), HttpServerOptions::new());
    let session = open(&service, "2025-11-25").await;
    let mut listening = Events::of(get(&session).to(&service).await);
    let mut streams = Vec::new();
    for (id, who) in [(1, "ann"), (2, "bob")] {
        let mut message = call(id, "talk", json!({"who": who}));
        message["params"]["_meta"]["progressToken"] = json!(id);
        let mut events = Events::of(Sent::in_session(&session, &message).to(&service).await);
        let first = [events.message().await.unwrap(), events.message().await.unwrap()];
        streams.push((who, first, events));
    }
    server.add_tool(echo());
    for (who, first, events) in streams {
        gate.set();
        let rest = events.all().await;
        assert_eq!(rest.len(), 1, "the answer, and then the end: {rest:?}");
        assert!(first.iter().chain(&rest).all(|message| about(message) == who), "{who}: {first:?} {rest:?}");
    }
    assert_eq!(listening.message().await.unwrap()["method"], "notifications/tools/list_changed");
    assert!(listening.is_silent().await, "no answer comes here");
}

#[tokio::test]
async fn a_retry_event_precedes_closing_the_connection_of_an_open_stream() {
    let gate = Signal::default();
    let waiting = gate.clone();
    let tool = ServerTool::new("released").handler(move |ctx: Context| {
        let gate = waiting.clone();
        async move {
            ctx.release_connection();
            gate.wait().await;
        }
    });
    let service = service([tool]);
    let session = open(&service, "2025-11-25").await;
    let mut post = Events::of(Sent::in_session(&session, &call(1, "released", json!({}))).to(&service).await);
    while post.next().await.is_some() {}
    assert!(post.decoder.retry().is_some(), "of a POST");
    let mut first = Events::of(get(&session).to(&service).await);
    first.next().await.unwrap();
    // Another GET takes the stream over, and the first connection is closed.
    let mut second = Events::of(get(&session).to(&service).await);
    while first.next().await.is_some() {}
    second.next().await.unwrap();
    assert!(first.decoder.retry().is_some() && second.decoder.retry().is_some(), "of a GET");
    gate.set();
}

#[tokio::test]
async fn a_request_without_a_revision_header_uses_that_of_its_session() {
    let service = service([echo()]);
    let batch = json!([{"jsonrpc": "2.0", "id": 1, "method": "ping"}]);
    for (revision, taken) in [("2025-03-26", 200), ("2025-06-18", 400), ("2025-11-25", 400)] {
        let session = open(&service, revision).await;
        let response = Sent::in_session(&session, &batch).to(&service).await;
        assert_eq!(status(&response), taken, "batches exist in one revision: {revision}");
    }
}

#[tokio::test]
async fn session_ids_are_visible_ascii_and_cannot_be_guessed() {
    let service = service([]);
    let mut names = Vec::new();
    for _ in 0..100 {
        names.push(open(&service, "2025-11-25").await);
    }
    assert!(names.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_graphic())), "{names:?}");
    // As long as 128 bits are at the least, and no two have more in common than chance gives them.
    assert!(names.iter().all(|name| name.len() >= 22), "{names:?}");
    names.sort();
    let shared = |one: &str, two: &str| one.bytes().zip(two.bytes()).filter(|(one, two)| one == two).count();
    assert!(names.windows(2).all(|pair| shared(&pair[0], &pair[1]) < 16), "{names:?}");
}
