//! A server whose results a function decides.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use steadfast::model::TASKS_EXTENSION;
use steadfast::prelude::*;
use steadfast::transport::stream::StreamTransport;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

/// A server that answers `server/discover`, and every other request with the result of `answer`, given its parameters. Returns the
/// requests.
pub(crate) fn scripted(
    answer: impl Fn(usize, &Value) -> Value + Send + 'static,
) -> (steadfast::client::ConnectBuilder, Arc<Mutex<Vec<Value>>>) {
    let (here, there) = tokio::io::duplex(1 << 16);
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    tokio::spawn(async move {
        let (input, mut output) = tokio::io::split(there);
        let mut lines = BufReader::new(input).lines();
        let count = AtomicUsize::new(0);
        while let Ok(Some(line)) = lines.next_line().await {
            let request: Value = serde_json::from_str(&line).unwrap();
            let Some(id) = request.get("id") else { continue };
            let result = if request["method"] == "server/discover" {
                json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}, "extensions": {TASKS_EXTENSION: {}}}})
            } else {
                seen.lock().unwrap().push(request.clone());
                answer(count.fetch_add(1, Ordering::SeqCst), &request["params"])
            };
            let reply = json!({"jsonrpc": "2.0", "id": id, "result": result});
            output.write_all(format!("{reply}\n").as_bytes()).await.unwrap();
        }
    });
    (Client::connect(StreamTransport::duplex(here)), requests)
}
