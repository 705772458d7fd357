//! The connection pool: how many connections there are, and who shares them.

use std::sync::atomic::AtomicUsize;

use serde_json::json;
use steadfast::client::NegotiationMode;
use steadfast::transport::http::HttpTarget;
use tokio::io::copy_bidirectional;

use super::tls::{all_at_once, together};
use crate::http::client::end_to_end::Served;
use crate::http::client::*;

/// A relay to a server, which counts its connections.
async fn counted(url: &str) -> (String, Arc<AtomicUsize>) {
    let server: SocketAddr = url.trim_start_matches("http://").trim_end_matches("/mcp").parse().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                let mut server = TcpStream::connect(server).await.unwrap();
                // Either side may have had enough.
                let _ = copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    (url, connections)
}

async fn one_by_one(client: &Client, tool: &str, count: usize) {
    for number in 0..count {
        let said = soon(client.call_tool(tool, json!({"text": "a"})).into_future()).await.unwrap();
        assert_eq!(text(&said), "a", "{number}");
    }
}

/// Its response is a stream of events: a progress notification, then the result.
fn reports() -> ServerTool {
    ServerTool::new("reports").handler(|ctx: Context| async move {
        ctx.progress(0.5, "half way");
        "a"
    })
}

#[tokio::test]
async fn sequential_calls_use_one_connection() {
    let served = Served::new([echo()]);
    let (url, connections) = counted(&served.url).await;
    let client = connect(&url, NegotiationMode::Stateless).await;
    one_by_one(&client, "echo", 20).await;
    assert_eq!(connections.load(Ordering::SeqCst), 1);
    drop(client);
    served.stop().await;
}

#[tokio::test]
async fn many_concurrent_calls_of_a_session_succeed_beside_its_stream() {
    let served = Served::new([echo()]);
    let (url, connections) = counted(&served.url).await;
    let client = connect(&url, OLDER).await;
    one_by_one(&client, "echo", 20).await;
    let count = connections.load(Ordering::SeqCst);
    assert!(count <= 3, "{count} connections");
    drop(client);
    served.stop().await;
}

#[tokio::test]
async fn a_streamed_response_returns_its_connection_to_the_pool() {
    let served = Served::new([reports()]);
    let (url, connections) = counted(&served.url).await;
    let client = connect(&url, NegotiationMode::Stateless).await;
    for _ in 0..20 {
        let call = client.call_tool("reports", json!({})).on_progress(|_| {});
        assert_eq!(text(&soon(call.into_future()).await.unwrap()), "a");
    }
    // The end of a stream may come after the start of the next call, but not always.
    let count = connections.load(Ordering::SeqCst);
    assert!(count < 20, "{count} connections for 20 calls one by one");
    drop(client);
    served.stop().await;
}

#[tokio::test]
async fn many_concurrent_calls_all_succeed() {
    for era in [NegotiationMode::Stateless, OLDER] {
        let served = Served::new([together(64)]);
        let client = connect(&served.url, era).await;
        all_at_once(&client, 64).await;
        soon(client.close()).await;
        served.stop().await;
    }
}

#[tokio::test]
async fn clients_of_one_target_share_its_connections() {
    let served = Served::new([echo()]);
    let (url, connections) = counted(&served.url).await;
    let target = HttpTarget::new(&url);
    for _ in 0..5 {
        let client =
            soon(Client::connect(target.clone()).negotiation(NegotiationMode::Stateless).into_future()).await.unwrap();
        one_by_one(&client, "echo", 3).await;
        soon(client.close()).await;
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1);
    // The same server at another address is another target.
    let other = target.clone().no_proxy();
    let client = soon(Client::connect(other).negotiation(NegotiationMode::Stateless).into_future()).await.unwrap();
    one_by_one(&client, "echo", 1).await;
    assert_eq!(connections.load(Ordering::SeqCst), 2);
    drop(client);
    served.stop().await;
}
