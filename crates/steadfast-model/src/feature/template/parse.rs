//! The parser of URI templates.

use std::str::FromStr;

use super::expand::{AllowedCharacters, encode};
use super::{
    UriTemplate, UriTemplateError, UriTemplateModifier, UriTemplateOperator, UriTemplatePart, UriTemplateVariable,
};

/// The maximum length of a prefix, as in `{name:3}`: RFC 6570 allows up to four digits.
const LONGEST_PREFIX: usize = 9_999;

impl FromStr for UriTemplate {
    type Err = UriTemplateError;

    fn from_str(text: &str) -> Result<Self, UriTemplateError> {
        let mut parts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let at = text.len() - rest.len();
            let fault = |offset: usize, what| {
                let before = text.get(..at + offset).unwrap_or(text);
                UriTemplateError { at: before.chars().count() + 1, what }
            };
            if let Some(inside) = rest.strip_prefix('{') {
                let (expression, after) =
                    inside.split_once('}').ok_or_else(|| fault(0, "a brace that is not closed"))?;
                parts.push(read_expression(expression).map_err(|what| fault(1, what))?);
                rest = after;
                continue;
            }
            let end = rest.find('{').unwrap_or(rest.len());
            let (literal, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
            if let Some(odd) = literal.find(is_no_literal) {
                return Err(fault(odd, "a character that cannot be part of a URI"));
            }
            let mut encoded = String::new();
            encode(literal, AllowedCharacters::Reserved, &mut encoded);
            parts.push(UriTemplatePart::Literal(encoded));
            rest = after;
        }
        Ok(Self { text: text.to_owned(), parts })
    }
}

fn is_no_literal(character: char) -> bool {
    character.is_control() || matches!(character, ' ' | '"' | '<' | '>' | '\\' | '^' | '`' | '|' | '}')
}

fn read_expression(text: &str) -> Result<UriTemplatePart, &'static str> {
    let operator = match text.chars().next() {
        Some('+') => UriTemplateOperator::Reserved,
        Some('#') => UriTemplateOperator::Fragment,
        Some('.') => UriTemplateOperator::Label,
        Some('/') => UriTemplateOperator::Path,
        Some(';') => UriTemplateOperator::Parameter,
        Some('?') => UriTemplateOperator::Query,
        Some('&') => UriTemplateOperator::Continuation,
        Some('=' | ',' | '!' | '@' | '|') => return Err("a reserved operator"),
        _ => UriTemplateOperator::Simple,
    };
    let list = if operator == UriTemplateOperator::Simple { text } else { text.get(1..).unwrap_or_default() };
    let variables = list.split(',').map(read_variable).collect::<Result<_, _>>()?;
    Ok(UriTemplatePart::Expression(operator, variables))
}

fn read_variable(text: &str) -> Result<UriTemplateVariable, &'static str> {
    let (name, modifier) = if let Some(name) = text.strip_suffix('*') {
        (name, UriTemplateModifier::Explode)
    } else if let Some((name, length)) = text.split_once(':') {
        let digits = length.bytes().all(|byte| byte.is_ascii_digit());
        let length = length.parse().ok().filter(|length| digits && (1..=LONGEST_PREFIX).contains(length));
        (
            name,
            UriTemplateModifier::Prefix(
                length.ok_or("a prefix length (as in `{name:3}`) that is not a number from 1 to 9999")?,
            ),
        )
    } else {
        (text, UriTemplateModifier::Whole)
    };
    let word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '%');
    if !name.split('.').all(word) {
        return Err("a variable whose name is not letters, digits and underscores");
    }
    Ok(UriTemplateVariable { name: name.to_owned(), modifier })
}
