//! What the connection puts on the wire, as a peer reads it.

use serde::Deserialize;
use serde_json::value::RawValue;
use steadfast_model::{ErrorObject, RequestId};

/// One message.
#[derive(Debug, Deserialize)]
pub(super) struct Frame {
    jsonrpc: String,
    #[serde(default)]
    pub(super) id: Option<RequestId>,
    #[serde(default)]
    pub(super) method: Option<String>,
    #[serde(default)]
    params: Option<Box<RawValue>>,
    #[serde(default)]
    result: Option<Box<RawValue>>,
    #[serde(default)]
    error: Option<ErrorObject>,
}

impl Frame {
    /// Reads what was put on the wire: one message, or those of a batch.
    pub(super) fn read(body: &[u8]) -> Vec<Self> {
        assert!(!body.contains(&b'\n'), "a message is one line");
        let frames = if body.starts_with(b"[") {
            serde_json::from_slice(body)
        } else {
            serde_json::from_slice(body).map(|frame| vec![frame])
        };
        let frames: Vec<Self> =
            frames.unwrap_or_else(|error| panic!("{} is no message: {error}", String::from_utf8_lossy(body)));
        assert!(!frames.is_empty(), "an empty batch says nothing");
        frames.iter().for_each(Self::assert_shape);
        frames
    }

    fn assert_shape(&self) {
        assert_eq!(self.jsonrpc, "2.0");
        let kinds = [self.method.is_some(), self.result.is_some(), self.error.is_some()];
        assert_eq!(kinds.iter().filter(|kind| **kind).count(), 1, "a message is one thing: {self:?}");
    }

    /// Reads the parameters.
    pub(super) fn params<'a, T: Deserialize<'a>>(&'a self) -> T {
        let text = self.params.as_ref().map_or("{}", |params| params.get());
        serde_json::from_str(text).unwrap_or_else(|error| panic!("the parameters {text} of {self:?}: {error}"))
    }

    /// The request that a result of ours says it belongs to.
    pub(super) fn tag(&self) -> Option<usize> {
        let tag: Tag = serde_json::from_str(self.result.as_ref()?.get()).ok()?;
        Some(tag.request)
    }

    /// Whether it is the result that ends a subscription under its id, of the connection's own making.
    pub(super) fn ends_subscription(&self) -> bool {
        let ending = self.result.as_ref().and_then(|result| serde_json::from_str::<Ending>(result.get()).ok());
        ending.is_some_and(|ending| Some(ending.meta.subscription) == self.id)
    }
}

#[derive(Deserialize)]
struct Ending {
    #[serde(rename = "_meta")]
    meta: EndingMeta,
}

#[derive(Deserialize)]
struct EndingMeta {
    #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
    subscription: RequestId,
}

/// What a handler puts in everything that it says, so that it is recognised on the wire.
#[derive(Debug, Deserialize, serde::Serialize)]
pub(super) struct Tag {
    pub(super) request: usize,
}
