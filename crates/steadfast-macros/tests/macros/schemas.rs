//! The schemas of macro tools.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use steadfast::{Structured, tool};

use crate::{called, complaint};

#[derive(Debug, Clone, Copy, Deserialize, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Celsius,
    Fahrenheit,
}

/// Cannot be serialized, so its default is not in the schema.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Silent(u8);

#[derive(Debug, Deserialize, Serialize, schemars::JsonSchema)]
struct Place {
    /// City name
    city: String,
    country: Option<String>,
}

type Maybe<T> = Option<T>;

#[tool]
async fn forecast(
    /// Where it is.
    ///
    /// A second paragraph.
    place: Place,
    #[arg(default = 3, description = "How many")] days: u8,
    #[arg(default = Unit::Celsius)] unit: Unit,
    #[arg(default = Silent(7))] silent: Silent,
    #[arg(default = "en")] language: String,
    #[arg(default)] tags: Vec<String>,
    alias: Maybe<f64>,
    anything: Option<Value>,
) -> Structured<Place> {
    let _ = (days, unit, &silent, tags, alias, anything);
    let city = format!("{} {days} {unit:?} {} {language}", place.city, silent.0);
    Structured(Place { city, country: None })
}

#[test]
fn the_schema_is_one_that_strict_clients_take() {
    let tool = forecast();
    let expected = json!({
        "type": "object",
        "properties": {
            "place": {
                "type": "object",
                "description": "Where it is.\n\nA second paragraph.",
                "properties": {
                    "city": { "type": "string", "description": "City name" },
                    "country": { "type": "string" },
                },
                "required": ["city"],
            },
            "days": { "type": "integer", "minimum": 0, "maximum": 255, "description": "How many", "default": 3 },
            "unit": { "type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius" },
            "silent": { "type": "integer", "minimum": 0, "maximum": 255 },
            "language": { "type": "string", "default": "en" },
            "tags": { "type": "array", "items": { "type": "string" }, "default": [] },
            "alias": { "type": "number" },
            "anything": {},
        },
        "required": ["place"],
    });
    let schema = Value::Object(tool.definition().input_schema.clone());
    // The description of `Silent` comes from its own doc comment.
    let mut schema = schema;
    assert!(schema["properties"]["silent"].as_object_mut().unwrap().remove("description").is_some());
    assert_eq!(schema, expected);
    let output = Value::Object(tool.definition().output_schema.clone().unwrap());
    assert_eq!(output["properties"]["country"]["type"], json!(["string", "null"]));
}

#[tokio::test]
async fn defaults_fill_what_is_absent_or_null() {
    let tool = forecast();
    let absent = called(&tool, json!({ "place": { "city": "Ulm" } })).await;
    assert_eq!(absent, r#"{"city":"Ulm 3 Celsius 7 en","country":null}"#);
    let null = called(&tool, json!({ "place": { "city": "Ulm" }, "days": null, "unit": "fahrenheit" })).await;
    assert_eq!(null, r#"{"city":"Ulm 3 Fahrenheit 7 en","country":null}"#);
}

#[tokio::test]
async fn a_bad_member_of_a_member_is_named() {
    let tool = forecast();
    assert_eq!(
        complaint(&tool, json!({ "place": { "city": 1 } })).await,
        "Bad argument `place.city`: it must be a string, and is 1"
    );
    assert_eq!(complaint(&tool, json!({ "place": {} })).await, "Bad argument `place`: `city` is missing");
    let unit = complaint(&tool, json!({ "place": { "city": "Ulm" }, "unit": "kelvin" })).await;
    assert_eq!(unit, "Bad argument `unit`: it must be `celsius` or `fahrenheit`, and is `kelvin`");
}
