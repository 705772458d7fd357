//! Resources and their templates, pages, and notifications of changes, in both eras.

use serde::Deserialize;
use serde_json::{Value, json};
use steadfast::client::NegotiationMode;
use steadfast::prelude::*;
use steadfast::transport::memory;
use steadfast::{
    CacheHints, CacheScope, Limits, ReadResourceResult, Reference, ResourceContents, Revision, ServerResource,
    ServerResourceTemplate,
    model::{CompleteParams, PaginatedParams, ReadResourceParams, code, request},
};

use crate::soon;
use crate::support::RawPeer;

/// One revision of each kind: the oldest, the last with a handshake, the one without.
const ERAS: [NegotiationMode; 3] = [
    NegotiationMode::Handshake(Revision::V2024_11_05),
    NegotiationMode::Handshake(Revision::V2025_11_25),
    NegotiationMode::Stateless,
];

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

#[derive(Deserialize)]
struct Place {
    city: String,
    days: Option<u8>,
}

fn weather() -> ServerResourceTemplate {
    ServerResourceTemplate::new("weather://{city}/forecast{?days}", "forecast")
        .mime_type("text/plain")
        .complete("city", ["Bergen", "Bern", "Oslo"])
        .handler(|place: Place| async move {
            match place.city.as_str() {
                "Atlantis" => None,
                city => Some(format!("{} days of rain in {city}", place.days.unwrap_or(3))),
            }
        })
}

fn server() -> Server {
    Server::builder("test", "1.0.0")
        .resource(ServerResource::new("note://1", "first").mime_type("text/plain").title("The first").text("milk"))
        .resource(ServerResource::new("image://dot", "dot").mime_type("image/gif").blob([0, 1, 2]))
        .resource(
            ServerResource::new("system://load", "load")
                .cache(CacheHints::new(5_000, CacheScope::Public))
                .blocking_handler(|ctx: Context| format!("load for {}", ctx.client().revision())),
        )
        .resource_template(weather())
        .cache(CacheHints::new(60_000, CacheScope::Public))
        .build()
}

async fn read(client: &Client, uri: &str) -> Result<ReadResourceResult, (i64, Option<Value>)> {
    match soon(client.call::<request::ReadResource>(ReadResourceParams::new(uri)).into_future()).await {
        Ok(result) => Ok(result),
        Err(error) => {
            let refusal = error.refusal().unwrap();
            Err((refusal.code, refusal.data.clone()))
        }
    }
}

#[tokio::test]
async fn resources_are_declared_listed_and_read() {
    for era in ERAS {
        let client = Client::connect(server()).negotiation(era).await.unwrap();
        let declared = client.server().server_capabilities.resources.unwrap();
        assert_eq!((declared.list_changed, declared.subscribe), (Some(true), Some(true)));
        let listed = client.call::<request::ListResources>(PaginatedParams::new()).await.unwrap().resources;
        let uris: Vec<&str> = listed.iter().map(|resource| resource.uri.as_str()).collect();
        assert_eq!(uris, ["note://1", "image://dot", "system://load"]);
        assert_eq!((listed[0].size, listed[0].mime_type.as_deref()), (Some(4), Some("text/plain")));
        let templates = client.call::<request::ListResourceTemplates>(PaginatedParams::new()).await.unwrap();
        assert_eq!(templates.resource_templates[0].uri_template, "weather://{city}/forecast{?days}");
        let text = ResourceContents::text("note://1", "milk").with_mime_type("text/plain");
        assert_eq!(read(&client, "note://1").await.unwrap().contents, [text]);
        let blob = ResourceContents::blob("image://dot", "AAEC").with_mime_type("image/gif");
        assert_eq!(read(&client, "image://dot").await.unwrap().contents, [blob]);
        let load = ResourceContents::text("system://load", format!("load for {}", client.revision()));
        assert_eq!(read(&client, "system://load").await.unwrap().contents, [load]);
    }
}

#[tokio::test]
async fn a_server_without_resources_declares_them_only_if_set() {
    let bare = Client::connect(crate::server([])).await.unwrap();
    assert!(bare.server().server_capabilities.resources.is_none());
    let mut raw = served(crate::server([]));
    raw.open("2025-11-25").await;
    raw.send(&json!({"jsonrpc":"2.0","id":1,"method":"resources/list"})).await;
    assert_eq!(soon(raw.line()).await.unwrap()["error"]["code"], code::METHOD_NOT_FOUND);
    let expecting = Server::builder("test", "1").expect_resources().build();
    let client = Client::connect(expecting.clone()).await.unwrap();
    expecting.add_resource(ServerResource::new("note://2", "late").text("eggs"));
    assert_eq!(read(&client, "note://2").await.unwrap().contents, [ResourceContents::text("note://2", "eggs")]);
}

#[tokio::test]
async fn a_template_is_read_with_typed_variables() {
    for era in ERAS {
        let client = Client::connect(server()).negotiation(era).await.unwrap();
        let uri = "weather://S%C3%A3o%20Paulo/forecast?days=7";
        let expected = ResourceContents::text(uri, "7 days of rain in São Paulo").with_mime_type("text/plain");
        assert_eq!(read(&client, uri).await.unwrap().contents, [expected]);
    }
}

#[tokio::test]
async fn resource_not_found_has_the_code_of_its_era() {
    for era in ERAS {
        let client = Client::connect(server()).negotiation(era).await.unwrap();
        let expected = if client.revision().is_stateless() { code::INVALID_PARAMS } else { code::RESOURCE_NOT_FOUND };
        for uri in [
            "note://2",
            "weather://Atlantis/forecast",
            "weather://../forecast",
            "weather://a%2F..%2Fb/forecast",
            "weather://Ulm/forecast?days=lots",
            "",
        ] {
            assert_eq!(read(&client, uri).await.unwrap_err(), (expected, Some(json!({ "uri": uri }))), "{uri}");
        }
    }
}

#[tokio::test]
async fn cache_hints_of_a_resource_are_its_own() {
    let client = Client::connect(server()).await.unwrap();
    assert_eq!(read(&client, "note://1").await.unwrap().cache(), Some(CacheHints::default()));
    assert_eq!(read(&client, "system://load").await.unwrap().cache(), Some(CacheHints::new(5_000, CacheScope::Public)));
    let list = client.call::<request::ListResources>(PaginatedParams::new()).await.unwrap();
    assert_eq!(list.cache(), Some(CacheHints::new(60_000, CacheScope::Public)));
}

#[tokio::test]
async fn variables_of_a_template_are_completed() {
    let client = Client::connect(server()).await.unwrap();
    let complete = |uri: &str, variable: &str| {
        client.call::<request::Complete>(CompleteParams::new(Reference::resource(uri), variable, "ber")).into_future()
    };
    let completion = complete("weather://{city}/forecast{?days}", "city").await.unwrap().completion;
    assert_eq!(completion.values, ["Bergen", "Bern"]);
    assert_eq!(complete("weather://{city}", "city").await.unwrap_err().refusal().unwrap().code, code::INVALID_PARAMS);
    let unknown = complete("weather://{city}/forecast{?days}", "planet").await.unwrap_err();
    assert_eq!(unknown.refusal().unwrap().code, code::INVALID_PARAMS);
}

#[tokio::test]
async fn lists_come_in_pages_whose_cursors_survive_changes() {
    let note = |number: usize| ServerResource::new(format!("note://{number}"), "note").text("");
    let server = Server::builder("test", "1").page_size(2).resources((0..5).map(note)).build();
    let client = Client::connect(server.clone()).await.unwrap();
    let list = |cursor: Option<String>| {
        let mut params = PaginatedParams::new();
        params.cursor = cursor;
        client.call::<request::ListResources>(params).into_future()
    };
    let first = list(None).await.unwrap();
    assert_eq!(first.resources.len(), 2);
    server.remove_resource("note://1");
    server.remove_resource("note://2");
    server.add_resource(note(9));
    let second = list(first.next_cursor).await.unwrap();
    let uris: Vec<_> = second.resources.iter().map(|resource| resource.uri.as_str()).collect();
    assert_eq!(uris, ["note://3", "note://4"]);
    let third = list(second.next_cursor).await.unwrap();
    assert_eq!((third.resources.len(), third.next_cursor), (1, None));
    for odd in ["", "nonsense"] {
        let error = list(Some(odd.to_owned())).await.unwrap_err();
        assert_eq!(error.refusal().unwrap().code, code::INVALID_PARAMS, "{odd}");
    }
}

fn served(server: Server) -> RawPeer {
    let (here, there) = memory::pair(65_536);
    tokio::spawn(server.serve(there).into_future());
    RawPeer::new(here)
}

fn subscribe(id: u32, method: &str, uri: &str) -> Value {
    json!({"jsonrpc":"2.0","id":id,"method":format!("resources/{method}"),"params":{"uri":uri}})
}

#[tokio::test]
async fn an_older_client_is_notified_of_its_subscribed_resources() {
    let server = server();
    let mut raw = served(server.clone());
    raw.open("2025-11-25").await;
    server.resource_updated("note://1");
    raw.send(&subscribe(1, "subscribe", "note://1")).await;
    assert_eq!(soon(raw.line()).await.unwrap(), json!({"jsonrpc":"2.0","id":1,"result":{}}));
    raw.send(&subscribe(2, "subscribe", "note://2")).await;
    assert_eq!(soon(raw.line()).await.unwrap()["error"]["code"], code::RESOURCE_NOT_FOUND);
    server.resource_updated("image://dot");
    server.resource_updated("note://1");
    let told = json!({"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"note://1"}});
    assert_eq!(soon(raw.line()).await.unwrap(), told);
    raw.send(&subscribe(3, "unsubscribe", "note://1")).await;
    assert_eq!(soon(raw.line()).await.unwrap()["id"], 3);
    server.resource_updated("note://1");
    server.add_resource(ServerResource::new("note://2", "second").text("eggs"));
    assert_eq!(soon(raw.line()).await.unwrap()["method"], "notifications/resources/list_changed");
}

#[tokio::test]
async fn a_handler_can_notify_of_a_change() {
    let touch = ServerTool::new("touch").handler(|ctx: Context| async move { ctx.resource_updated("note://1") });
    let server = server();
    server.add_tool(touch);
    let mut raw = served(server);
    raw.open("2024-11-05").await;
    raw.send(&subscribe(1, "subscribe", "note://1")).await;
    raw.send(&json!({"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"touch"}})).await;
    let mut lines = Vec::new();
    for _ in 0..3 {
        lines.push(soon(raw.line()).await.unwrap());
    }
    assert!(lines.iter().any(|line| line["params"]["uri"] == "note://1"), "{lines:?}");
}

#[tokio::test]
async fn subscriptions_of_a_connection_are_limited() {
    let mut limits = Limits::default();
    limits.subscribed = 1;
    let server = Server::builder("test", "1").limits(limits).resource_template(weather()).build();
    let mut raw = served(server);
    raw.open("2025-11-25").await;
    for (id, city) in [(1, "a"), (2, "b"), (3, "a")] {
        raw.send(&subscribe(id, "subscribe", &format!("weather://{city}/forecast"))).await;
    }
    assert_eq!(soon(raw.line()).await.unwrap()["result"], json!({}));
    assert_eq!(soon(raw.line()).await.unwrap()["error"]["data"], json!({ "limit": 1 }));
    assert_eq!(soon(raw.line()).await.unwrap()["result"], json!({}), "it has that one already");
}

#[tokio::test]
async fn the_limits_of_a_connection_apply_to_its_subscriptions() {
    let mut limits = Limits::default();
    limits.subscribed = 1;
    let served = || {
        let (here, there) = memory::pair(65_536);
        tokio::spawn(server().serve(there).limits(limits.clone()).into_future());
        RawPeer::new(here)
    };
    let mut modern = served();
    modern.send(&listen(1, json!({"resourceSubscriptions": ["note://1", "image://dot"]}))).await;
    assert_eq!(soon(modern.line()).await.unwrap()["error"]["code"], code::INVALID_PARAMS);
    let mut older = served();
    older.open("2025-11-25").await;
    older.send(&subscribe(1, "subscribe", "note://1")).await;
    assert_eq!(soon(older.line()).await.unwrap()["result"], json!({}));
    older.send(&subscribe(2, "subscribe", "image://dot")).await;
    assert_eq!(soon(older.line()).await.unwrap()["error"]["data"], json!({ "limit": 1 }));
}

#[tokio::test]
async fn undeclared_list_changes_are_not_notified() {
    let server = crate::server([]);
    let mut raw = served(server.clone());
    raw.open("2025-11-25").await;
    raw.send(&json!({"jsonrpc":"2.0","id":1,"method":"ping"})).await;
    soon(raw.line()).await.unwrap();
    server.add_resource(ServerResource::new("note://2", "second").text("eggs"));
    server.add_tool(crate::echo());
    assert_eq!(soon(raw.line()).await.unwrap()["method"], "notifications/tools/list_changed");
}

fn listen(id: impl Into<Value>, notifications: Value) -> Value {
    json!({"jsonrpc":"2.0","id":id.into(),"method":"subscriptions/listen","params":{
        "notifications":notifications,
        "_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}})
}

#[tokio::test]
async fn a_subscription_is_acknowledged_first_and_then_notified() {
    let server = server();
    let mut raw = served(server.clone());
    raw.send(&listen(1, json!({"resourcesListChanged":true,"promptsListChanged":false,"resourceSubscriptions":["note://1"],"other":true}))).await;
    let acknowledged = json!({"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{
        "notifications":{"resourcesListChanged":true,"resourceSubscriptions":["note://1"]},"_meta":{SUBSCRIPTION:1}}});
    assert_eq!(soon(raw.line()).await.unwrap(), acknowledged);
    server.add_tool(crate::echo());
    server.resource_updated("image://dot");
    server.resource_updated("note://1");
    let updated = json!({"jsonrpc":"2.0","method":"notifications/resources/updated","params":{
        "uri":"note://1","_meta":{SUBSCRIPTION:1}}});
    assert_eq!(soon(raw.line()).await.unwrap(), updated);
    server.remove_resource("image://dot");
    let changed = json!({"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{
        "_meta":{SUBSCRIPTION:1}}});
    assert_eq!(soon(raw.line()).await.unwrap(), changed);
}

#[tokio::test]
async fn unsupported_notifications_are_not_acknowledged() {
    let mut raw = served(crate::server([]));
    raw.send(&listen(
        "s",
        json!({"toolsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["a:1"],"taskIds":["t"]}),
    ))
    .await;
    let acknowledged = soon(raw.line()).await.unwrap();
    assert_eq!(acknowledged["params"]["notifications"], json!({"toolsListChanged":true}));
    assert_eq!(acknowledged["params"]["_meta"][SUBSCRIPTION], "s");
    raw.send(&listen(2, json!(7))).await;
    assert_eq!(soon(raw.line()).await.unwrap()["error"]["code"], code::INVALID_PARAMS);
}

#[tokio::test]
async fn several_subscriptions_are_separate_and_a_cancelled_one_gets_nothing() {
    let server = server();
    let mut raw = served(server.clone());
    raw.send(&listen(1, json!({"toolsListChanged":true}))).await;
    raw.send(&listen("1", json!({"toolsListChanged":true,"resourceSubscriptions":["note://1"]}))).await;
    for _ in 0..2 {
        assert_eq!(soon(raw.line()).await.unwrap()["method"], "notifications/subscriptions/acknowledged");
    }
    server.add_tool(crate::echo());
    let mut told = Vec::new();
    for _ in 0..2 {
        told.push(soon(raw.line()).await.unwrap()["params"]["_meta"][SUBSCRIPTION].clone());
    }
    told.sort_by_key(Value::is_string);
    assert_eq!(told, [json!(1), json!("1")]);
    raw.send(&json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})).await;
    // Answered in order, so the cancellation was taken in before.
    raw.send(&json!({"jsonrpc":"2.0","id":9,"method":"nothing"})).await;
    assert_eq!(soon(raw.line()).await.unwrap()["id"], 9);
    server.remove_tool("echo");
    let line = soon(raw.line()).await.unwrap();
    assert_eq!(
        (&line["method"], &line["params"]["_meta"][SUBSCRIPTION]),
        (&json!("notifications/tools/list_changed"), &json!("1"))
    );
    server.resource_updated("note://1");
    let line = soon(raw.line()).await.unwrap();
    assert_eq!(
        (&line["method"], &line["params"]["_meta"][SUBSCRIPTION]),
        (&json!("notifications/resources/updated"), &json!("1"))
    );
}

#[tokio::test]
async fn a_shutdown_ends_a_stream_with_its_result_and_a_cancellation() {
    let (here, there) = memory::pair(65_536);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = server().serve(there).shutdown_when(async { _ = stopped.await });
    let served = tokio::spawn(serving.into_future());
    let mut raw = RawPeer::new(here);
    raw.send(&listen(1, json!({"toolsListChanged":true}))).await;
    assert_eq!(soon(raw.line()).await.unwrap()["method"], "notifications/subscriptions/acknowledged");
    stop.send(()).unwrap();
    let result = soon(raw.line()).await.unwrap();
    assert_eq!((&result["id"], &result["result"]["resultType"]), (&json!(1), &json!("complete")));
    assert_eq!(result["result"]["_meta"][SUBSCRIPTION], 1);
    let cancelled = json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}});
    assert_eq!(soon(raw.line()).await.unwrap(), cancelled);
    assert_eq!(soon(raw.line()).await, None);
    soon(served).await.unwrap().unwrap();
}

#[tokio::test]
async fn unread_changes_are_coalesced() {
    let server = server();
    let mut raw = served(server.clone());
    raw.send(&listen(1, json!({"resourceSubscriptions":["note://1"]}))).await;
    assert_eq!(soon(raw.line()).await.unwrap()["method"], "notifications/subscriptions/acknowledged");
    for _ in 0..200_000 {
        server.resource_updated("note://1");
    }
    raw.send(&json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})).await;
    raw.send(&json!({"jsonrpc":"2.0","id":9,"method":"nothing"})).await;
    let mut told = 0;
    while soon(raw.line()).await.unwrap()["id"] != 9 {
        told += 1;
    }
    // What fits the pipe was written, and one more waited.
    assert!((1..1_000).contains(&told), "{told}");
}
