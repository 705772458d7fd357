use super::*;

fn round_trip(text: &str) -> Content {
    let content: Content = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&content).unwrap(), text);
    content
}

#[test]
fn every_kind_round_trips() {
    for text in [
        r#"{"type":"text","text":"hi"}"#,
        r#"{"type":"text","text":"hi","annotations":{"audience":["user"],"priority":0.5,"x":1},"_meta":{"k":1},"y":2}"#,
        r#"{"type":"image","data":"AA==","mimeType":"image/png"}"#,
        r#"{"type":"audio","data":"AA==","mimeType":"audio/wav"}"#,
        r#"{"type":"resource_link","uri":"file:///a","name":"a","size":3}"#,
        r#"{"type":"resource","resource":{"uri":"file:///a","mimeType":"text/plain","text":"hi"}}"#,
        r#"{"type":"resource","resource":{"uri":"file:///a","blob":"AA=="}}"#,
        r#"{"type":"tool_use","id":"1","name":"add","input":{"b":1,"a":2}}"#,
        r#"{"type":"tool_result","toolUseId":"1","content":[{"type":"text","text":"3"}],"isError":false}"#,
    ] {
        assert!(!matches!(round_trip(text), Content::Other(_)), "{text}");
    }
}

#[test]
fn an_unknown_kind_is_preserved() {
    assert!(matches!(round_trip(r#"{"a":1,"type":"hologram","data":[1,2]}"#), Content::Other(_)));
}

#[test]
fn a_known_kind_that_lacks_a_member_is_refused_with_its_name() {
    let error = serde_json::from_str::<Content>(r#"{"type":"text"}"#).unwrap_err();
    assert!(error.to_string().contains("text"), "{error}");
    assert!(serde_json::from_str::<Content>(r#"{"text":"hi"}"#).is_err());
    assert!(serde_json::from_str::<Content>(r#"{"type":7,"text":"hi"}"#).is_err());
}

#[test]
fn annotations_and_meta_reach_the_piece_they_are_set_on() {
    let content = Content::text("hi")
        .with_annotations(Annotations::new().with_priority(1.0))
        .with_meta(JsonObject::from_iter([("k".to_owned(), Value::from(1))]));
    let Content::Text(text) = content else { panic!("text stays text") };
    assert_eq!(text.annotations.unwrap().priority, Some(1.0));
    assert_eq!(text.meta.unwrap()["k"], 1);
}
