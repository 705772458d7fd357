//! What may help somebody whose request failed: what there is instead, and what it takes.

use steadfast::{ErrorObject, JsonObject};
use steadfast_auth::client::Url;

use super::layout::{Page, Row};
use super::{harmless, schema, terminal};

/// How many names are shown at most.
const NAMES: usize = 30;
/// Where most servers are that speak HTTP.
const USUAL_PATH: &str = "/mcp";

/// There is no such thing: what there is. `things` is what they are called, together; `names` are all that the server lists.
pub(super) fn what_there_is(things: &str, wanted: &str, names: &[&str]) -> Option<String> {
    if names.contains(&wanted) {
        return None;
    }
    if names.is_empty() {
        return Some(format!("the server lists no {things}"));
    }
    let meant = what_was_meant(wanted, names).map_or_else(String::new, |meant| format!("{meant} "));
    let shown: Vec<String> = names.iter().take(NAMES).map(|name| harmless::line(name)).collect();
    let more = names.len().saturating_sub(NAMES);
    let more = if more == 0 { String::new() } else { format!(", and {more} more") };
    Some(format!("{meant}the {things} of the server: {}{more}", shown.join(", ")))
}

/// What is called almost the same.
fn what_was_meant(wanted: &str, names: &[&str]) -> Option<String> {
    let nearest = names.iter().min_by_key(|name| distance(wanted, name));
    let similar = nearest.filter(|name| distance(wanted, name) <= wanted.chars().count() / 3 + 1);
    similar.map(|name| format!("did you mean `{}`?", harmless::line(name)))
}

/// Arguments that a tool does not have: a line for each.
pub(super) fn what_it_does_not_take<'a>(
    tool: &str,
    input_schema: &JsonObject,
    given: impl Iterator<Item = &'a str>,
) -> Vec<String> {
    let names: Vec<&str> = schema::parameters(input_schema).iter().map(|parameter| parameter.name).collect();
    let (known, unknown): (Vec<&str>, Vec<&str>) = given.partition(|name| names.contains(name));
    // What is there already was not meant.
    let rest: Vec<&str> = names.into_iter().filter(|name| !known.contains(name)).collect();
    let line = |name: &str| {
        let meant = what_was_meant(name, &rest).map_or_else(String::new, |meant| format!(": {meant}"));
        format!("`{}` has no argument `{}`{meant}", harmless::line(tool), harmless::line(name))
    };
    unknown.into_iter().map(line).collect()
}

/// What a tool takes, if what it was given cannot be that. `wrong` is for when the server says so.
pub(super) fn what_it_takes(tool: &str, input_schema: &JsonObject, given: &JsonObject, wrong: bool) -> Option<String> {
    let parameters = schema::parameters(input_schema);
    let missing = parameters.iter().filter(|parameter| parameter.required && !given.contains_key(parameter.name));
    let missing = missing.map(|parameter| format!("`{}` is missing", harmless::line(parameter.name)));
    let is_known = |name: &str| parameters.iter().any(|parameter| parameter.name == name);
    let unknown = given.keys().filter(|name| !is_known(name));
    let unknown = unknown.map(|name| format!("`{name}` is not one of them"));
    let mut complaints: Vec<String> = missing.collect();
    let has_missing = !complaints.is_empty();
    complaints.extend(unknown);
    if !wrong && !has_missing && (complaints.is_empty() || schema::others(input_schema) != schema::Others::Refused) {
        return None;
    }
    let complaints = if complaints.is_empty() { String::new() } else { format!(" ({})", complaints.join(", ")) };
    let tool = harmless::line(tool);
    if parameters.is_empty() {
        return Some(format!("`{tool}` takes no arguments{complaints}"));
    }
    let rows: Vec<Row> = parameters.iter().map(row).collect();
    let page = Page { width: None, bold: false };
    Some(format!("`{tool}` takes these arguments{complaints}:\n{}", page.table(&rows).trim_end()))
}

/// What a client would need to be that the server does it for.
pub(super) fn what_it_needs(refusal: &ErrorObject) -> Option<String> {
    let needed = refusal.data.as_ref()?.get("requiredCapabilities")?;
    let advice = if needed.get("elicitation").is_some() && !terminal::somebody_is_there() {
        "it asks something, which can be answered only at a terminal: standard input and standard error have to be one"
    } else {
        "it needs a client that can do more than this one: a model, or folders to look at"
    };
    Some(advice.to_owned())
}

/// There is a web server at a URL, and no MCP server: another path may be meant.
pub(super) fn where_it_may_be(url: &str) -> String {
    let origin = origin(url);
    let is_usual = Url::parse(url).is_ok_and(|url| url.path() == USUAL_PATH);
    let usual =
        if is_usual { String::new() } else { format!(" Many servers are at {USUAL_PATH}: {origin}{USUAL_PATH}") };
    format!("there is no MCP server at that path of {origin}: is it right?{usual}")
}

/// Where a URL leads, for people. What else it holds may be secret: a password, a key in its query or in its path.
pub(super) fn origin(url: &str) -> String {
    Url::parse(url).map_or_else(|_| "that URL".to_owned(), |url| url.origin().ascii_serialization())
}

/// An argument of a tool, as a row below it.
pub(super) fn row(parameter: &schema::Parameter<'_>) -> Row {
    Row { name: harmless::line(parameter.name), about: harmless::paragraph(&parameter.in_words()), inner: true }
}

/// How many letters have to be put in, taken out or changed.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut distances: Vec<usize> = (0..=to.len()).collect();
    for (row, letter) in from.chars().enumerate() {
        let mut diagonal = row;
        let mut left = row + 1;
        for (cell, other) in distances.iter_mut().skip(1).zip(&to) {
            let change = diagonal + usize::from(letter != *other);
            diagonal = *cell;
            left = change.min(left + 1).min(*cell + 1);
            *cell = left;
        }
        if let Some(first) = distances.first_mut() {
            *first = row + 1;
        }
    }
    distances.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn letters_are_counted() {
        assert_eq!(distance("add", "add"), 0);
        assert_eq!(distance("ad", "add"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
    }

    #[test]
    fn the_nearest_name_is_proposed_and_a_far_one_is_not() {
        let advice = what_there_is("tools", "ehco", &["add", "echo"]).unwrap();
        assert_eq!(advice, "did you mean `echo`? the tools of the server: add, echo");
        let advice = what_there_is("tools", "frobnicate", &["add", "echo"]).unwrap();
        assert_eq!(advice, "the tools of the server: add, echo");
        assert_eq!(what_there_is("tools", "add", &["add"]), None);
        assert_eq!(what_there_is("tools", "add", &[]).as_deref(), Some("the server lists no tools"));
    }

    #[test]
    fn the_usual_path_is_proposed_unless_it_was_tried() {
        assert_eq!(
            where_it_may_be("http://127.0.0.1:3000"),
            "there is no MCP server at that path of http://127.0.0.1:3000: is it right? Many servers are at /mcp: http://127.0.0.1:3000/mcp"
        );
        assert!(where_it_may_be("https://a.example/mcp/").ends_with("https://a.example/mcp"));
        assert_eq!(
            where_it_may_be("https://a.example/mcp"),
            "there is no MCP server at that path of https://a.example: is it right?"
        );
    }

    #[test]
    fn an_argument_that_a_tool_does_not_have_is_named_with_the_nearest() {
        let schema = json!({ "properties": { "path": {}, "recursive": {} } });
        let said = |given: &[&str]| what_it_does_not_take("read", schema.as_object().unwrap(), given.iter().copied());
        assert_eq!(said(&["pth", "recursive"]), ["`read` has no argument `pth`: did you mean `path`?"]);
        assert_eq!(said(&["pth", "path"]), ["`read` has no argument `pth`"]);
        assert_eq!(said(&["depth_of_it"]), ["`read` has no argument `depth_of_it`"]);
        assert!(said(&["path"]).is_empty());
    }

    #[test]
    fn what_is_missing_or_unknown_is_named_with_what_there_is() {
        let schema = json!({
            "properties": { "a": { "type": "number" }, "b": { "type": "number" } },
            "required": ["a"], "additionalProperties": false,
        });
        let schema = schema.as_object().unwrap();
        let given = |value: serde_json::Value| value.as_object().unwrap().clone();
        assert_eq!(what_it_takes("add", schema, &given(json!({ "a": 1 })), false), None);
        let advice = what_it_takes("add", schema, &given(json!({ "c": 1 })), false).unwrap();
        let complaints = "(`a` is missing, `c` is not one of them):";
        assert_eq!(
            advice,
            format!("`add` takes these arguments {complaints}\n  a  number, required\n  b  number, optional")
        );
        assert!(what_it_takes("add", schema, &given(json!({ "a": 1 })), true).is_some());
    }
}
