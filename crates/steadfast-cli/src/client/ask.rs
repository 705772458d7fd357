//! What a server asks the user, asked at the terminal.

use serde_json::Value;
use steadfast::{ElicitFormParams, ElicitParams, ElicitResult, Error, FormField, FormKind, JsonObject};

use super::harmless;
use super::terminal::{self, Person};

/// What is typed to say no to a whole form.
const DECLINE: &str = "/decline";

/// Asks. An empty line takes what is proposed; the end of input is no answer.
pub(super) async fn elicit(asked: ElicitParams) -> Result<ElicitResult, Error> {
    let mut person = terminal::person().await;
    Ok(match asked {
        ElicitParams::Form(form) => fill_in(&mut person, &form).await,
        ElicitParams::Url(url) => visit(&mut person, &url.message, &url.url).await,
        _ => ElicitResult::cancel(),
    })
}

async fn visit(person: &mut Person, message: &str, url: &str) -> ElicitResult {
    person.tell(&format!("\nThe server asks: {}\n  {}", harmless::quoted(message), harmless::quoted(url)));
    match person.ask("Have you visited it? [y/N] ").await.as_deref() {
        Some("y" | "Y" | "yes") => ElicitResult::agree(),
        Some(_) => ElicitResult::decline(),
        None => ElicitResult::cancel(),
    }
}

async fn fill_in(person: &mut Person, form: &ElicitFormParams) -> ElicitResult {
    person.tell(&format!("\nThe server asks: {}\n  ({DECLINE} says no)", harmless::quoted(&form.message)));
    let mut answers = JsonObject::new();
    for (name, field) in form.requested_schema.fields() {
        let required = form.requested_schema.is_required(name);
        match answer(person, name, &field, required).await {
            Typed::Value(value) => drop(answers.insert(name.to_owned(), value)),
            Typed::Nothing => {}
            Typed::Refusal => return ElicitResult::decline(),
            Typed::End => return ElicitResult::cancel(),
        }
    }
    ElicitResult::accept(answers)
}

/// What was typed for one field.
enum Typed {
    Value(Value),
    /// It stays empty, or as it was proposed.
    Nothing,
    /// No to the whole form.
    Refusal,
    /// The end of input.
    End,
}

async fn answer(person: &mut Person, name: &str, field: &FormField, required: bool) -> Typed {
    let title = harmless::line(field.title.as_deref().unwrap_or(name));
    if let Some(description) = &field.description {
        person.tell(&format!("  {}", harmless::quoted(description)));
    }
    loop {
        let question = format!("{title}{}: ", proposal(&field.kind));
        let Some(typed) = person.ask(&question).await else { return Typed::End };
        match (typed.as_str(), default(&field.kind)) {
            (DECLINE, _) => return Typed::Refusal,
            ("", Some(_)) => return Typed::Nothing,
            ("", None) if !required => return Typed::Nothing,
            ("", None) => person.tell("  It has to be filled in."),
            (text, _) => match read(&field.kind, text) {
                Ok(value) => return Typed::Value(value),
                Err(why) => person.tell(&format!("  {why}")),
            },
        }
    }
}

fn proposal(kind: &FormKind) -> String {
    let options = match kind {
        FormKind::Choice { options, .. } | FormKind::Choices { options, .. } => {
            let values: Vec<&str> = options.iter().map(|option| &*option.value).collect();
            format!(" ({})", values.join(", "))
        }
        FormKind::Boolean { .. } => " (yes, no)".to_owned(),
        _ => String::new(),
    };
    match default(kind) {
        Some(default) => format!("{options} [{default}]"),
        None => options,
    }
}

fn default(kind: &FormKind) -> Option<String> {
    match kind {
        FormKind::Text { default, .. } | FormKind::Choice { default, .. } => default.clone(),
        FormKind::Number { default, .. } => default.as_ref().map(ToString::to_string),
        FormKind::Boolean { default, .. } => default.map(|default| if default { "yes" } else { "no" }.to_owned()),
        FormKind::Choices { default, .. } => default.as_ref().map(|default| default.join(", ")),
        _ => None,
    }
}

/// What was typed, as the field wants it. Whether it fits in every way is for the server to say.
fn read(kind: &FormKind, text: &str) -> Result<Value, String> {
    match kind {
        FormKind::Number { .. } => match serde_json::from_str(text) {
            Ok(Value::Number(number)) => Ok(Value::Number(number)),
            _ => Err("It has to be a number.".to_owned()),
        },
        FormKind::Boolean { .. } => match text.to_lowercase().as_str() {
            "y" | "yes" | "true" => Ok(true.into()),
            "n" | "no" | "false" => Ok(false.into()),
            _ => Err("Yes or no?".to_owned()),
        },
        FormKind::Choice { options, .. } if !options.iter().any(|option| option.value == text) => {
            Err("It has to be one of the options.".to_owned())
        }
        FormKind::Choices { .. } => {
            Ok(text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect())
        }
        _ => Ok(text.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_becomes_what_the_field_wants() {
        assert_eq!(read(&FormField::integer().kind, "7"), Ok(7.into()));
        assert!(read(&FormField::integer().kind, "seven").is_err());
        assert_eq!(read(&FormField::boolean().kind, "Yes"), Ok(true.into()));
        assert_eq!(read(&FormField::choice(["a", "b"]).kind, "b"), Ok("b".into()));
        assert!(read(&FormField::choice(["a", "b"]).kind, "c").is_err());
        assert_eq!(read(&FormField::choices(["a", "b"]).kind, "a, b"), Ok(serde_json::json!(["a", "b"])));
        assert_eq!(read(&FormField::string().kind, "7"), Ok("7".into()));
    }

    #[test]
    fn what_is_proposed_is_shown() {
        assert_eq!(proposal(&FormField::choice(["a", "b"]).with_default("b").kind), " (a, b) [b]");
        assert_eq!(proposal(&FormField::boolean().with_default(true).kind), " (yes, no) [yes]");
        assert_eq!(proposal(&FormField::string().kind), "");
    }
}
