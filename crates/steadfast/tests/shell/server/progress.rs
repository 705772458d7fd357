//! Progress tokens.

use super::*;

#[tokio::test]
async fn a_progress_token_is_a_string_or_an_integer_and_is_echoed() {
    let tool = ServerTool::new("steps").handler(|ctx: Context| async move {
        ctx.progress(0.5, "half way");
        // Told before the answer, and not merged with it.
        tokio::task::yield_now().await;
    });
    let server = server([tool]);
    for mut peer in Peer::of_both_eras(&server, json!({})).await {
        for token in [json!("a"), json!(""), json!("7"), json!(7), json!(-1), json!(9_007_199_254_740_993_i64)] {
            let answer = peer.call("steps", json!({"_meta": {"progressToken": token}})).await;
            assert!(answer["result"].is_object(), "{answer}");
            let tokens: Vec<&Value> = peer.before.iter().map(|line| &line["params"]["progressToken"]).collect();
            assert_eq!(tokens, [&token]);
        }
        for odd in [json!(0.5), json!(true), json!({}), json!([1]), Value::Null] {
            peer.call("steps", json!({"_meta": {"progressToken": odd}})).await;
            assert!(peer.before.is_empty(), "{odd}: {:?}", peer.before);
        }
        peer.call("steps", json!({})).await;
        assert!(peer.before.is_empty(), "nobody asked: {:?}", peer.before);
    }
}
