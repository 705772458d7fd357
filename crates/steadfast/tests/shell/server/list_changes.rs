//! Notifications of list changes: to every client up to 2025-11-25, and since then to subscribers.

use steadfast::server::{ServerPrompt, ServerResource};

use super::*;

/// The member of a filter, and the notification, of each list.
const LISTS: [(&str, &str); 3] = [
    ("toolsListChanged", "notifications/tools/list_changed"),
    ("promptsListChanged", "notifications/prompts/list_changed"),
    ("resourcesListChanged", "notifications/resources/list_changed"),
];

fn change(server: &Server, list: &str) {
    match list {
        "toolsListChanged" => drop(server.add_tool(echo())),
        "promptsListChanged" => drop(server.add_prompt(ServerPrompt::new("p").handler(|| async { "" }))),
        _ => drop(server.add_resource(ServerResource::new("note://1", "n").text(""))),
    }
}

#[tokio::test]
async fn list_changes_notify_every_older_client() {
    let server = Server::builder("test", "1").expect_prompts().expect_resources().build();
    let mut peers = [Peer::handshake(&server, json!({})).await, Peer::handshake(&server, json!({})).await];
    for (list, method) in LISTS {
        change(&server, list);
        for peer in &mut peers {
            assert_eq!(peer.line().await["method"], method);
        }
    }
}

#[tokio::test]
async fn list_changes_notify_only_their_subscribers() {
    for (wanted, method) in LISTS {
        let server = Server::builder("test", "1").expect_prompts().expect_resources().build();
        let mut deaf = Peer::modern(&server, json!({}));
        deaf.ask("tools/list", json!({})).await;
        let mut peer = Peer::modern(&server, json!({}));
        peer.begin("subscriptions/listen", json!({"notifications": {wanted: true}})).await;
        assert_eq!(peer.line().await["method"], "notifications/subscriptions/acknowledged");
        for (list, _) in LISTS {
            change(&server, list);
        }
        assert_eq!(peer.line().await["method"], method);
        // No notification of the other two lists came with it, and none at all to a client that did not subscribe.
        for quiet in [&mut peer, &mut deaf] {
            quiet.ask("tools/list", json!({})).await;
            assert!(quiet.before.is_empty(), "{wanted}: {:?}", quiet.before);
        }
    }
}

#[tokio::test]
async fn log_messages_do_not_flood() {
    let chatty = ServerTool::new("chatty").handler(|ctx: Context| async move {
        for number in 0..10_000 {
            ctx.log(steadfast::LoggingLevel::Emergency, number);
        }
    });
    let wants = json!({"_meta": {"io.modelcontextprotocol/logLevel": "debug"}});
    for mut peer in Peer::of_both_eras(&server([chatty]), json!({})).await {
        peer.call("chatty", wants.clone()).await;
        assert!((1..2_000).contains(&peer.before.len()), "{}", peer.before.len());
    }
}
