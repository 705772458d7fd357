//! What a server asks the user, asked at the terminal.

use serde_json::{Number, Value};
use steadfast::client::check_form;
use steadfast::{
    ElicitFormParams, ElicitParams, ElicitResult, Error, FormField, FormKind, FormOption, FormSchema, JsonObject,
};
use steadfast_auth::client::{Url, open_browser};

use super::harmless;
use super::terminal::{self, Person};

/// What is typed to say no to a whole form.
const DECLINE: &str = "/decline";

const HELP: &str = "Enter takes what is in [brackets] or leaves it empty, /decline says no to all of it, Ctrl-D goes away without an answer";

/// Asks. An empty line takes what is proposed; the end of input is no answer.
pub(super) async fn elicit(asked: ElicitParams) -> Result<ElicitResult, Error> {
    let mut person = terminal::person().await;
    Ok(match asked {
        ElicitParams::Form(form) => fill_in(&mut person, &form).await,
        ElicitParams::Url(url) => visit(&mut person, &url.message, &url.url).await,
        _ => ElicitResult::cancel(),
    })
}

/// The whole URL is shown, and nothing is opened that nobody agreed to. A page is shown as the browser is given it: the server
/// may have written it in another way.
async fn visit(person: &mut Person, message: &str, url: &str) -> ElicitResult {
    let page = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let shown = page.as_ref().map_or(url, Url::as_str);
    person.tell(&format!("\nThe server asks: {}\n  {}", harmless::quoted(message), harmless::quoted(shown)));
    if let Some((page, host)) = page.as_ref().and_then(|page| Some((page, page.host_str()?))) {
        person.tell(&format!("  It is a page of {}{}.", harmless::line(host), suspicion(page)));
    }
    let question = match &page {
        Some(_) => "Open it in a browser? [y/N, m: I go there myself] ",
        None => "No browser is opened for that. Do you go there yourself? [y/N] ",
    };
    match (person.ask(question).await.as_deref(), page) {
        (Some("y" | "Y" | "yes"), Some(page)) => {
            if let Err(error) = open_browser(&page) {
                person.tell(&format!("  No browser opened ({error}): visit the URL yourself."));
            }
            ElicitResult::agree()
        }
        (Some("y" | "Y" | "yes"), None) | (Some("m" | "M"), Some(_)) => ElicitResult::agree(),
        (Some(_), _) => ElicitResult::decline(),
        (None, _) => ElicitResult::cancel(),
    }
}

/// What to look at twice before going there.
fn suspicion(page: &Url) -> &'static str {
    let host = page.host_str().unwrap_or_default();
    if host.split('.').any(|part| part.starts_with("xn--")) {
        ", whose name is written in letters that may look like others"
    } else if page.scheme() == "http" && !matches!(host, "localhost" | "127.0.0.1" | "[::1]") {
        ", without encryption"
    } else {
        ""
    }
}

async fn fill_in(person: &mut Person, form: &ElicitFormParams) -> ElicitResult {
    person.tell(&format!("\nThe server asks: {}\n  ({HELP})", harmless::quoted(&form.message)));
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
    let options = options(&field.kind);
    for (number, option) in (1..).zip(options.iter().filter(|_| has_titles(options))) {
        let title = option.title.as_deref().unwrap_or(&option.value);
        person.tell(&format!("    {number}  {}", harmless::line(title)));
    }
    loop {
        let question = format!("{title}{}: ", proposal(&field.kind, required));
        let Some(typed) = person.ask(&question).await else { return Typed::End };
        match (typed.as_str(), default(&field.kind)) {
            (DECLINE, _) => return Typed::Refusal,
            ("", Some(_)) => return Typed::Nothing,
            ("", None) if !required => return Typed::Nothing,
            ("", None) => person.tell("  It has to be filled in."),
            (text, _) => match read(&field.kind, text).and_then(|value| checked(field, value)) {
                Ok(value) => return Typed::Value(value),
                Err(why) => person.tell(&format!("  {}", harmless::quoted(&why))),
            },
        }
    }
}

/// What may be chosen from.
fn options(kind: &FormKind) -> &[FormOption] {
    match kind {
        FormKind::Choice { options, .. } | FormKind::Choices { options, .. } => options,
        _ => &[],
    }
}

/// Whether people see other words than what is answered: then each has a line, and a number.
fn has_titles(options: &[FormOption]) -> bool {
    options.iter().any(|option| option.title.is_some())
}

/// What stands behind the name of a field.
fn proposal(kind: &FormKind, required: bool) -> String {
    let options = options(kind);
    let several = matches!(kind, FormKind::Choices { .. });
    let hint = match kind {
        FormKind::Boolean { .. } => " (yes, no)".to_owned(),
        FormKind::Number { integer, minimum, maximum, .. } => number(*integer, minimum.as_ref(), maximum.as_ref()),
        FormKind::Text { format: Some(format), .. } => format!(" ({})", harmless::line(format)),
        _ if has_titles(options) => format!(" (1 to {}{})", options.len(), if several { ", with commas" } else { "" }),
        _ if !options.is_empty() => {
            let values: Vec<String> = options.iter().map(|option| harmless::line(&option.value)).collect();
            format!(" ({}{})", if several { "any of " } else { "" }, values.join(", "))
        }
        _ => String::new(),
    };
    match default(kind) {
        Some(default) => format!("{hint} [{}]", harmless::line(&default)),
        None if !required => format!("{hint} (may stay empty)"),
        None => hint,
    }
}

fn number(integer: bool, least: Option<&Number>, most: Option<&Number>) -> String {
    let kind = if integer { "whole number" } else { "number" };
    match (least, most) {
        (Some(least), Some(most)) => format!(" ({kind} from {least} to {most})"),
        (Some(least), None) => format!(" ({kind} from {least})"),
        (None, Some(most)) => format!(" ({kind} up to {most})"),
        (None, None) => format!(" ({kind})"),
    }
}

/// The value, if the server would take it: asked again here, nothing of what was typed is lost.
fn checked(field: &FormField, value: Value) -> Result<Value, String> {
    const FIELD: &str = "it";
    let form = FormSchema::new().with_required(FIELD, field.clone());
    let mut content = JsonObject::new();
    content.insert(FIELD.to_owned(), value.clone());
    let complaint = |why: String| format!("It {}.", why.strip_prefix("the field `it` ").unwrap_or(&why));
    check_form(&form, &mut content).map_err(complaint).map(|()| value)
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

/// What was typed, as the field wants it.
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
        FormKind::Choice { options, .. } => chosen(options, text).map(Value::from),
        FormKind::Choices { options, .. } => {
            let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
            parts.map(|part| chosen(options, part).map(Value::from)).collect()
        }
        _ => Ok(text.into()),
    }
}

/// An option by its value, by what people see of it, or by its number where that is shown.
fn chosen<'a>(options: &'a [FormOption], text: &str) -> Result<&'a str, String> {
    let by_value = options.iter().find(|option| option.value == text);
    let is_titled = |option: &&FormOption| option.title.as_ref().is_some_and(|title| title.eq_ignore_ascii_case(text));
    let by_title = || options.iter().find(is_titled);
    let by_case = || options.iter().find(|option| option.value.eq_ignore_ascii_case(text));
    let by_number = || {
        let number = text.parse::<usize>().ok().filter(|_| has_titles(options))?;
        options.get(number.checked_sub(1)?)
    };
    let option = by_value.or_else(by_title).or_else(by_case).or_else(by_number);
    option.map(|option| &*option.value).ok_or_else(|| format!("There is no option `{text}`."))
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
        assert_eq!(proposal(&FormField::choice(["a", "b"]).with_default("b").kind, true), " (a, b) [b]");
        assert_eq!(proposal(&FormField::boolean().with_default(true).kind, true), " (yes, no) [yes]");
        assert_eq!(proposal(&FormField::string().kind, true), "");
        assert_eq!(proposal(&FormField::string().kind, false), " (may stay empty)");
        assert_eq!(proposal(&FormField::integer().with_range(1, 9).kind, true), " (whole number from 1 to 9)");
        assert_eq!(proposal(&FormField::choices(["a", "b"]).kind, true), " (any of a, b)");
        assert_eq!(proposal(&FormField::formatted("date").kind, true), " (date)");
    }

    #[test]
    fn an_option_is_chosen_by_its_value_its_title_or_its_number() {
        let titled = [FormOption::new("v1").with_title("First"), FormOption::new("2").with_title("Second")];
        assert_eq!(chosen(&titled, "v1"), Ok("v1"));
        assert_eq!(chosen(&titled, "first"), Ok("v1"));
        assert_eq!(chosen(&titled, "1"), Ok("v1"));
        // A value goes before a number.
        assert_eq!(chosen(&titled, "2"), Ok("2"));
        assert!(chosen(&titled, "3").is_err() && chosen(&titled, "0").is_err());
        assert_eq!(proposal(&FormField::choice(titled).kind, true), " (1 to 2)");
        assert!(chosen(&[FormOption::new("a")], "1").is_err(), "no numbers are shown");
    }

    #[test]
    fn what_the_server_would_not_take_is_asked_again() {
        let typed = |field: FormField, text: &str| read(&field.kind, text).and_then(|value| checked(&field, value));
        assert_eq!(typed(FormField::integer().with_range(1, 9), "10"), Err("It must be at most 9.".to_owned()));
        assert_eq!(typed(FormField::integer(), "1.5"), Err("It must be a whole number.".to_owned()));
        assert_eq!(
            typed(FormField::string().with_length(3, 5), "ab"),
            Err("It must have at least 3 characters.".to_owned())
        );
        assert_eq!(typed(FormField::formatted("email"), "ada"), Err("It must be of the format `email`.".to_owned()));
        assert_eq!(
            typed(FormField::choices(["a", "b"]).with_count(2, 2), "a"),
            Err("It must have at least 2 options.".to_owned())
        );
        assert_eq!(typed(FormField::choices(["a", "b"]), "a, c"), Err("There is no option `c`.".to_owned()));
        assert_eq!(typed(FormField::integer(), "7"), Ok(7.into()));
    }

    #[test]
    fn a_host_that_may_deceive_is_pointed_at() {
        let said = |url: &str| suspicion(&Url::parse(url).unwrap());
        assert!(said("https://xn--pple-43d.com/").contains("letters"));
        for plain in ["http://example.com/", "HTTP://example.com/", " http://example.com/", "ht\ttp://example.com/"] {
            assert!(said(plain).contains("without encryption"), "{plain:?}");
        }
        assert_eq!(said("http://127.0.0.1:7/"), "");
        assert_eq!(said("https://example.com/"), "");
    }
}
