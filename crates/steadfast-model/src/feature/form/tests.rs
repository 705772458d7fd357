use super::*;

#[test]
fn every_kind_round_trips() {
    for text in [
        r#"{"type":"string","title":"T","description":"D","minLength":1,"maxLength":9,"format":"email","default":"a"}"#,
        r#"{"type":"number","minimum":0.5,"maximum":10,"default":3}"#,
        r#"{"type":"integer"}"#,
        r#"{"type":"boolean","default":true}"#,
        r#"{"type":"string","enum":["a","b"],"default":"b"}"#,
        r##"{"type":"string","oneOf":[{"const":"#F00","title":"Red"},{"const":"#0F0","title":"Green"}]}"##,
        r#"{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string","enum":["a","b"]},"default":["a"]}"#,
        r#"{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}"#,
    ] {
        let field: FormField = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&field).unwrap(), text);
    }
}

#[test]
fn the_older_titled_choice_is_understood() {
    let text = r#"{"type":"string","enum":["a","b"],"enumNames":["A"]}"#;
    let field: FormField = serde_json::from_str(text).unwrap();
    let FormFieldKind::Choice { options, .. } = field.kind else { panic!("a choice") };
    assert_eq!(options, [FormOption::new("a").with_title("A"), FormOption::new("b")]);
}

#[test]
fn invalid_fields_are_refused_and_skipped() {
    assert!(serde_json::from_str::<FormField>(r#"{"type":"object"}"#).is_err());
    assert!(serde_json::from_str::<FormField>(r#"{"type":"array","items":{"type":"number"}}"#).is_err());
    let form: FormSchema = serde_json::from_str(
        r#"{"type":"object","properties":{"bad":{"type":"object"},"good":{"type":"boolean"}},"x":1}"#,
    )
    .unwrap();
    assert_eq!(form.fields().count(), 1);
    assert_eq!(form.as_object()["x"], 1);
}

#[test]
fn a_field_built_by_hand_has_every_keyword() {
    let written = |field: FormField| serde_json::to_string(&field).unwrap();
    assert_eq!(
        written(FormField::string().with_length(1, 9).with_default("a")),
        r#"{"type":"string","minLength":1,"maxLength":9,"default":"a"}"#
    );
    assert_eq!(
        written(FormField::choices(["a", "b"]).with_count(1, 2).with_default(vec!["a"])),
        r#"{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string","enum":["a","b"]},"default":["a"]}"#
    );
    assert_eq!(written(FormField::boolean().with_default(true)), r#"{"type":"boolean","default":true}"#);
    assert_eq!(written(FormField::boolean().with_default("yes")), r#"{"type":"boolean"}"#);
}
