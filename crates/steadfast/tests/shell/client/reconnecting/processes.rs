//! Child processes that die and are restarted.

use steadfast::transport::child::Command;
use steadfast::{ErrorKind, Outcome};

use super::*;
use crate::text;

/// Says its number when it is called, or dies of it.
pub(crate) const SCRIPT: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  case "$line" in
    *server/discover*) printf '{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}\n' "$id" ;;
    *'"die"'*) exit 1 ;;
    *tools/call*) printf '{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","content":[{"type":"text","text":"%s"}]}}\n' "$id" "$$" ;;
  esac
done
"#;

async fn connect() -> Client {
    let command = Command::new("sh").args(["-c", SCRIPT]);
    let policy = ReconnectPolicy::default().first_pause(Duration::from_millis(1));
    soon(Client::connect(command).negotiation(NegotiationMode::Stateless).reconnect(policy).into_future())
        .await
        .unwrap()
}

async fn number(client: &Client) -> String {
    text(&soon(client.call_tool("number", json!({})).into_future()).await.unwrap()).to_owned()
}

#[tokio::test]
async fn a_process_that_dies_is_restarted_and_the_fatal_call_is_not_retried() {
    let client = connect().await;
    let first = number(&client).await;
    assert_eq!(number(&client).await, first);
    let error = soon(client.call_tool("die", json!({})).into_future()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Closed, Outcome::Unknown));
    assert!(format!("{error:?}").contains("`sh` exited (exit status: 1)"), "{error:?}");
    assert_ne!(number(&client).await, first);
}

#[tokio::test]
async fn close_waits_until_the_process_has_exited() {
    let client = connect().await;
    let process = number(&client).await;
    let lives = || std::process::Command::new("kill").args(["-0", &process]).output().unwrap().status.success();
    assert!(lives());
    soon(client.close()).await;
    assert!(!lives());
}
