//! Notifications about requests, encoded for one revision: progress, cancellation, log messages.

use serde::ser::SerializeMap;

use super::{Encode, ObjectEncoder};
use crate::feature::logging::{LoggingMessageParams, SetLevelParams};
use crate::message::cancel::CancelledParams;
use crate::message::progress::ProgressParams;
use crate::revision::Revision;

impl Encode for ProgressParams {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("progressToken", &self.progress_token)?;
        object.put("progress", &self.progress)?;
        object.some("total", self.total.as_ref())?;
        object.since(Revision::V2025_03_26, "message", self.message.as_ref())?;
        object.meta(self.meta.as_ref())
    }
}

impl Encode for CancelledParams {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.some("requestId", self.request_id.as_ref())?;
        object.some("reason", self.reason.as_ref())?;
        object.meta(self.meta.as_ref())
    }
}

impl Encode for LoggingMessageParams {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("level", &self.level)?;
        object.some("logger", self.logger.as_ref())?;
        object.put("data", &self.data)?;
        object.meta(self.meta.as_ref())
    }
}

impl Encode for SetLevelParams {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("level", &self.level)?;
        object.meta(self.meta.as_ref())
    }
}
