//! URI templates (RFC 6570): expanded with values to a URI, and matched against a URI to extract the values.

mod expand;
mod matching;
mod parse;
#[cfg(test)]
mod tests;

use std::fmt;

use crate::json::JsonObject;

/// A URI template (RFC 6570).
///
/// Every URI template of RFC 6570 can be expanded, with lists, pairs, prefixes and explosions. Matching is the reverse of
/// expansion: a template matches each URI that it expands to, and yields the values of the expansion as far as the URI
/// distinguishes them. A URI that is equivalent to the expansion may match too, for example if a character is percent-encoded
/// without need.
///
/// The values of a match are decoded, and safe to use as part of a path: none contains a `..` segment or a NUL, and a slash
/// only where the template allows one. A URI with an unsafe value does not match the template.
///
/// ```
/// use serde_json::json;
/// use steadfast_model::UriTemplate;
///
/// let template: UriTemplate = "weather://{city}/days{?count}".parse().unwrap();
/// let values = template.match_uri("weather://S%C3%A3o%20Paulo/days?count=3").unwrap();
/// assert_eq!(json!(values), json!({ "city": "São Paulo", "count": "3" }));
/// assert_eq!(template.expand(&values), "weather://S%C3%A3o%20Paulo/days?count=3");
/// assert_eq!(template.match_uri("weather://../days"), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UriTemplate {
    text: String,
    parts: Vec<UriTemplatePart>,
}

/// Why a template is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UriTemplateError {
    at: usize,
    what: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum UriTemplatePart {
    /// Literal text of a URI template, percent-encoded as in a URI.
    Literal(String),
    Expression(UriTemplateOperator, Vec<UriTemplateVariable>),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct UriTemplateVariable {
    name: String,
    modifier: UriTemplateModifier,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum UriTemplateModifier {
    Whole,
    /// The expansion has only this many characters of the value.
    Prefix(usize),
    /// The expansion writes each member of a list or object as a value of its own.
    Explode,
}

/// The operator of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum UriTemplateOperator {
    Simple,
    Reserved,
    Fragment,
    Label,
    Path,
    Parameter,
    Query,
    Continuation,
}

impl UriTemplateOperator {
    /// The text that the operator of an expression writes before the first value.
    fn first(self) -> &'static str {
        match self {
            Self::Simple | Self::Reserved => "",
            Self::Fragment => "#",
            Self::Label => ".",
            Self::Path => "/",
            Self::Parameter => ";",
            Self::Query => "?",
            Self::Continuation => "&",
        }
    }

    /// The separator between values.
    fn separator(self) -> char {
        match self {
            Self::Simple | Self::Reserved | Self::Fragment => ',',
            Self::Label => '.',
            Self::Path => '/',
            Self::Parameter => ';',
            Self::Query | Self::Continuation => '&',
        }
    }

    /// Whether the operator writes values with their names (`name=value`).
    fn is_named(self) -> bool {
        matches!(self, Self::Parameter | Self::Query | Self::Continuation)
    }

    /// Whether a value may contain reserved characters without percent-encoding.
    fn allows_reserved(self) -> bool {
        matches!(self, Self::Reserved | Self::Fragment)
    }
}

impl UriTemplate {
    /// The text of the URI template, as it was parsed.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The names of the template's variables, in order; a variable that occurs twice is listed twice.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        let expressions = self.parts.iter().filter_map(|part| match part {
            UriTemplatePart::Expression(_, variables) => Some(variables),
            UriTemplatePart::Literal(_) => None,
        });
        expressions.flatten().map(|variable| variable.name.as_str())
    }

    /// Expands the template to a URI with these values: strings, numbers, booleans, and lists and objects of them. A variable
    /// whose value is absent, `null` or an empty list is left out of the URI.
    pub fn expand(&self, values: &JsonObject) -> String {
        expand::expand(&self.parts, values)
    }

    /// The decoded values that a URI has for the variables of the template: text, or a list for an exploded variable. A
    /// variable without a value in the URI is absent from the returned object. `None` if the URI does not match the template,
    /// or a value is not safe to use in a path.
    pub fn match_uri(&self, uri: &str) -> Option<JsonObject> {
        matching::match_uri(&self.parts, uri)
    }
}

impl fmt::Display for UriTemplate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl fmt::Display for UriTemplateError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} at character {}", self.what, self.at)
    }
}

impl std::error::Error for UriTemplateError {}
