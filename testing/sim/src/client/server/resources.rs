//! Resources, whose results may be cached for a while since 2026-07-28.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::{Server, ServerOutput, refusal, result};
use crate::client::journal::ResponseKind;
use crate::observation::json::Json;
use crate::observation::message::Id;

impl Server {
    /// Answers who reads a resource: late, wrongly or never, now and then.
    pub(super) fn read(self: &Arc<Self>, link: usize, id: Id, params: &Json<'_>, output: &Arc<dyn ServerOutput>) {
        let key = self.journal.key(link, &id);
        let asked = self.journal.facts().requests.get(&key).map(|request| request.written).unwrap_or_default();
        let uri = params["uri"].as_str().unwrap_or_default().to_owned();
        let resource = uri.strip_prefix("c:").and_then(|resource| resource.parse().ok()).unwrap_or(0);
        let (nap, variant, lasts) = self.draw(|random| {
            let lasts = *random.pick(&[0, 40, 500, 3_000, 3_000, 60_000]);
            (random.delay(Duration::from_millis(1_500)), random.below(100), Duration::from_millis(lasts))
        });
        let scope = if variant % 2 == 0 { "private" } else { "public" };
        let (server, output) = (Arc::clone(self), Arc::clone(output));
        self.executor.spawn_harness_task(async move {
            server.executor.sleep(nap).await;
            if variant < 6 {
                let (said, message) = match variant {
                    0 | 1 => (ResponseKind::Error, refusal(&id, -32602)),
                    2 | 3 => (ResponseKind::Unreadable, result(&id, &json!({ "contents": 5 }))),
                    _ => return,
                };
                let receipt = output.say(&message, true);
                return server.journal.answered(&key, receipt, said);
            }
            let answer = server.journal.facts().cache.next_answer();
            let mut said = json!({ "contents": [{ "uri": uri, "text": answer.to_string() }] });
            if server.handshake.is_none() {
                said["resultType"] = "complete".into();
                said["ttlMs"] = u64::try_from(lasts.as_millis()).unwrap_or(0).into();
                said["cacheScope"] = scope.into();
            }
            let receipt = output.say(&result(&id, &said), true);
            server.journal.note("<- read", answer, &[b'0' + resource]);
            server.journal.answered(&key, receipt, ResponseKind::Result);
            server.journal.facts().cache.at_answer(answer, resource, lasts, (asked, link), receipt);
        });
    }
}
