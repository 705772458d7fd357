//! What a server asks the user, asked at the terminal.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use serde_json::Value;
use steadfast::{ElicitFormParams, ElicitParams, ElicitResult, Error, FormField, FormKind, JsonObject};

/// Whether there is a person to be asked.
pub(super) fn somebody_is_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks. An empty line takes what is proposed; the end of input is no answer.
pub(super) async fn elicit(asked: ElicitParams) -> Result<ElicitResult, Error> {
    // Reading a line blocks, and a blocked thread cannot be given up: it ends with the process.
    let answered = tokio::task::spawn_blocking(move || match asked {
        ElicitParams::Form(form) => fill_in(&form),
        ElicitParams::Url(url) => visit(&url.message, &url.url),
        _ => ElicitResult::cancel(),
    });
    answered.await.map_err(|error| Error::internal(error.to_string()))
}

fn visit(message: &str, url: &str) -> ElicitResult {
    eprintln!("\nThe server asks: {message}\n  {url}");
    match line("Have you visited it? [y/N] ").as_deref() {
        Some("y" | "Y" | "yes") => ElicitResult::agree(),
        Some(_) => ElicitResult::decline(),
        None => ElicitResult::cancel(),
    }
}

fn fill_in(form: &ElicitFormParams) -> ElicitResult {
    eprintln!("\nThe server asks: {}", form.message);
    let mut answers = JsonObject::new();
    for (name, field) in form.requested_schema.fields() {
        let required = form.requested_schema.is_required(name);
        match answer(name, &field, required) {
            Typed::Value(value) => drop(answers.insert(name.to_owned(), value)),
            Typed::Nothing => {}
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
    /// The end of input.
    End,
}

fn answer(name: &str, field: &FormField, required: bool) -> Typed {
    let title = field.title.as_deref().unwrap_or(name);
    if let Some(description) = &field.description {
        eprintln!("  {description}");
    }
    loop {
        let Some(typed) = line(&format!("{title}{}: ", proposal(&field.kind))) else { return Typed::End };
        match (typed.as_str(), default(&field.kind)) {
            ("", Some(_)) => return Typed::Nothing,
            ("", None) if !required => return Typed::Nothing,
            ("", None) => eprintln!("  It has to be filled in."),
            (text, _) => match read(&field.kind, text) {
                Ok(value) => return Typed::Value(value),
                Err(why) => eprintln!("  {why}"),
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

/// A line of what is typed; `None` at the end of input.
fn line(question: &str) -> Option<String> {
    eprint!("{question}");
    // A terminal that cannot be written to cannot be read from either, which is seen next.
    let _ = std::io::stderr().flush();
    let mut text = String::new();
    match std::io::stdin().lock().read_line(&mut text) {
        Ok(read) if read > 0 => Some(text.trim().to_owned()),
        _ => None,
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
