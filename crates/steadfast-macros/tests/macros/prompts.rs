//! `#[prompt]` on functions and on methods.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use steadfast::prelude::*;
use steadfast::{
    CompleteContext, Reference, Role,
    model::{CompleteParams, code, request},
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Tone {
    Kind,
    Harsh,
}

/// Reviews code.
///
/// At length.
#[prompt(title = "Review", icon = "https://example.com/review.png")]
async fn review(
    /// The code to review
    code: String,
    #[arg(default = 5)] strictness: u8,
    tone: Option<Tone>,
    #[arg(rename = "type", description = "Which type")] kind: Option<bool>,
) -> String {
    format!("{code} {strictness} {tone:?} {kind:?}")
}

/// Explains a word.
#[prompt]
fn explain(#[state] words: Arc<Vec<String>>, number: usize, _ctx: &Context) -> steadfast::ToolResult<(Role, String)> {
    let word = words.get(number).ok_or("there are not so many words")?;
    Ok((Role::Assistant, format!("It is {word}.")))
}

async fn cities(typed: String, context: CompleteContext) -> Vec<String> {
    vec![format!("{typed} of {}", context.argument("country").unwrap_or("nowhere"))]
}

struct Guide {
    name: &'static str,
}

#[server(parts(more))]
impl Guide {
    /// Plans a trip.
    #[prompt(name = "plan.trip")]
    async fn trip(
        &self,
        #[arg(complete = ["Chile", "China", "Norway"])] country: String,
        #[arg(complete = cities)] city: Option<String>,
    ) -> Vec<PromptMessage> {
        let place = city.unwrap_or(country);
        vec![PromptMessage::user(format!("Plan a trip to {place}.")), PromptMessage::assistant(self.name)]
    }

    /// A tool may have the name of a prompt.
    #[tool(name = "plan.trip")]
    async fn tool(&self) {}

    #[cfg(not(test))]
    #[prompt]
    async fn absent(&self) -> String {
        String::new()
    }
}

#[server(part = more)]
impl Guide {
    #[prompt]
    fn plain(self: Arc<Self>) -> &'static str {
        self.name
    }
}

fn texts(result: &steadfast::GetPromptResult) -> Vec<(Role, &str)> {
    result.messages.iter().map(|message| (message.role, message.content.as_text().unwrap())).collect()
}

#[test]
fn doc_comments_describe() {
    let prompt = review();
    let definition = prompt.definition();
    assert_eq!(definition.name, "review");
    assert_eq!(definition.title.as_deref(), Some("Review"));
    assert_eq!(definition.description.as_deref(), Some("Reviews code.\n\nAt length."));
    assert_eq!(definition.icons[0].src, "https://example.com/review.png");
    let arguments: Vec<_> = definition
        .arguments
        .iter()
        .map(|argument| (argument.name.as_str(), argument.description.as_deref(), argument.required))
        .collect();
    let expected = [
        ("code", Some("The code to review"), Some(true)),
        ("strictness", None, Some(false)),
        ("tone", None, Some(false)),
        ("type", Some("Which type"), Some(false)),
    ];
    assert_eq!(arguments, expected);
}

#[tokio::test]
async fn parameters_are_read_from_strings() {
    let result = review().fill(json!({ "code": "x", "tone": "harsh", "type": "true" })).await.unwrap();
    assert_eq!(texts(&result), [(Role::User, "x 5 Some(Harsh) Some(true)")]);
    let result = review().fill(json!({ "code": "", "strictness": "9", "tone": "kind" })).await.unwrap();
    assert_eq!(texts(&result), [(Role::User, " 9 Some(Kind) None")]);
}

#[tokio::test]
async fn mistakes_in_arguments_are_named() {
    let message = async |arguments| review().fill(arguments).await.unwrap_err().object().message.clone().into_owned();
    assert_eq!(message(json!({})).await, "Bad arguments: `code` is missing");
    assert!(message(json!({ "code": "", "strictness": "-1" })).await.starts_with("Bad argument `strictness`: "));
    assert!(message(json!({ "code": "", "tone": "loud" })).await.starts_with("Bad argument `tone`: "));
}

#[tokio::test]
async fn a_function_has_state_and_any_error() {
    let prompt = explain(Arc::new(vec!["hello".to_owned()]));
    let result = prompt.fill(json!({ "number": "0" })).await.unwrap();
    assert_eq!(texts(&result), [(Role::Assistant, "It is hello.")]);
    let error = prompt.fill(json!({ "number": "7" })).await.unwrap_err();
    assert_eq!((error.object().code, &*error.object().message), (code::INTERNAL_ERROR, "there are not so many words"));
}

#[tokio::test]
async fn methods_are_prompts_of_the_server() {
    let server = Guide { name: "Ada" }.into_server();
    assert_eq!(server.prompts().iter().map(ServerPrompt::name).collect::<Vec<_>>(), ["plan.trip", "plain"]);
    assert_eq!(server.tools().len(), 1);
    let trip = server.prompt("plan.trip").unwrap();
    let result = trip.fill(json!({ "country": "Norway", "city": "" })).await.unwrap();
    assert_eq!(texts(&result), [(Role::User, "Plan a trip to Norway."), (Role::Assistant, "Ada")]);
    let plain = server.prompt("plain").unwrap().fill(()).await.unwrap();
    assert_eq!(texts(&plain), [(Role::User, "Ada")]);
}

#[tokio::test]
async fn arguments_are_completed() {
    let client = Client::connect(Guide { name: "Ada" }).await.unwrap();
    let complete = async |argument: &str, typed: &str| {
        let context = CompleteContext::new([("country".to_owned(), "Chile".to_owned())].into());
        let params = CompleteParams::new(Reference::prompt("plan.trip"), argument, typed).with_context(context);
        client.call::<request::Complete>(params).await.unwrap().completion.values
    };
    assert_eq!(complete("country", "chi").await, ["Chile", "China"]);
    assert_eq!(complete("city", "south").await, ["south of Chile"]);
}
