use super::*;
use crate::CallToolResult;

fn written<R: ResultShape>(revision: Revision, result: &R) -> String {
    let server = Decoration::of_server(&Implementation::new("s", "1"));
    let mut out = b"before ".to_vec();
    write_result(revision, result, &server, &mut out).unwrap();
    String::from_utf8(out.split_off(7)).unwrap()
}

#[test]
fn a_plain_text_result_is_the_same_on_all_old_wires() {
    for revision in Revision::ALL.into_iter().filter(|revision| !revision.is_modern()) {
        assert_eq!(written(revision, &CallToolResult::text("5")), r#"{"content":[{"type":"text","text":"5"}]}"#);
    }
}

#[test]
fn the_modern_wire_adds_its_type_and_the_server() {
    assert_eq!(
        written(Revision::LATEST, &CallToolResult::text("5")),
        concat!(
            r#"{"resultType":"complete","content":[{"type":"text","text":"5"}],"#,
            r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}"#
        )
    );
}
