//! Calls that run as tasks (the extension of 2026-07-28).

use steadfast::server::tasks::{MemoryTaskStore, TaskMode, TaskRecord, TaskSettings, TaskStore, TaskStoreFuture};

use crate::server::*;

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

fn knows_tasks() -> Value {
    json!({"elicitation": {}, "extensions": {EXTENSION: {}}})
}

fn optional(name: &str) -> steadfast::server::ServerToolBuilder {
    ServerTool::new(name).task(TaskMode::Optional)
}

/// Asks for three words, one after the other.
fn words() -> ServerTool {
    optional("words").handler(|ctx: Context| async move {
        let mut words = Vec::new();
        for _ in 0..3 {
            words.push(ctx.elicit::<String>("A word?").await?);
        }
        Ok::<_, ToolError>(words.join(" "))
    })
}

async fn begin(peer: &mut Peer, tool: &str) -> String {
    let answer = peer.call(tool, json!({})).await;
    assert_eq!(answer["result"]["resultType"], "task", "{answer}");
    answer["result"]["taskId"].as_str().unwrap().to_owned()
}

/// Asks after a task until it does not work any more.
async fn settled(peer: &mut Peer, task: &str) -> Value {
    loop {
        let shown = peer.ask("tasks/get", json!({"taskId": task})).await["result"].clone();
        if shown["status"] != "working" {
            return shown;
        }
        tokio::task::yield_now().await;
    }
}

async fn update(peer: &mut Peer, task: &str, responses: Value) -> Value {
    peer.ask("tasks/update", json!({"taskId": task, "inputResponses": responses})).await
}

/// A result without the server info.
fn bare(answer: &Value) -> Value {
    let mut result = answer["result"].clone();
    result.as_object_mut().unwrap().remove("_meta");
    result
}

fn accept(word: &str) -> Value {
    json!({"action": "accept", "content": {"answer": word}})
}

/// A store that takes its time.
struct Slow {
    inner: MemoryTaskStore,
    asked: Signal,
    go: Signal,
}

impl TaskStore for Slow {
    fn insert(&self, record: TaskRecord) -> TaskStoreFuture<'_, ()> {
        Box::pin(async move {
            self.asked.set();
            self.go.wait().await;
            self.inner.insert(record).await
        })
    }

    fn load<'a>(&'a self, id: &'a str) -> TaskStoreFuture<'a, Option<TaskRecord>> {
        self.inner.load(id)
    }

    fn replace(&self, record: TaskRecord) -> TaskStoreFuture<'_, ()> {
        self.inner.replace(record)
    }
}

#[tokio::test]
async fn a_task_exists_before_its_id_is_sent() {
    let (asked, go) = (Signal::default(), Signal::default());
    let slow = Slow { inner: MemoryTaskStore::default(), asked: asked.clone(), go: go.clone() };
    let tool = optional("quick").handler(|| async { "done" });
    let server = Server::builder("test", "1").tool(tool).tasks(TaskSettings::new(slow)).build();
    let mut peer = Peer::modern(&server, knows_tasks());
    let call = peer.begin("tools/call", json!({"name": "quick"})).await;
    soon(asked.wait()).await;
    // The call is not answered while its task is on its way into the store; others are.
    peer.ask("tools/list", json!({})).await;
    assert!(peer.before.is_empty(), "{:?}", peer.before);
    go.set();
    let answer = peer.answer(call).await;
    let shown = peer.ask("tasks/get", json!({"taskId": answer["result"]["taskId"]})).await;
    assert!(shown["result"]["status"].is_string(), "{shown}");
}

#[tokio::test]
async fn no_input_key_is_used_twice_in_a_task() {
    let mut peer = Peer::modern(&server([words()]), knows_tasks());
    let task = begin(&mut peer, "words").await;
    let mut used = Vec::new();
    for word in ["a", "b", "c"] {
        let shown = settled(&mut peer, &task).await;
        let asked: Vec<String> = shown["inputRequests"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(asked.len(), 1, "{shown}");
        assert!(!used.contains(&asked[0]), "{} was asked before: {used:?}", asked[0]);
        update(&mut peer, &task, json!({&*asked[0]: accept(word)})).await;
        used.extend(asked);
    }
    assert_eq!(settled(&mut peer, &task).await["result"]["content"][0]["text"], "a b c");
}

#[tokio::test]
async fn a_null_input_response_leaves_the_input_request_open() {
    let runs = Signal::default();
    let counted = runs.clone();
    let tool = optional("counted").handler(move |ctx: Context| {
        counted.set();
        async move { ctx.elicit::<String>("A word?").key("word").await }
    });
    let mut peer = Peer::modern(&server([tool]), knows_tasks());
    let task = begin(&mut peer, "counted").await;
    let shown = settled(&mut peer, &task).await;
    update(&mut peer, &task, json!({"word": null})).await;
    assert_eq!(settled(&mut peer, &task).await["inputRequests"], shown["inputRequests"]);
    assert_eq!(runs.count(), 1, "what was asked still waits");
    update(&mut peer, &task, json!({"word": accept("a")})).await;
    assert_eq!(settled(&mut peer, &task).await["result"]["content"][0]["text"], "a");
}

#[tokio::test]
async fn an_update_has_an_empty_result_and_unknown_input_responses_are_ignored() {
    let mut peer = Peer::modern(&server([words()]), knows_tasks());
    let task = begin(&mut peer, "words").await;
    let first = settled(&mut peer, &task).await;
    let key = first["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    // Never requested, then answered already, then superseded.
    let never = update(&mut peer, &task, json!({"never": accept("x")})).await;
    assert_eq!(bare(&never), json!({"resultType": "complete"}), "{never}");
    assert_eq!(settled(&mut peer, &task).await["inputRequests"], first["inputRequests"]);
    update(&mut peer, &task, json!({&*key: accept("a")})).await;
    let second = settled(&mut peer, &task).await;
    assert_ne!(second["inputRequests"], first["inputRequests"]);
    let late = update(&mut peer, &task, json!({&*key: accept("b")})).await;
    assert_eq!(bare(&late), json!({"resultType": "complete"}), "{late}");
    assert_eq!(settled(&mut peer, &task).await["inputRequests"], second["inputRequests"]);
}

#[tokio::test]
async fn a_task_sends_no_progress_and_no_log_messages() {
    let tool = optional("loud").handler(|ctx: Context| async move {
        ctx.progress(0.5, "half way");
        ctx.log(steadfast::LoggingLevel::Error, "a complaint");
        tokio::task::yield_now().await;
        "done"
    });
    let mut peer = Peer::modern(&server([tool]), knows_tasks());
    peer.begin("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})).await;
    peer.line().await;
    let wants = json!({"_meta": {"progressToken": 1, "io.modelcontextprotocol/logLevel": "debug"}});
    let created = peer.call("loud", wants).await;
    let mut seen = std::mem::take(&mut peer.before);
    let task = created["result"]["taskId"].as_str().unwrap().to_owned();
    loop {
        let shown = peer.ask("tasks/get", json!({"taskId": task})).await;
        seen.append(&mut peer.before);
        if shown["result"]["status"] != "working" {
            break;
        }
    }
    assert!(seen.is_empty(), "{seen:?}");
}

#[tokio::test]
async fn every_tasks_method_needs_the_extension() {
    let server = server([words()]);
    let task = begin(&mut Peer::modern(&server, knows_tasks()), "words").await;
    for declared in [json!({}), json!({"tasks": {"list": {}, "cancel": {}}}), json!({"extensions": {"a.b/tasks": {}}})]
    {
        let mut peer = Peer::modern(&server, declared.clone());
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let refused = peer.ask(method, json!({"taskId": task, "inputResponses": {}})).await;
            assert_eq!(refused["error"]["code"], -32021, "{method} with {declared}: {refused}");
            let required = &refused["error"]["data"]["requiredCapabilities"]["extensions"];
            assert!(required[EXTENSION].is_object(), "{refused}");
        }
        // And no call becomes one, also if it asks for the older kind.
        peer.meta.as_mut().unwrap()["io.modelcontextprotocol/clientCapabilities"]["elicitation"] = json!({});
        let answer = peer.call("words", json!({"task": {"ttl": 1000}})).await;
        assert_eq!(answer["result"]["resultType"], "input_required", "{declared}: {answer}");
    }
}

#[tokio::test]
async fn errors_of_tasks_describe_what_failed() {
    let broken = optional("broken").handler(|| async { std::panic::resume_unwind(Box::new("on purpose")) as () });
    let refuses =
        optional("refuses").handler(|| async { Err::<(), _>(steadfast::Error::invalid_params("no such city")) });
    let mut peer = Peer::modern(&server([broken, refuses]), knows_tasks());
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let refused = peer.ask(method, json!({"taskId": "no-such-task", "inputResponses": {}})).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("no-such-task"), "{message}");
    }
    for (tool, words) in [("broken", "failed unexpectedly"), ("refuses", "no such city")] {
        let task = begin(&mut peer, tool).await;
        let shown = settled(&mut peer, &task).await;
        assert_eq!(shown["status"], "failed", "{shown}");
        let message = shown["statusMessage"].as_str().unwrap_or_default();
        assert!(message.contains(words), "{shown}");
        assert_eq!(shown["error"]["message"], message, "{shown}");
    }
}

#[tokio::test]
async fn the_extension_is_declared_and_the_older_capability_is_not() {
    for mut peer in Peer::of_both_eras(&server([words()]), knows_tasks()).await {
        let declared = peer.declared().await;
        assert!(declared.get("tasks").is_none(), "{declared}");
        assert_eq!(declared["extensions"][EXTENSION].is_object(), peer.meta.is_some(), "{declared}");
        let extensions = declared["extensions"].as_object().into_iter().flatten();
        assert!(extensions.map(|(name, _)| name).all(|name| name.contains('/')), "{declared}");
    }
}

#[tokio::test]
async fn task_ids_cannot_be_guessed() {
    let mut peer = Peer::modern(&server([words()]), knows_tasks());
    let mut names = Vec::new();
    for _ in 0..100 {
        names.push(begin(&mut peer, "words").await);
    }
    // 128 bits in digits of four, and no two names have more in common than chance gives them.
    assert!(
        names.iter().all(|name| name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit())),
        "{names:?}"
    );
    names.sort();
    let shared = |one: &str, two: &str| one.bytes().zip(two.bytes()).filter(|(one, two)| one == two).count();
    assert!(names.windows(2).all(|pair| shared(&pair[0], &pair[1]) < 16), "{names:?}");
}
