//! Input requests of handlers: requests to the client in older revisions, results of several rounds in 2026-07-28.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use steadfast::client::NegotiationMode;
use steadfast::prelude::*;
use steadfast::server::{ElicitOutcome, RequiredClientCapability, StateKeys};
use steadfast::transport::stream::StreamTransport;
use steadfast::{
    CacheHints, CacheScope, ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitParams, ElicitResult,
    FormField, FormSchema, JsonObject, ListRootsResult, Revision, Root, model::code,
};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};

use crate::{Signal, server, soon, text};

/// A client of 2026-07-28 that writes and reads lines by hand.
struct Modern {
    output: WriteHalf<DuplexStream>,
    input: Lines<BufReader<ReadHalf<DuplexStream>>>,
    capabilities: Value,
    next_id: u64,
}

impl Modern {
    fn new(server: Server) -> Self {
        let (here, there) = tokio::io::duplex(65536);
        tokio::spawn(server.serve(StreamTransport::duplex(there)).into_future());
        let (input, output) = tokio::io::split(here);
        let capabilities = json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}});
        Self { output, input: BufReader::new(input).lines(), capabilities, next_id: 1 }
    }

    fn with_capabilities(mut self, capabilities: Value) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Calls a tool; returns the message with its result or error.
    async fn call(&mut self, tool: &str, more: Value) -> Value {
        let mut params = json!({"name": tool, "arguments": {}});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.request("tools/call", params).await
    }

    async fn request(&mut self, method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
        });
        let message = json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params});
        self.next_id += 1;
        self.output.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        let line = soon(self.input.next_line()).await.unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Calls a tool that asks, and returns what it asks for and the state.
    async fn asked(&mut self, tool: &str, more: Value) -> (JsonObject, String) {
        let answer = self.call(tool, more).await;
        let result = &answer["result"];
        assert_eq!(result["resultType"], "input_required", "{answer}");
        let requests = result["inputRequests"].as_object().unwrap().clone();
        (requests, result["requestState"].as_str().unwrap().to_owned())
    }

    /// Calls a tool that answers, with text.
    async fn told(&mut self, tool: &str, more: Value) -> String {
        let answer = self.call(tool, more).await;
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
        answer["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    }

    /// Calls a tool that is refused.
    async fn refused(&mut self, tool: &str, more: Value) -> (i64, String) {
        let answer = self.call(tool, more).await;
        let error = &answer["error"];
        assert!(error.is_object(), "{answer}");
        (error["code"].as_i64().unwrap(), error["message"].as_str().unwrap().to_owned())
    }
}

fn accept(content: Value) -> Value {
    json!({"action": "accept", "content": content})
}

#[derive(Deserialize, JsonSchema)]
struct Person {
    name: String,
    #[schemars(range(min = 18))]
    age: u8,
}

fn greet() -> ServerTool {
    ServerTool::new("greet").handler(|ctx: Context| async move {
        let person: Person = ctx.elicit("Who are you?").key("person").await?;
        Ok::<_, ToolError>(format!("Hello, {} ({})!", person.name, person.age))
    })
}

/// Asks for a name and then for a colour.
fn two_steps() -> ServerTool {
    ServerTool::new("steps").handler(|ctx: Context| async move {
        let name: String = ctx.elicit("Name?").await?;
        let colour: String = ctx.elicit(format!("Colour, {name}?")).await?;
        Ok::<_, ToolError>(format!("{name} likes {colour}"))
    })
}

/// Asks the user, the model and for roots, all at once.
fn three_at_once() -> ServerTool {
    ServerTool::new("three").handler(|ctx: Context| async move {
        let (name, word, roots) = tokio::join!(
            ctx.elicit::<String>("Name?").key("user_name"),
            ctx.sample("A word?").key("greeting"),
            ctx.roots()
        );
        let word = word?.content.first().and_then(Content::as_text).unwrap_or_default().to_owned();
        Ok::<_, ToolError>(format!("{} {} {}", name?, word, roots?.roots.len()))
    })
}

#[tokio::test]
async fn an_input_request_ends_the_round_and_its_response_the_call() {
    let mut client = Modern::new(server([greet()]));
    let (requests, state) = client.asked("greet", json!({})).await;
    let expected = json!({"person": {"method": "elicitation/create", "params": {
        "mode": "form",
        "message": "Who are you?",
        "requestedSchema": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 18, "maximum": 255}},
            "required": ["name", "age"],
        },
    }}});
    assert_eq!(Value::Object(requests), expected);
    let answers = json!({"person": accept(json!({"name": "Ann", "age": 30}))});
    let told = client.told("greet", json!({"inputResponses": answers, "requestState": state})).await;
    assert_eq!(told, "Hello, Ann (30)!");
}

#[tokio::test]
async fn concurrent_input_requests_are_sent_together() {
    let mut client = Modern::new(server([three_at_once()]));
    let (requests, state) = client.asked("three", json!({})).await;
    let methods: Vec<_> = requests.iter().map(|(key, request)| (key.as_str(), request["method"].as_str())).collect();
    assert_eq!(
        methods,
        [
            ("greeting", Some("sampling/createMessage")),
            ("roots-1", Some("roots/list")),
            ("user_name", Some("elicitation/create"))
        ]
    );
    let answers = json!({
        "user_name": accept(json!({"answer": "Ann"})),
        "greeting": {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"},
        "roots-1": {"roots": [{"uri": "file:///a"}]},
    });
    let told = client.told("three", json!({"inputResponses": answers, "requestState": state})).await;
    assert_eq!(told, "Ann hi 1");
}

#[tokio::test]
async fn missing_input_responses_are_requested_again_and_extra_ones_ignored() {
    let mut client = Modern::new(server([three_at_once()]));
    let (_, state) = client.asked("three", json!({})).await;
    let some = json!({"user_name": accept(json!({"answer": "Ann"})), "roots-1": {"roots": []}, "other": 7});
    let (requests, state) = client.asked("three", json!({"inputResponses": some, "requestState": state})).await;
    assert_eq!(requests.keys().collect::<Vec<_>>(), ["greeting"]);
    let rest = json!({"greeting": {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"}});
    let told = client.told("three", json!({"inputResponses": rest, "requestState": state})).await;
    assert_eq!(told, "Ann hi 0", "what was answered before was carried in the state");
}

#[tokio::test]
async fn a_handler_may_use_several_rounds() {
    let mut client = Modern::new(server([two_steps()]));
    let (first, state_1) = client.asked("steps", json!({})).await;
    assert_eq!(first["elicit-1"]["params"]["message"], "Name?");
    let answers = json!({"elicit-1": accept(json!({"answer": "Ann"}))});
    let (second, state_2) = client.asked("steps", json!({"inputResponses": answers, "requestState": state_1})).await;
    assert_eq!(second["elicit-2"]["params"]["message"], "Colour, Ann?");
    assert_ne!(state_1, state_2);
    let answers = json!({"elicit-2": accept(json!({"answer": "red"}))});
    let told = client.told("steps", json!({"inputResponses": answers, "requestState": state_2})).await;
    assert_eq!(told, "Ann likes red");
}

#[tokio::test]
async fn input_responses_are_accepted_without_a_request_state() {
    let mut client = Modern::new(server([greet()]));
    let answers = json!({"person": accept(json!({"name": "Ann", "age": 30})), "x": 1, "y": 2});
    assert_eq!(client.told("greet", json!({"inputResponses": answers})).await, "Hello, Ann (30)!");
    client.asked("greet", json!({"inputResponses": {"wrong_key": accept(json!({}))}})).await;
    client.asked("greet", json!({"inputResponses": null})).await;
}

#[tokio::test]
async fn a_request_state_that_was_changed_is_refused() {
    let begun = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&begun);
    let careless = ServerTool::new("careless").handler(move |ctx: Context| {
        count.fetch_add(1, Ordering::SeqCst);
        async move { ctx.elicit::<bool>("?").await.is_ok().to_string() }
    });
    let mut client = Modern::new(server([careless]));
    let (_, state) = client.asked("careless", json!({})).await;
    let answers = json!({"elicit-1": accept(json!({"answer": true}))});
    let tampered = json!({"inputResponses": answers, "requestState": format!("{state}-TAMPERED")});
    let (refusal, message) = client.refused("careless", tampered).await;
    assert_eq!(refusal, code::INVALID_PARAMS);
    assert!(message.contains("requestState"), "{message}");
    assert_eq!(begun.load(Ordering::SeqCst), 1, "the handler does not run, so it cannot overlook it");
}

#[tokio::test]
async fn a_request_state_belongs_to_one_request() {
    let mut client = Modern::new(server([greet(), two_steps()]));
    let (_, state) = client.asked("greet", json!({})).await;
    let answers = json!({"person": accept(json!({"name": "Ann", "age": 30}))});
    let retry = json!({"inputResponses": answers, "requestState": state});
    assert_eq!(client.refused("steps", retry.clone()).await.0, code::INVALID_PARAMS, "another tool");
    let mut other = retry.clone();
    other["arguments"] = json!({"more": 1});
    assert_eq!(client.refused("greet", other).await.0, code::INVALID_PARAMS, "other arguments");
    assert_eq!(client.told("greet", retry).await, "Hello, Ann (30)!");
}

#[tokio::test]
async fn a_request_state_expires() {
    let keys = StateKeys::new([1; 32]).lifetime(Duration::ZERO);
    let server = Server::builder("test", "1.0.0").state_keys(keys).tool(greet()).build();
    let mut client = Modern::new(server);
    let (_, state) = client.asked("greet", json!({})).await;
    let (refusal, message) = client.refused("greet", json!({"requestState": state})).await;
    assert_eq!(refusal, code::INVALID_PARAMS);
    assert!(message.contains("expired"), "{message}");
}

#[tokio::test]
async fn servers_with_the_same_keys_accept_each_others_request_states() {
    let twin = || Server::builder("twin", "1.0.0").state_keys(StateKeys::new([1; 32])).tool(greet()).build();
    let (_, state) = Modern::new(twin()).asked("greet", json!({})).await;
    let answers = json!({"person": accept(json!({"name": "Ann", "age": 30}))});
    let retry = json!({"inputResponses": answers, "requestState": state});
    assert_eq!(Modern::new(twin()).told("greet", retry.clone()).await, "Hello, Ann (30)!");
    assert_eq!(Modern::new(server([greet()])).refused("greet", retry).await.0, code::INVALID_PARAMS);
}

#[tokio::test]
async fn an_input_response_that_does_not_match_is_refused() {
    let mut client = Modern::new(server([greet()]));
    let (_, state) = client.asked("greet", json!({})).await;
    for (answer, complaint) in [
        (json!(12345), "invalid answer"),
        (json!({"action": "perhaps"}), "invalid answer"),
        (accept(json!({"name": "Ann"})), "`age` is missing"),
        (accept(json!({"name": "Ann", "age": 3})), "`age` must be at least 18"),
        (accept(json!({"name": 7, "age": 30})), "`name` must be a string"),
    ] {
        let retry = json!({"inputResponses": {"person": answer}, "requestState": state});
        let (refusal, message) = client.refused("greet", retry).await;
        assert_eq!(refusal, code::INVALID_PARAMS);
        assert!(message.contains("`person`") && message.contains(complaint), "{message}");
    }
    let (refusal, _) = client.refused("greet", json!({"inputResponses": [1]})).await;
    assert_eq!(refusal, code::INVALID_PARAMS);
}

#[tokio::test]
async fn a_declined_elicitation_is_a_tool_result() {
    let polite = ServerTool::new("polite").handler(|ctx: Context| async move {
        let outcome = ctx.elicit::<bool>("May I?").key("may").outcome().await?;
        Ok::<_, ToolError>(match outcome {
            ElicitOutcome::Accepted(_) => "accepted",
            ElicitOutcome::Declined => "declined",
            _ => "dismissed",
        })
    });
    let mut client = Modern::new(server([greet(), polite]));
    let no = client.call("greet", json!({"inputResponses": {"person": {"action": "decline"}}})).await;
    assert_eq!(no["result"]["isError"], true, "{no}");
    assert_eq!(no["result"]["content"][0]["text"], "the user declined");
    for (action, outcome) in [("decline", "declined"), ("cancel", "dismissed")] {
        let told = client.told("polite", json!({"inputResponses": {"may": {"action": action}}})).await;
        assert_eq!(told, outcome);
    }
}

#[tokio::test]
async fn the_error_names_the_capability_that_the_client_lacks() {
    let needy = ServerTool::new("needy")
        .needs(RequiredClientCapability::Sampling)
        .needs(RequiredClientCapability::Roots)
        .handler(|| async { "ran" });
    let mut client = Modern::new(server([greet(), needy])).with_capabilities(json!({"roots": {}}));
    let answer = client.call("greet", json!({})).await;
    assert_eq!(answer["error"]["code"], code::MISSING_CAPABILITY, "{answer}");
    assert_eq!(answer["error"]["data"], json!({"requiredCapabilities": {"elicitation": {"form": {}}}}));
    let answer = client.call("needy", json!({})).await;
    assert_eq!(answer["error"]["code"], code::MISSING_CAPABILITY, "{answer}");
    assert_eq!(answer["error"]["data"], json!({"requiredCapabilities": {"sampling": {}}}));
    let mut able = client.with_capabilities(json!({"roots": {}, "sampling": {}}));
    assert_eq!(able.told("needy", json!({})).await, "ran");
}

#[tokio::test]
async fn only_the_modes_that_were_declared_are_used() {
    let visit = ServerTool::new("visit").handler(|ctx: Context| async move {
        ctx.elicit_url("Log in", "https://example.org/login").await?;
        Ok::<_, ToolError>("went")
    });
    let tools = ServerTool::new("tools").handler(|ctx: Context| async move {
        let params = CreateMessageParams::from("hi").with_tools(vec![steadfast::model::Tool::new("t")]);
        ctx.sample(params).await?;
        Ok::<_, ToolError>("said")
    });
    let mut plain =
        Modern::new(server([visit.clone(), tools])).with_capabilities(json!({"elicitation": {}, "sampling": {}}));
    for tool in ["visit", "tools"] {
        assert_eq!(plain.refused(tool, json!({})).await.0, code::MISSING_CAPABILITY);
    }
    let mut client = Modern::new(server([visit]));
    let (requests, state) = client.asked("visit", json!({})).await;
    let expected = json!({"mode": "url", "message": "Log in", "url": "https://example.org/login"});
    assert_eq!(requests["elicit-1"]["params"], expected);
    let retry = json!({"inputResponses": {"elicit-1": {"action": "accept"}}, "requestState": state});
    assert_eq!(client.told("visit", retry).await, "went");
}

#[tokio::test]
async fn suspending_drops_the_handler_and_is_not_a_cancellation() {
    let (dropped, cleaned) = (Signal::default(), Signal::default());
    let (guard, cleanup) = (dropped.clone(), cleaned.clone());
    let tool = ServerTool::new("guarded").handler(move |ctx: Context| {
        let (guard, cleanup) = (guard.on_drop(), cleanup.clone());
        async move {
            let _guard = guard;
            ctx.on_cancel(async move { cleanup.set() });
            ctx.elicit::<bool>("?").await?;
            Ok::<_, ToolError>("done")
        }
    });
    let mut client = Modern::new(server([tool]));
    let (_, state) = client.asked("guarded", json!({})).await;
    soon(dropped.wait()).await;
    let retry = json!({"inputResponses": {"elicit-1": accept(json!({"answer": true}))}, "requestState": state});
    assert_eq!(client.told("guarded", retry).await, "done");
    assert_eq!(cleaned.count(), 0);
}

#[tokio::test]
async fn a_handler_runs_until_it_is_idle_before_it_is_suspended() {
    let busy = ServerTool::new("busy").handler(|ctx: Context| async move {
        let later = async {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
            let (sender, receiver) = tokio::sync::oneshot::channel();
            tokio::spawn(async move { sender.send(7) });
            receiver.await.unwrap();
            ctx.roots().await
        };
        let (yes, roots) = tokio::join!(ctx.elicit::<bool>("?"), later);
        Ok::<_, ToolError>(format!("{} {}", yes?, roots?.roots.len()))
    });
    let mut client = Modern::new(server([busy]));
    let (requests, _) = client.asked("busy", json!({})).await;
    assert_eq!(requests.keys().collect::<Vec<_>>(), ["elicit-1", "roots-2"]);
}

#[tokio::test]
async fn an_input_request_inside_a_timeout_is_sent() {
    let timed = ServerTool::new("timed").handler(|ctx: Context| async move {
        let answer = tokio::time::timeout(Duration::from_secs(3600), ctx.elicit::<bool>("?")).await?;
        Ok::<_, ToolError>(answer?.to_string())
    });
    let mut client = Modern::new(server([timed]));
    let (_, state) = client.asked("timed", json!({})).await;
    let retry = json!({"inputResponses": {"elicit-1": accept(json!({"answer": true}))}, "requestState": state});
    assert_eq!(client.told("timed", retry).await, "true");
}

#[tokio::test]
async fn an_input_request_of_a_spawned_task_is_sent_and_the_task_ends() {
    let ended = Signal::default();
    let seen = ended.clone();
    let spawned = ServerTool::new("spawned").handler(move |ctx: Context| {
        let seen = seen.clone();
        async move {
            let task = tokio::spawn(async move {
                let answer = ctx.elicit::<bool>("?").await;
                seen.set();
                answer
            });
            Ok::<_, ToolError>(task.await??.to_string())
        }
    });
    let mut client = Modern::new(server([spawned]));
    let (_, state) = client.asked("spawned", json!({})).await;
    soon(ended.wait()).await;
    let retry = json!({"inputResponses": {"elicit-1": accept(json!({"answer": true}))}, "requestState": state});
    assert_eq!(client.told("spawned", retry).await, "true");
}

#[tokio::test]
async fn a_dropped_input_request_is_not_sent() {
    let impatient = ServerTool::new("impatient").handler(|ctx: Context| async move {
        tokio::select! {
            biased;
            _ = ctx.elicit::<bool>("?") => "answered",
            () = tokio::task::yield_now() => "went on",
        }
    });
    assert_eq!(Modern::new(server([impatient])).told("impatient", json!({})).await, "went on");
}

#[tokio::test]
async fn once_runs_a_step_only_once() {
    let done = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&done);
    let once = ServerTool::new("once").handler(move |ctx: Context| {
        let count = Arc::clone(&count);
        async move {
            #[derive(Serialize, Deserialize)]
            struct Ticket {
                number: usize,
            }
            let ticket = ctx.once("ticket", async { Ticket { number: count.fetch_add(1, Ordering::SeqCst) } }).await?;
            let failed: steadfast::ToolResult<u8> = ctx.try_once("fails", async { Err(ToolError::new("no")) }).await;
            assert!(failed.is_err());
            ctx.elicit::<bool>(format!("Use {}?", ticket.number)).await?;
            Ok::<_, ToolError>(ticket.number.to_string())
        }
    });
    let mut client = Modern::new(server([once]));
    let (_, state) = client.asked("once", json!({})).await;
    let retry = json!({"inputResponses": {"elicit-1": accept(json!({"answer": true}))}, "requestState": state});
    assert_eq!(client.told("once", retry).await, "0");
    assert_eq!(done.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_handler_whose_input_requests_differ_between_rounds_gets_an_error() {
    let count = AtomicUsize::new(0);
    let fickle = ServerTool::new("fickle").handler(move |ctx: Context| {
        let run = count.fetch_add(1, Ordering::SeqCst);
        async move { ctx.elicit::<bool>(format!("Run {run}?")).await.map(|yes| yes.to_string()) }
    });
    let mut client = Modern::new(server([fickle]));
    let (_, state) = client.asked("fickle", json!({})).await;
    let retry = json!({"inputResponses": {"elicit-1": accept(json!({"answer": true}))}, "requestState": state});
    let (refusal, message) = client.refused("fickle", retry).await;
    assert_eq!(refusal, code::INTERNAL_ERROR);
    assert!(message.contains("differs from the one of the previous round"), "{message}");
}

#[tokio::test]
async fn a_blocking_handler_gets_an_error_for_an_input_request() {
    let plain = ServerTool::new("plain").blocking_handler(|ctx: Context| {
        let mut ask = std::pin::pin!(ctx.elicit::<bool>("?"));
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        match ask.as_mut().poll(&mut cx) {
            std::task::Poll::Ready(Err(error)) => error.to_string(),
            other => format!("{other:?}"),
        }
    });
    let told = Modern::new(server([plain])).told("plain", json!({})).await;
    assert!(told.contains("async fn"), "{told}");
}

#[tokio::test]
async fn a_hand_written_form_is_checked() {
    let tool = ServerTool::new("by_hand").handler(|ctx: Context| async move {
        let form = FormSchema::new().with_required("colour", FormField::choice(["red", "green"]));
        let result = ctx.elicit_with(ElicitParams::form("Which?", form)).key("colour").await?;
        Ok::<_, ToolError>(serde_json::to_string(&result)?)
    });
    let mut client = Modern::new(server([tool]));
    let good = json!({"inputResponses": {"colour": accept(json!({"colour": "red"}))}});
    assert_eq!(client.told("by_hand", good).await, r#"{"action":"accept","content":{"colour":"red"}}"#);
    let bad = json!({"inputResponses": {"colour": accept(json!({"colour": "blue"}))}});
    assert_eq!(client.refused("by_hand", bad).await.0, code::INVALID_PARAMS);
}

#[tokio::test]
async fn in_older_revisions_input_is_requested_by_calls_to_the_client() {
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25] {
        let client = Client::connect(server([three_at_once(), greet()]))
            .negotiation(NegotiationMode::Handshake(revision))
            .capabilities(ClientCapabilities::new().with_roots(false).with_sampling().with_elicitation_form())
            .on_roots(|_| async { Ok(ListRootsResult::new(vec![Root::new("file:///a")])) })
            .on_sample(|_, _| async { Ok(CreateMessageResult::new("m", Content::text("hi"))) })
            .on_elicit(|params, _| async move {
                let content = match params.message() {
                    "Name?" => json!({"answer": "Ann"}),
                    _ => json!({"name": "Ann", "age": 3}),
                };
                Ok(ElicitResult::accept(content.as_object().cloned().unwrap()))
            })
            .await
            .unwrap();
        assert_eq!(text(&soon(client.call_tool("three", json!({})).into_future()).await.unwrap()), "Ann hi 1");
        let error = soon(client.call_tool("greet", json!({})).into_future()).await.unwrap_err();
        let refusal = error.refusal().unwrap();
        assert_eq!(refusal.code, code::INTERNAL_ERROR, "the user of the tool did nothing wrong: {refusal}");
    }
}

#[tokio::test]
async fn a_url_elicitation_has_an_id_in_the_revision_that_needs_one() {
    let visit = ServerTool::new("visit").handler(|ctx: Context| async move {
        ctx.elicit_url("Log in", "https://example.org/login").await?;
        Ok::<_, ToolError>("went")
    });
    let client = Client::connect(server([visit]))
        .negotiation(NegotiationMode::Handshake(Revision::V2025_11_25))
        .capabilities(ClientCapabilities::new().with_elicitation_url())
        .on_elicit(|params, _| async move {
            let ElicitParams::Url(params) = params else { panic!("a URL") };
            assert!(!params.elicitation_id.unwrap_or_default().is_empty());
            Ok(ElicitResult::agree())
        })
        .await
        .unwrap();
    assert_eq!(text(&soon(client.call_tool("visit", json!({})).into_future()).await.unwrap()), "went");
}

#[tokio::test]
async fn an_older_client_without_the_capability_gets_a_readable_error() {
    let needy = ServerTool::new("needy").needs(RequiredClientCapability::Sampling).handler(|| async { "ran" });
    let client = Client::connect(server([greet(), needy]))
        .negotiation(NegotiationMode::Handshake(Revision::V2025_06_18))
        .await
        .unwrap();
    for (tool, missing) in [("greet", "elicitation by a form"), ("needy", "sampling")] {
        let error = client.call_tool(tool, json!({})).await.unwrap_err();
        let refusal = error.refusal().unwrap();
        assert_eq!(refusal.code, code::INTERNAL_ERROR);
        assert!(refusal.message.contains(missing), "{refusal}");
    }
}

#[tokio::test]
async fn prompts_and_resources_can_request_input() {
    let prompt = steadfast::server::ServerPrompt::new("about").handler(|ctx: Context| async move {
        Ok::<_, ToolError>(format!("Talk about {}.", ctx.elicit::<String>("What?").key("topic").await?))
    });
    let resource = steadfast::server::ServerResource::new("note://1", "note")
        .handler(|ctx: Context| async move { ctx.elicit::<String>("Which?").key("topic").await });
    let server = Server::builder("test", "1.0.0").prompt(prompt).resource(resource).build();
    let mut client = Modern::new(server);
    for (method, target, place) in [
        ("prompts/get", json!({"name": "about"}), "/result/messages/0/content/text"),
        ("resources/read", json!({"uri": "note://1"}), "/result/contents/0/text"),
    ] {
        let asked = client.request(method, target.clone()).await;
        assert_eq!(asked["result"]["inputRequests"]["topic"]["method"], "elicitation/create", "{asked}");
        let mut retry = target;
        retry["requestState"] = asked["result"]["requestState"].clone();
        retry["inputResponses"] = json!({"topic": accept(json!({"answer": "cats"}))});
        let told = client.request(method, retry).await;
        assert!(told.pointer(place).and_then(Value::as_str).unwrap_or_default().contains("cats"), "{told}");
    }
}

#[tokio::test]
async fn prompts_and_resources_with_a_missing_capability_are_refused_before_they_run() {
    use steadfast::server::{ServerPrompt, ServerResource, ServerResourceTemplate};
    let prompt = ServerPrompt::new("about").needs(RequiredClientCapability::Sampling).handler(|| async { "ran" });
    let resource =
        ServerResource::new("note://1", "note").needs(RequiredClientCapability::Sampling).handler(|| async { "ran" });
    let template = ServerResourceTemplate::new("more://{name}", "more")
        .needs(RequiredClientCapability::Sampling)
        .handler(|| async { "ran" });
    let server = Server::builder("test", "1.0.0").prompt(prompt).resource(resource).resource_template(template).build();
    let mut client = Modern::new(server).with_capabilities(json!({}));
    let targets = [
        ("prompts/get", json!({"name": "about"})),
        ("resources/read", json!({"uri": "note://1"})),
        ("resources/read", json!({"uri": "more://1"})),
    ];
    for (method, target) in targets.clone() {
        let answer = client.request(method, target).await;
        assert_eq!(answer["error"]["code"], code::MISSING_CAPABILITY, "{answer}");
        assert_eq!(answer["error"]["data"], json!({"requiredCapabilities": {"sampling": {}}}));
    }
    let mut able = client.with_capabilities(json!({"sampling": {}}));
    for (method, target) in targets {
        let answer = able.request(method, target).await;
        assert!(answer["result"].is_object(), "{answer}");
    }
}

#[tokio::test]
async fn a_result_after_input_is_not_cacheable() {
    let asking = steadfast::server::ServerResource::new("note://1", "note")
        .cache(CacheHints::new(60_000, CacheScope::Public))
        .handler(|ctx: Context| async move { ctx.elicit::<String>("Which?").key("topic").await });
    let mut client = Modern::new(Server::builder("test", "1.0.0").resource(asking).build());
    let asked = client.request("resources/read", json!({"uri": "note://1"})).await;
    let answers = json!({"topic": accept(json!({"answer": "cats"}))});
    let retry = json!({"uri": "note://1", "requestState": asked["result"]["requestState"], "inputResponses": answers});
    let told = client.request("resources/read", retry).await;
    assert_eq!(told["result"]["contents"][0]["text"], "cats", "{told}");
    assert_eq!((&told["result"]["ttlMs"], &told["result"]["cacheScope"]), (&json!(0), &json!("private")));
}
