//! Matching of a URI against a URI template.
//!
//! To match a URI, the template is compiled to a list of steps. From the last step to the first, the matcher computes at which
//! positions of the URI a step can begin so that the rest of the URI matches; then it takes the steps in order, each as far as
//! it can go. The time of a match is proportional to the length of the URI times that of the template: there is no exponential
//! backtracking.

use serde_json::Value;

use super::expand::{begins_with_triplet, is_unreserved};
use super::{UriTemplateModifier, UriTemplateOperator, UriTemplatePart, UriTemplateVariable};
use crate::json::JsonObject;

/// The maximum length of a URI that can match a template, in bytes.
const LONGEST: usize = 8 * 1024;

enum TemplateMatchStep<'a> {
    /// This text.
    Literal(&'a str),
    /// A value.
    Value(VariableMatcher<'a>),
    /// Named values (`name=value`), in any order; a name may be repeated only if its variable is exploded.
    Named { operator: UriTemplateOperator, variables: &'a [UriTemplateVariable] },
    /// A part of the template that the URI may lack: the matcher continues with the next step to match this part, or at
    /// `skip_to` without it.
    Optional { skip_to: usize },
}

/// The values that a variable of a URI template accepts.
struct VariableMatcher<'a> {
    operator: UriTemplateOperator,
    variable: &'a UriTemplateVariable,
    /// The value must not be empty.
    required: bool,
    /// The characters that end the value.
    stops: String,
}

pub(crate) fn match_uri(parts: &[UriTemplatePart], uri: &str) -> Option<JsonObject> {
    let begins = match parts.first() {
        Some(UriTemplatePart::Literal(text)) => uri.starts_with(text.as_str()),
        _ => true,
    };
    if uri.len() > LONGEST || !begins {
        return None;
    }
    let steps = steps_of(parts);
    let fits = places(&steps, uri);
    let fits_at =
        |step: usize, place: usize| fits.get(step).and_then(|places| places.get(place)).copied().unwrap_or_default();
    if !fits_at(0, 0) {
        return None;
    }
    let mut values = JsonObject::new();
    let (mut step, mut place) = (0, 0);
    while let Some(current) = steps.get(step) {
        let end = match current {
            TemplateMatchStep::Optional { skip_to } => {
                step = if fits_at(step + 1, place) { step + 1 } else { *skip_to };
                continue;
            }
            TemplateMatchStep::Literal(text) => place + text.len(),
            TemplateMatchStep::Named { operator, variables } => {
                let (end, pairs) = read_named(*operator, variables, uri, place);
                for (variable, text) in pairs {
                    note(&mut values, *operator, variable, text, false)?;
                }
                end
            }
            TemplateMatchStep::Value(expected) => {
                let end = expected.ends(uri, place).filter(|end| fits_at(step + 1, *end)).last()?;
                let (before, text) = (uri.get(..place)?, uri.get(place..end)?);
                let after_slash = before.ends_with('/') && !before.ends_with("://");
                note(&mut values, expected.operator, expected.variable, text, after_slash)?;
                end
            }
        };
        (step, place) = (step + 1, end);
    }
    Some(values)
}

fn steps_of(parts: &[UriTemplatePart]) -> Vec<TemplateMatchStep<'_>> {
    let mut steps = Vec::new();
    for (part, after) in parts.iter().zip(1..) {
        match part {
            UriTemplatePart::Literal(text) => steps.push(TemplateMatchStep::Literal(text)),
            UriTemplatePart::Expression(operator, variables) if operator.is_named() => {
                steps.push(TemplateMatchStep::Named { operator: *operator, variables });
            }
            UriTemplatePart::Expression(operator, variables) => {
                // All that an expression with an operator writes may be absent; and all but the first of one without.
                let has_first = !operator.first().is_empty();
                let end = steps.len() + 3 * variables.len() - if has_first { 0 } else { 2 };
                for (position, variable) in variables.iter().enumerate() {
                    let mark = if position == 0 { operator.first() } else { separator_text(*operator) };
                    if !mark.is_empty() {
                        steps.push(TemplateMatchStep::Optional { skip_to: end });
                        steps.push(TemplateMatchStep::Literal(mark));
                    }
                    let stops = stops(*operator, variable, variables.len(), parts.get(after..).unwrap_or_default());
                    steps.push(TemplateMatchStep::Value(VariableMatcher {
                        operator: *operator,
                        variable,
                        required: !has_first,
                        stops,
                    }));
                }
            }
        }
    }
    steps
}

/// The characters that end the value of a variable although its operator allows them, because the template uses them as
/// separators.
fn stops(
    operator: UriTemplateOperator,
    variable: &UriTemplateVariable,
    siblings: usize,
    after: &[UriTemplatePart],
) -> String {
    let mut stops = String::new();
    let in_list = siblings > 1 && variable.modifier != UriTemplateModifier::Explode;
    if in_list && (operator == UriTemplateOperator::Simple || operator.allows_reserved()) {
        stops.push(operator.separator());
    }
    if operator.allows_reserved() {
        let later = after.iter().filter_map(|part| match part {
            UriTemplatePart::Expression(operator, _)
                if operator.is_named() || *operator == UriTemplateOperator::Fragment =>
            {
                Some(operator.first())
            }
            _ => None,
        });
        stops.extend(later);
    }
    stops
}

fn separator_text(operator: UriTemplateOperator) -> &'static str {
    match operator {
        UriTemplateOperator::Label => ".",
        UriTemplateOperator::Path => "/",
        _ => ",",
    }
}

/// For each match step, and for the end after the last step: the positions of the URI at which the step may begin.
fn places(steps: &[TemplateMatchStep<'_>], uri: &str) -> Vec<Vec<bool>> {
    let mut fits = vec![vec![false; uri.len() + 1]; steps.len() + 1];
    if let Some(end) = fits.last_mut().and_then(|places| places.last_mut()) {
        *end = true;
    }
    for (position, step) in steps.iter().enumerate().rev() {
        let mut here = vec![false; uri.len() + 1];
        let next = fits.get(position + 1).map(Vec::as_slice).unwrap_or_default();
        let at = |places: &[bool], place: usize| places.get(place).copied().unwrap_or_default();
        // From the end, so that a value knows whether it can go on.
        let mut run = vec![false; uri.len() + 1];
        for place in (0..=uri.len()).rev().filter(|place| uri.is_char_boundary(*place)) {
            let fit = match step {
                TemplateMatchStep::Literal(text) => {
                    uri.get(place..).is_some_and(|rest| rest.starts_with(text)) && at(next, place + text.len())
                }
                TemplateMatchStep::Optional { skip_to } => {
                    at(next, place) || fits.get(*skip_to).is_some_and(|places| at(places, place))
                }
                TemplateMatchStep::Named { operator, variables } => {
                    at(next, read_named(*operator, variables, uri, place).0)
                }
                TemplateMatchStep::Value(expected)
                    if matches!(expected.variable.modifier, UriTemplateModifier::Prefix(_)) =>
                {
                    expected.ends(uri, place).any(|end| at(next, end))
                }
                TemplateMatchStep::Value(expected) => {
                    let further = expected.unit(uri, place).is_some_and(|length| at(&run, place + length));
                    let fit = at(next, place) || further;
                    if let Some(run) = run.get_mut(place) {
                        *run = fit;
                    }
                    further || (fit && !expected.required)
                }
            };
            if let Some(here) = here.get_mut(place) {
                *here = fit;
            }
        }
        if let Some(slot) = fits.get_mut(position) {
            *slot = here;
        }
    }
    fits
}

impl VariableMatcher<'_> {
    /// The places in the URI where the value of this variable may end, if it begins at `place`.
    fn ends(&self, uri: &str, place: usize) -> impl Iterator<Item = usize> {
        let most = match self.variable.modifier {
            UriTemplateModifier::Prefix(length) => length,
            UriTemplateModifier::Whole | UriTemplateModifier::Explode => usize::MAX,
        };
        let further = move |(place, count): &(usize, usize)| {
            let length = self.unit(uri, *place)?;
            let count = count + usize::from(begins_character(uri, *place));
            (count <= most).then_some((place + length, count))
        };
        let ends = std::iter::successors(Some((place, 0)), further).map(|(place, _)| place);
        ends.skip(usize::from(self.required))
    }

    /// The length of the character or percent-encoded triplet at a position of the URI, if the value of this variable may
    /// contain it.
    fn unit(&self, uri: &str, place: usize) -> Option<usize> {
        let in_path =
            self.variable.modifier == UriTemplateModifier::Explode && self.operator == UriTemplateOperator::Path;
        unit(uri, place, |character| {
            let taken = if self.operator.allows_reserved() {
                !character.is_ascii_control()
            } else {
                in_segment(character) || (in_path && character == '/')
            };
            taken && !self.stops.contains(character)
        })
    }
}

/// Whether a character begins at this position of the URI: false for a percent-encoded triplet that is a continuation byte of
/// UTF-8.
fn begins_character(uri: &str, place: usize) -> bool {
    let byte = uri.get(place + 1..place + 3).filter(|_| uri.get(place..).is_some_and(begins_with_triplet));
    byte.and_then(|digits| u8::from_str_radix(digits, 16).ok()).is_none_or(|byte| byte & 0xc0 != 0x80)
}

/// The length of the percent-encoded triplet at a position of the URI, or of the character there if `taken` accepts it.
fn unit(uri: &str, place: usize, taken: impl FnOnce(char) -> bool) -> Option<usize> {
    let rest = uri.get(place..)?;
    match rest.chars().next()? {
        '%' => begins_with_triplet(rest).then_some(3),
        character => taken(character).then(|| character.len_utf8()),
    }
}

/// Whether a segment of a URI's path may contain this character. Characters outside ASCII are accepted: they should be
/// percent-encoded, but often are not.
fn in_segment(character: char) -> bool {
    let delimits = matches!(character, '!' | '$' | '&' | '\'' | '(' | ')' | '*' | '+' | ',' | ';' | '=');
    is_unreserved(character) || !character.is_ascii() || delimits || matches!(character, ':' | '@')
}

/// Reads the named values (`name=value`) from a position of the URI on, and where they end: before the first unknown name.
fn read_named<'a, 'u>(
    operator: UriTemplateOperator,
    variables: &'a [UriTemplateVariable],
    uri: &'u str,
    place: usize,
) -> (usize, Vec<(&'a UriTemplateVariable, &'u str)>) {
    let mut pairs: Vec<(&UriTemplateVariable, &str)> = Vec::new();
    let mut end = place;
    loop {
        let separator = operator.separator();
        let mark = if pairs.is_empty() { operator.first().chars().next().unwrap_or(separator) } else { separator };
        let Some(rest) = uri.get(end..).and_then(|rest| rest.strip_prefix(mark)) else { return (end, pairs) };
        let start = uri.len() - rest.len();
        let named = run_of(operator, uri, start);
        let name = uri.get(start..named).unwrap_or_default();
        let known = variables.iter().find(|variable| variable.name == name);
        let Some(variable) = known else { return (end, pairs) };
        let again = pairs.iter().any(|(present, _)| present.name == variable.name);
        if again && variable.modifier != UriTemplateModifier::Explode {
            return (end, pairs);
        }
        let value_start = if uri.get(named..).is_some_and(|rest| rest.starts_with('=')) { named + 1 } else { named };
        // An equals sign may be part of a value, as it is in base64.
        let mut value_end = run_of(operator, uri, value_start);
        while uri.get(value_end..).is_some_and(|rest| rest.starts_with('=')) {
            value_end = run_of(operator, uri, value_end + 1);
        }
        pairs.push((variable, uri.get(value_start..value_end).unwrap_or_default()));
        end = value_end;
    }
}

/// The position at which a name or a value ends that begins at `start`.
fn run_of(operator: UriTemplateOperator, uri: &str, start: usize) -> usize {
    let taken = |character: char| {
        let in_query = operator != UriTemplateOperator::Parameter && matches!(character, '/' | '?');
        (in_segment(character) || in_query) && character != '=' && character != operator.separator()
    };
    std::iter::successors(Some(start), |end| unit(uri, *end, taken).map(|length| end + length)).last().unwrap_or(start)
}

/// Decodes the value of a variable and stores it; `None` if the value is not safe in a path, or differs from an earlier value
/// of the variable.
fn note(
    values: &mut JsonObject,
    operator: UriTemplateOperator,
    variable: &UriTemplateVariable,
    text: &str,
    after_slash: bool,
) -> Option<()> {
    let safe = |text: &str| {
        let decoded = decode(text)?;
        is_safe(operator, &decoded, after_slash).then_some(decoded)
    };
    if variable.modifier != UriTemplateModifier::Explode {
        let value = Value::from(safe(text)?);
        return match values.insert(variable.name.clone(), value.clone()) {
            // A variable that occurs twice has one value.
            Some(before) if before != value => None,
            _ => Some(()),
        };
    }
    let items: Option<Vec<Value>> = if operator.is_named() {
        safe(text).map(|item| vec![item.into()])
    } else {
        text.split(operator.separator()).map(|item| safe(item).map(Value::from)).collect()
    };
    match values.entry(variable.name.clone()).or_insert_with(|| Value::Array(Vec::new())) {
        Value::Array(list) => list.extend(items?),
        _ => return None,
    }
    Some(())
}

/// Whether the value of a variable can be part of a path without leading out of that path.
fn is_safe(operator: UriTemplateOperator, value: &str, after_slash: bool) -> bool {
    let is_slash = |character: char| matches!(character, '/' | '\\');
    let slashes_allowed = operator.allows_reserved()
        || matches!(operator, UriTemplateOperator::Query | UriTemplateOperator::Continuation);
    let leads_out = value.split(is_slash).any(|segment| segment == "..");
    // After a slash, another one would turn a relative path into an absolute one.
    let begins_again = after_slash && value.starts_with(is_slash);
    !value.contains('\0') && !leads_out && !begins_again && (slashes_allowed || !value.contains(is_slash))
}

/// The percent-decoded text, if it is UTF-8.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (triplet, after) = rest.split_first_chunk::<2>()?;
        let digits =
            std::str::from_utf8(triplet).ok().filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}
