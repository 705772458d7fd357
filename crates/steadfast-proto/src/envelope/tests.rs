use super::*;

fn refused(text: &str) -> (MalformedMessageReason, Option<String>) {
    let refusal = read(text.as_bytes(), 16).expect_err(text);
    (refusal.kind, refusal.salvaged.id.map(|id| id.to_string()))
}

fn request(text: &str) -> (String, String, String) {
    match read(text.as_bytes(), 16) {
        Ok(Message::Request { id, method, params }) => (id.to_string(), method.into_owned(), params.text().to_owned()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_request_has_an_id_and_a_method() {
    let (id, method, params) = request(r#" {"jsonrpc":"2.0", "id":"a", "method":"m", "params":{"x":[1]}} "#);
    assert_eq!((id.as_str(), method.as_str(), params.as_str()), ("\"a\"", "m", r#"{"x":[1]}"#));
}

#[test]
fn escapes_in_names_and_methods_are_read() {
    let (id, method, _) = request(r#"{"jsonrpc":"2.0","\u0069d":1,"method":"tools\/call"}"#);
    assert_eq!((id.as_str(), method.as_str()), ("1", "tools/call"));
}

#[test]
fn unknown_members_are_ignored() {
    assert_eq!(request(r#"{"jsonrpc":"2.0","id":1,"method":"m","trace":{"id":2}}"#).0, "1");
}

#[test]
fn params_are_found_by_name_however_many_there_are() {
    let many: Vec<String> = (0..20).map(|n| format!("\"k{n}\":{n}")).collect();
    let text = format!(r#"{{"jsonrpc":"2.0","method":"m","params":{{{}}}}}"#, many.join(","));
    let Ok(Message::Notification { params, .. }) = read_text(&text, 16) else { panic!() };
    assert_eq!((params.get("k0"), params.get("k19"), params.get("k20")), (Some("0"), Some("19"), None));
    assert_eq!(params.to_owned().get("k19"), Some("19"));
}

#[test]
fn params_with_escaped_names_are_found() {
    let text = r#"{"jsonrpc":"2.0","method":"m","params":{"n\u0061me":"x","a":1}}"#;
    let Ok(Message::Notification { params, .. }) = read_text(text, 16) else { panic!() };
    assert_eq!((params.get("name"), params.get("a")), (Some("\"x\""), Some("1")));
    let owned = params.to_owned();
    assert_eq!(owned.range_of("name").and_then(|range| owned.text().get(range)), Some("\"x\""));
}

#[test]
fn null_params_are_no_params_and_others_are_refused_under_the_id() {
    assert_eq!(request(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":null}"#).2, "{}");
    for params in ["[1]", "\"x\"", "5", "true"] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{params}}}"#);
        assert_eq!(refused(&text), (MalformedMessageReason::BadParams, Some("1".into())));
    }
}

#[test]
fn invalid_ids_are_refused_without_id() {
    for id in ["null", "1.5", "1e3", "true", "{}", "[1]"] {
        let (kind, salvaged) = refused(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#));
        assert!(matches!(kind, MalformedMessageReason::NotAMessage(_)), "{id}");
        assert_eq!(salvaged, None, "{id}");
    }
}

#[test]
fn other_invalid_messages_are_refused_with_their_id() {
    assert_eq!(refused(r#"{"jsonrpc":"2.0","id":5}"#).1.as_deref(), Some("5"));
    assert_eq!(refused(r#"{"jsonrpc":"1.0","id":5,"method":"m"}"#).1.as_deref(), Some("5"));
    assert_eq!(refused(r#"{"id":5,"method":"m"}"#).1.as_deref(), Some("5"));
    assert_eq!(refused(r#"{"jsonrpc":"2.0","id":5,"method":7}"#).1.as_deref(), Some("5"));
}

#[test]
fn a_request_with_a_repeated_member_is_refused_without_id() {
    assert_eq!(refused(r#"{"jsonrpc":"2.0","id":5,"id":6,"method":"m"}"#).1, None);
    assert_eq!(refused(r#"{"jsonrpc":"2.0","id":5,"method":"m","method":"n"}"#).1, None);
}

#[test]
fn unreadable_messages_are_refused_with_their_salvaged_id() {
    assert_eq!(
        refused(r#"{"jsonrpc":"2.0","id":5,"method":"m","params":{]}"#),
        (MalformedMessageReason::NotJson(47), Some("5".into()))
    );
    let deep = format!(r#"{{"jsonrpc":"2.0","id":5,"method":"m","params":{{"a":{}"#, "[".repeat(100_000));
    assert_eq!(refused(&deep), (MalformedMessageReason::TooDeep(16), Some("5".into())));
    let refusal = read(b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"\xff\"}", 16).unwrap_err();
    assert!(matches!(refusal.kind, MalformedMessageReason::NotUtf8(_)));
    assert_eq!(refusal.salvaged.id, Some(5.into()));
}

#[test]
fn results_and_errors_are_distinguished() {
    let answer = |text: &str| match read_text(text, 16) {
        Ok(Message::Response { id, body }) => (id.map(|id| id.to_string()), format!("{body:?}")),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        answer(r#"{"jsonrpc":"2.0","id":1,"result":{"a":1}}"#),
        (Some("1".into()), r#"Result("{\"a\":1}")"#.into())
    );
    assert_eq!(answer(r#"{"jsonrpc":"2.0","id":1,"error":{"code":1}}"#).1, r#"Error("{\"code\":1}")"#);
    assert_eq!(answer(r#"{"jsonrpc":"2.0","id":null,"error":{}}"#).0, None);
    assert_eq!(answer(r#"{"jsonrpc":"2.0","error":{}}"#).0, None);
    assert_eq!(answer(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#).1, "Malformed");
}

#[test]
fn batches_are_walked_lazily() {
    let Ok(Message::Batch(batch)) = read_text(r#"[{"a":1}, 2 ,[3]]"#, 16) else { panic!() };
    let mut members = Vec::new();
    batch.each(|member| members.push(member));
    assert_eq!((batch.len(), members), (3, vec![r#"{"a":1}"#, "2", "[3]"]));
    assert!(matches!(read_text("[]", 16), Ok(Message::Batch(batch)) if batch.is_empty()));
    assert!(matches!(read_text("[1,]", 16), Err(MalformedMessage { kind: MalformedMessageReason::NotJson(_), .. })));
}

#[test]
fn scalars_are_not_messages() {
    for text in ["5", "\"x\"", "null", "true"] {
        assert!(matches!(refused(text).0, MalformedMessageReason::NotAMessage(_)), "{text}");
    }
}

#[test]
fn an_envelope_says_what_reading_its_bytes_says() {
    let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{}{}}}"#, "[".repeat(20), "]".repeat(20));
    for bytes in [
        br#"{"jsonrpc":"2.0","id":"a","method":"tools\/call","params":{"n\u0061me":"x","b":1}}"#.as_slice(),
        br#"{"jsonrpc":"2.0","method":"notifications/progress"}"#,
        br#"{"jsonrpc":"2.0","id":7,"result":{"a":[1]}}"#,
        br#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"no"}}"#,
        br#"{"jsonrpc":"2.0","id":7,"result":1,"error":2}"#,
        br#"[{"jsonrpc":"2.0","id":7,"result":1},2]"#,
        br#"{"jsonrpc":"1.0","id":7,"result":1}"#,
        br#"{"jsonrpc":"2.0","id":7,"id":8,"result":1}"#,
        br#"{"jsonrpc":"2.0","id":7,"method":"m","params":[1]}"#,
        deep.as_bytes(),
        b"5",
        b"",
        b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":\"\xff\"}",
        br#"{"jsonrpc":"2.0","id":7,"result":"#,
    ] {
        let envelope = Envelope::read(bytes.to_vec(), 16);
        let text = String::from_utf8_lossy(bytes);
        for _ in 0..2 {
            assert_eq!(format!("{:?}", envelope.message()), format!("{:?}", read(bytes, 16)), "{text}");
        }
    }
}
