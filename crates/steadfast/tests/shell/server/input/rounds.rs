//! Requests of several rounds (2026-07-28): which methods may have them, and that only the request state connects them.

use steadfast::CompleteContext;
use steadfast::server::ServerPrompt;

use crate::server::*;

fn two_steps() -> ServerTool {
    ServerTool::new("steps").handler(|ctx: Context| async move {
        let name: String = ctx.elicit("Name?").await?;
        let colour: String = ctx.elicit(format!("Colour, {name}?")).await?;
        Ok::<_, ToolError>(format!("{name} likes {colour}"))
    })
}

fn accept(answer: &str) -> Value {
    json!({"action": "accept", "content": {"answer": answer}})
}

fn keys(answer: &Value) -> Vec<&String> {
    answer["result"]["inputRequests"].as_object().map(|requests| requests.keys().collect()).unwrap_or_default()
}

#[tokio::test]
async fn earlier_responses_are_known_only_from_the_request_state() {
    let mut peer = Peer::modern(&server([two_steps()]), json!({"elicitation": {}}));
    let first = peer.call("steps", json!({})).await;
    assert_eq!(keys(&first), ["elicit-1"]);
    let retry = json!({"inputResponses": {"elicit-1": accept("Ann")}, "requestState": first["result"]["requestState"]});
    let second = peer.call("steps", retry).await;
    assert_eq!(keys(&second), ["elicit-2"]);
    // On the same connection, by the same client: without the state it is another request.
    let anew = peer.call("steps", json!({})).await;
    assert_eq!(keys(&anew), ["elicit-1"]);
}

#[tokio::test]
async fn rounds_may_come_over_different_connections() {
    let server = server([two_steps()]);
    let mut state = Value::Null;
    for (key, answer) in [("elicit-1", "Ann"), ("elicit-2", "red")] {
        let mut peer = Peer::modern(&server, json!({"elicitation": {}}));
        let asked = peer.call("steps", json!({"requestState": state})).await;
        assert_eq!(keys(&asked), [key]);
        let mut other = Peer::modern(&server, json!({"elicitation": {}}));
        let retry = json!({"inputResponses": {key: accept(answer)}, "requestState": asked["result"]["requestState"]});
        let answered = other.call("steps", retry).await;
        if key == "elicit-2" {
            assert_eq!(said(&answered), "Ann likes red");
        }
        state = answered["result"]["requestState"].clone();
    }
}

#[tokio::test]
async fn no_input_key_is_used_twice_in_a_request() {
    let greedy = ServerTool::new("greedy").handler(|ctx: Context| async move {
        for _ in 0..3 {
            let (one, two) = tokio::join!(ctx.elicit::<String>("?"), ctx.elicit::<String>("?"));
            one.and(two)?;
        }
        Ok::<_, ToolError>("enough")
    });
    let mut peer = Peer::modern(&server([greedy]), json!({"elicitation": {}}));
    let mut used = Vec::new();
    let mut answer = peer.call("greedy", json!({})).await;
    while answer["result"]["resultType"] == "input_required" {
        let asked: Vec<String> = keys(&answer).into_iter().cloned().collect();
        let answers: Value = asked.iter().map(|key| (key.clone(), accept("x"))).collect::<JsonObject>().into();
        used.extend(asked);
        let retry = json!({"inputResponses": answers, "requestState": answer["result"]["requestState"]});
        answer = peer.call("greedy", retry).await;
    }
    assert_eq!(said(&answer), "enough");
    let all = used.len();
    used.sort();
    used.dedup();
    assert_eq!((all, used.len()), (6, 6));
}

#[tokio::test]
async fn only_calls_prompts_and_resources_can_request_input() {
    let prompt = ServerPrompt::new("p")
        .required_argument("x", "")
        .complete("x", |_: String, _: CompleteContext, ctx: Context| async move {
            let refused = ctx.elicit::<String>("?").await.unwrap_err();
            vec![refused.to_string()]
        })
        .handler(|ctx: Context| async move { ctx.elicit::<String>("?").await });
    let resource = steadfast::server::ServerResource::new("note://1", "note")
        .handler(|ctx: Context| async move { ctx.elicit::<String>("?").await });
    let server = Server::builder("test", "1").prompt(prompt).resource(resource).tool(two_steps()).build();
    let mut peer = Peer::modern(&server, json!({"elicitation": {}, "sampling": {}, "roots": {}}));
    for (method, params) in [
        ("tools/call", json!({"name": "steps"})),
        ("prompts/get", json!({"name": "p", "arguments": {"x": "a"}})),
        ("resources/read", json!({"uri": "note://1"})),
    ] {
        assert_eq!(peer.ask(method, params).await["result"]["resultType"], "input_required", "{method}");
    }
    let complete = json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "x", "value": ""}});
    let completed = peer.ask("completion/complete", complete.clone()).await;
    let words = completed["result"]["completion"]["values"][0].as_str().unwrap_or_default();
    assert!(words.contains("only tools, prompts and resources can request input"), "{completed}");
    for (method, params) in [
        ("completion/complete", complete),
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("server/discover", json!({})),
    ] {
        assert_eq!(peer.ask(method, params).await["result"]["resultType"], "complete", "{method}");
    }
}
