//! Elicitation: asks the user at the terminal what the server wants to know.

use serde_json::{Number, Value};
use steadfast::client::{ClientContext, complete_form};
use steadfast::{
    ElicitParams, ElicitResult, Error, FormField, FormSchema, JsonObject,
    model::{ElicitFormParams, FormFieldKind, FormOption},
};
use steadfast_auth::client::{Url, open_browser};

use super::display::sanitize;
use super::display::terminal;
use super::display::terminal::TerminalDialog;

/// What the user types to decline a form.
const DECLINE: &str = "/decline";

const HELP: &str =
    "Enter takes the default in [brackets] or leaves the field empty, /decline declines the form, Ctrl-D cancels it";

/// Answers an elicitation request of the server by asking the user. An empty line takes the default of a field; the end of
/// input cancels the elicitation.
pub(crate) async fn elicit(request: ElicitParams, _: ClientContext) -> Result<ElicitResult, Error> {
    let mut dialog = terminal::open_dialog().await;
    Ok(match request {
        ElicitParams::Form(form) => fill_in(&mut dialog, &form).await,
        ElicitParams::Url(url) => visit(&mut dialog, &url.message, &url.url).await,
        _ => ElicitResult::cancel(),
    })
}

/// Shows the whole URL, and opens it only if the user agrees. The URL is shown in its parsed form, which is what the browser
/// gets: the server's spelling may differ.
async fn visit(dialog: &mut TerminalDialog, message: &str, url: &str) -> ElicitResult {
    let page = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let shown = page.as_ref().map_or(url, Url::as_str);
    dialog.print(&format!("\nThe server asks: {}\n  {}", sanitize::quoted(message), sanitize::quoted(shown)));
    if let Some((page, host)) = page.as_ref().and_then(|page| Some((page, page.host_str()?))) {
        dialog.print(&format!("  The host of the URL is {}{}.", sanitize::line(host), host_warning(page)));
    }
    let question = match &page {
        Some(_) => "Open this URL in a browser? [y/N, m: I open it myself] ",
        None => "This command does not open such URLs. Will you open it yourself? [y/N] ",
    };
    match (dialog.ask(question).await.as_deref(), page) {
        (Some("y" | "Y" | "yes"), Some(page)) => {
            if let Err(error) = open_browser(&page) {
                dialog.print(&format!("  Failed to open a browser ({error}): open the URL yourself."));
            }
            ElicitResult::agree()
        }
        (Some("y" | "Y" | "yes"), None) | (Some("m" | "M"), Some(_)) => ElicitResult::agree(),
        (Some(_), _) => ElicitResult::decline(),
        (None, _) => ElicitResult::cancel(),
    }
}

/// A warning about a URL whose host may be deceptive, or whose connection is not encrypted.
fn host_warning(page: &Url) -> &'static str {
    let host = page.host_str().unwrap_or_default();
    if host.split('.').any(|part| part.starts_with("xn--")) {
        ", an internationalized name whose letters may look like others"
    } else if page.scheme() == "http" && !matches!(host, "localhost" | "127.0.0.1" | "[::1]") {
        ", without encryption"
    } else {
        ""
    }
}

async fn fill_in(dialog: &mut TerminalDialog, form: &ElicitFormParams) -> ElicitResult {
    dialog.print(&format!("\nThe server asks: {}\n  ({HELP})", sanitize::quoted(&form.message)));
    let mut answers = JsonObject::new();
    for (name, field) in form.requested_schema.fields() {
        let required = form.requested_schema.is_required(name);
        match ask_field(dialog, name, &field, required).await {
            FieldAnswer::Value(value) => drop(answers.insert(name.to_owned(), value)),
            FieldAnswer::Empty => {}
            FieldAnswer::Decline => return ElicitResult::decline(),
            FieldAnswer::EndOfInput => return ElicitResult::cancel(),
        }
    }
    ElicitResult::accept(answers)
}

/// What the user typed for a field of an elicitation form.
enum FieldAnswer {
    Value(Value),
    /// The user typed an empty line, which takes the default of the field if there is one.
    Empty,
    /// The user typed `/decline`, which declines the whole form.
    Decline,
    EndOfInput,
}

async fn ask_field(dialog: &mut TerminalDialog, name: &str, field: &FormField, required: bool) -> FieldAnswer {
    let title = sanitize::line(field.title.as_deref().unwrap_or(name));
    if let Some(description) = &field.description {
        dialog.print(&format!("  {}", sanitize::quoted(description)));
    }
    let options = options(&field.kind);
    for (number, option) in (1..).zip(options.iter().filter(|_| has_titles(options))) {
        let title = option.title.as_deref().unwrap_or(&option.value);
        dialog.print(&format!("    {number}  {}", sanitize::line(title)));
    }
    loop {
        let question = format!("{title}{}: ", field_hint(&field.kind, required));
        let Some(typed) = dialog.ask(&question).await else { return FieldAnswer::EndOfInput };
        match (typed.as_str(), default(&field.kind)) {
            (DECLINE, _) => return FieldAnswer::Decline,
            ("", Some(_)) => return FieldAnswer::Empty,
            ("", None) if !required => return FieldAnswer::Empty,
            ("", None) => dialog.print("  This field is required."),
            (text, _) => match parse(&field.kind, text).and_then(|value| check(field, value)) {
                Ok(value) => return FieldAnswer::Value(value),
                Err(error) => dialog.print(&format!("  {}", sanitize::quoted(&error))),
            },
        }
    }
}

/// The options of a choice in an elicitation form; empty for any other field.
fn options(kind: &FormFieldKind) -> &[FormOption] {
    match kind {
        FormFieldKind::Choice { options, .. } | FormFieldKind::Choices { options, .. } => options,
        _ => &[],
    }
}

/// Whether the options of a field have titles: then each option is shown on a numbered line.
fn has_titles(options: &[FormOption]) -> bool {
    options.iter().any(|option| option.title.is_some())
}

/// The hint after the name of a form field: its type, options and default.
fn field_hint(kind: &FormFieldKind, required: bool) -> String {
    let options = options(kind);
    let several = matches!(kind, FormFieldKind::Choices { .. });
    let hint = match kind {
        FormFieldKind::Boolean { .. } => " (yes, no)".to_owned(),
        FormFieldKind::Number { integer, minimum, maximum, .. } => {
            number_hint(*integer, minimum.as_ref(), maximum.as_ref())
        }
        FormFieldKind::Text { format: Some(format), .. } => format!(" ({})", sanitize::line(format)),
        _ if has_titles(options) => {
            format!(" (1 to {}{})", options.len(), if several { ", comma-separated" } else { "" })
        }
        _ if !options.is_empty() => {
            let values: Vec<String> = options.iter().map(|option| sanitize::line(&option.value)).collect();
            format!(" ({}{})", if several { "any of " } else { "" }, values.join(", "))
        }
        _ => String::new(),
    };
    match default(kind) {
        Some(default) => format!("{hint} [{}]", sanitize::line(&default)),
        None if !required => format!("{hint} (optional)"),
        None => hint,
    }
}

fn number_hint(integer: bool, least: Option<&Number>, most: Option<&Number>) -> String {
    let kind = if integer { "whole number" } else { "number" };
    match (least, most) {
        (Some(least), Some(most)) => format!(" ({kind} from {least} to {most})"),
        (Some(least), None) => format!(" ({kind} from {least})"),
        (None, Some(most)) => format!(" ({kind} up to {most})"),
        (None, None) => format!(" ({kind})"),
    }
}

/// Checks the value of a form field as the server would, so that the user can correct one field instead of the whole form.
fn check(field: &FormField, value: Value) -> Result<Value, String> {
    const FIELD: &str = "it";
    let form = FormSchema::new().with_required(FIELD, field.clone());
    let mut content = JsonObject::new();
    content.insert(FIELD.to_owned(), value.clone());
    let message = |error: Error| {
        let error = error.to_string();
        format!("It {}.", error.strip_prefix("the field `it` ").unwrap_or(&error))
    };
    complete_form(&form, content).map_err(message).map(|_| value)
}

fn default(kind: &FormFieldKind) -> Option<String> {
    match kind {
        FormFieldKind::Text { default, .. } | FormFieldKind::Choice { default, .. } => default.clone(),
        FormFieldKind::Number { default, .. } => default.as_ref().map(ToString::to_string),
        FormFieldKind::Boolean { default, .. } => default.map(|default| if default { "yes" } else { "no" }.to_owned()),
        FormFieldKind::Choices { default, .. } => default.as_ref().map(|default| default.join(", ")),
        _ => None,
    }
}

/// Parses the text that the user typed as a value of the form field.
fn parse(kind: &FormFieldKind, text: &str) -> Result<Value, String> {
    match kind {
        FormFieldKind::Number { .. } => match serde_json::from_str(text) {
            Ok(Value::Number(number)) => Ok(Value::Number(number)),
            _ => Err("The value must be a number.".to_owned()),
        },
        FormFieldKind::Boolean { .. } => match text.to_lowercase().as_str() {
            "y" | "yes" | "true" => Ok(true.into()),
            "n" | "no" | "false" => Ok(false.into()),
            _ => Err("Type yes or no.".to_owned()),
        },
        FormFieldKind::Choice { options, .. } => find_option(options, text).map(Value::from),
        FormFieldKind::Choices { options, .. } => {
            let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
            parts.map(|part| find_option(options, part).map(Value::from)).collect()
        }
        _ => Ok(text.into()),
    }
}

/// Finds an option of a form field by its value, its title, or its number if numbers are shown.
fn find_option<'a>(options: &'a [FormOption], text: &str) -> Result<&'a str, String> {
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
    fn input_is_parsed_by_the_type_of_the_field() {
        assert_eq!(parse(&FormField::integer().kind, "7"), Ok(7.into()));
        assert!(parse(&FormField::integer().kind, "seven").is_err());
        assert_eq!(parse(&FormField::boolean().kind, "Yes"), Ok(true.into()));
        assert_eq!(parse(&FormField::choice(["a", "b"]).kind, "b"), Ok("b".into()));
        assert!(parse(&FormField::choice(["a", "b"]).kind, "c").is_err());
        assert_eq!(parse(&FormField::choices(["a", "b"]).kind, "a, b"), Ok(serde_json::json!(["a", "b"])));
        assert_eq!(parse(&FormField::string().kind, "7"), Ok("7".into()));
    }

    #[test]
    fn the_hint_shows_type_and_default() {
        assert_eq!(field_hint(&FormField::choice(["a", "b"]).with_default("b").kind, true), " (a, b) [b]");
        assert_eq!(field_hint(&FormField::boolean().with_default(true).kind, true), " (yes, no) [yes]");
        assert_eq!(field_hint(&FormField::string().kind, true), "");
        assert_eq!(field_hint(&FormField::string().kind, false), " (optional)");
        assert_eq!(field_hint(&FormField::integer().with_range(1, 9).kind, true), " (whole number from 1 to 9)");
        assert_eq!(field_hint(&FormField::choices(["a", "b"]).kind, true), " (any of a, b)");
        assert_eq!(field_hint(&FormField::formatted("date").kind, true), " (date)");
    }

    #[test]
    fn an_option_is_chosen_by_its_value_its_title_or_its_number() {
        let titled = [FormOption::new("v1").with_title("First"), FormOption::new("2").with_title("Second")];
        assert_eq!(find_option(&titled, "v1"), Ok("v1"));
        assert_eq!(find_option(&titled, "first"), Ok("v1"));
        assert_eq!(find_option(&titled, "1"), Ok("v1"));
        // A value takes precedence over a number.
        assert_eq!(find_option(&titled, "2"), Ok("2"));
        assert!(find_option(&titled, "3").is_err() && find_option(&titled, "0").is_err());
        assert_eq!(field_hint(&FormField::choice(titled).kind, true), " (1 to 2)");
        assert!(find_option(&[FormOption::new("a")], "1").is_err(), "no numbers are shown");
    }

    #[test]
    fn invalid_values_are_rejected_with_a_reason() {
        let typed = |field: FormField, text: &str| parse(&field.kind, text).and_then(|value| check(&field, value));
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
    fn deceptive_hosts_and_plain_http_have_a_warning() {
        let warning = |url: &str| host_warning(&Url::parse(url).unwrap());
        assert!(warning("https://xn--pple-43d.com/").contains("letters"));
        for plain in ["http://example.com/", "HTTP://example.com/", " http://example.com/", "ht\ttp://example.com/"] {
            assert!(warning(plain).contains("without encryption"), "{plain:?}");
        }
        assert_eq!(warning("http://127.0.0.1:7/"), "");
        assert_eq!(warning("https://example.com/"), "");
    }
}
