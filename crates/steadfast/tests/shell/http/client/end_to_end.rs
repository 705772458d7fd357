//! The client and the server of the library, over loopback.

use std::net::TcpListener as StdListener;

use serde_json::json;
use steadfast::client::NegotiationMode;
use steadfast::transport::http::HttpServerOptions;
use steadfast::{ClientCapabilities, ElicitResult, ErrorKind, Outcome, Revision};
use tokio::sync::oneshot;

use super::*;

pub(super) struct Served {
    pub(super) url: String,
    stop: Option<oneshot::Sender<()>>,
    task: tokio::task::JoinHandle<Result<(), steadfast::Error>>,
}

impl Served {
    pub(super) fn new(tools: impl IntoIterator<Item = ServerTool>) -> Self {
        Self::with(tools, HttpServerOptions::new())
    }

    pub(super) fn with(tools: impl IntoIterator<Item = ServerTool>, options: HttpServerOptions) -> Self {
        let listener = StdListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel();
        let serving =
            server(tools).serve_http_on(listener).options(options).shutdown_when(async move { drop(stopped.await) });
        Self { url, stop: Some(stop), task: tokio::spawn(serving.run()) }
    }

    pub(super) async fn stop(mut self) {
        drop(self.stop.take());
        soon(self.task).await.unwrap().unwrap();
    }
}

fn eras() -> [NegotiationMode; 4] {
    [
        NegotiationMode::Auto,
        NegotiationMode::Handshake(Revision::V2025_03_26),
        NegotiationMode::Handshake(Revision::V2025_06_18),
        NegotiationMode::Handshake(Revision::V2025_11_25),
    ]
}

/// Reports, asks, and answers.
fn talk() -> ServerTool {
    ServerTool::new("talk").handler(|ctx: Context| async move {
        ctx.progress(0.5, "half way");
        let name: String = ctx.elicit("Name?").await?;
        Ok::<_, ToolError>(format!("hello {name}"))
    })
}

#[tokio::test]
async fn calls_and_input_requests_work_in_every_revision() {
    let served = Served::new([echo(), talk()]);
    for era in eras() {
        let asked = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&asked);
        let client = soon(
            Client::connect(&*served.url)
                .negotiation(era)
                .capabilities(ClientCapabilities::new().with_elicitation_form())
                .on_elicit(move |_, _| {
                    *counted.lock().unwrap() += 1;
                    async { Ok(ElicitResult::accept(json!({"answer": "Ann"}).as_object().cloned().unwrap())) }
                })
                .into_future(),
        )
        .await
        .unwrap();
        let tools = soon(client.list_tools()).await.unwrap();
        assert_eq!(tools.len(), 2);
        let text = soon(client.call_tool("echo", json!({"text": "ü"})).into_future()).await.unwrap();
        assert_eq!(text.content[0].as_text(), Some("ü"));
        // Revision 2025-03-26 has no elicitation.
        if era != NegotiationMode::Handshake(Revision::V2025_03_26) {
            let progress = Arc::new(Mutex::new(0));
            let told = Arc::clone(&progress);
            let call = client.call_tool("talk", json!({})).on_progress(move |_| *told.lock().unwrap() += 1);
            let said = soon(call.into_future()).await.unwrap();
            assert_eq!(said.content[0].as_text(), Some("hello Ann"), "{era:?}");
            assert!(*progress.lock().unwrap() >= 1, "{era:?}");
            assert_eq!(*asked.lock().unwrap(), 1, "{era:?}");
        }
        soon(client.close()).await;
    }
    served.stop().await;
}

#[tokio::test]
async fn dropping_a_call_stops_its_handler_in_every_revision() {
    for era in eras() {
        let (begun, dropped) = (Signal::default(), Signal::default());
        let served = Served::new([forever(&begun, &dropped), echo()]);
        let client = soon(Client::connect(&*served.url).negotiation(era).into_future()).await.unwrap();
        let mut call = Box::pin(client.call_tool("forever", json!({})).start());
        tokio::select! {
            ended = &mut call => panic!("{ended:?}"),
            () = soon(begun.wait()) => {}
        }
        drop(call);
        soon(dropped.wait()).await;
        let text = soon(client.call_tool("echo", json!({"text": "on"})).into_future()).await.unwrap();
        assert_eq!(text.content[0].as_text(), Some("on"));
        drop(client);
        served.stop().await;
    }
}

#[tokio::test]
async fn a_call_that_outlives_its_server_has_an_unknown_outcome() {
    for era in eras() {
        let (begun, dropped) = (Signal::default(), Signal::default());
        let served = Served::new([forever(&begun, &dropped)]);
        let client = soon(Client::connect(&*served.url).negotiation(era).into_future()).await.unwrap();
        let mut call = Box::pin(client.call_tool("forever", json!({})).start());
        tokio::select! {
            ended = &mut call => panic!("{ended:?}"),
            () = soon(begun.wait()) => {}
        }
        tokio::spawn(served.stop());
        let error = soon(call).await.unwrap_err();
        // The server reports that it shuts down, if it can.
        assert!(matches!(error.outcome(), Outcome::Refused | Outcome::Unknown), "{era:?} {error:?}");
    }
}

#[tokio::test]
async fn a_refused_tcp_connection_leaves_the_call_not_sent() {
    let listener = StdListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let error = soon(Client::connect(&*url).into_future()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Transport, Outcome::NotSent));
}

#[tokio::test]
async fn an_invalid_url_or_header_is_an_immediate_error() {
    use steadfast::transport::http::HttpTarget;
    for target in
        [HttpTarget::new("not a url"), HttpTarget::new("ftp://a/b"), HttpTarget::new("http://a/").header("a b", "c")]
    {
        let error = soon(Client::connect(target).into_future()).await.unwrap_err();
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::Transport, Outcome::NotSent));
    }
}
