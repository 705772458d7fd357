//! Results that a client caches, by the hints of the server.

use steadfast::client::ResponseCache;
use steadfast::{ErrorKind, Outcome};

use crate::client::manual_server::*;

const HOUR: u64 = 3_600_000;

#[tokio::test]
async fn a_cached_list_is_fetched_again_only_after_its_ttl() {
    let clock = OffsetClock::new();
    let (client, mut server) = ManualServer::modern(|connecting| connecting.runtime(clock.shared())).await;
    let first = names(&client);
    server.serve("tools/list", listing(&["old"], HOUR, "public")).await;
    assert_eq!(at_once(first).await, ["old"]);
    clock.forward(Duration::from_millis(HOUR / 2));
    assert_eq!(at_once(names(&client)).await, ["old"]);
    clock.forward(Duration::from_millis(HOUR / 2));
    let second = names(&client);
    server.serve("tools/list", listing(&["new"], HOUR, "public")).await;
    assert_eq!(at_once(second).await, ["new"]);
}

#[tokio::test]
async fn results_without_a_ttl_are_not_cached() {
    let (client, mut server) = ManualServer::modern(|connecting| connecting).await;
    for ttl in [json!(0), json!(-5), json!(null)] {
        for _ in 0..2 {
            let listed = names(&client);
            let mut answer = listing(&["t"], 0, "public");
            answer["ttlMs"] = ttl.clone();
            server.serve("tools/list", answer).await;
            assert_eq!(at_once(listed).await, ["t"]);
        }
    }
}

#[tokio::test]
async fn cache_keys_include_the_parameters() {
    let (client, mut server) = ManualServer::modern(|connecting| connecting).await;
    for uri in ["a:1", "a:2"] {
        let first = read(&client, uri);
        let request = server.asked("resources/read").await;
        assert_eq!(request["params"]["uri"], uri);
        server.answer(&request, contents(uri, HOUR)).await;
        assert_eq!(at_once(first).await, uri);
    }
    assert_eq!(at_once(read(&client, "a:1")).await, "a:1");
    assert_eq!(at_once(read(&client, "a:2")).await, "a:2");
}

#[tokio::test]
async fn a_fresh_request_bypasses_the_cache_and_updates_it() {
    let (client, mut server) = ManualServer::modern(|connecting| connecting).await;
    let first = read(&client, "a:1");
    server.serve("resources/read", contents("old", HOUR)).await;
    at_once(first).await;
    let fresh = tokio::spawn(client.read_resource("a:1").fresh().into_future());
    server.serve("resources/read", contents("new", HOUR)).await;
    at_once(fresh).await.unwrap();
    assert_eq!(at_once(read(&client, "a:1")).await, "new");

    let first = names(&client);
    server.serve("tools/list", listing(&["old"], HOUR, "public")).await;
    at_once(first).await;
    let fresh = tokio::spawn(client.tools().fresh().all());
    server.serve("tools/list", listing(&["new"], HOUR, "public")).await;
    at_once(fresh).await.unwrap();
    assert_eq!(at_once(names(&client)).await, ["new"]);
}

#[tokio::test]
async fn a_client_without_a_cache_sends_every_request() {
    let (client, mut server) = ManualServer::modern(ConnectBuilder::no_cache).await;
    for name in ["one", "two"] {
        let listed = names(&client);
        server.serve("tools/list", listing(&[name], HOUR, "public")).await;
        assert_eq!(at_once(listed).await, [name]);
    }
}

#[tokio::test]
async fn results_of_older_revisions_are_not_cached() {
    let (client, mut server) = ManualServer::connect(HANDSHAKE, |connecting| connecting).await;
    for name in ["one", "two"] {
        let listed = names(&client);
        server.serve("tools/list", listing(&[name], HOUR, "public")).await;
        assert_eq!(at_once(listed).await, [name]);
    }
}

#[tokio::test]
async fn clients_that_share_a_cache_share_only_public_entries() {
    let cache = ResponseCache::new();
    let (one, mut first) = ManualServer::modern(|connecting| connecting.cache(cache.clone())).await;
    let (two, mut second) = ManualServer::modern(|connecting| connecting.cache(cache.clone())).await;
    let listed = names(&one);
    first.serve("tools/list", listing(&["shared"], HOUR, "public")).await;
    at_once(listed).await;
    assert_eq!(at_once(names(&two)).await, ["shared"]);
    let own = read(&one, "a:1");
    first.serve("resources/read", contents("one's", HOUR)).await;
    at_once(own).await;
    let other = read(&two, "a:1");
    second.serve("resources/read", contents("two's", HOUR)).await;
    assert_eq!(at_once(other).await, "two's");
    assert_eq!(at_once(read(&one, "a:1")).await, "one's");
    // What was one's alone goes with it.
    assert_eq!(cache.len(), 3);
    one.close().await;
    soon(async {
        while cache.len() == 3 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(cache.len(), 2);
}

#[tokio::test]
async fn a_closed_client_reads_nothing_from_a_shared_cache() {
    let cache = ResponseCache::new();
    let (client, mut server) = ManualServer::modern(|connecting| connecting.cache(cache.clone())).await;
    let (two, _second) = ManualServer::modern(|connecting| connecting.cache(cache.clone())).await;
    let listed = names(&client);
    server.serve("tools/list", listing(&["shared"], HOUR, "public")).await;
    at_once(listed).await;
    let other = client.clone();
    assert_eq!(at_once(names(&other)).await, ["shared"]);
    soon(client.close()).await;
    let error = soon(other.list_tools()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Closed, Outcome::NotSent));
    assert_eq!(at_once(names(&two)).await, ["shared"]);
}

#[tokio::test]
async fn all_pages_of_a_list_are_private_if_one_is_private() {
    for scopes in [["private", "public"], ["public", "private"]] {
        let cache = ResponseCache::new();
        let (one, mut first) = ManualServer::modern(|connecting| connecting.cache(cache.clone())).await;
        let (two, mut second) = ManualServer::modern(|connecting| connecting.cache(cache.clone())).await;
        for (client, server) in [(&one, &mut first), (&two, &mut second)] {
            let listed = names(client);
            for (scope, next) in scopes.iter().zip([json!("next"), json!(null)]) {
                let mut page = listing(&["t"], HOUR, scope);
                page["nextCursor"] = next;
                server.serve("tools/list", page).await;
            }
            assert_eq!(at_once(listed).await, ["t", "t"], "{scopes:?}");
        }
    }
}

#[tokio::test]
async fn an_empty_cursor_is_sent() {
    let (client, mut server) = ManualServer::modern(|connecting| connecting).await;
    let listed = names(&client);
    let mut page = listing(&["one"], HOUR, "public");
    page["nextCursor"] = json!("");
    server.serve("tools/list", page).await;
    let request = server.asked("tools/list").await;
    assert_eq!(request["params"]["cursor"], "");
    server.answer(&request, listing(&["two"], HOUR, "public")).await;
    assert_eq!(at_once(listed).await, ["one", "two"]);
    assert_eq!(at_once(names(&client)).await, ["one", "two"]);
}

#[tokio::test]
async fn a_list_whose_cursor_is_refused_is_fetched_again_from_the_start() {
    let clock = OffsetClock::new();
    let (client, mut server) = ManualServer::modern(|connecting| connecting.runtime(clock.shared())).await;
    let listed = names(&client);
    let page = |name: &str, ttl: u64, cursor: &str| {
        let mut page = listing(&[name], ttl, "public");
        page["nextCursor"] = json!(cursor);
        page
    };
    server.serve("tools/list", page("old", HOUR, "c1")).await;
    server.serve("tools/list", listing(&["old too"], 1, "public")).await;
    at_once(listed).await;
    clock.forward(Duration::from_millis(10));
    let listed = names(&client);
    let request = server.asked("tools/list").await;
    assert_eq!(request["params"]["cursor"], "c1");
    server.refuse(&request, -32602).await;
    let request = server.asked("tools/list").await;
    assert!(request["params"].get("cursor").is_none(), "{request}");
    server.answer(&request, listing(&["new"], HOUR, "public")).await;
    assert_eq!(at_once(listed).await, ["new"]);
}

#[tokio::test]
async fn a_result_after_input_is_not_cached() {
    let roots = |_| async { Ok(steadfast::ListRootsResult::default()) };
    let (client, mut server) = ManualServer::modern(|connecting| connecting.on_roots(roots)).await;
    for text in ["one", "two"] {
        let reading = read(&client, "a:1");
        let asks = json!({"resultType": "input_required", "inputRequests": {"r": {"method": "roots/list"}}});
        server.serve("resources/read", asks).await;
        let round = server.asked("resources/read").await;
        assert!(round["params"].get("inputResponses").is_some());
        server.answer(&round, contents(text, HOUR)).await;
        assert_eq!(at_once(reading).await, text);
    }
}

#[tokio::test]
async fn cache_hints_of_the_server_builder_reach_the_cache() {
    let hints = steadfast::CacheHints::new(HOUR, steadfast::CacheScope::Public);
    let server = Server::builder("steady", "1.0.0").cache(hints).tool(crate::echo()).build();
    let cache = ResponseCache::new();
    let client = Client::connect(server).negotiation(NegotiationMode::Stateless).cache(cache.clone()).await.unwrap();
    client.list_tools().await.unwrap();
    assert_eq!(cache.len(), 1);
    cache.clear();
    assert!(cache.is_empty());
}
