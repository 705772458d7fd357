//! Expansion of a URI template with values.

use std::borrow::Cow;

use serde_json::Value;

use super::{UriTemplateModifier, UriTemplateOperator, UriTemplatePart, UriTemplateVariable};
use crate::json::JsonObject;

/// The characters that are copied into a URI without percent-encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllowedCharacters {
    /// Unreserved characters.
    Unreserved,
    /// Unreserved and reserved characters, and percent-encoded triplets.
    Reserved,
}

pub(crate) fn expand(parts: &[UriTemplatePart], values: &JsonObject) -> String {
    let mut out = String::new();
    for part in parts {
        match part {
            UriTemplatePart::Literal(text) => out.push_str(text),
            UriTemplatePart::Expression(operator, variables) => {
                UriTemplateExpressionWriter { operator: *operator, begun: false, out: &mut out }
                    .write_all(variables, values);
            }
        }
    }
    out
}

struct UriTemplateExpressionWriter<'a> {
    operator: UriTemplateOperator,
    begun: bool,
    out: &'a mut String,
}

impl UriTemplateExpressionWriter<'_> {
    fn write_all(&mut self, variables: &[UriTemplateVariable], values: &JsonObject) {
        for variable in variables {
            if let Some(value) = values.get(&variable.name) {
                self.write(variable, value);
            }
        }
    }

    fn write(&mut self, variable: &UriTemplateVariable, value: &Value) {
        let explode = variable.modifier == UriTemplateModifier::Explode;
        match value {
            Value::Array(items) => {
                let items: Vec<_> = items.iter().filter_map(text_of).collect();
                if explode {
                    for item in items {
                        self.item(Some(&variable.name), &item);
                    }
                } else if !items.is_empty() {
                    self.list(&variable.name, &items);
                }
            }
            Value::Object(members) => {
                let members = members.iter().filter_map(|(key, value)| Some((key, text_of(value)?)));
                if explode {
                    members.for_each(|(key, value)| self.pair(key, &value));
                    return;
                }
                let flat: Vec<_> = members.flat_map(|(key, value)| [Cow::Borrowed(key.as_str()), value]).collect();
                if !flat.is_empty() {
                    self.list(&variable.name, &flat);
                }
            }
            value => {
                let Some(text) = text_of(value) else { return };
                let text = match variable.modifier {
                    UriTemplateModifier::Prefix(length) => text.chars().take(length).collect(),
                    UriTemplateModifier::Whole | UriTemplateModifier::Explode => text,
                };
                self.item(Some(&variable.name), &text);
            }
        }
    }

    fn begin(&mut self) {
        if self.begun {
            self.out.push(self.operator.separator());
        } else {
            self.out.push_str(self.operator.first());
            self.begun = true;
        }
    }

    /// Appends one value to the expanded URI, after its name if the operator writes names (`?name=value`).
    fn item(&mut self, name: Option<&str>, value: &str) {
        self.begin();
        if let Some(name) = name.filter(|_| self.operator.is_named()) {
            self.out.push_str(name);
            // A parameter without a value has no `=`; a field of a form has one.
            if !value.is_empty() || self.operator != UriTemplateOperator::Parameter {
                self.out.push('=');
            }
        }
        self.encode(value);
    }

    /// Appends one member of an exploded object: its key and its value.
    fn pair(&mut self, key: &str, value: &str) {
        self.begin();
        self.encode(key);
        if !value.is_empty() || self.operator != UriTemplateOperator::Parameter {
            self.out.push('=');
        }
        self.encode(value);
    }

    /// Appends several values under one name, joined by commas.
    fn list(&mut self, name: &str, items: &[Cow<'_, str>]) {
        self.begin();
        if self.operator.is_named() {
            self.out.push_str(name);
            self.out.push('=');
        }
        for (position, item) in items.iter().enumerate() {
            if position > 0 {
                self.out.push(',');
            }
            self.encode(item);
        }
    }

    fn encode(&mut self, text: &str) {
        let allowed =
            if self.operator.allows_reserved() { AllowedCharacters::Reserved } else { AllowedCharacters::Unreserved };
        encode(text, allowed, self.out);
    }
}

/// The text of a JSON value; `None` for `null`, arrays and objects.
fn text_of(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(text.into()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string().into()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Appends text to a URI; characters outside the allowed set are percent-encoded.
pub(crate) fn encode(text: &str, allowed: AllowedCharacters, out: &mut String) {
    const DIGITS: &[char; 16] = &['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
    let digit = |number: u8| DIGITS.get(usize::from(number)).copied().unwrap_or_default();
    for (position, character) in text.char_indices() {
        let kept = match allowed {
            AllowedCharacters::Unreserved => is_unreserved(character),
            AllowedCharacters::Reserved if character == '%' => text.get(position..).is_some_and(begins_with_triplet),
            AllowedCharacters::Reserved => is_unreserved(character) || is_reserved(character),
        };
        if kept {
            out.push(character);
            continue;
        }
        let mut buffer = [0; 4];
        for byte in character.encode_utf8(&mut buffer).bytes() {
            out.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
}

/// Whether text begins with `%` and two hexadecimal digits.
pub(crate) fn begins_with_triplet(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next() == Some(b'%')
        && bytes.next().is_some_and(|b| b.is_ascii_hexdigit())
        && bytes.next().is_some_and(|b| b.is_ascii_hexdigit())
}

pub(crate) fn is_unreserved(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '-' | '.' | '_' | '~')
}

pub(crate) fn is_reserved(character: char) -> bool {
    matches!(
        character,
        ':' | '/' | '?' | '#' | '[' | ']' | '@' | '!' | '$' | '&' | '\'' | '(' | ')' | '*' | '+' | ',' | ';' | '='
    )
}
