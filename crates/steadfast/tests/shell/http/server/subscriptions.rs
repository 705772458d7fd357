//! 2026-07-28: `subscriptions/listen`, whose response is a stream of notifications.

use steadfast::ServerResource;
use steadfast::server::tasks::TaskMode;

use super::*;

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// A request of a client that knows tasks.
fn knowing_tasks(id: i64, method: &str, params: Value) -> Sent {
    let mut sent = Sent::modern(id, method, params);
    let mut message: Value = serde_json::from_slice(&sent.body).unwrap();
    message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    sent.body = message.to_string().into_bytes();
    sent
}

fn listen(id: i64, notifications: Value) -> Sent {
    knowing_tasks(id, "subscriptions/listen", json!({"notifications": notifications}))
}

/// Opens a subscription, and returns its acknowledgement, which comes first.
async fn open(service: &HttpService, sent: Sent) -> (Events, Value) {
    let mut events = Events::of(sent.to(service).await);
    let first = events.message().await.unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    (events, first["params"].clone())
}

fn with_note() -> Server {
    let note = ServerResource::new("note://1", "note").text("milk");
    Server::builder("test", "1").tool(echo()).resource(note).build()
}

#[tokio::test]
async fn a_subscription_is_acknowledged_first_with_its_granted_filter() {
    let service = HttpService::new(with_note(), HttpServerOptions::new());
    let wanted = json!({"toolsListChanged": true, "promptsListChanged": false, "resourceSubscriptions": ["note://1"],
        "taskIds": ["a"], "other": 1});
    let (_events, params) = open(&service, listen(7, wanted)).await;
    let honoured = json!({"toolsListChanged": true, "resourceSubscriptions": ["note://1"]});
    assert_eq!(params, json!({"notifications": honoured, "_meta": {SUBSCRIPTION: 7}}));
}

#[tokio::test]
async fn several_subscriptions_are_each_notified_under_their_own_id() {
    let server = with_note();
    let service = HttpService::new(server.clone(), HttpServerOptions::new());
    let (mut tools, _) = open(&service, listen(1, json!({"toolsListChanged": true}))).await;
    let (mut note, _) = open(&service, listen(2, json!({"resourceSubscriptions": ["note://1"]}))).await;
    // Two of one id are two streams: here each POST stands alone.
    let (mut both, _) =
        open(&service, listen(2, json!({"toolsListChanged": true, "resourcesListChanged": true}))).await;
    server.resource_updated("note://2");
    server.resource_updated("note://1");
    server.remove_tool("echo");
    server.add_resource(ServerResource::new("note://3", "third").text(""));
    let told = async |events: &mut Events| {
        let message = events.message().await.unwrap();
        (message["method"].as_str().unwrap().to_owned(), message["params"].clone())
    };
    let changed = |list: &str| format!("notifications/{list}/list_changed");
    assert_eq!(told(&mut tools).await, (changed("tools"), json!({"_meta": {SUBSCRIPTION: 1}})));
    let updated = json!({"uri": "note://1", "_meta": {SUBSCRIPTION: 2}});
    assert_eq!(told(&mut note).await, ("notifications/resources/updated".to_owned(), updated));
    assert_eq!(told(&mut both).await, (changed("tools"), json!({"_meta": {SUBSCRIPTION: 2}})));
    assert_eq!(told(&mut both).await, (changed("resources"), json!({"_meta": {SUBSCRIPTION: 2}})));
    assert!(tools.is_silent().await && note.is_silent().await && both.is_silent().await);
}

#[tokio::test]
async fn a_shutdown_ends_every_stream_with_its_result() {
    let service = HttpService::new(with_note(), HttpServerOptions::new());
    let (one, _) = open(&service, listen(1, json!({"toolsListChanged": true}))).await;
    let (two, _) = open(&service, listen(2, json!({}))).await;
    service.shutdown();
    for (id, events) in [(1, one), (2, two)] {
        let rest = events.all().await;
        let result = &rest[0]["result"];
        assert_eq!((rest.len(), &rest[0]["id"]), (1, &json!(id)), "{rest:?}");
        assert_eq!((&result["resultType"], &result["_meta"][SUBSCRIPTION]), (&json!("complete"), &json!(id)));
    }
}

#[tokio::test]
async fn a_subscription_to_tasks_is_limited_to_its_principal() {
    let go = Signal::default();
    let waiting = {
        let go = go.clone();
        ServerTool::new("waiting").task(TaskMode::Required).handler(move || {
            let go = go.clone();
            async move {
                go.wait().await;
                "done"
            }
        })
    };
    let server = server([waiting, echo()]);
    let who = |parts: &::http::request::Parts| Some(parts.headers.get("x-who")?.to_str().ok()?.to_owned());
    let service = HttpService::new(server.clone(), HttpServerOptions::new().identify(who));
    let call = knowing_tasks(1, "tools/call", json!({"name": "waiting"})).with("x-who", "ann");
    let task = body(call.to(&service).await).await["result"]["taskId"].clone();
    let wanted = json!({"taskIds": [task], "toolsListChanged": true});
    let (mut hers, params) = open(&service, listen(2, wanted.clone()).with("x-who", "ann")).await;
    assert_eq!(params["notifications"], wanted);
    let (mut his, params) = open(&service, listen(3, wanted).with("x-who", "bob")).await;
    assert_eq!(params["notifications"], json!({"toolsListChanged": true}));
    go.set();
    loop {
        let told = hers.message().await.unwrap();
        assert_eq!((&told["method"], &told["params"]["taskId"]), (&json!("notifications/tasks"), &task));
        assert_eq!(told["params"]["_meta"], json!({SUBSCRIPTION: 2}));
        if told["params"]["status"] != "working" {
            assert_eq!(told["params"]["result"]["content"][0]["text"], "done", "{told}");
            break;
        }
    }
    server.remove_tool("echo");
    assert_eq!(his.message().await.unwrap()["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn subscribing_to_tasks_without_the_extension_is_a_bad_request() {
    let service = service([ServerTool::new("t").task(TaskMode::Optional).handler(|| async {})]);
    let params = json!({"notifications": {"taskIds": ["any"]}});
    let response = Sent::modern(1, "subscriptions/listen", params).to(&service).await;
    assert_eq!(status(&response), 400);
    assert_eq!(body(response).await["error"]["code"], -32021);
}
