//! Hints for failed requests: similar names, the arguments of a tool, a likely URL.

use steadfast::{ErrorObject, JsonObject};
use steadfast_auth::client::Url;

use super::table::{TableRow, TableStyle};
use super::{sanitize, terminal};
use crate::client::schema;

/// The maximum number of names in a hint for the user.
const MAX_NAMES: usize = 30;
/// The path at which most MCP servers over HTTP are mounted.
const USUAL_PATH: &str = "/mcp";

/// A hint for an unknown name: the most similar name and all other names. `things` is the plural of what the user asked for
/// ("tools"); `names` are all names that the server lists. Returns `None` if the server lists the name.
pub(crate) fn suggest_names(things: &str, name: &str, names: &[&str]) -> Option<String> {
    if names.contains(&name) {
        return None;
    }
    if names.is_empty() {
        return Some(format!("the server lists no {things}"));
    }
    let meant = did_you_mean(name, names).map_or_else(String::new, |meant| format!("{meant} "));
    let shown: Vec<String> = names.iter().take(MAX_NAMES).map(|name| sanitize::line(name)).collect();
    let more = names.len().saturating_sub(MAX_NAMES);
    let more = if more == 0 { String::new() } else { format!(", and {more} more") };
    Some(format!("{meant}the {things} of the server: {}{more}", shown.join(", ")))
}

/// Suggests the most similar of the names, if one is similar enough.
fn did_you_mean(name: &str, names: &[&str]) -> Option<String> {
    let nearest = names.iter().min_by_key(|candidate| edit_distance(name, candidate));
    let similar = nearest.filter(|candidate| edit_distance(name, candidate) <= name.chars().count() / 3 + 1);
    similar.map(|name| format!("did you mean `{}`?", sanitize::line(name)))
}

/// A line of text for each argument of the user that the tool's schema does not list.
pub(crate) fn unknown_arguments<'a>(
    tool: &str,
    input_schema: &JsonObject,
    given: impl Iterator<Item = &'a str>,
) -> Vec<String> {
    let names: Vec<&str> = schema::parameters(input_schema).iter().map(|parameter| parameter.name).collect();
    let (known, unknown): (Vec<&str>, Vec<&str>) = given.partition(|name| names.contains(name));
    // An argument that is given already is not suggested.
    let rest: Vec<&str> = names.into_iter().filter(|name| !known.contains(name)).collect();
    let line = |name: &str| {
        let meant = did_you_mean(name, &rest).map_or_else(String::new, |meant| format!(": {meant}"));
        format!("`{}` has no argument `{}`{meant}", sanitize::line(tool), sanitize::line(name))
    };
    unknown.into_iter().map(line).collect()
}

/// Describes the arguments of a tool, if the given arguments do not match its schema or, with `wrong`, the server rejected
/// them.
pub(crate) fn describe_arguments(
    tool: &str,
    input_schema: &JsonObject,
    given: &JsonObject,
    wrong: bool,
) -> Option<String> {
    let parameters = schema::parameters(input_schema);
    let missing = parameters.iter().filter(|parameter| parameter.required && !given.contains_key(parameter.name));
    let missing = missing.map(|parameter| format!("`{}` is missing", sanitize::line(parameter.name)));
    let is_known = |name: &str| parameters.iter().any(|parameter| parameter.name == name);
    let unknown = given.keys().filter(|name| !is_known(name));
    let unknown = unknown.map(|name| format!("`{name}` is unknown"));
    let mut problems: Vec<String> = missing.collect();
    let has_missing = !problems.is_empty();
    problems.extend(unknown);
    if !wrong
        && !has_missing
        && (problems.is_empty() || schema::additional_arguments(input_schema) != schema::AdditionalArguments::Rejected)
    {
        return None;
    }
    let problems = if problems.is_empty() { String::new() } else { format!(" ({})", problems.join(", ")) };
    let tool = sanitize::line(tool);
    if parameters.is_empty() {
        return Some(format!("`{tool}` takes no arguments{problems}"));
    }
    let rows: Vec<TableRow> = parameters.iter().map(parameter_row).collect();
    let style = TableStyle { width: None, bold: false };
    Some(format!("`{tool}` takes these arguments{problems}:\n{}", style.table(&rows).trim_end()))
}

/// A hint for a JSON-RPC error about a capability that this client does not have.
pub(crate) fn missing_capability(refusal: &ErrorObject) -> Option<String> {
    let required = refusal.data.as_ref()?.get("requiredCapabilities")?;
    let advice = if required.get("elicitation").is_some() && !terminal::is_interactive() {
        "the tool asks the user, which needs a terminal as standard input and standard error"
    } else {
        "the tool needs a client with capabilities that this command does not have, such as sampling or roots"
    };
    Some(advice.to_owned())
}

/// A hint for a URL at which a web server answers, but no MCP server.
pub(crate) fn suggest_path(url: &str) -> String {
    let origin = origin(url);
    let is_usual = Url::parse(url).is_ok_and(|url| url.path() == USUAL_PATH);
    let usual =
        if is_usual { String::new() } else { format!(" Many servers are at {USUAL_PATH}: {origin}{USUAL_PATH}") };
    format!("there is no MCP server at that path of {origin}.{usual}")
}

/// The origin of a URL, for messages. The rest of the URL may be secret: a password, or a key in its query or path.
pub(crate) fn origin(url: &str) -> String {
    Url::parse(url).map_or_else(|_| "that URL".to_owned(), |url| url.origin().ascii_serialization())
}

/// An argument of a tool, as a nested row of a table.
pub(crate) fn parameter_row(parameter: &schema::ToolArgumentSchema<'_>) -> TableRow {
    TableRow { name: sanitize::line(parameter.name), about: sanitize::paragraph(&parameter.describe()), nested: true }
}

/// The Levenshtein distance: how many characters are inserted, deleted or replaced.
fn edit_distance(from: &str, to: &str) -> usize {
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
    fn the_edit_distance_counts_changed_characters() {
        assert_eq!(edit_distance("add", "add"), 0);
        assert_eq!(edit_distance("ad", "add"), 1);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("abc", ""), 3);
    }

    #[test]
    fn a_similar_name_is_suggested_and_a_different_one_is_not() {
        let advice = suggest_names("tools", "ehco", &["add", "echo"]).unwrap();
        assert_eq!(advice, "did you mean `echo`? the tools of the server: add, echo");
        let advice = suggest_names("tools", "frobnicate", &["add", "echo"]).unwrap();
        assert_eq!(advice, "the tools of the server: add, echo");
        assert_eq!(suggest_names("tools", "add", &["add"]), None);
        assert_eq!(suggest_names("tools", "add", &[]).as_deref(), Some("the server lists no tools"));
    }

    #[test]
    fn the_usual_path_is_suggested_unless_it_was_tried() {
        assert_eq!(
            suggest_path("http://127.0.0.1:3000"),
            "there is no MCP server at that path of http://127.0.0.1:3000. Many servers are at /mcp: http://127.0.0.1:3000/mcp"
        );
        assert!(suggest_path("https://a.example/mcp/").ends_with("https://a.example/mcp"));
        assert_eq!(suggest_path("https://a.example/mcp"), "there is no MCP server at that path of https://a.example.");
    }

    #[test]
    fn an_unknown_argument_is_named_with_the_nearest_known_one() {
        let schema = json!({ "properties": { "path": {}, "recursive": {} } });
        let lines = |given: &[&str]| unknown_arguments("read", schema.as_object().unwrap(), given.iter().copied());
        assert_eq!(lines(&["pth", "recursive"]), ["`read` has no argument `pth`: did you mean `path`?"]);
        assert_eq!(lines(&["pth", "path"]), ["`read` has no argument `pth`"]);
        assert_eq!(lines(&["depth_of_it"]), ["`read` has no argument `depth_of_it`"]);
        assert!(lines(&["path"]).is_empty());
    }

    #[test]
    fn missing_and_unknown_arguments_are_named_with_all_arguments() {
        let schema = json!({
            "properties": { "a": { "type": "number" }, "b": { "type": "number" } },
            "required": ["a"], "additionalProperties": false,
        });
        let schema = schema.as_object().unwrap();
        let given = |value: serde_json::Value| value.as_object().unwrap().clone();
        assert_eq!(describe_arguments("add", schema, &given(json!({ "a": 1 })), false), None);
        let advice = describe_arguments("add", schema, &given(json!({ "c": 1 })), false).unwrap();
        let problems = "(`a` is missing, `c` is unknown):";
        assert_eq!(
            advice,
            format!("`add` takes these arguments {problems}\n  a  number, required\n  b  number, optional")
        );
        assert!(describe_arguments("add", schema, &given(json!({ "a": 1 })), true).is_some());
    }
}
