//! Lists that come in pages.

use super::*;

#[tokio::test]
async fn cursors_are_returned_unchanged_and_the_last_page_has_no_cursor() {
    for era in ERAS {
        let (client, mut server) = RecordingServer::connected(era, |connecting| connecting).await;
        let cursors = ["", " x", "{\"a\":1}", "\u{0}ü", "null", ""];
        let answering = async {
            for page in 0..=cursors.len() {
                let list = server.until("prompts/list").await;
                let expected = page.checked_sub(1).map_or(Value::Null, |before| json!(cursors[before]));
                assert_eq!(list["params"]["cursor"], expected, "{era:?} {list}");
                // Pages of every size, and none at all.
                let prompts: Vec<Value> =
                    (0..page % 3).map(|index| json!({"name": format!("{page}-{index}")})).collect();
                let mut result =
                    json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "prompts": prompts});
                if let Some(cursor) = cursors.get(page) {
                    result["nextCursor"] = json!(cursor);
                }
                server.answer(&list, result).await;
            }
        };
        let listed = with(client.prompts().all(), answering).await.unwrap();
        assert_eq!(listed.len(), (0..=cursors.len()).map(|page| page % 3).sum::<usize>(), "{era:?}");
        server.is_quiet(&client).await;
    }
}

#[tokio::test]
async fn a_list_without_pages_is_one_page() {
    let (client, mut server) = RecordingServer::connected(OLDER, |connecting| connecting).await;
    let answering = async {
        let list = server.until("resources/list").await;
        server.answer(&list, json!({"resources": [{"uri": "a:1", "name": "one"}]})).await;
    };
    assert_eq!(with(client.resources().all(), answering).await.unwrap().len(), 1);
    server.is_quiet(&client).await;
}

#[tokio::test]
async fn completions_may_be_partial_or_empty() {
    let (client, mut server) = RecordingServer::connected(NegotiationMode::Stateless, |connecting| connecting).await;
    for completion in
        [json!({"values": []}), json!({"values": ["a"], "hasMore": true}), json!({"values": ["a"], "total": 9})]
    {
        let answering = async {
            let asked = server.until("completion/complete").await;
            server.answer(&asked, json!({"resultType": "complete", "completion": completion})).await;
        };
        let call = client.complete(steadfast::Reference::prompt("p"), "a", "b").into_future();
        let given = with(call, answering).await.unwrap().completion.values.len();
        assert_eq!(given, completion["values"].as_array().unwrap().len());
    }
}
