//! Principals over HTTP: which tools and tasks they may use.

use steadfast::server::tasks::TaskMode;

use super::*;

fn identified(tool: ServerTool) -> HttpService {
    let who = |parts: &::http::request::Parts| Some(parts.headers.get("x-who")?.to_str().ok()?.to_owned());
    HttpService::new(server([tool]), HttpServerOptions::new().identify(who))
}

fn knows_tasks(sent: Sent) -> Sent {
    sent.changed(|message| {
        let capabilities = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
        message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    })
}

#[tokio::test]
async fn every_request_about_a_task_of_another_principal_is_refused() {
    let (begun, dropped) = (Signal::default(), Signal::default());
    let signals = (begun.clone(), dropped.clone());
    let tool = ServerTool::new("long").task(TaskMode::Required).handler(move || {
        let (begun, dropped) = signals.clone();
        async move {
            let _dropped = dropped.on_drop();
            begun.set();
            std::future::pending::<()>().await;
        }
    });
    let service = identified(tool);
    let ask = |who: Option<&str>, sent: Sent| {
        let sent = knows_tasks(sent);
        let sent = match who {
            Some(who) => sent.with("x-who", who),
            None => sent,
        };
        let service = service.clone();
        async move { body(sent.to(&service).await).await }
    };
    let created = ask(Some("ann"), Sent::modern(1, "tools/call", json!({"name": "long"}))).await;
    let task = created["result"]["taskId"].clone();
    soon(begun.wait()).await;
    for who in [Some("bob"), None] {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let sent = Sent::modern(2, method, json!({"taskId": task, "inputResponses": {}}));
            let refused = ask(who, sent).await;
            // The same error as for an unknown task: a client must not learn which ids exist.
            assert_eq!(refused["error"]["code"], -32602, "{who:?} {method}: {refused}");
        }
    }
    assert_eq!(dropped.count(), 0, "nobody has cancelled it");
    let shown = ask(Some("ann"), Sent::modern(3, "tasks/get", json!({"taskId": task}))).await;
    assert_eq!(shown["result"]["status"], "working", "{shown}");
    ask(Some("ann"), Sent::modern(4, "tasks/cancel", json!({"taskId": task}))).await;
    soon(dropped.wait()).await;
}

#[tokio::test]
async fn a_tool_knows_its_principal_and_can_refuse() {
    let tool = ServerTool::new("secret").handler(|ctx: Context| async move {
        match ctx.principal() {
            Some(who) if format!("{who:?}").contains("ann") => Ok("the secret"),
            _ => Err(steadfast::Error::new(403, "this is for ann")),
        }
    });
    let service = identified(tool);
    let call = || Sent::modern(1, "tools/call", json!({"name": "secret"}));
    let told = body(call().with("x-who", "ann").to(&service).await).await;
    assert_eq!(told["result"]["content"][0]["text"], "the secret", "{told}");
    for sent in [call().with("x-who", "bob"), call()] {
        let refused = body(sent.to(&service).await).await;
        assert_eq!(refused["error"]["code"], 403, "{refused}");
    }
}

#[tokio::test]
async fn completions_may_depend_on_the_principal() {
    use steadfast::CompleteContext;
    let prompt = steadfast::server::ServerPrompt::new("letter")
        .required_argument("to", "")
        .complete("to", |_: String, _: CompleteContext, ctx: Context| async move {
            match ctx.principal() {
                Some(who) if format!("{who:?}").contains("ann") => vec!["ann's friend"],
                _ => vec![],
            }
        })
        .handler(|| async { "" });
    let who = |parts: &::http::request::Parts| Some(parts.headers.get("x-who")?.to_str().ok()?.to_owned());
    let server = Server::builder("test", "1").prompt(prompt).build();
    let service = HttpService::new(server, HttpServerOptions::new().identify(who));
    let params = json!({"ref": {"type": "ref/prompt", "name": "letter"}, "argument": {"name": "to", "value": ""}});
    for (who, offered) in [("ann", json!(["ann's friend"])), ("bob", json!([]))] {
        let sent = Sent::modern(1, "completion/complete", params.clone()).with("x-who", who);
        let answer = body(sent.to(&service).await).await;
        assert_eq!(answer["result"]["completion"]["values"], offered, "{who}: {answer}");
    }
}
