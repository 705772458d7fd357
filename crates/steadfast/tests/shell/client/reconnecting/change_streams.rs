//! Change streams over the loss of their connection.

use steadfast::client::{Change, ChangeStream};
use steadfast::server::ServerResource;
use steadfast::{Revision, SubscriptionFilter};
use tokio::task::AbortHandle;

use super::*;

const ERAS: [NegotiationMode; 2] = [NegotiationMode::Stateless, NegotiationMode::Handshake(Revision::V2025_11_25)];

/// A server whose connection can be cut.
struct Cable {
    server: Server,
    plugged: Mutex<Vec<AbortHandle>>,
}

impl Cable {
    fn new() -> Arc<Self> {
        let resource = ServerResource::new("a:1", "r").text("");
        let server = Server::builder("changing", "1.0.0").tool(crate::echo()).resource(resource).build();
        Arc::new(Self { server, plugged: Mutex::default() })
    }

    async fn connect(self: &Arc<Self>, era: NegotiationMode) -> Client {
        let cable = Arc::clone(self);
        let connecting = Client::connect(move || std::future::ready(Ok(cable.plug())));
        let policy = ReconnectPolicy::default().first_pause(Duration::from_millis(1));
        soon(connecting.negotiation(era).reconnect(policy).into_future()).await.unwrap()
    }

    fn plug(&self) -> StreamTransport {
        let ((here, mut near), (mut far, there)) = (tokio::io::duplex(1 << 16), tokio::io::duplex(1 << 16));
        let cable = tokio::spawn(async move { drop(tokio::io::copy_bidirectional(&mut near, &mut far).await) });
        self.plugged.lock().unwrap().push(cable.abort_handle());
        tokio::spawn(self.server.clone().serve(StreamTransport::duplex(there)).into_future());
        StreamTransport::duplex(here)
    }

    fn cut(&self) {
        self.plugged.lock().unwrap().drain(..).for_each(|cable| cable.abort());
    }
}

fn wanted() -> SubscriptionFilter {
    SubscriptionFilter::new().with_tools_list_changed(true).with_resource_subscriptions(vec!["a:1".to_owned()])
}

async fn next(changes: &mut ChangeStream) -> Change {
    soon(changes.next()).await.expect("it goes on").expect("it is no error")
}

#[tokio::test]
async fn a_change_stream_resubscribes_and_reports_it() {
    for era in ERAS {
        let cable = Cable::new();
        let client = cable.connect(era).await;
        let mut changes = client.changes(wanted());
        for _ in 0..3 {
            assert!(matches!(next(&mut changes).await, Change::Listening(_)), "{era:?}");
            cable.server.resource_updated("a:1");
            assert_eq!(next(&mut changes).await, Change::Resource("a:1".to_owned()), "{era:?}");
            cable.cut();
        }
        drop(changes);
        soon(client.list_tools()).await.unwrap();
    }
}

#[tokio::test]
async fn a_change_stream_that_reconnects_ends_with_its_client() {
    let server = FakeServer::new(|_, request| match request["method"].as_str() {
        Some("subscriptions/listen") => Reply::Silence,
        _ => Reply::Result(done(request)),
    });
    let client = server.connect().await;
    let mut changes = client.changes(wanted());
    server.until(|server| !server.asked("subscriptions/listen").is_empty()).await;
    server.set(OnConnect::Hang);
    server.cut();
    let heard = tokio::spawn(async move { while let Some(Ok(_)) = changes.next().await {} });
    server.until(|server| server.connections() == 2).await;
    soon(client.close()).await;
    soon(heard).await.unwrap();
}

#[tokio::test]
async fn dropping_a_change_stream_while_it_subscribes_unsubscribes_at_once() {
    let server = FakeServer::new(|_, request| match request["method"].as_str() {
        Some("resources/subscribe") => Reply::Silence,
        Some("initialize") => Reply::Result(json!({"protocolVersion": "2025-11-25",
            "serverInfo": {"name": "site", "version": "1"}, "capabilities": {"resources": {"subscribe": true}}})),
        _ => Reply::Result(json!({})),
    });
    let client = soon(server.connecting().negotiation(ERAS[1]).into_future()).await.unwrap();
    let changes = client.changes(wanted());
    server.until(|server| !server.asked("resources/subscribe").is_empty()).await;
    drop(changes);
    server.until(|server| !server.asked("notifications/cancelled").is_empty()).await;
    // The server may have done it for all we know.
    server.until(|server| !server.asked("resources/unsubscribe").is_empty()).await;
}
