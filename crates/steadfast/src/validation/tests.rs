use serde_json::json;

use super::*;

fn validator(schema: Value) -> Result<SchemaValidator, String> {
    SchemaValidator::new(schema.as_object().unwrap())
}

fn nested(levels: usize, innermost: Value) -> Value {
    (0..levels).fold(innermost, |inner, _| Value::Array(vec![inner]))
}

#[test]
fn errors_name_the_path() {
    let schema = json!({
        "type": "object",
        "properties": { "stops": { "items": { "properties": { "hour": { "maximum": 23 } } } } },
        "required": ["city"],
    });
    let validator = validator(schema).unwrap();
    assert_eq!(validator.check(&json!({ "city": "Ulm", "stops": [{ "hour": 3 }] })), Ok(()));
    let complaint = validator.check(&json!({ "stops": [{}, { "hour": 24 }] })).unwrap_err();
    assert!(complaint.contains("`stops[1].hour`: 24 is greater than the maximum of 23"), "{complaint}");
    assert!(complaint.contains("\"city\" is a required property"), "{complaint}");
}

#[test]
fn a_schema_that_is_none_is_refused() {
    assert!(validator(json!({ "type": "objekt" })).is_err());
}

#[test]
fn a_large_value_is_not_repeated() {
    let validator = validator(json!({ "properties": { "a": { "maxLength": 3 } } })).unwrap();
    let complaint = validator.check(&json!({ "a": "x".repeat(10_000) })).unwrap_err();
    assert!(complaint.len() < 200, "{complaint}");
}

#[test]
fn values_are_checked_by_the_dialect_that_the_schema_declares() {
    // `prefixItems` is of 2020-12; a list of `items` means the same before.
    let schema = |dialect: Option<&str>| {
        let mut schema = json!({ "items": [{ "type": "string" }], "prefixItems": [{ "type": "string" }] });
        match dialect {
            Some(dialect) => schema["$schema"] = dialect.into(),
            None => drop(schema.as_object_mut().unwrap().shift_remove("items")),
        }
        validator(schema).unwrap()
    };
    let wrong = json!([1]);
    assert!(schema(None).check(&wrong).is_err());
    for draft in ["draft/2019-09", "draft-07", "draft-06", "draft-04"] {
        let uri = format!("http://json-schema.org/{draft}/schema#");
        assert!(schema(Some(&uri)).check(&wrong).is_err(), "{draft}");
        let modern = validator(json!({ "$schema": uri, "prefixItems": [{ "type": "string" }] })).unwrap();
        assert_eq!(modern.check(&wrong), Ok(()), "{draft}");
    }
    let numbers = json!({ "exclusiveMinimum": true, "minimum": 3 });
    assert!(validator(numbers.clone()).is_err());
    let mut draft_4 = numbers;
    draft_4["$schema"] = "http://json-schema.org/draft-04/schema#".into();
    assert!(validator(draft_4).unwrap().check(&json!(3)).is_err());
}

#[test]
fn a_schema_has_to_be_valid_in_its_own_dialect() {
    let list = json!({ "items": [{ "type": "string" }] });
    assert!(validator(list.clone()).is_err());
    let mut older = list;
    older["$schema"] = "http://json-schema.org/draft-07/schema#".into();
    assert!(validator(older).is_ok());
}

#[test]
fn an_unknown_dialect_is_refused_wherever_it_is_declared() {
    let complaint = validator(json!({ "$schema": "https://example.com/mine" })).err().unwrap();
    assert!(complaint.contains("the dialect `https://example.com/mine` is not supported"), "{complaint}");
    let inner = json!({ "$id": "https://example.com/inner", "$schema": "https://example.com/mine" });
    assert!(validator(json!({ "$ref": "https://example.com/inner", "$defs": { "inner": inner } })).is_err());
}

#[test]
fn other_documents_are_never_fetched() {
    let base = "https://example.com/schemas/";
    for schema in [
        json!({ "$ref": "https://example.com/schema.json" }),
        json!({ "$ref": "file:///etc/passwd" }),
        json!({ "$ref": "//example.com/schema.json" }),
        json!({ "$ref": "other.json" }),
        json!({ "$id": base, "$ref": "other.json" }),
        json!({ "$id": base, "properties": { "a": { "$ref": "../other.json#/$defs/a" } } }),
        json!({ "$dynamicRef": "https://example.com/schema.json#node" }),
        json!({ "$id": base, "$dynamicRef": "other.json#node" }),
        json!({ "items": { "$id": "http://127.0.0.1:9/", "$ref": "other.json" } }),
        json!({ "$defs": { "unused": { "$ref": "https://example.com/schema.json" } } }),
        json!({ "$schema": "https://json-schema.org/draft/2019-09/schema", "$id": base, "not": { "$ref": "x" } }),
        json!({ "$schema": "http://json-schema.org/draft-07/schema#", "$ref": "http://example.com/x#" }),
        json!({ "$schema": "http://json-schema.org/draft-04/schema#", "id": base, "not": { "$ref": "x" } }),
    ] {
        assert!(validator(schema.clone()).is_err(), "{schema}");
    }
}

#[test]
fn references_within_the_document_are_followed_in_every_spelling() {
    let schema = json!({
        "$id": "https://example.com/schemas/root",
        "properties": {
            "by_pointer": { "$ref": "#/$defs/text" },
            "by_anchor": { "$ref": "#text" },
            "by_id": { "$ref": "text" },
            "by_absolute_id": { "$ref": "https://example.com/schemas/text" },
            "dynamic": { "$dynamicRef": "#text" },
        },
        "$defs": { "text": { "$id": "text", "$anchor": "inner", "type": "string" }, "same": { "$anchor": "text", "type": "string" } },
    });
    let validator = validator(schema).unwrap();
    for member in ["by_pointer", "by_anchor", "by_id", "by_absolute_id", "dynamic"] {
        assert!(validator.check(&json!({ member: 7 })).is_err(), "{member}");
        assert_eq!(validator.check(&json!({ member: "seven" })), Ok(()), "{member}");
    }
}

#[test]
fn errors_of_a_wide_value_are_not_all_collected() {
    let validator = validator(json!({ "items": { "type": "string" } })).unwrap();
    let wide = Value::Array(vec![json!(1); 100_000]);
    assert_eq!(
        validator.check(&wide).unwrap_err(),
        "the value does not match the schema, and is too large to say where"
    );
    assert!(validator.check(&json!([1, 2])).unwrap_err().contains("`[0]`"));
}

#[test]
fn branches_that_look_at_the_same_elements_do_not_multiply_with_the_depth() {
    // To say what is wrong with a hundred levels, each branch of each level would check everything below it.
    let schema = json!({ "anyOf": [
        { "type": "string" },
        { "type": "array", "items": { "$ref": "#" } },
        { "type": "array", "maxItems": 3, "items": { "$ref": "#" } },
    ] });
    let validator = validator(schema).unwrap();
    assert_eq!(validator.check(&nested(100, json!("text"))), Ok(()));
    assert!(validator.check(&nested(100, json!(1))).unwrap_err().contains("too large to say where"));
    assert!(validator.check(&nested(3, json!(1))).unwrap_err().contains("is not valid"));
}

#[test]
fn a_value_too_deep_for_the_stack_is_refused() {
    // Each level of the value goes through sixty references.
    let definitions: JsonObject = (0..60)
        .map(|link| (format!("a{link}"), json!({ "$ref": format!("#/$defs/a{}", link + 1) })))
        .chain([("a60".to_owned(), json!({ "items": { "$ref": "#/$defs/a0" } }))])
        .collect();
    let slow = validator(json!({ "$ref": "#/$defs/a0", "$defs": definitions })).unwrap();
    assert_eq!(slow.check(&nested(10, json!(1))), Ok(()));
    assert!(slow.check(&nested(120, json!(1))).unwrap_err().contains("nested 121 levels deep"));
    let plain = validator(json!({ "items": { "$ref": "#" } })).unwrap();
    assert_eq!(plain.check(&nested(128, json!(1))), Ok(()));
    assert!(plain.check(&nested(2_000, json!(1))).is_err());
}

#[test]
fn everything_within_the_limits_fits_on_a_small_stack() {
    let links = super::limits::CHAIN - 2;
    let definitions: JsonObject = (0..links)
        .map(|link| (format!("a{link}"), json!({ "$ref": format!("#/$defs/a{}", link + 1) })))
        .chain([(format!("a{links}"), json!({ "items": { "$ref": "#" } }))])
        .collect();
    let schema = json!({ "$ref": "#/$defs/a0", "$defs": definitions });
    let nested_schema = (0..60).fold(json!({ "type": "integer" }), |inner, _| json!({ "allOf": [inner] }));
    let checks = move || {
        validator(schema).unwrap().check(&nested(8, json!(1))).unwrap();
        validator(nested_schema).unwrap().check(&json!("text")).unwrap_err();
        let plain = validator(json!({ "type": ["array", "integer"], "items": { "$ref": "#" } })).unwrap();
        plain.check(&nested(490, json!("text"))).unwrap_err();
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(checks).unwrap().join().unwrap();
}
