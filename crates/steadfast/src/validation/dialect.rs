//! The dialects of JSON Schema in which values can be checked.

use serde_json::Value;

/// A dialect of JSON Schema in which values can be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Draft4,
    Draft6,
    Draft7,
    Draft2019,
    Draft2020,
}

/// The supported dialects of JSON Schema, as text for error messages.
const SUPPORTED: &str = "2020-12 (`https://json-schema.org/draft/2020-12/schema`, or no `$schema` at all), 2019-09, draft-07, \
                     draft-06 and draft-04";

impl Dialect {
    /// The dialect that a schema declares, or 2020-12 if it declares none. The error names the supported dialects.
    pub(super) fn of(schema: &Value) -> Result<Self, String> {
        let Some(declared) = schema.get("$schema") else { return Ok(Self::Draft2020) };
        let Some(uri) = declared.as_str() else {
            return Err("the `$schema` of the schema is not a string with the URI of a dialect".to_owned());
        };
        let rest = uri.strip_prefix("https://").or_else(|| uri.strip_prefix("http://")).unwrap_or(uri);
        match rest.trim_end_matches('#') {
            "json-schema.org/draft/2020-12/schema" => Ok(Self::Draft2020),
            "json-schema.org/draft/2019-09/schema" => Ok(Self::Draft2019),
            "json-schema.org/draft-07/schema" => Ok(Self::Draft7),
            "json-schema.org/draft-06/schema" => Ok(Self::Draft6),
            "json-schema.org/draft-04/schema" => Ok(Self::Draft4),
            _ => {
                let uri = steadfast_model::error::excerpt(uri);
                Err(format!("the dialect `{uri}` is not supported; supported dialects: {SUPPORTED}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn declared(uri: &str) -> Result<Dialect, String> {
        Dialect::of(&json!({ "$schema": uri }))
    }

    #[test]
    fn the_default_dialect_is_2020_12() {
        assert_eq!(Dialect::of(&json!({ "type": "object" })), Ok(Dialect::Draft2020));
        assert_eq!(Dialect::of(&json!(true)), Ok(Dialect::Draft2020));
    }

    #[test]
    fn the_published_dialects_are_known_in_each_spelling() {
        for (path, dialect) in [
            ("draft/2020-12/schema", Dialect::Draft2020),
            ("draft/2019-09/schema", Dialect::Draft2019),
            ("draft-07/schema", Dialect::Draft7),
            ("draft-06/schema", Dialect::Draft6),
            ("draft-04/schema", Dialect::Draft4),
        ] {
            for scheme in ["http", "https"] {
                assert_eq!(declared(&format!("{scheme}://json-schema.org/{path}")), Ok(dialect));
                assert_eq!(declared(&format!("{scheme}://json-schema.org/{path}#")), Ok(dialect));
            }
        }
    }

    #[test]
    fn an_unknown_dialect_is_refused_with_those_that_are_known() {
        let complaint = declared("https://example.com/my-dialect").unwrap_err();
        assert!(complaint.contains("`https://example.com/my-dialect` is not supported"), "{complaint}");
        assert!(complaint.contains("2020-12") && complaint.contains("draft-07"), "{complaint}");
        assert!(declared("http://json-schema.org/draft-03/schema#").is_err());
        assert!(Dialect::of(&json!({ "$schema": 7 })).unwrap_err().contains("`$schema`"));
    }
}
