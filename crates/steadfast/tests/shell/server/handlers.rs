//! Handlers: what they can do, and how their results are sent.

use std::panic::panic_any;
use std::sync::{Arc, Mutex};

use serde_json::json;
use steadfast::prelude::*;
use steadfast::{ClientCapabilities, ListRootsResult, LoggingLevel, Outcome, Root, model::code};

use crate::{echo, server, soon, text, within};
use steadfast::Revision;
use steadfast::client::NegotiationMode;

#[tokio::test]
async fn a_tool_is_listed_and_called() {
    let client = Client::connect(server([echo()])).await.unwrap();
    assert_eq!(client.list_tools().await.unwrap()[0].name, "echo");
    assert_eq!(text(&client.call_tool("echo", json!({"text": "hi"})).await.unwrap()), "hi");
}

#[tokio::test]
async fn an_unknown_tool_is_a_protocol_error() {
    let client = Client::connect(server([echo()])).await.unwrap();
    let error = client.call_tool("nothing", json!({})).await.unwrap_err();
    assert_eq!(error.refusal().unwrap().code, code::INVALID_PARAMS);
    assert_eq!(error.outcome(), Outcome::Refused);
}

#[tokio::test]
async fn a_panic_is_an_internal_error_without_its_text_and_others_go_on() {
    let panics = ServerTool::new("panics").handler(|| async {
        fail();
    });
    let blocks = ServerTool::new("blocks").blocking_handler(|| {
        fail();
    });
    let client = Client::connect(server([panics, blocks, echo()])).await.unwrap();
    for name in ["panics", "blocks"] {
        let error = client.call_tool(name, json!({})).await.unwrap_err();
        let refusal = error.refusal().unwrap();
        assert_eq!(refusal.code, code::INTERNAL_ERROR);
        assert!(!refusal.message.contains("secret"), "{refusal}");
    }
    assert_eq!(text(&client.call_tool("echo", json!({"text": "still here"})).await.unwrap()), "still here");
}

#[tokio::test]
async fn progress_arrives_in_order_before_the_result() {
    let steps = ServerTool::new("steps").handler(|ctx: Context| async move {
        for step in 1..=50_u32 {
            ctx.progress_of(f64::from(step), 50.0);
            tokio::task::yield_now().await;
        }
    });
    for revision in Revision::ALL.iter().copied() {
        let era =
            if revision.is_stateless() { NegotiationMode::Stateless } else { NegotiationMode::Handshake(revision) };
        let client = Client::connect(server([steps.clone()])).negotiation(era).await.unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&seen);
        let call = client.call_tool("steps", json!({}));
        call.on_progress(move |progress| record.lock().unwrap().push(progress.progress)).await.unwrap();
        let seen = seen.lock().unwrap();
        assert!(seen.is_sorted() && seen.last() == Some(&50.0), "{revision}: {seen:?}");
    }
}

#[tokio::test]
async fn log_messages_do_not_block_the_response() {
    let chatty = ServerTool::new("chatty").handler(|ctx: Context| async move {
        for number in 0..10_000 {
            ctx.log(LoggingLevel::Emergency, number);
        }
        "said"
    });
    for era in [NegotiationMode::Stateless, NegotiationMode::Handshake(Revision::V2025_06_18)] {
        let client = Client::connect(server([chatty.clone()])).negotiation(era).await.unwrap();
        assert_eq!(text(&soon(client.call_tool("chatty", json!({})).into_future()).await.unwrap()), "said");
    }
}

#[tokio::test]
async fn a_handler_calls_the_client() {
    let roots = ServerTool::new("roots").handler(|ctx: Context| async move {
        ctx.ping().await?;
        let roots = ctx.roots().await?;
        Ok::<_, ToolError>(roots.roots[0].uri.clone())
    });
    let client = Client::connect(server([roots.clone()]))
        .negotiation(NegotiationMode::Handshake(Revision::V2025_11_25))
        .capabilities(ClientCapabilities::new().with_roots(false))
        .on_roots(|_| async { Ok(ListRootsResult::new(vec![Root::new("file:///here")])) })
        .await
        .unwrap();
    assert_eq!(text(&client.call_tool("roots", json!({})).await.unwrap()), "file:///here");

    let modern = Client::connect(server([roots])).await.unwrap();
    let error = modern.call_tool("roots", json!({})).await.unwrap_err();
    assert!(error.refusal().unwrap().message.contains("revision"), "{error}");
}

#[tokio::test]
async fn clients_are_notified_of_added_and_removed_tools() {
    let server = server([echo()]);
    let client = Client::connect(server.clone()).await.unwrap();
    server.add_tool(ServerTool::new("later").handler(|| async { "now" }));
    assert_eq!(client.list_tools().await.unwrap().len(), 2);
    assert_eq!(text(&client.call_tool("later", json!({})).await.unwrap()), "now");
    server.remove_tool("later");
    assert!(client.call_tool("later", json!({})).await.is_err());
}

#[tokio::test]
async fn the_context_has_the_client_info() {
    let who = ServerTool::new("who").handler(|ctx: Context| async move {
        let client = ctx.client();
        format!(
            "{} {} {}",
            client.info().map_or("nobody", |info| info.name.as_str()),
            client.revision(),
            ctx.request_id()
        )
    });
    let client =
        Client::connect(server([who])).negotiation(NegotiationMode::Handshake(Revision::V2024_11_05)).await.unwrap();
    assert_eq!(text(&client.call_tool("who", json!({})).await.unwrap()), "steadfast 2024-11-05 2");
}

#[tokio::test]
async fn a_large_response_arrives_whole() {
    let large = ServerTool::new("large").handler(|| async { "x".repeat(3_000_000) });
    let client = Client::connect(server([large])).await.unwrap();
    let results = futures_join((0..4).map(|_| client.call_tool("large", json!({})).start())).await;
    assert!(results.into_iter().all(|result| text(&result.unwrap()).len() == 3_000_000));
}

fn fail() {
    // Not `panic!`, whose type would be that of no reply.
    std::panic::panic_any("a secret".to_owned());
}

/// Awaits all, in any order.
async fn futures_join<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut results = Vec::new();
    for future in futures.into_iter().collect::<Vec<_>>() {
        results.push(future.await);
    }
    results
}

/// The same when the line about a panic panics.
#[tokio::test]
async fn a_log_subscriber_that_panics_does_not_lose_the_response() {
    struct Bad;
    impl tracing::Subscriber for Bad {
        fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
            *metadata.level() == tracing::Level::ERROR
        }
        fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
            tracing::span::Id::from_u64(1)
        }
        fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
        fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
        fn event(&self, _: &tracing::Event<'_>) {
            panic_any("the subscriber");
        }
        fn enter(&self, _: &tracing::span::Id) {}
        fn exit(&self, _: &tracing::span::Id) {}
    }
    let bad = ServerTool::new("bad").handler(|| async {
        if true {
            panic_any("on purpose");
        }
    });
    let client = Client::connect(server([bad, echo()])).await.unwrap();
    let _guard = tracing::subscriber::set_default(Bad);
    let answer = within(5, client.call_tool("bad", json!({})).into_future()).await;
    assert!(answer.expect("no answer").is_err());
}
