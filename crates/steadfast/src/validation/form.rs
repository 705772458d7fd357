//! Checks of the answers to elicitation forms.
//!
//! Elicitation forms use few keywords, so checking them needs no JSON Schema validator. An optional field with the
//! value `null` counts as absent; members of the answer that are not fields of the form are passed on to the type that
//! decodes the answer, which ignores them. A field of an unknown kind, in a form written by hand, is not checked.

use serde_json::{Number, Value};
use steadfast_model::error::excerpt;
use steadfast_model::{FormFieldKind, FormSchema, JsonObject};

/// Checks the answer to an elicitation form. Optional fields of the answer that are `null` are removed.
///
/// # Errors
///
/// A message that names the first field that is wrong.
pub(crate) fn check(form: &FormSchema, content: &mut JsonObject) -> Result<(), String> {
    for (name, field) in form.fields() {
        let required = form.is_required(name);
        if !required && content.get(name).is_some_and(Value::is_null) {
            content.shift_remove(name);
        }
        match content.get(name) {
            None if required => return Err(format!("the field `{name}` is missing")),
            None => {}
            Some(value) => check_field(&field.kind, value).map_err(|why| format!("the field `{name}` {why}"))?,
        }
    }
    Ok(())
}

fn check_field(kind: &FormFieldKind, value: &Value) -> Result<(), String> {
    match kind {
        FormFieldKind::Text { min_length, max_length, format, .. } => {
            let text = value.as_str().ok_or("must be a string")?;
            check_count(text.chars().count(), *min_length, *max_length, "characters")?;
            match format.as_deref() {
                Some(format) if !has_format(text, format) => Err(format!("must be of the format `{format}`")),
                _ => Ok(()),
            }
        }
        FormFieldKind::Number { integer, minimum, maximum, .. } => {
            let number = value.as_number().ok_or("must be a number")?;
            check_number(number, *integer, minimum.as_ref(), maximum.as_ref())
        }
        FormFieldKind::Boolean { .. } => value.as_bool().map(drop).ok_or_else(|| "must be true or false".to_owned()),
        FormFieldKind::Choice { options, .. } => {
            let chosen = value.as_str().ok_or("must be one of the options")?;
            check_option(options.iter().any(|option| option.value == chosen), chosen)
        }
        FormFieldKind::Choices { options, min_items, max_items, .. } => {
            let chosen = value.as_array().ok_or("must be a list of options")?;
            check_count(chosen.len(), *min_items, *max_items, "options")?;
            chosen.iter().try_for_each(|chosen| {
                let chosen = chosen.as_str().ok_or("must be a list of options")?;
                check_option(options.iter().any(|option| option.value == chosen), chosen)
            })
        }
        _ => Ok(()),
    }
}

fn check_option(known: bool, chosen: &str) -> Result<(), String> {
    if known { Ok(()) } else { Err(format!("has no option `{}`", excerpt(chosen))) }
}

fn check_count(count: usize, least: Option<u64>, most: Option<u64>, what: &str) -> Result<(), String> {
    let count = u64::try_from(count).unwrap_or(u64::MAX);
    match (least, most) {
        (Some(least), _) if count < least => Err(format!("must have at least {least} {what}")),
        (_, Some(most)) if count > most => Err(format!("must have at most {most} {what}")),
        _ => Ok(()),
    }
}

fn check_number(
    number: &Number,
    integer: bool,
    minimum: Option<&Number>,
    maximum: Option<&Number>,
) -> Result<(), String> {
    // To JSON Schema, 3.0 is an integer.
    let whole = number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|number| number.fract() == 0.0);
    if integer && !whole {
        return Err("must be a whole number".to_owned());
    }
    if minimum.is_some_and(|minimum| is_less(number, minimum)) {
        return Err(format!("must be at least {}", minimum.map(ToString::to_string).unwrap_or_default()));
    }
    if maximum.is_some_and(|maximum| is_less(maximum, number)) {
        return Err(format!("must be at most {}", maximum.map(ToString::to_string).unwrap_or_default()));
    }
    Ok(())
}

/// Compares integers as integers, because beyond 2^53 floats are not exact.
fn is_less(left: &Number, right: &Number) -> bool {
    match (left.as_i128(), right.as_i128()) {
        (Some(left), Some(right)) => left < right,
        _ => left.as_f64() < right.as_f64(),
    }
}

/// Whether a text has a format of JSON Schema, such as `email` or `date`. Any text is accepted for a format that is
/// not known.
fn has_format(text: &str, format: &str) -> bool {
    match format {
        "email" => is_email(text),
        "uri" => is_uri(text),
        "date" => is_date(text),
        "date-time" => is_date_time(text),
        _ => true,
    }
}

fn is_email(text: &str) -> bool {
    let plain = |part: &str| !part.is_empty() && !part.contains(|letter: char| letter.is_whitespace() || letter == '@');
    text.rsplit_once('@').is_some_and(|(name, host)| {
        (plain(name) || (name.len() > 2 && name.starts_with('"') && name.ends_with('"'))) && plain(host)
    })
}

fn is_uri(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    text.split_once(':').is_some_and(|(scheme, rest)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.bytes().all(letter)
            && !rest.is_empty()
            && !rest.contains(|letter: char| letter.is_whitespace() || letter.is_control())
    })
}

/// `2026-07-28`
fn is_date(text: &str) -> bool {
    let Some([year, month, day]) = numbers(text, '-', [4, 2, 2]) else { return false };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// `2026-07-28T12:30:00.5+02:00`
fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't', ' ']) else { return false };
    let Some(zone) = time.find(['Z', 'z', '+', '-']) else { return false };
    let (time, zone) = time.split_at(zone);
    let (whole, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let in_day = |[hour, minute]: [u32; 2]| hour < 24 && minute < 60;
    let zone_fits = match zone {
        "Z" | "z" => true,
        _ => zone.get(1..).and_then(|zone| numbers(zone, ':', [2, 2])).is_some_and(in_day),
    };
    let time_fits = numbers(whole, ':', [2, 2, 2])
        // A leap second is the 61st of its minute.
        .is_some_and(|[hour, minute, second]| in_day([hour, minute]) && second <= 60);
    is_date(date)
        && time_fits
        && zone_fits
        && !fraction.is_empty()
        && fraction.bytes().all(|byte| byte.is_ascii_digit())
}

/// Splits a text into numbers with `widths` digits each; `None` if the text has another form.
fn numbers<const N: usize>(text: &str, separator: char, widths: [usize; N]) -> Option<[u32; N]> {
    let mut numbers = [0; N];
    let mut parts = text.split(separator);
    for (number, width) in numbers.iter_mut().zip(widths) {
        let part = parts.next().filter(|part| part.len() == width && part.bytes().all(|byte| byte.is_ascii_digit()))?;
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(numbers)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn complaint(field: Value, value: Value) -> Option<String> {
        let form = json!({"type": "object", "properties": {"f": field}, "required": ["f"]});
        let form: FormSchema = serde_json::from_value(form).unwrap();
        let mut content = JsonObject::from_iter([("f".to_owned(), value)]);
        check(&form, &mut content).err()
    }

    #[track_caller]
    fn takes(field: &Value, values: &[Value]) {
        for value in values {
            assert_eq!(complaint(field.clone(), value.clone()), None, "{field} {value}");
        }
    }

    #[track_caller]
    fn refuses(field: &Value, values: &[Value]) {
        for value in values {
            assert!(complaint(field.clone(), value.clone()).is_some(), "{field} {value}");
        }
    }

    #[test]
    fn lengths_are_counted_in_characters() {
        let field = json!({"type": "string", "minLength": 2, "maxLength": 3});
        takes(&field, &[json!("ab"), json!("äöü")]);
        refuses(&field, &[json!("a"), json!("abcd"), json!(7), json!(null)]);
    }

    #[test]
    fn numbers_have_bounds_and_may_have_to_be_integers() {
        let field = json!({"type": "integer", "minimum": 1, "maximum": 9});
        takes(&field, &[json!(1), json!(9), json!(3.0)]);
        refuses(&field, &[json!(0), json!(10), json!(3.5), json!("3")]);
        takes(&json!({"type": "number", "minimum": 0.5}), &[json!(0.5), json!(7)]);
        let large = json!({"type": "integer", "maximum": 9_007_199_254_740_993_i64});
        refuses(&large, &[json!(9_007_199_254_740_994_i64)]);
    }

    #[test]
    fn choices_are_from_the_options() {
        let titled = json!({"type": "string", "oneOf": [{"const": "a", "title": "A"}]});
        takes(&titled, &[json!("a")]);
        refuses(&titled, &[json!("A"), json!(1)]);
        let several = json!({"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string", "enum": ["a", "b", "c"]}});
        takes(&several, &[json!(["a"]), json!(["a", "c"])]);
        refuses(&several, &[json!([]), json!(["a", "b", "c"]), json!(["d"]), json!("a")]);
        let legacy = json!({"type": "string", "enum": ["a"], "enumNames": ["A"]});
        takes(&legacy, &[json!("a")]);
        refuses(&legacy, &[json!("A")]);
        refuses(&json!({"type": "boolean"}), &[json!("true"), json!(1)]);
    }

    #[test]
    fn formats_are_checked() {
        let email = json!({"type": "string", "format": "email"});
        takes(&email, &[json!("a@b.org"), json!("\"a b\"@c")]);
        refuses(&email, &[json!("a"), json!("@b"), json!("a@"), json!("a b@c"), json!("a@b@c")]);
        let uri = json!({"type": "string", "format": "uri"});
        takes(&uri, &[json!("https://example.org/x?y#z"), json!("urn:isbn:1")]);
        refuses(&uri, &[json!("example.org"), json!("https:"), json!("a b:c"), json!("1a:b")]);
        let date = json!({"type": "string", "format": "date"});
        takes(&date, &[json!("2024-02-29"), json!("2026-12-31")]);
        refuses(&date, &[json!("2026-02-29"), json!("2026-13-01"), json!("26-01-01"), json!("2026-04-31")]);
        let moment = json!({"type": "string", "format": "date-time"});
        takes(&moment, &[json!("2026-07-28T12:30:00Z"), json!("2026-07-28T12:30:00.25+02:00")]);
        refuses(&moment, &[json!("2026-07-28T12:30:00"), json!("2026-07-28T25:00:00Z"), json!("2026-07-28")]);
    }

    #[test]
    fn optional_fields_may_be_null_and_required_fields_may_not_be_absent() {
        let form = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a"]});
        let form: FormSchema = serde_json::from_value(form).unwrap();
        let mut content = json!({"a": "x", "b": null, "more": 7}).as_object().cloned().unwrap();
        check(&form, &mut content).unwrap();
        assert_eq!(Value::Object(content), json!({"a": "x", "more": 7}));
        assert_eq!(check(&form, &mut JsonObject::new()), Err("the field `a` is missing".to_owned()));
    }
}
