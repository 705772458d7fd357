//! Elicitation.

use std::sync::{Arc, Mutex};

use steadfast::{ClientCapabilities, ElicitParams, ElicitResult, ErrorKind};

use crate::client::*;

/// A client whose user answers `content`, and the requests that the user sees.
async fn with_user(
    era: NegotiationMode,
    capabilities: ClientCapabilities,
    content: Value,
) -> (Client, RecordingServer, Arc<Mutex<Vec<ElicitParams>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let (client, server) = RecordingServer::connected(era, move |connecting| {
        connecting.capabilities(capabilities).on_elicit(move |params, _| {
            seen.lock().unwrap().push(params);
            let content = content.as_object().cloned().unwrap_or_default();
            async { Ok(ElicitResult::accept(content)) }
        })
    })
    .await;
    (client, server, asked)
}

fn form() -> Value {
    json!({"message": "Who?", "requestedSchema": {"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string", "minLength": 2}, "age": {"type": "integer", "default": 30}}}})
}

fn url(url: &str) -> Value {
    json!({"mode": "url", "message": "Sign in", "elicitationId": "e1", "url": url})
}

#[tokio::test]
async fn an_elicitation_without_a_mode_is_a_form_and_its_defaults_are_filled_in() {
    let (_client, mut server, asked) = with_user(OLDER, ClientCapabilities::new(), json!({"name": "Ann"})).await;
    let answer = server.ask("elicitation/create", form()).await;
    assert_eq!(answer["result"], json!({"action": "accept", "content": {"name": "Ann", "age": 30}}));
    let asked = asked.lock().unwrap();
    let [ElicitParams::Form(shown)] = &asked[..] else { panic!("{asked:?}") };
    // The user can see the defaults.
    assert_eq!(shown.requested_schema.as_object()["properties"]["age"]["default"], 30);
}

#[tokio::test]
async fn an_undeclared_elicitation_mode_is_invalid_params() {
    let forms = ClientCapabilities::new().with_elicitation_form();
    let urls = ClientCapabilities::new().with_elicitation_url();
    for (capabilities, refused, taken) in
        [(forms, url("https://example.org/"), form()), (urls, form(), url("https://a/"))]
    {
        let (_client, mut server, asked) = with_user(OLDER, capabilities, json!({"name": "Ann"})).await;
        assert_eq!(server.ask("elicitation/create", refused).await["error"]["code"], -32602);
        assert_eq!(asked.lock().unwrap().len(), 0);
        assert_eq!(server.ask("elicitation/create", taken).await["result"]["action"], "accept");
    }
}

#[tokio::test]
async fn elicitation_is_declared_with_at_least_one_mode() {
    for era in ERAS {
        let (_client, server, _) = with_user(era, ClientCapabilities::new(), json!({})).await;
        let params = &server.received[0]["params"];
        let declared = match era {
            NegotiationMode::Stateless => &params["_meta"]["io.modelcontextprotocol/clientCapabilities"]["elicitation"],
            _ => &params["capabilities"]["elicitation"],
        };
        assert_eq!(*declared, json!({"form": {}, "url": {}}), "{era:?}");
    }
}

#[tokio::test]
async fn an_elicitation_result_that_does_not_match_the_form_is_not_sent() {
    for content in [json!({}), json!({"name": "A"}), json!({"name": 7}), json!({"name": "Ann", "age": "old"})] {
        let (_client, mut server, _) = with_user(OLDER, ClientCapabilities::new(), content.clone()).await;
        let answer = server.ask("elicitation/create", form()).await;
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
        let (client, mut server, _) = with_user(NegotiationMode::Stateless, ClientCapabilities::new(), content).await;
        let asking = async {
            let call = server.until("tools/call").await;
            let asked = json!({"e": {"method": "elicitation/create", "params": form()}});
            server.answer(&call, json!({"resultType": "input_required", "inputRequests": asked})).await;
        };
        let error = with(client.call_tool("t", json!({})).into_future(), asking).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unanswered, "{error:?}");
        server.is_quiet(&client).await;
    }
}

#[tokio::test]
async fn a_url_is_neither_fetched_nor_opened_and_the_handler_gets_all_of_it() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = format!("http://{}/a?b=c#d", listener.local_addr().unwrap());
    let (client, mut server, asked) = with_user(OLDER, ClientCapabilities::new(), json!({})).await;
    assert_eq!(server.ask("elicitation/create", url(&address)).await["result"]["action"], "accept");
    // The completion, once and twice, and for an unknown elicitation.
    for id in ["e1", "e1", "unknown"] {
        server.tell("notifications/elicitation/complete", json!({"elicitationId": id})).await;
    }
    server.is_quiet(&client).await;
    let asked = asked.lock().unwrap();
    let [ElicitParams::Url(shown)] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!(shown.url, address);
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[tokio::test]
async fn declining_and_dismissing_send_no_content() {
    for (answer, action) in [(ElicitResult::decline(), "decline"), (ElicitResult::cancel(), "cancel")] {
        let (_client, mut server) = RecordingServer::connected(OLDER, move |connecting| {
            connecting.on_elicit(move |_, _| std::future::ready(Ok(answer.clone())))
        })
        .await;
        assert_eq!(server.ask("elicitation/create", form()).await["result"], json!({"action": action}));
    }
}
