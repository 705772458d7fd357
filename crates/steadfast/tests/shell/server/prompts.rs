//! Prompts, completion and log levels, in both eras.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use steadfast::client::NegotiationMode;
use steadfast::prelude::*;
use steadfast::server::{Audio, Image};
use steadfast::transport::memory;
use steadfast::{
    CompleteContext, LoggingLevel, PromptMessage, Reference, ResourceContents, Revision, Role, ServerPrompt,
    ServerResourceTemplate,
    model::{self, CompleteParams, Completion, GetPromptParams, PaginatedParams, TextResourceContents, code, request},
};

use crate::support::RawPeer;
use crate::{Signal, soon};

/// One revision of each kind: the oldest, the last with a handshake, the one without.
const ERAS: [NegotiationMode; 3] = [
    NegotiationMode::Handshake(Revision::V2024_11_05),
    NegotiationMode::Handshake(Revision::V2025_11_25),
    NegotiationMode::Stateless,
];

#[derive(Deserialize, JsonSchema)]
struct Trip {
    /// Where to
    city: String,
    days: Option<u8>,
    mood: Option<Mood>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Mood {
    Calm,
    Wild,
}

fn trip() -> ServerPrompt {
    ServerPrompt::new("trip")
        .title("A trip")
        .description("Plans a trip.")
        .arguments::<Trip>()
        .complete("city", ["Bergen", "Bern", "Oslo"])
        .complete("mood", |typed: String, context: CompleteContext| async move {
            let city = context.argument("city").unwrap_or("nowhere");
            vec![format!("{typed} in {city}")]
        })
        .handler(|trip: Trip| async move {
            let mood = trip.mood.unwrap_or(Mood::Calm);
            format!("Plan {} {mood:?} days in {}.", trip.days.unwrap_or(3), trip.city)
        })
}

fn server(prompts: impl IntoIterator<Item = ServerPrompt>) -> Server {
    Server::builder("test", "1.0.0").prompts(prompts).build()
}

async fn connect(server: &Server, era: NegotiationMode) -> Client {
    Client::connect(server.clone()).negotiation(era).await.unwrap()
}

async fn fill(client: &Client, params: GetPromptParams) -> Result<Vec<PromptMessage>, (i64, String)> {
    match soon(client.call::<request::GetPrompt>(params).into_future()).await {
        Ok(result) => Ok(result.messages),
        Err(error) => {
            let refusal = error.refusal().unwrap();
            Err((refusal.code, refusal.message.clone().into_owned()))
        }
    }
}

async fn complete(client: &Client, params: CompleteParams) -> Result<Completion, (i64, String)> {
    match soon(client.call::<request::Complete>(params).into_future()).await {
        Ok(result) => Ok(result.completion),
        Err(error) => {
            let refusal = error.refusal().unwrap();
            Err((refusal.code, refusal.message.clone().into_owned()))
        }
    }
}

#[tokio::test]
async fn prompts_are_declared_and_listed() {
    for era in ERAS {
        let client = connect(&server([trip()]), era).await;
        let declared = client.server().server_capabilities.clone();
        assert_eq!(declared.prompts.and_then(|prompts| prompts.list_changed), Some(true));
        let list = client.call::<request::ListPrompts>(PaginatedParams::new()).await.unwrap().prompts;
        assert_eq!(list.len(), 1);
        assert_eq!((list[0].name.as_str(), list[0].description.as_deref()), ("trip", Some("Plans a trip.")));
        let arguments: Vec<_> = list[0].arguments.iter().map(|a| (a.name.as_str(), a.required)).collect();
        assert_eq!(arguments, [("city", Some(true)), ("days", Some(false)), ("mood", Some(false))]);
        assert_eq!(list[0].arguments[0].description.as_deref(), Some("Where to"));
    }
}

#[tokio::test]
async fn strings_become_the_types_of_the_handler() {
    for era in ERAS {
        let client = connect(&server([trip()]), era).await;
        let params = GetPromptParams::new("trip").with_argument("city", "Oslo");
        assert_eq!(fill(&client, params.clone()).await.unwrap(), [PromptMessage::user("Plan 3 Calm days in Oslo.")]);
        let params = params.with_argument("days", "7").with_argument("mood", "wild");
        assert_eq!(fill(&client, params).await.unwrap(), [PromptMessage::user("Plan 7 Wild days in Oslo.")]);
    }
}

#[tokio::test]
async fn bad_arguments_of_a_prompt_are_invalid_params_and_named() {
    for era in ERAS {
        let client = connect(&server([trip()]), era).await;
        let params = GetPromptParams::new("trip");
        let missing = fill(&client, params.clone()).await.unwrap_err();
        assert_eq!(missing, (code::INVALID_PARAMS, "Bad arguments: `city` is missing".to_owned()));
        let params = params.with_argument("city", "Oslo").with_argument("days", "many");
        let (refused, message) = fill(&client, params).await.unwrap_err();
        assert_eq!(refused, code::INVALID_PARAMS);
        assert!(message.contains("`days`") && message.contains("many"), "{message}");
        let (refused, message) = fill(&client, GetPromptParams::new("nothing")).await.unwrap_err();
        assert_eq!(refused, code::INVALID_PARAMS);
        assert!(message.contains("`nothing`"), "{message}");
    }
}

#[tokio::test]
async fn every_kind_of_content_can_be_in_a_prompt() {
    let contents = ResourceContents::from(TextResourceContents::new("test://a", "text"));
    let messages = vec![
        PromptMessage::user("text"),
        PromptMessage::assistant(Image::png([1, 2, 3])),
        PromptMessage::user(Audio::wav([1, 2, 3])),
        PromptMessage::user(Content::resource(contents)),
        PromptMessage::user(Content::resource_link(model::Resource::new("test://a", "a"))),
    ];
    let expected = messages.clone();
    let prompt = ServerPrompt::new("all").blocking_handler(move || messages.clone());
    for era in [NegotiationMode::Handshake(Revision::V2025_11_25), NegotiationMode::Stateless] {
        let client = connect(&server([prompt.clone()]), era).await;
        assert_eq!(fill(&client, GetPromptParams::new("all")).await.unwrap(), expected);
    }
}

#[tokio::test]
async fn a_prompt_that_fails_is_an_error_and_others_go_on() {
    let fails =
        ServerPrompt::new("fails").handler(|| async { Err::<String, _>(std::io::Error::other("the disk is full")) });
    let panics = ServerPrompt::new("panics").handler(|| async {
        std::panic::panic_any("a secret");
        #[allow(unreachable_code, reason = "it has to have a type")]
        "never"
    });
    for era in ERAS {
        let client = connect(&server([fails.clone(), panics.clone(), trip()]), era).await;
        let failed = fill(&client, GetPromptParams::new("fails")).await.unwrap_err();
        assert_eq!(failed, (code::INTERNAL_ERROR, "the disk is full".to_owned()));
        let (refused, message) = fill(&client, GetPromptParams::new("panics")).await.unwrap_err();
        assert!(refused == code::INTERNAL_ERROR && !message.contains("secret"), "{message}");
        assert!(fill(&client, GetPromptParams::new("trip").with_argument("city", "Oslo")).await.is_ok());
    }
}

#[tokio::test]
async fn the_handler_of_a_dropped_prompt_request_is_dropped() {
    let (begun, dropped) = (Signal::default(), Signal::default());
    let (begin, drops) = (begun.clone(), dropped.clone());
    let prompt = ServerPrompt::new("slow").handler(move || {
        let (begin, drops) = (begin.clone(), drops.clone());
        async move {
            let _drops = drops.on_drop();
            begin.set();
            std::future::pending::<String>().await
        }
    });
    let client = connect(&server([prompt]), NegotiationMode::Stateless).await;
    let call = client.call::<request::GetPrompt>(GetPromptParams::new("slow")).start();
    soon(begun.wait()).await;
    drop(call);
    soon(dropped.wait()).await;
}

#[tokio::test]
async fn prompts_are_added_and_removed() {
    let server = Server::builder("test", "1.0.0").expect_prompts().build();
    let (here, there) = memory::pair(1 << 16);
    tokio::spawn(server.clone().serve(there).into_future());
    let mut peer = RawPeer::new(here);
    peer.open("2025-06-18").await;
    // An answer shows that the server has seen the notification before it.
    peer.send(&json!({"jsonrpc":"2.0","id":1,"method":"ping"})).await;
    assert_eq!(soon(peer.line()).await.unwrap()["id"], 1);
    server.add_prompt(trip());
    let told = json!({"jsonrpc":"2.0","method":"notifications/prompts/list_changed"});
    assert_eq!(soon(peer.line()).await.unwrap(), told);
    assert!(server.remove_prompt("trip").is_some() && server.remove_prompt("trip").is_none());
    assert_eq!(soon(peer.line()).await.unwrap(), told);
    peer.send(&json!({"jsonrpc":"2.0","id":2,"method":"prompts/list"})).await;
    assert_eq!(soon(peer.line()).await.unwrap()["result"], json!({"prompts":[]}));
}

#[tokio::test]
async fn merged_servers_have_the_prompts_of_both() {
    let other = || server([ServerPrompt::new("other").handler(|| async { "" })]);
    let both = server([trip()]).merge(other()).unwrap();
    assert_eq!(both.prompts().iter().map(ServerPrompt::name).collect::<Vec<_>>(), ["trip", "other"]);
    assert!(both.merge(other()).unwrap_err().to_string().contains("a prompt named `other`"));
}

#[tokio::test]
async fn arguments_of_prompts_are_completed() {
    for era in ERAS {
        let client = connect(&server([trip()]), era).await;
        let reference = || Reference::prompt("trip");
        let found = complete(&client, CompleteParams::new(reference(), "city", "be")).await.unwrap();
        assert_eq!(found.values, ["Bergen", "Bern"]);
        assert_eq!((found.total, found.has_more), (Some(2), Some(false)));
        let none = complete(&client, CompleteParams::new(reference(), "days", "")).await.unwrap();
        assert!(none.values.is_empty());
    }
}

#[tokio::test]
async fn variables_of_templates_are_completed() {
    let template = ServerResourceTemplate::new("trip://{city}/{day}", "trip")
        .complete("city", ["Bergen", "Bern", "Oslo"])
        .complete("day", |typed: String, context: CompleteContext| async move {
            vec![format!("{typed} in {}", context.argument("city").unwrap_or("nowhere"))]
        })
        .handler(|| async { "" });
    let server = Server::builder("test", "1.0.0").resource_template(template).build();
    let reference = || Reference::resource("trip://{city}/{day}");
    for era in ERAS {
        let client = connect(&server, era).await;
        let found = complete(&client, CompleteParams::new(reference(), "city", "be")).await.unwrap();
        assert_eq!(found.values, ["Bergen", "Bern"]);
        let (refused, message) = complete(&client, CompleteParams::new(reference(), "hour", "")).await.unwrap_err();
        assert!(refused == code::INVALID_PARAMS && message.contains("`hour`"), "{message}");
    }
    let context = CompleteContext::new(BTreeMap::from([("city".to_owned(), "Oslo".to_owned())]));
    let client = connect(&server, NegotiationMode::Stateless).await;
    let found = complete(&client, CompleteParams::new(reference(), "day", "1").with_context(context)).await.unwrap();
    assert_eq!(found.values, ["1 in Oslo"]);
}

#[tokio::test]
async fn a_completer_gets_the_other_arguments() {
    let context = CompleteContext::new(BTreeMap::from([("city".to_owned(), "Oslo".to_owned())]));
    let params = CompleteParams::new(Reference::prompt("trip"), "mood", "wild").with_context(context);
    for era in [NegotiationMode::Handshake(Revision::V2025_06_18), NegotiationMode::Stateless] {
        let client = connect(&server([trip()]), era).await;
        assert_eq!(complete(&client, params.clone()).await.unwrap().values, ["wild in Oslo"]);
    }
}

#[tokio::test]
async fn completions_are_cut_at_a_hundred_and_counted() {
    let many: Vec<String> = (0..250).map(|number| format!("value {number}")).collect();
    let prompt = ServerPrompt::new("many").required_argument("x", "").complete("x", many).handler(|| async { "" });
    for era in ERAS {
        let client = connect(&server([prompt.clone()]), era).await;
        let found = complete(&client, CompleteParams::new(Reference::prompt("many"), "x", "")).await.unwrap();
        assert_eq!((found.values.len(), found.total, found.has_more), (100, Some(250), Some(true)));
    }
}

#[tokio::test]
async fn completing_an_unknown_argument_is_invalid_params() {
    for era in ERAS {
        let client = connect(&server([trip()]), era).await;
        let cases = [
            (CompleteParams::new(Reference::prompt("nothing"), "city", ""), "`nothing`"),
            (CompleteParams::new(Reference::resource("test://{nothing}"), "nothing", ""), "`test://{nothing}`"),
            (CompleteParams::new(Reference::prompt("trip"), "nothing", ""), "`nothing`"),
        ];
        for (params, named) in cases {
            let (refused, message) = complete(&client, params).await.unwrap_err();
            assert_eq!(refused, code::INVALID_PARAMS);
            assert!(message.contains(named), "{message}");
        }
    }
}

#[tokio::test]
async fn a_completer_that_fails_is_an_error() {
    let fails = |_typed: String| async { Err::<Vec<String>, _>(std::io::Error::other("no index")) };
    let prompt =
        ServerPrompt::new("p").required_argument("x", "").complete("x", fails).handler(|| async { (Role::User, "") });
    for era in ERAS {
        let client = connect(&server([prompt.clone()]), era).await;
        let failed = complete(&client, CompleteParams::new(Reference::prompt("p"), "x", "")).await.unwrap_err();
        assert_eq!(failed, (code::INTERNAL_ERROR, "no index".to_owned()));
    }
}

/// Says something at each of two levels before it answers.
fn chatty() -> Server {
    let prompt = ServerPrompt::new("chatty").handler(|ctx: Context| async move {
        ctx.log(LoggingLevel::Debug, "a detail");
        ctx.log(LoggingLevel::Warning, "a warning");
        "said"
    });
    server([prompt])
}

/// The messages up to an answer, and the answer.
async fn until_answer(peer: &mut RawPeer) -> (Vec<Value>, Value) {
    let mut before = Vec::new();
    loop {
        let line = soon(peer.line()).await.unwrap();
        if line.get("id").is_some() {
            return (before, line);
        }
        before.push(line["params"]["level"].clone());
    }
}

#[tokio::test]
async fn setting_the_log_level_has_an_empty_result() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let (here, there) = memory::pair(1 << 16);
        tokio::spawn(chatty().serve(there).into_future());
        let mut peer = RawPeer::new(here);
        peer.open(revision).await;
        let get = json!({"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"chatty"}});
        for (level, heard) in [("debug", vec!["debug", "warning"]), ("error", vec![]), ("warning", vec!["warning"])] {
            let set = json!({"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":level}});
            peer.send(&set).await;
            assert_eq!(until_answer(&mut peer).await.1, json!({"jsonrpc":"2.0","id":2,"result":{}}));
            peer.send(&get).await;
            assert_eq!(until_answer(&mut peer).await.0, heard, "{revision} {level}");
        }
        let unknown = json!({"jsonrpc":"2.0","id":3,"method":"logging/setLevel","params":{"level":"loud"}});
        peer.send(&unknown).await;
        assert_eq!(until_answer(&mut peer).await.1["error"]["code"], code::INVALID_PARAMS);
    }
}

#[tokio::test]
async fn in_2026_a_request_gets_only_the_log_messages_it_requested() {
    let (here, there) = memory::pair(1 << 16);
    tokio::spawn(chatty().serve(there).into_future());
    let mut peer = RawPeer::new(here);
    for (level, heard) in
        [(None, vec![]), (Some("warning"), vec!["warning"]), (Some("debug"), vec!["debug", "warning"])]
    {
        let mut meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        if let Some(level) = level {
            meta["io.modelcontextprotocol/logLevel"] = level.into();
        }
        let params = json!({"name": "chatty", "_meta": meta});
        peer.send(&json!({"jsonrpc":"2.0","id":1,"method":"prompts/get","params":params})).await;
        let (levels, answer) = until_answer(&mut peer).await;
        assert_eq!(levels, heard);
        assert_eq!(answer["result"]["messages"][0]["content"]["text"], "said");
        assert_eq!(answer["result"]["resultType"], "complete");
    }
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"level": "debug", "_meta": meta});
    peer.send(&json!({"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":params})).await;
    assert_eq!(until_answer(&mut peer).await.1["error"]["code"], code::METHOD_NOT_FOUND);
}
