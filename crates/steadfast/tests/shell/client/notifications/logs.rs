//! Log messages of a server.

use steadfast::client::LogStream;
use steadfast::{ErrorKind, LoggingLevel};

use crate::client::manual_server::*;

const LEVEL: &str = "io.modelcontextprotocol/logLevel";

async fn log(server: &mut ManualServer, level: &str, data: Value) {
    server.notify("notifications/message", json!({"level": level, "data": data})).await;
}

async fn next(logs: &mut LogStream) -> Value {
    soon(logs.next()).await.unwrap().unwrap().data
}

#[tokio::test]
async fn an_older_server_gets_set_level_and_its_log_messages_arrive() {
    let (client, mut server) = ManualServer::connect(HANDSHAKE, |connecting| connecting).await;
    let mut logs = client.logs(LoggingLevel::Warning);
    let request = server.asked("logging/setLevel").await;
    assert_eq!(request["params"]["level"], "warning");
    server.answer(&request, json!({})).await;
    log(&mut server, "info", json!("not asked for")).await;
    log(&mut server, "error", json!({"why": 7})).await;
    assert_eq!(next(&mut logs).await, json!({"why": 7}));
}

#[tokio::test]
async fn since_2026_requests_have_a_log_level_while_a_log_stream_exists() {
    let (client, mut server) = ManualServer::modern(|connecting| connecting).await;
    let mut levels = Vec::new();
    let mut ask = async |client: &Client| {
        let call = tokio::spawn(client.call_tool("t", json!({})).into_future());
        let request = server.asked("tools/call").await;
        log(&mut server, "notice", json!("heard")).await;
        server.answer(&request, json!({"resultType": "complete", "content": []})).await;
        soon(call).await.unwrap().unwrap();
        levels.push(request["params"]["_meta"].get(LEVEL).cloned());
    };
    ask(&client).await;
    let mut logs = client.logs(LoggingLevel::Info);
    ask(&client).await;
    assert_eq!(next(&mut logs).await, "heard");
    let chatty = client.logs(LoggingLevel::Debug);
    ask(&client).await;
    drop((logs, chatty));
    ask(&client).await;
    assert_eq!(levels, [None, Some(json!("info")), Some(json!("debug")), None]);
}

#[tokio::test]
async fn each_log_stream_filters_by_its_own_level() {
    let (client, mut server) = ManualServer::connect(HANDSHAKE, |connecting| connecting).await;
    let mut severe = client.logs(LoggingLevel::Error);
    server.serve("logging/setLevel", json!({})).await;
    let mut all = client.logs(LoggingLevel::Debug);
    let request = server.asked("logging/setLevel").await;
    assert_eq!(request["params"]["level"], "debug");
    server.answer(&request, json!({})).await;
    log(&mut server, "debug", json!(1)).await;
    log(&mut server, "critical", json!(2)).await;
    assert_eq!((next(&mut all).await, next(&mut all).await), (json!(1), json!(2)));
    assert_eq!(next(&mut severe).await, json!(2));
    // A third stream with a higher level than the others does not raise the level at the server.
    let _few = client.logs(LoggingLevel::Emergency);
    assert_eq!(server.asked("logging/setLevel").await["params"]["level"], "debug");
}

#[tokio::test]
async fn a_log_stream_of_a_server_without_logging_is_an_error() {
    let (client, mut server) = ManualServer::connect(HANDSHAKE, |connecting| connecting).await;
    let mut logs = client.logs(LoggingLevel::Info);
    let request = server.asked("logging/setLevel").await;
    server.refuse(&request, -32602).await;
    assert_eq!(soon(logs.next()).await.unwrap().unwrap_err().kind(), ErrorKind::Refused);
    assert!(soon(logs.next()).await.is_none());
    let (connecting, _) = crate::support::scripted(|_, _| json!({}));
    let mut logs = connecting.await.unwrap().logs(LoggingLevel::Info);
    assert_eq!(soon(logs.next()).await.unwrap().unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(soon(logs.next()).await.is_none());
}

#[tokio::test]
async fn awaiting_a_log_level_waits_for_the_response_to_set_level() {
    let (client, mut server) = ManualServer::connect(HANDSHAKE, |connecting| connecting).await;
    let mut logs = client.logs(LoggingLevel::Info);
    let request = server.asked("logging/setLevel").await;
    let early = tokio::select! {
        biased;
        _ = logs.ready() => true,
        () = std::future::ready(()) => false,
    };
    assert!(!early, "nobody has answered yet");
    server.answer(&request, json!({})).await;
    soon(logs.ready()).await.unwrap();
    let mut refused = client.logs(LoggingLevel::Debug);
    let request = server.asked("logging/setLevel").await;
    server.refuse(&request, -32602).await;
    assert_eq!(soon(refused.ready()).await.unwrap_err().kind(), ErrorKind::Refused);
    assert!(soon(refused.next()).await.is_none());
    let (client, _puppet) = ManualServer::modern(|connecting| connecting).await;
    soon(client.logs(LoggingLevel::Info).ready()).await.unwrap();
}

#[tokio::test]
async fn a_slow_reader_loses_the_oldest_items() {
    let (client, mut server) = ManualServer::modern(|connecting| connecting).await;
    let mut logs = client.logs(LoggingLevel::Debug);
    let call = tokio::spawn(client.call_tool("t", json!({})).into_future());
    let request = server.asked("tools/call").await;
    for number in 0..1_500 {
        log(&mut server, "info", json!(number)).await;
    }
    server.answer(&request, json!({"resultType": "complete", "content": []})).await;
    soon(call).await.unwrap().unwrap();
    assert_eq!(next(&mut logs).await, json!(1_500 - 1_024));
}

#[tokio::test]
async fn a_stream_ends_with_its_connection() {
    let (client, server) = ManualServer::modern(|connecting| connecting).await;
    let mut logs = client.logs(LoggingLevel::Debug);
    drop(server);
    assert!(soon(logs.next()).await.is_none());
    let mut late = client.logs(LoggingLevel::Debug);
    assert!(soon(late.next()).await.is_none());
}

#[tokio::test]
async fn log_messages_of_a_handler_arrive_at_the_client() {
    let tool = ServerTool::new("speak").handler(|ctx: Context| async move {
        ctx.log(LoggingLevel::Warning, "careful");
        "done"
    });
    for era in [NegotiationMode::Stateless, HANDSHAKE] {
        let server = Server::builder("speaking", "1.0.0").tool(tool.clone()).build();
        let client = Client::connect(server).negotiation(era).await.unwrap();
        let mut logs = client.logs(LoggingLevel::Info);
        soon(client.call_tool("speak", json!({})).into_future()).await.unwrap();
        assert_eq!(next(&mut logs).await, "careful", "{era:?}");
    }
}
