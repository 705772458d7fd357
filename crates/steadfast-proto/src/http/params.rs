//! Arguments of tools that are mirrored into HTTP headers (since 2026-07-28).
//!
//! A tool marks a property of its input schema with `x-mcp-header`; a client then sends the value also in the header
//! `Mcp-Param-{name}`. [`MirroredParams`] are the marked properties of one schema: collected once, when the tool is defined,
//! and compared with each call.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;
use steadfast_model::JsonObject;

use super::headers::{HeaderMismatch, decode, differs, encode, once};
use super::{Headers, name};
use crate::envelope::Params;
use crate::json;

const ANNOTATION: &str = "x-mcp-header";

/// The arguments of one tool that are mirrored into HTTP headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MirroredParams(Vec<MirroredParam>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct MirroredParam {
    /// The name of the header in lower case.
    name: Box<str>,
    /// The name of the header as the schema spells it.
    shown: Box<str>,
    /// The path of the mirrored value in the arguments of the tool, as property names from the outside in.
    path: Box<[Box<str>]>,
}

/// An invalid `x-mcp-header` annotation in the input schema of a tool: the tool is not valid over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidHeaderAnnotation {
    /// The value of `x-mcp-header` is not a string, or not a valid header name.
    NotAName(String),
    /// Two properties of the schema have the same header.
    Twice(String),
    /// The annotated property is not a string, an integer or a boolean.
    NotPrimitive(String),
    /// The annotation is not on a property that can be reached through `properties` only.
    Unreachable,
}

impl fmt::Display for InvalidHeaderAnnotation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAName(value) => {
                write!(formatter, "the value of {ANNOTATION} must be a valid header name: {value}")
            }
            Self::Twice(value) => write!(formatter, "{ANNOTATION} {value} is on two properties of the schema"),
            Self::NotPrimitive(value) => {
                write!(formatter, "{ANNOTATION} {value} must be on a property whose type is string, integer or boolean")
            }
            Self::Unreachable => {
                write!(formatter, "{ANNOTATION} must be on a property of the schema, which may be nested")
            }
        }
    }
}

impl std::error::Error for InvalidHeaderAnnotation {}

impl MirroredParams {
    /// Finds the properties of a tool's input schema that are mirrored into headers.
    pub fn of_schema(schema: &JsonObject) -> Result<Self, InvalidHeaderAnnotation> {
        let mut found = Self::default();
        let mut names = BTreeSet::new();
        found.walk(schema, &mut Vec::new(), &mut names)?;
        Ok(found)
    }

    /// Whether no argument of the tool is mirrored into a header.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of bytes of heap memory that the list of mirrored parameters uses.
    pub fn bytes(&self) -> usize {
        let texts = |mirrored: &MirroredParam| {
            let steps = mirrored.path.iter().map(|step| size_of::<Box<str>>() + step.len());
            mirrored.name.len() + mirrored.shown.len() + steps.sum::<usize>()
        };
        self.0.iter().map(|mirrored| size_of::<MirroredParam>() + texts(mirrored)).sum()
    }

    /// Compares the headers of a tool call with its arguments.
    pub fn check(&self, headers: &(impl Headers + ?Sized), params: &Params<'_>) -> Result<(), HeaderMismatch> {
        self.check_arguments(headers, params.get("arguments"))
    }

    /// Compares the headers of a tool call with the JSON text of its arguments.
    pub fn check_arguments(
        &self,
        headers: &(impl Headers + ?Sized),
        arguments: Option<&str>,
    ) -> Result<(), HeaderMismatch> {
        self.0.iter().try_for_each(|mirrored| mirrored.check(headers, arguments))
    }

    /// Calls `header` with the name and the value of each header that mirrors an argument of a tool call. The JSON grammar of
    /// `arguments` has to be checked before.
    pub fn each_header(&self, arguments: &str, mut header: impl FnMut(&str, Cow<'_, str>)) {
        for mirrored in &self.0 {
            let Some(value) = value_at(arguments, &mirrored.path) else { continue };
            match value.as_bytes().first() {
                Some(b'"') => {
                    if let Some(text) = text_of(value) {
                        header(&mirrored.shown, encode(&text));
                    }
                }
                Some(b'-' | b'0'..=b'9' | b't' | b'f') => header(&mirrored.shown, value.into()),
                _ => {}
            }
        }
    }

    /// Collects the `x-mcp-header` annotations of `schema`, to which `path` leads.
    fn walk(
        &mut self,
        schema: &JsonObject,
        path: &mut Vec<Box<str>>,
        names: &mut BTreeSet<String>,
    ) -> Result<(), InvalidHeaderAnnotation> {
        if let Some(annotation) = schema.get(ANNOTATION) {
            if path.is_empty() {
                return Err(InvalidHeaderAnnotation::Unreachable);
            }
            self.0.push(mirrored(annotation, schema, path, names)?);
        }
        for (keyword, value) in schema {
            match (keyword.as_str(), value) {
                ("properties", Value::Object(properties)) => {
                    for (name, property) in properties {
                        let Value::Object(property) = property else { continue };
                        path.push(name.as_str().into());
                        self.walk(property, path, names)?;
                        path.pop();
                    }
                }
                // These keywords hold example data, not schemas.
                ("const" | "default" | "enum" | "examples", _) => {}
                (_, value) if annotated(value) => return Err(InvalidHeaderAnnotation::Unreachable),
                _ => {}
            }
        }
        Ok(())
    }
}

fn mirrored(
    annotation: &Value,
    schema: &JsonObject,
    path: &[Box<str>],
    names: &mut BTreeSet<String>,
) -> Result<MirroredParam, InvalidHeaderAnnotation> {
    let Some(token) = annotation.as_str().filter(|text| is_token(text)) else {
        return Err(InvalidHeaderAnnotation::NotAName(annotation.to_string()));
    };
    let primitive = matches!(schema.get("type").and_then(Value::as_str), Some("string" | "integer" | "boolean"));
    if !primitive && !is_optional_primitive(schema) {
        return Err(InvalidHeaderAnnotation::NotPrimitive(token.to_owned()));
    }
    let lower = token.to_ascii_lowercase();
    if !names.insert(lower.clone()) {
        return Err(InvalidHeaderAnnotation::Twice(token.to_owned()));
    }
    Ok(MirroredParam {
        name: format!("{}{lower}", name::PARAM_PREFIX).into(),
        shown: format!("Mcp-Param-{token}").into(),
        path: path.into(),
    })
}

/// Whether a schema has a type such as `["string", "null"]`, as the schemas of optional arguments have.
fn is_optional_primitive(schema: &JsonObject) -> bool {
    let Some(types) = schema.get("type").and_then(Value::as_array) else { return false };
    let mut others = types.iter().filter(|kind| kind.as_str() != Some("null"));
    let one = others.next().and_then(Value::as_str);
    others.next().is_none() && matches!(one, Some("string" | "integer" | "boolean"))
}

/// Whether there is an `x-mcp-header` annotation anywhere in a JSON value. The search is iterative, although the depth of
/// schemas is limited before.
fn annotated(value: &Value) -> bool {
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        match value {
            Value::Object(members) => {
                if members.get(ANNOTATION).is_some_and(Value::is_string) {
                    return true;
                }
                left.extend(members.values());
            }
            Value::Array(elements) => left.extend(elements),
            _ => {}
        }
    }
    false
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

impl MirroredParam {
    fn check(&self, headers: &(impl Headers + ?Sized), arguments: Option<&str>) -> Result<(), HeaderMismatch> {
        let shown = || Cow::Owned(self.shown.to_string());
        let said = once(headers, &self.name, shown)?;
        let body = arguments.and_then(|arguments| value_at(arguments, &self.path)).filter(|value| *value != "null");
        match (said, body) {
            (None, None) => Ok(()),
            (None, Some(_)) => Err(HeaderMismatch::Missing { header: shown() }),
            (Some(_), None) => Err(HeaderMismatch::NotInBody { header: shown() }),
            (Some(said), Some(body)) => {
                let said = decode(said).ok_or_else(|| HeaderMismatch::Unreadable { header: shown() })?;
                if is_out_of_range(body) {
                    return Err(HeaderMismatch::OutOfRange { header: shown() });
                }
                if says_the_same(&said, body) { Ok(()) } else { Err(differs(shown(), &said, body)) }
            }
        }
    }
}

/// The JSON text of the argument that a path of property names leads to.
fn value_at<'a>(arguments: &'a str, path: &[Box<str>]) -> Option<&'a str> {
    path.iter().try_fold(arguments, |object, name| {
        if !object.starts_with('{') {
            return None;
        }
        let mut found = None;
        json::each_member(object, |key, value| {
            if *key == **name {
                found = Some(value);
            }
        });
        found
    })
}

/// Decodes the JSON text of a string.
fn text_of(string: &str) -> Option<Cow<'_, str>> {
    string.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).and_then(json::unescape)
}

/// Whether the decoded value of a header equals the JSON text of the value in the body.
fn says_the_same(said: &str, body: &str) -> bool {
    match body.as_bytes().first() {
        Some(b'"') => text_of(body).is_some_and(|text| text == said),
        Some(b'-' | b'0'..=b'9') => same_number(said, body),
        _ => (body == "true" || body == "false") && said == body,
    }
}

/// Whether the JSON text of a mirrored value is an integer that JavaScript cannot represent exactly: a proxy might read another
/// number than the server.
fn is_out_of_range(body: &str) -> bool {
    const LARGEST: i64 = (1 << 53) - 1;
    if !body.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
        return false;
    }
    match body.parse::<i64>() {
        Ok(integer) => !(-LARGEST..=LARGEST).contains(&integer),
        // The bound is exact as a float.
        Err(_) => body.parse::<f64>().is_ok_and(|number| number.abs() > 9_007_199_254_740_991.0),
    }
}

/// Whether a header and a value of the body are the same number: `42.0` is `42`. The numbers are compared exactly, because
/// floats cannot tell large integers apart.
fn same_number(said: &str, body: &str) -> bool {
    matches!((CanonicalNumber::read(said), CanonicalNumber::read(body)), (Some(said), Some(body)) if said == body)
}

/// A decimal number in canonical form.
#[derive(PartialEq, Eq)]
struct CanonicalNumber {
    negative: bool,
    /// The digits of the number without leading and trailing zeros; empty for zero.
    digits: Vec<u8>,
    /// The position of the decimal point, relative to the first digit.
    point: i64,
}

impl CanonicalNumber {
    fn read(text: &str) -> Option<Self> {
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
        let unsigned = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        if ![whole, fraction, unsigned].into_iter().all(is_digits) {
            return None;
        }
        let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).skip_while(|digit| *digit == b'0').collect();
        let leading = whole.len() + fraction.len() - digits.len();
        while digits.last() == Some(&b'0') {
            digits.pop();
        }
        if digits.is_empty() {
            return Some(Self { negative: false, digits, point: 0 });
        }
        let before = i64::try_from(whole.len()).ok()?.checked_sub(i64::try_from(leading).ok()?)?;
        let point = exponent.parse::<i64>().ok()?.checked_add(before)?;
        Some(Self { negative, digits, point })
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn mirrored(schema: Value) -> Result<MirroredParams, InvalidHeaderAnnotation> {
        let Value::Object(schema) = schema else { panic!() };
        MirroredParams::of_schema(&schema)
    }

    fn one(kind: &str) -> MirroredParams {
        mirrored(json!({"type": "object", "properties": {"p": {"type": kind, "x-mcp-header": "Value"}}})).unwrap()
    }

    fn check(params: &MirroredParams, header: Option<&str>, arguments: &str) -> Result<(), HeaderMismatch> {
        let headers: Vec<(&str, &str)> = header.map(|value| ("mcp-param-value", value)).into_iter().collect();
        params.check_arguments(headers.as_slice(), Some(arguments))
    }

    #[test]
    fn text_is_compared_after_decoding() {
        let params = one("string");
        assert_eq!(check(&params, Some("=?base64?SGVsbG8=?="), r#"{"p":"Hello"}"#), Ok(()));
        assert_eq!(check(&params, Some("SGVsbG8="), r#"{"p":"SGVsbG8="}"#), Ok(()));
        assert_eq!(check(&params, Some("=?base64?SGVsbG8="), r#"{"p":"=?base64?SGVsbG8="}"#), Ok(()));
        assert_eq!(check(&params, Some("A\\B"), r#"{"p":"\u0041\\B"}"#), Ok(()));
        for bad in ["=?base64?SGVsbG8?=", "=?base64?SGVs!!!bG8=?=", "hello", ""] {
            assert!(check(&params, Some(bad), r#"{"p":"Hello"}"#).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_header_is_required_exactly_when_the_argument_is_present() {
        let params = one("string");
        assert!(matches!(check(&params, None, r#"{"p":"x"}"#), Err(HeaderMismatch::Missing { .. })));
        assert!(matches!(check(&params, Some("x"), "{}"), Err(HeaderMismatch::NotInBody { .. })));
        assert!(matches!(check(&params, Some("null"), r#"{"p":null}"#), Err(HeaderMismatch::NotInBody { .. })));
        assert_eq!(check(&params, None, r#"{"p":null}"#), Ok(()));
        assert_eq!(check(&params, None, "{}"), Ok(()));
        assert_eq!(params.check_arguments([].as_slice(), None), Ok(()));
    }

    #[test]
    fn integers_are_compared_as_numbers() {
        let params = one("integer");
        for (header, body) in [("42", "42"), ("42.0", "42"), ("42", "42.0"), ("4.2e1", "42"), ("-7", "-7"), ("-0", "0")]
        {
            assert_eq!(check(&params, Some(header), &format!("{{\"p\":{body}}}")), Ok(()), "{header} {body}");
        }
        for (header, body) in [
            ("9007199254740993", "9007199254740992"),
            ("9007199254740992.0", "9007199254740993"),
            ("1e400", "1e999"),
            ("0x2a", "42"),
            ("inf", "1e999"),
            ("", "0"),
        ] {
            assert!(check(&params, Some(header), &format!("{{\"p\":{body}}}")).is_err(), "{header} {body}");
        }
    }

    #[test]
    fn integers_beyond_2_to_the_53_are_refused() {
        let params = one("integer");
        for safe in ["9007199254740991", "-9007199254740991", "9007199254740991.0", "0"] {
            assert_eq!(check(&params, Some(safe), &format!("{{\"p\":{safe}}}")), Ok(()), "{safe}");
        }
        for other in
            ["9007199254740992", "-9007199254740992", "9007199254740993", "1e16", "99999999999999999999", "1e999"]
        {
            let refused = check(&params, Some(other), &format!("{{\"p\":{other}}}"));
            assert!(matches!(refused, Err(HeaderMismatch::OutOfRange { .. })), "{other}: {refused:?}");
        }
        assert_eq!(check(&one("string"), Some("9007199254740993"), r#"{"p":"9007199254740993"}"#), Ok(()));
    }

    #[test]
    fn booleans_are_lower_case() {
        let params = one("boolean");
        assert_eq!(check(&params, Some("true"), r#"{"p":true}"#), Ok(()));
        assert!(check(&params, Some("True"), r#"{"p":true}"#).is_err());
        assert!(check(&params, Some("[]"), r#"{"p":[]}"#).is_err());
    }

    #[test]
    fn a_header_twice_is_refused() {
        let headers = [("mcp-param-value", "x"), ("mcp-param-value", "x")];
        let refused = one("string").check_arguments(headers.as_slice(), Some(r#"{"p":"x"}"#));
        assert!(matches!(refused, Err(HeaderMismatch::Repeated { .. })));
    }

    #[test]
    fn nested_properties_are_reached() {
        let params = mirrored(json!({"properties": {"a": {"type": "object", "properties": {
            "b": {"type": "string", "x-mcp-header": "Value"}}}}}))
        .unwrap();
        assert_eq!(check(&params, Some("x"), r#"{"a":{"b":"x"}}"#), Ok(()));
        assert_eq!(check(&params, None, r#"{"a":7}"#), Ok(()));
        let mut headers = Vec::new();
        params.each_header(r#"{"a":{"b":" x"}}"#, |name, value| headers.push((name.to_owned(), value.into_owned())));
        assert_eq!(headers, [("Mcp-Param-Value".to_owned(), "=?base64?IHg=?=".to_owned())]);
    }

    #[test]
    fn invalid_annotations_are_refused() {
        let property = |property: Value| mirrored(json!({"properties": {"p": property}}));
        assert!(matches!(
            property(json!({"type": "string", "x-mcp-header": ""})),
            Err(InvalidHeaderAnnotation::NotAName(_))
        ));
        assert!(matches!(
            property(json!({"type": "string", "x-mcp-header": "a b"})),
            Err(InvalidHeaderAnnotation::NotAName(_))
        ));
        assert!(matches!(
            property(json!({"type": "string", "x-mcp-header": 7})),
            Err(InvalidHeaderAnnotation::NotAName(_))
        ));
        assert!(matches!(
            property(json!({"type": "number", "x-mcp-header": "A"})),
            Err(InvalidHeaderAnnotation::NotPrimitive(_))
        ));
        assert!(matches!(property(json!({"x-mcp-header": "A"})), Err(InvalidHeaderAnnotation::NotPrimitive(_))));
        assert_eq!(
            property(json!({"type": "array", "items": {"type": "string", "x-mcp-header": "A"}})),
            Err(InvalidHeaderAnnotation::Unreachable)
        );
        assert_eq!(
            mirrored(json!({"properties": {
                "p": {"type": "string", "x-mcp-header": "A"}, "q": {"type": "string", "x-mcp-header": "a"}}})),
            Err(InvalidHeaderAnnotation::Twice("a".to_owned()))
        );
        assert_eq!(
            mirrored(json!({"properties": {"p": {"default": {"x-mcp-header": "A"}}}})),
            Ok(MirroredParams::default())
        );
    }
}
