//! The handshake, and what every request carries.

use std::collections::BTreeSet;

use steadfast::{
    ClientCapabilities, CreateMessageResult, ElicitResult, ErrorKind, ListRootsResult, Reference, SubscriptionFilter,
};

use crate::client::*;

#[tokio::test]
async fn a_client_starts_with_initialize_and_waits_for_its_response() {
    let (connecting, mut server) = RecordingServer::new();
    let opening = async {
        let first = server.next().await.unwrap();
        assert_eq!(first["method"], "initialize");
        assert_eq!(first["params"]["protocolVersion"], "2025-11-25");
        assert!(first["params"]["capabilities"].is_object(), "{first}");
        assert!(first["params"]["clientInfo"]["name"].is_string(), "{first}");
        // Nothing comes before the answer to this, although `initialize` is not answered.
        assert_eq!(server.ask("ping", json!({})).await["result"], json!({}));
        server.answer(&first, initialized(&json!("2025-11-25"))).await;
        let second = server.next().await.unwrap();
        assert_eq!((&second["method"], second.get("id")), (&json!("notifications/initialized"), None));
    };
    let client = with(connecting.negotiation(OLDER).into_future(), opening).await.unwrap();
    server.is_quiet(&client).await;
}

#[tokio::test]
async fn any_error_response_to_the_probe_is_followed_by_a_handshake() {
    for code in [-32601, -32602, -32600, -32000, -32603, -1, 7] {
        let (connecting, mut server) = RecordingServer::new();
        let opening = async {
            let probe = server.next().await.unwrap();
            assert_eq!(probe["method"], "server/discover");
            assert_eq!(probe["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
            server.refuse(&probe, code, Value::Null).await;
            let second = server.next().await.unwrap();
            // The newest of those that have it.
            assert_eq!(second["params"]["protocolVersion"], "2025-11-25", "{code} {second}");
            server.answer(&second, initialized(&json!("2025-06-18"))).await;
        };
        let client = with(connecting.into_future(), opening).await.unwrap();
        assert_eq!(client.revision(), Revision::V2025_06_18, "{code}");
    }
}

#[tokio::test]
async fn a_server_without_a_response_to_the_probe_gets_a_handshake() {
    let (connecting, mut server) = RecordingServer::new();
    let opening = async {
        server.until("server/discover").await;
        server.open(OLDER).await;
    };
    let client = with(connecting.opening_timeout(Duration::from_millis(200)).into_future(), opening).await.unwrap();
    assert_eq!(client.revision(), Revision::V2025_11_25);
    assert!(
        server.received.iter().all(|message| message["method"] != "notifications/cancelled"),
        "{:?}",
        server.received
    );
}

#[tokio::test]
async fn a_revision_that_the_server_supports_is_tried_after_a_refusal() {
    let (connecting, mut server) = RecordingServer::new();
    let opening = async {
        let probe = server.until("server/discover").await;
        server.refuse(&probe, -32022, json!({"supported": ["2099-01-01", "2025-03-26", "2025-06-18"]})).await;
        let initialize = server.next().await.unwrap();
        assert_eq!(initialize["params"]["protocolVersion"], "2025-06-18", "{initialize}");
        server.answer(&initialize, initialized(&json!("2025-06-18"))).await;
    };
    let client = with(connecting.into_future(), opening).await.unwrap();
    assert_eq!(client.revision(), Revision::V2025_06_18);
}

#[tokio::test]
async fn without_a_common_revision_connecting_fails_and_closes() {
    // One that names its revisions in an error, one that does not know the metadata, and one that chooses its own.
    for way in 0..3 {
        let (connecting, mut server) = RecordingServer::new();
        let opening = async {
            let probe = server.next().await.unwrap();
            match way {
                0 => server.refuse(&probe, -32022, json!({"supported": ["2099-01-01"]})).await,
                1 => server.answer(&probe, json!({"supportedVersions": ["2099-01-01"], "capabilities": {}})).await,
                _ => server.answer(&probe, initialized(&json!("1999-01-01"))).await,
            }
            server.read_to_the_end().await;
        };
        let era = if way == 2 { OLDER } else { NegotiationMode::Auto };
        let error = with(connecting.negotiation(era).into_future(), opening).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Refused | ErrorKind::Incompatible), "{way} {error:?}");
        assert_eq!(server.received.len(), 1, "{:?}", server.received);
    }
}

#[tokio::test]
async fn requests_without_a_declared_capability_are_not_sent() {
    for era in ERAS {
        let (connecting, mut server) = RecordingServer::new();
        let opening = async {
            let first = server.next().await.unwrap();
            let mut result =
                if era == NegotiationMode::Stateless { discovered() } else { initialized(&json!("2025-11-25")) };
            result["capabilities"] = json!({"tools": {}});
            server.answer(&first, result).await;
            if era != NegotiationMode::Stateless {
                server.until("notifications/initialized").await;
            }
        };
        let client = with(connecting.negotiation(era).into_future(), opening).await.unwrap();
        for error in [
            client.prompts().all().await.unwrap_err(),
            client.get_prompt("p", json!({ "a": "b" })).await.unwrap_err(),
            client.read_resource("a:1").await.unwrap_err(),
            client.complete(Reference::prompt("p"), "a", "b").await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{era:?} {error:?}");
        }
        server.is_quiet(&client).await;
    }
}

fn with_every_handler(connecting: ConnectBuilder) -> ConnectBuilder {
    connecting
        .on_roots(|_| async { Ok(ListRootsResult::default()) })
        .on_sample(|_, _| async { Ok(CreateMessageResult::new("m", Content::text("x"))) })
        .on_elicit(|_, _| async { Ok(ElicitResult::decline()) })
}

#[tokio::test]
async fn capabilities_with_a_handler_are_declared_and_no_others() {
    let said = ClientCapabilities::new().with_roots(false).with_sampling().with_elicitation_form();
    for era in ERAS {
        for (handled, expected) in [(true, vec!["elicitation", "roots", "sampling"]), (false, vec![])] {
            let said = said.clone();
            let (client, mut server) = RecordingServer::connected(era, move |connecting| {
                if handled { with_every_handler(connecting) } else { connecting.capabilities(said) }
            })
            .await;
            server.is_quiet(&client).await;
            let declared = |message: &Value| match era {
                NegotiationMode::Stateless => {
                    message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"].clone()
                }
                _ => message["params"]["capabilities"].clone(),
            };
            // In 2026-07-28 with each request, before with the first.
            let saying = if era == NegotiationMode::Stateless { server.received.len() } else { 1 };
            for message in &server.received[..saying] {
                let declared = declared(message);
                let names: Vec<&String> = declared.as_object().unwrap().keys().collect();
                let names: BTreeSet<&str> = names.into_iter().map(String::as_str).collect();
                assert_eq!(names, expected.iter().copied().collect(), "{era:?} {message}");
            }
        }
    }
}

#[tokio::test]
async fn capabilities_have_the_form_of_the_offered_revision() {
    for revision in Revision::ALL.iter().copied().filter(|revision| !revision.is_stateless()) {
        let (_client, server) =
            RecordingServer::connected(NegotiationMode::Handshake(revision), with_every_handler).await;
        let declared = &server.received[0]["params"]["capabilities"];
        assert_eq!((&declared["roots"], &declared["sampling"]), (&json!({}), &json!({})), "{revision}");
        let elicitation = match revision {
            Revision::V2024_11_05 | Revision::V2025_03_26 => Value::Null,
            Revision::V2025_06_18 => json!({}),
            _ => json!({"form": {}, "url": {}}),
        };
        assert_eq!(declared["elicitation"], elicitation, "{revision}");
    }
}

/// Makes every kind of call, and answers each with an error.
async fn everything(client: &Client, server: &mut RecordingServer) {
    let calls = async {
        let _ = client.list_tools().await;
        let _ = client.call_tool("t", json!({})).on_progress(|_| {}).await;
        let _ = client.prompts().all().await;
        let _ = client.get_prompt("p", json!({ "a": "b" })).await;
        let _ = client.resources().all().await;
        let _ = client.resource_templates().all().await;
        let _ = client.read_resource("a:1").await;
        let _ = client.complete(Reference::prompt("p"), "a", "b").await;
        let mut changes = client.changes(SubscriptionFilter::new().with_tools_list_changed(true));
        if client.revision().is_stateless() {
            let _ = changes.next().await;
        }
    };
    let count = if client.revision().is_stateless() { 9 } else { 8 };
    let answering = async {
        for _ in 0..count {
            let call = server.next().await.unwrap();
            server.refuse(&call, -32603, Value::Null).await;
        }
    };
    soon(async { tokio::join!(calls, answering) }).await;
}

#[tokio::test]
async fn every_request_of_2026_has_client_info_and_capabilities() {
    let (client, mut server) = RecordingServer::connected(NegotiationMode::Stateless, with_every_handler).await;
    everything(&client, &mut server).await;
    assert_eq!(server.received.len(), 10);
    for request in &server.received {
        let meta = &request["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28", "{request}");
        assert!(meta["io.modelcontextprotocol/clientCapabilities"]["roots"].is_object(), "{request}");
        assert!(meta["io.modelcontextprotocol/clientInfo"]["version"].is_string(), "{request}");
        for key in meta.as_object().unwrap().keys() {
            assert!(key == "progressToken" || key.starts_with("io.modelcontextprotocol/"), "{request}");
        }
    }
}

#[tokio::test]
async fn every_request_has_an_id_of_its_own() {
    for era in ERAS {
        let (client, mut server) = RecordingServer::connected(era, |connecting| connecting).await;
        everything(&client, &mut server).await;
        let requests: Vec<&Value> = server.received.iter().filter(|message| message.get("id").is_some()).collect();
        let ids: BTreeSet<String> = requests.iter().map(|request| request["id"].to_string()).collect();
        assert_eq!(ids.len(), requests.len(), "{ids:?}");
        assert!(requests.iter().all(|request| request["id"].is_i64() || request["id"].is_string()), "{ids:?}");
        for message in &server.received {
            assert_eq!(message["jsonrpc"], "2.0");
        }
    }
}

#[tokio::test]
async fn the_era_is_probed_once() {
    let (client, mut server) = RecordingServer::connected(NegotiationMode::Stateless, |connecting| connecting).await;
    for _ in 0..3 {
        server.is_quiet(&client).await;
    }
    assert_eq!(server.received.iter().filter(|message| message["method"] == "server/discover").count(), 1);
}

#[tokio::test]
async fn the_server_name_does_not_change_behaviour() {
    for info in [Value::Null, json!({"name": "", "version": ""}), json!({"name": "steadfast", "version": "9"})] {
        let (connecting, mut server) = RecordingServer::new();
        let opening = async {
            let probe = server.until("server/discover").await;
            let mut result = discovered();
            if !info.is_null() {
                result["_meta"] = json!({"io.modelcontextprotocol/serverInfo": info});
            }
            server.answer(&probe, result).await;
        };
        let client = with(connecting.into_future(), opening).await.unwrap();
        assert_eq!(client.revision(), Revision::V2026_07_28);
        server.is_quiet(&client).await;
    }
}
